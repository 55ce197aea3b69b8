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
        # Matrix products truncate their sums.
        assert max(errors) < (2e-5 if name.endswith("dense") else 1e-6), (
            kind,
            d,
            n_components,
            options,
            name,
            errors,
        )


def test_one_kernel_of_each_kind():
    found = lines_of(SCRIPT, 1, 6, 7, 12)
    assert {name for *_, name, _ in found} == {"DenseRows", "FullRows", "TwoPasses", "WhiteRows"}
    check(found)


@pytest.mark.slow
def test_all_kinds():
    found = lines_of(SCRIPT)
    assert len(found) == 16
    check(found)


@pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0),
    reason="a GPU of compute capability 9.0 is needed",
)
def test_kernels_in_gluon():
    found = lines_of(SCRIPT, "large")
    assert len(found) == 14
    names = {name for *_, name, _ in found}
    assert names == {"HopperDense", "HopperPasses", "HopperWhite", "HopperWhite, dense"}
    check(found)


def test_kernels_in_gluon_compile():
    """Without a GPU they cannot run: the compiler is told that there is one."""
    pytest.importorskip("triton.experimental.gluon.nvidia.hopper", reason="Triton has no Gluon for Hopper")
    for name, spilled in lines_of(Path(__file__).with_name("compile_gluon.py")):
        assert spilled < 160, name  # bytes of a thread's registers in memory: 8 with Triton 3.6, 120 with 3.9


def test_without_a_gpu_the_passes_are_those_of_pytorch():
    from gpu_problems import clusters, problem

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    here, theta = problem(clusters(300))
    here.e_step.full(theta)
    assert here.e_step.fast is None
