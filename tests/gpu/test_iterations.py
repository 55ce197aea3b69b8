"""Iterations on a device compared with Algorithm 1 in NumPy."""

import numpy as np
import pytest
from gpu_problems import KINDS, clusters, problem

from swiftem import methods
from swiftem._run import run_problem
from swiftem.core.compute import Placement
from swiftem.mixture.compute.torch_loop import TorchLoop

METHODS = {
    "sem": methods.OnlineEM(0.2, 40),
    "iem": methods.IncrementalEM(40),
    "sem-vr": methods.VarianceReducedEM(0.2, 40, epoch_length=30),
    "fiem": methods.FastIncrementalEM(0.2, 40),
    "opt-fiem": methods.OptFIEM(0.2, 40),
    "spider": methods.SpiderEM(0.2, 40, epoch_length=30),
    "shuffled": methods.FastIncrementalEM(0.2, 40, order="shuffled", memory_order="shuffled"),
    "weighted": methods.FastIncrementalEM(0.2, 40, order="weighted", memory_dtype="float32"),
}


@pytest.fixture
def stretches(monkeypatch):
    """Return the lengths of stretches that are done on the device."""
    iterate, found = TorchLoop.iterate, []

    def counted(loop, steps, drawn):
        found.append(len(steps))
        return iterate(loop, steps, drawn)

    monkeypatch.setattr(TorchLoop, "iterate", counted)
    return found


def both(y, kind, method, weight=None, **options):
    """Return the run on the device and that of the reference."""
    here, theta = problem(y, kind, weight=weight)
    there, _ = problem(y, kind, placement=Placement(form="reference"), weight=weight)
    options = {"theta0": theta, "n_iter": 200, "seed": 0, **options}
    return [run_problem(each, method, **options) for each in (here, there)]


def same(found, expected, tolerance=1e-8):
    scale = np.abs(expected.s).max()
    np.testing.assert_allclose(found.s, expected.s, rtol=tolerance, atol=tolerance * scale)
    assert found.rejected == expected.rejected
    assert found.passes == expected.passes
    for name, part in expected.state.method._asdict().items():
        if isinstance(part, np.ndarray):
            np.testing.assert_allclose(
                getattr(found.state.method, name), part, rtol=1e-6, atol=tolerance * max(1.0, scale)
            )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_a_trajectory_is_that_of_the_reference(stretches, kind, name):
    weight = np.random.default_rng(3).uniform(0.2, 3.0, size=600) if name in ("weighted", "sem") else None
    found, expected = both(clusters(600), kind, METHODS[name], weight)
    assert sum(stretches) == (0 if name == "opt-fiem" else 200)  # λ is learned iteration by iteration
    same(found, expected)


@pytest.mark.parametrize("name", ["sem-vr", "fiem", "spider", "opt-fiem"])
def test_records_and_stretches_change_no_bit(name):
    y, method = clusters(600), METHODS[name]
    whole = both(y, "full", method)[0]
    recorded = both(y, "full", method, record_every=37)[0]
    np.testing.assert_array_equal(recorded.s, whole.s)
    here, theta = problem(y)
    half = run_problem(here, method, theta0=theta, n_iter=77, seed=0)
    rest = run_problem(here, method, theta0=half.theta, s0=half.s, state=half.state, n_iter=123)
    np.testing.assert_array_equal(rest.s, whole.s)


def test_rejected_steps_are_counted():
    found, expected = both(clusters(300), "diag", methods.VarianceReducedEM(1.0, 4, epoch_length=30))
    assert 20 < expected.rejected < 180
    same(found, expected)


@pytest.mark.parametrize("kind", ["full", "diag"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_memory_that_does_not_fit_is_on_the_host(monkeypatch, stretches, caplog, kind, dtype):
    from swiftem.mixture.compute.torch import DeviceRows

    y = clusters(600, dtype=dtype)
    whole = both(y, kind, METHODS["fiem"])[0]
    monkeypatch.setattr(DeviceRows, "fits", lambda self, needed: needed != 8 * 601 * 4)
    with caplog.at_level("INFO", logger="swiftem"):
        found = both(y, kind, METHODS["fiem"])[0]
    assert "the memory of fiem stays in pinned memory of the CPU" in caplog.text
    assert sum(stretches) == 400
    np.testing.assert_array_equal(found.s, whole.s)
    np.testing.assert_array_equal(found.state.method.memory, whole.state.method.memory)


def test_many_differences_are_computed_from_expanded_squares(monkeypatch):
    from swiftem.mixture.compute import torch_loop

    monkeypatch.setattr(torch_loop, "NUMBERS", 1)
    for kind in KINDS:
        same(*both(clusters(600), kind, METHODS["sem"]))


def test_indices_fit_into_their_memory(monkeypatch):
    from swiftem.mixture.compute import torch_loop

    monkeypatch.setattr(torch_loop, "INDICES", 40 * 7)
    same(*both(clusters(600), "full", METHODS["sem"]))
