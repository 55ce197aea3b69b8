"""One run, measured each epoch: the points, the time that measuring takes, Ctrl-C."""

import signal

import numpy as np
import pytest

import swiftem
from paper.experiments.gmm import trace, warm_up
from swiftem import methods, models
from swiftem.data import ArraySource

MODEL = models.GaussianMixtureModel(n_components=2)
START = MODEL.theta(means=[[1.0], [-1.0]])
Y = np.random.default_rng(0).normal(size=50)


def first_mean(theta):
    return float(theta.means[0, 0])


@pytest.mark.parametrize("data", [Y, list(Y), ArraySource(Y)], ids=["array", "list", "source"])
def test_points_are_what_run_gives_after_each_epoch(data):
    method = methods.FastIncrementalEM(step_size=0.05)
    points = trace(MODEL, data, method, theta0=START, epochs=3, seed=4, measure=first_mean)
    assert [(point.epoch, point.passes) for point in points] == [(0, 1.0), (1, 3.0), (2, 5.0), (3, 7.0)]
    for epoch, point in enumerate(points):
        result = swiftem.run(MODEL, Y, method, theta0=START, n_iter=50 * epoch, seed=4)
        assert point.value == first_mean(result.theta)


def test_batches_make_epochs_of_fewer_iterations():
    method = methods.OnlineEM(step_size=0.1, batch_size=20)
    points = trace(MODEL, Y, method, theta0=START, epochs=2, seed=0, measure=first_mean)
    assert [point.passes for point in points] == [1.0, 2.2, 3.4]  # three batches of 20 are an epoch of 50


def test_measuring_is_not_counted(monkeypatch):
    now = 0.0
    monkeypatch.setattr("paper.experiments.gmm.perf_counter", lambda: now)

    def slowly(theta):
        nonlocal now
        now += 5.0
        return 0.0

    points = trace(MODEL, Y, methods.EM(), theta0=START, epochs=4, seed=0, measure=slowly)
    assert now == 25.0
    assert [point.seconds for point in points] == [0.0] * 5


def test_ctrl_c_leaves_no_half_curve():
    values = iter([0.0, 1.0])

    def press(theta):
        if next(values) >= 0.5:
            signal.raise_signal(signal.SIGINT)
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        trace(MODEL, Y, methods.OnlineEM(), theta0=START, epochs=4, seed=0, measure=press)


def test_warming_up_can_be_interrupted(monkeypatch):
    class Interrupted:
        status = "interrupted"

    assert warm_up(MODEL, Y, [methods.EM(), methods.OnlineEM()], START) > 0
    monkeypatch.setattr("paper.experiments.gmm.run", lambda *args, **options: Interrupted)
    with pytest.raises(KeyboardInterrupt):
        warm_up(MODEL, Y, [methods.EM()], START)
