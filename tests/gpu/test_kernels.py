"""The kernels in Triton compared with the passes in PyTorch: on a GPU, or by Triton's interpreter.

They run in a process of their own: the interpreter is chosen before Triton is imported.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_problems import torch

pytest.importorskip("triton", reason="Triton is not installed: make gpu-test-parts")
SCRIPT = Path(__file__).with_name("kernels_against_passes.py")


def errors_of(*numbers):
    """Return the errors of the cases with these numbers; of all if there are none."""
    environment = dict(os.environ)
    if not torch.cuda.is_available():
        environment["TRITON_INTERPRET"] = "1"
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, numbers)], env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(found):
    for kind, _, d, n_components, options, name, errors in found:
        assert max(errors) < 1e-6, (kind, d, n_components, options, name, errors)


def test_one_kernel_of_each_kind():
    found = errors_of(1, 6, 7)
    assert {name for *_, name, _ in found} == {"DenseRows", "FullRows", "TwoPasses"}
    check(found)


@pytest.mark.slow
def test_all_kinds():
    found = errors_of()
    assert len(found) == 10
    check(found)


def test_without_a_gpu_the_passes_are_those_of_pytorch():
    from gpu_problems import clusters, problem

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    here, theta = problem(clusters(300))
    here.e_step.full(theta)
    assert here.e_step._fast is None
