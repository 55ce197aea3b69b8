"""Averages of a method's statistics: what is averaged, and what callbacks see."""

import helpers
import numpy as np
import pytest
from helpers import assert_close

import swiftem
from swiftem import methods, schedules

STEP = schedules.power(1.0, 0.6, 5.0)
AVERAGES = pytest.mark.parametrize("average", ["suffix", 1, 50, 1000])
MAKE = pytest.mark.parametrize("make", ["mixture", "topics"])


def expected(points, number, average):
    """Return the mean of the points up to ``number``, from the last restart but one on."""
    if average == "suffix":
        begins = [2**j for j in range(20) if 2**j <= number]
    else:
        per_window = -(-average // max(1, average // 16))
        begins = [p for p in range(0, number + 1) if p % per_window == 0]
    first = ([0, *begins])[-2] if len(begins) < 2 else begins[-2]
    return np.mean([points[p] for p in range(max(1, first), number + 1)], axis=0)


@AVERAGES
@MAKE
@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_what_is_averaged(make, average, kernels):
    """Against the statistics of the same run without averages, at every point."""
    problem, n_iter = helpers.PROBLEMS[make](160), 700
    every = max(1, (160 if average == "suffix" else average) // 16)
    options = {"n_iter": n_iter, "seed": 3, "kernels": kernels, "record_every": every}
    plain = problem.run(methods.OnlineEM(step_size=STEP), **options)
    averaged = problem.run(methods.Averaged(methods.OnlineEM(step_size=STEP), average), **options)
    points = [iterate.s for iterate in plain.path]
    for number, iterate in enumerate(averaged.path):
        if number:
            s = expected(points, number, average)
            assert_close(iterate.s, s)
            bound = problem.model.bind(swiftem.data.as_source(problem.data))
            for one, other in zip(iterate.theta, bound.m_step(s), strict=True):
                assert_close(one, other)
    np.testing.assert_array_equal(averaged.state.averages.s, plain.s)
    assert averaged.passes == plain.passes


def test_a_callback_sees_averages_and_can_stop():
    seen, problem = [], helpers.mixture(32)
    method = methods.Averaged(methods.OnlineEM(step_size=STEP))
    result = problem.run(
        method, n_iter=400, seed=0, record_every=8, callback=lambda it: seen.append(it.s) or it.k >= 80
    )
    assert result.status == "stopped"
    np.testing.assert_array_equal(result.s, seen[-1])
    assert np.abs(result.state.averages.s - result.s).max() > 0


@pytest.mark.parametrize(
    ("average", "error", "match"),
    [
        ("window", ValueError, "window must be 'suffix' or an integer, got 'window'"),
        (0, ValueError, "window must be at least 1, got 0"),
        (2.5, TypeError, "window must be an integer"),
    ],
)
def test_bad_averages(average, error, match):
    with pytest.raises(error, match=match):
        methods.Averaged(methods.OnlineEM(), average)


@pytest.mark.parametrize("method", ["sem", methods.Averaged(methods.OnlineEM()), methods.OnlineEM])
def test_only_methods_are_averaged(method):
    with pytest.raises(TypeError, match="method must be a method that is not averaged"):
        methods.Averaged(method)


@pytest.mark.parametrize("method", [methods.FastIncrementalEM(0.1), methods.VarianceReducedEM(0.1)], ids=repr)
@MAKE
def test_any_method_is_averaged(make, method):
    """Iterations are the same, compiled ones included; the result is another."""
    problem, n_iter = helpers.PROBLEMS[make](160), 700
    plain = problem.run(method, n_iter=n_iter, seed=3)
    averaged = problem.run(methods.Averaged(method, 100), n_iter=n_iter, seed=3)
    np.testing.assert_array_equal(averaged.state.averages.s, plain.s)
    assert np.abs(averaged.s - plain.s).max() > 0
