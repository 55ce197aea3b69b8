"""The kernels in Triton compared with the passes in PyTorch: on a GPU, or by Triton's interpreter.

They run in a process of their own: the interpreter is chosen before Triton is imported.
"""

from pathlib import Path

import pytest
from gpu_problems import lines_of, torch

pytest.importorskip("triton", reason="Triton is not installed: make gpu-test-parts")
SCRIPT = Path(__file__).with_name("kernels_against_passes.py")


def check(found):
    for kind, _, d, n_components, options, name, errors in found:
        assert max(errors) < 1e-6, (kind, d, n_components, options, name, errors)


def test_one_kernel_of_each_kind():
    found = lines_of(SCRIPT, 1, 6, 7, 10)
    assert {name for *_, name, _ in found} == {"OnePass", "TwoPasses", "ManyColumns"}
    check(found)


@pytest.mark.slow
def test_all_kinds():
    found = lines_of(SCRIPT)
    assert len(found) == 14
    check(found)


def test_without_a_gpu_the_passes_are_those_of_pytorch():
    from gpu_problems import clusters, problem

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    here, theta = problem(clusters(300))
    here.compute.full(theta)
    assert here.compute._kernel_rows is None
