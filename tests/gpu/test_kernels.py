"""The kernels in Triton compared with the passes in PyTorch: on a GPU, or by Triton's interpreter.

They run in a process of their own: the interpreter is chosen before Triton is imported.
"""

from pathlib import Path

import pytest
from gpu_problems import KINDS, lines_of

pytest.importorskip("triton", reason="Triton is not installed: make gpu-test-parts")
SCRIPT = Path(__file__).with_name("kernels_against_passes.py")


def check(found):
    for kind, _, d, n_components, options, name, errors in found:
        assert max(errors) < 1e-6, (kind, d, n_components, options, name, errors)


def test_one_kernel_of_each_kind():
    found = lines_of(SCRIPT, 1, 6, 7, 10, 14, 21)
    made = {"OnePass", "TwoPasses", "ManyColumns", "StoredLogits", "WhitenedRows"}
    assert {name for *_, name, _ in found} == made
    check(found)


@pytest.mark.slow
def test_whole_fits_from_random_rows_are_in_float32():
    """All components have collapsed in the first pass, which is exact; products are enough for the rest."""
    for kind, (forms, error) in zip(KINDS, sorted_by_kind(lines_of(SCRIPT, "fits")), strict=True):
        assert forms == [1, 0, 0, 0, 0, 0], kind
        assert error < 1e-5, kind


def sorted_by_kind(found):
    """Return what follows the kind, in the order of the kinds."""
    by_kind = {kind: rest for kind, *rest in found}
    return [by_kind[kind] for kind in KINDS]


@pytest.mark.slow
def test_all_kinds():
    found = lines_of(SCRIPT)
    assert len(found) == 23
    check(found)
