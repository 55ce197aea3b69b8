"""What holds of all experiments: seeds, progress, Ctrl-C; and one run, measured each epoch."""

import signal
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import swiftem
from paper.experiments import experiment as module
from paper.experiments.experiment import trace
from paper.reproduce import EXPERIMENTS
from paper.tests.conftest import SMALL
from swiftem import methods, models
from swiftem.data import ArraySource

MODEL = models.GaussianMixtureModel(n_components=2)
START = MODEL.theta(means=[[1.0], [-1.0]])
Y = np.random.default_rng(0).normal(size=50)


KEYS = {
    "gmm-precision": ("run", "method"),
    "gmm-scaling": ("n", "run"),
    "plsa": ("corpus", "run", "steps", "method"),
    "theory": ("n",),
    "methods": ("part", "problem", "n", "run"),
}
"""What Ctrl-C must not leave in parts: a curve, a sample or a problem."""
JOBS = {
    "gmm-precision": {"EM until convergence", "em", "sem", "iem", "sem-vr", "fiem", "fiem-shuffled"},
    "gmm-scaling": {"known weights, n = 40", "known weights, n = 80"},
    "plsa": {"reading texts", *(f"toy: {name}" for name in ("em", "sem", "iem", "sem-vr", "fiem"))},
    "theory": {"n = 20", "n = 40"},
    "methods": {"the paper's mixture: two unit variances", "paper's mixture, n = 40", "variances of proxies"},
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_seeds_progress_and_ctrl_c(name, ctrl_c):
    def rows(experiment):
        return [str(row._replace(seconds=0.0) if hasattr(row, "seconds") else row) for row in experiment.rows]

    def count(experiment):
        return Counter(tuple(getattr(row, key) for key in KEYS[name]) for row in experiment.rows)

    def run(**options):
        return EXPERIMENTS[name][0](**{"runs": 2, "seed": 7, **SMALL[name], **options})

    progress = ctrl_c()
    whole = run(progress=progress)
    assert (whole.name, whole.interrupted) == (name, False)
    told = [doing for doing, _ in progress.told]
    assert set(told) >= JOBS[name]
    shares = [share for _, share in progress.told]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] < 1.0
    one = run(runs=1)
    assert set(rows(one)) <= set(rows(whole))  # more runs change none
    assert rows(run(runs=1)) == rows(one)
    assert rows(run(runs=1, seed=8)) != rows(one)
    for place in (0, len(told) // 2, len(told) - 1):
        part = run(progress=ctrl_c(told[place], times=told[: place + 1].count(told[place])))
        assert part.interrupted
        assert rows(part) == rows(whole)[: len(part.rows)]
        assert count(part).items() <= count(whole).items()
        assert (len(part.rows) > 0) == (place > 0)


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


def test_neither_measuring_nor_compiling_is_counted(monkeypatch):
    now, runs = 0.0, []
    monkeypatch.setattr(module, "perf_counter", lambda: now)

    def slowly(theta=None):
        nonlocal now
        now += 5.0
        return 0.0

    def run(*args, **options):
        runs.append(options["n_iter"])
        if len(runs) == 1:
            slowly()
        return swiftem.run(*args, **options)

    monkeypatch.setattr(module, "run", run)
    points = trace(MODEL, Y, methods.EM(), theta0=START, epochs=4, seed=0, measure=slowly)
    assert (now, runs) == (30.0, [2, 4])
    assert [point.seconds for point in points] == [0.0] * 5


def test_ctrl_c_leaves_no_half_curve(monkeypatch):
    values = iter([0.0, 1.0])

    def press(theta):
        if next(values) >= 0.5:
            signal.raise_signal(signal.SIGINT)
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        trace(MODEL, Y, methods.OnlineEM(), theta0=START, epochs=4, seed=0, measure=press)

    def interrupted(*args, **options):
        return replace(swiftem.run(*args, **options), status="interrupted")

    monkeypatch.setattr(module, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):  # while it is compiled
        trace(MODEL, Y, methods.EM(), theta0=START, epochs=4, seed=0, measure=first_mean)
