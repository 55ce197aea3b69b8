"""The Gaussian example: the reference, the rows, the paper's finding, Ctrl-C."""

import signal

import numpy as np
import pytest

import swiftem
from swiftem import methods
from swiftem.experiments import gaussian


def test_data_have_the_papers_moments():
    y = gaussian.gaussian_data(200_000, np.random.default_rng(1))
    assert y.shape == (200_000,)
    assert y.mean() == pytest.approx(0.0, abs=0.02)
    assert y.var() == pytest.approx(1.25, abs=0.02)


def test_the_limit_is_a_fixed_point_of_em():
    y = gaussian.gaussian_data(500, np.random.default_rng(3))
    stages = []
    limit = gaussian.batch_em_limit(y, lambda stage, share: stages.append((stage, share)))
    again = swiftem.run(gaussian.MODEL, y, methods.EM(), theta0=limit.theta, n_iter=1)
    assert limit.converged
    np.testing.assert_allclose(again.theta.means, limit.theta.means, rtol=0, atol=2e-15)
    shares = [share for _, share in stages]
    assert {stage for stage, _ in stages} == {"reference"}
    assert min(shares) >= 0
    assert shares[-1] == 1


def test_a_limit_that_is_not_reached_is_said_so(monkeypatch):
    monkeypatch.setattr(gaussian, "MOST_PASSES", 3)
    limit = gaussian.batch_em_limit(gaussian.gaussian_data(50, np.random.default_rng(0)))
    assert (limit.n_iter, limit.converged) == (3, False)


def test_rows_of_each_method_and_epoch():
    result = gaussian.gaussian_convergence(n=200, epochs=3, seed=2)
    assert not result.interrupted
    assert [(row.method, row.epoch) for row in result.rows] == [
        (method, epoch) for method in ("em", "sem", "iem", "sem-vr", "fiem") for epoch in range(4)
    ]
    passes = {row.method: row.passes for row in result.rows if row.epoch == 3}
    # The first pass, then: one an epoch; an anchor and two evaluations; two evaluations.
    assert passes == {"em": 4, "sem": 4, "iem": 4, "sem-vr": 10, "fiem": 7}
    starts = {row.squared_error for row in result.rows if row.epoch == 0}
    assert starts == {float(((np.array([[1.0], [-1.0]]) - result.limit.theta.means) ** 2).sum())}
    for method in ("em", "fiem"):
        seconds = [row.seconds for row in result.rows if row.method == method]
        assert seconds == sorted(seconds)
    assert [len(series) for series in result.errors.values()] == [4] * 5


def test_a_row_is_what_run_gives():
    result = gaussian.gaussian_convergence(n=100, epochs=2, seed=5)
    y = gaussian.gaussian_data(100, np.random.default_rng(5))
    method = methods.FastIncrementalEM(step_size=0.003)
    run = swiftem.run(gaussian.MODEL, y, method, theta0=gaussian.START, n_iter=200, seed=5)
    expected = float(((run.theta.means - result.limit.theta.means) ** 2).sum())
    assert result.errors["fiem"][-1] == expected


def test_same_seed_same_errors():
    first = gaussian.gaussian_convergence(n=60, epochs=2, seed=7)
    assert first.errors == gaussian.gaussian_convergence(n=60, epochs=2, seed=7).errors
    assert first.errors != gaussian.gaussian_convergence(n=60, epochs=2, seed=8).errors


def test_progress_covers_every_stage():
    seen = {}
    gaussian.gaussian_convergence(n=50, epochs=2, progress=seen.__setitem__)
    assert seen == dict.fromkeys(("reference", "em", "sem", "iem", "sem-vr", "fiem"), 1.0)


def test_ctrl_c_keeps_complete_epochs():
    def press_ctrl_c(stage, share):
        if stage == "iem" and share >= 0.5:
            signal.raise_signal(signal.SIGINT)

    result = gaussian.gaussian_convergence(n=80, epochs=4, progress=press_ctrl_c)
    assert result.interrupted
    assert {method: len(series) for method, series in result.errors.items()} == {"em": 5, "sem": 5, "iem": 3}


def test_ctrl_c_during_the_reference_leaves_no_rows():
    def press_ctrl_c(stage, share):
        signal.raise_signal(signal.SIGINT)

    result = gaussian.gaussian_convergence(n=80, epochs=4, progress=press_ctrl_c)
    assert (result.interrupted, result.limit, result.rows) == (True, None, ())


@pytest.mark.parametrize(
    ("arguments", "name"), [({"n": 1}, "n"), ({"epochs": 0}, "epochs"), ({"seed": -1}, "seed")]
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must be at least"):
        gaussian.gaussian_convergence(**arguments)


@pytest.mark.slow
def test_the_papers_finding_at_its_size():
    """After 100 epochs at n = 10,000 sEM-VR and fiEM have converged; nothing else has."""
    errors = gaussian.gaussian_convergence(n=10_000, epochs=100).errors
    for method in ("sem-vr", "fiem"):
        assert errors[method][-1] < 1e-15
    for method in ("em", "sem", "iem"):
        assert errors[method][-1] > 1e-6
