"""Runs of methods with a state of their own, in parts and from checkpoints, are one run to the last bit."""

import pickle

import helpers
import numpy as np
import pytest
from helpers import NAMES, STOCHASTIC, assert_same_path, assert_same_result, make_method
from own_method import UPDATES, own

from swiftem import methods, models, schedules

N_ITER = 100
STEP = schedules.power(1.0, 0.6, 5.0)
METHODS = {
    **{  # large steps: some are rejected, and statistics of pLSA fall below zero
        name: make_method(name, step_size=schedules.power(0.9, 0.1), batch_size=2, epoch_length=5)
        for name in NAMES
    },
    **{name: methods.Accelerated(methods.EM(), name) for name in ("squarem", "anderson")},
    **{
        f"averaged, {window}": methods.Averaged(methods.OnlineEM(step_size=STEP, batch_size=2), window)
        for window in ("suffix", 1, 50, 1000)
    },
    **{
        f"{name}, b={b}": make_method(
            name, step_size=0.1, batch_size=b, epoch_length=9, renewals="geometric", memory_order="shuffled"
        )
        for name in ("spider", "opt-fiem") for b in (1, 6, 1100)
    },
    **{
        f"{name}, {order}": make_method(name, step_size=0.05, batch_size=3, order=order)
        for name in STOCHASTIC for order in ("shuffled", "weighted")
    },
    **{
        name: own(update, step_size=schedules.power(0.9, 0.5), batch_size=2)
        for name, update in UPDATES.items()
    },
}  # fmt: skip


def problem_of(make):
    if make == "topics":
        return helpers.topics(90, D=6, V=7, K=3)._replace(sample_weight=np.linspace(0.5, 2.0, 6))
    rng = np.random.default_rng(0)
    y = rng.normal(size=(120, 2)) + np.array([[0.0, 0.0], [4.0, 1.0]])[rng.integers(2, size=120)]
    model = models.GaussianMixtureModel(2, covariance=make)
    return helpers.Problem(model, y, None, 120, None, np.linspace(0.5, 2.0, 120))


class Death(Exception):
    """Stands for the end of a process."""


def die(iterate):
    if iterate.k == 50:
        raise Death


@pytest.mark.filterwarnings("ignore:All 7 steps")
@pytest.mark.parametrize("make", ["unit", "full", "topics"])
@helpers.parametrize_cases(METHODS)
def test_parts_are_the_whole(case, make, tmp_path):
    """Parts in one process or several, runs that died, and runs that are made longer."""
    problem = problem_of(make)
    whole = problem.run(case, n_iter=N_ITER, seed=1, record_every=10)
    for parts in ((0, 1, 99), (13, 0, 87), (7,) * 14 + (2,)):
        result = problem.run(case, n_iter=parts[0], seed=1, record_every=10)
        path = result.path
        for n_iter in parts[1:]:
            result = pickle.loads(pickle.dumps(result))
            start = {"theta0": result.theta, "s0": result.s, "state": result.state}
            result = problem.run(case, n_iter=n_iter, record_every=10, **start)
            path += result.path
        assert_same_result(result, whole)
        assert_same_path(path, whole.path)
    kept = {"checkpoint": tmp_path / "run", "checkpoint_every": 7, "resume": "auto", "record_every": 10}
    with pytest.raises(Death):
        problem.run(case, n_iter=57, seed=1, callback=die, **kept)
    for n_iter in (57, N_ITER, N_ITER):  # at the end there is nothing left to do
        resumed = problem.run(case, n_iter=n_iter, seed=1, **kept)
    assert_same_result(resumed, whole)
    assert_same_path(resumed.path, whole.path)
