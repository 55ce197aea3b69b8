"""Iterations by the kernels in Triton compared with Algorithm 1 in NumPy: on a GPU, or by the interpreter.

They run in a process of their own: the interpreter is chosen before Triton is imported.
"""

from pathlib import Path

import pytest
from gpu_problems import lines_of

pytest.importorskip("triton", reason="Triton is not installed: make gpu-test-parts")
SCRIPT = Path(__file__).with_name("batches_against_iterations.py")


def check(found):
    for name, errors, rejected, is_same in found:
        assert max(errors) < 3e-5, (name, errors)
        assert rejected[0] == rejected[1], (name, rejected)
        assert is_same, f"records change bits of {name}"


def test_em_and_methods_with_a_memory_and_an_anchor():
    check(lines_of(SCRIPT, 1, 3, 4))


@pytest.mark.slow
def test_all_methods():
    found = lines_of(SCRIPT)
    assert len(found) == 11
    check(found)
