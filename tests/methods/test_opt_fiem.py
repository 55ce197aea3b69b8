"""opt-FIEM: λ = 1 is fiem, the learned λ is that of least variance, and compiled stretches do the same."""

import helpers
import numpy as np
import pytest

import swiftem
from swiftem import methods, models, schedules
from swiftem.methods.opt_fiem import learn

KINDS = ("unit", "full", "tied", "diag", "spherical")
SIZES = pytest.mark.parametrize("b", [1, 6, 1100])  # mixtures with unit variances have two kinds of loops


def rows(n=120):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [4.0, 1.0]])[rng.integers(2, size=n)]


@SIZES
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernels", ["auto", "reference"])
@pytest.mark.parametrize("make", [*KINDS, "topics"])
def test_one_is_fiem_to_the_last_bit(make, kernels, dtype, b):
    options = {"step_size": 0.1, "batch_size": b, "memory_dtype": dtype}
    chosen = methods.FastIncrementalEM(**options), methods.OptFIEM(correction=1.0, **options)
    if make == "topics":
        problem = helpers.topics(90, D=6, V=7, K=3)
        found = [problem.run(method, n_iter=60, seed=3, kernels=kernels) for method in chosen]
    else:
        model = models.GaussianMixtureModel(2, covariance=make)
        found = [swiftem.run(model, rows(), way, n_iter=60, seed=3, kernels=kernels) for way in chosen]
    helpers.assert_identical(found[0].theta, found[1].theta)
    helpers.assert_identical(
        (found[0].s, found[0].state.method.memory), (found[1].s, found[1].state.method.memory)
    )


def test_the_rule():
    np.testing.assert_array_equal(learn(np.array([0.0, 0.0, 1.0]), np.zeros(2), np.zeros(2)), [0.0, 0.0, 1.0])
    assert learn(np.array([0.0, 0.0, 1.0]), -np.ones(2), np.ones(2))[2] == 0.0
    assert learn(np.array([0.0, 0.0, 1.0]), 9 * np.ones(2), np.ones(2))[2] == 2.0


def test_a_state_of_a_fixed_coefficient_continues_with_a_learned_one():
    problem = helpers.topics(90, D=6, V=7, K=3)
    first = problem.run(methods.OptFIEM(step_size=0.1, correction=0.5), n_iter=30, seed=0)
    start = {"theta0": first.theta, "s0": first.s, "state": first.state, "n_iter": 30}
    both = [
        problem.run(methods.OptFIEM(step_size=0.1), kernels=way, **start) for way in ("auto", "reference")
    ]
    helpers.assert_close(both[0].s, both[1].s)
    assert both[0].state.method.moments[2] != 0.5


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"correction": "best"}, ValueError, "correction must be 'optimal', got 'best'"),
        ({"correction": 1.5}, ValueError, "correction must be at most 1, got 1.5"),
        ({"correction": -0.1}, ValueError, "correction must be finite and at least 0, got -0.1"),
        ({"correction": None}, TypeError, "correction must be"),
        ({"memory_order": "sorted"}, ValueError, "memory_order must be 'iid' or 'shuffled', got 'sorted'"),
        ({"memory_dtype": "int8"}, ValueError, "memory_dtype must be 'float64' or 'float32', got 'int8'"),
    ],
)
def test_bad_hyper_parameters(options, error, match):
    with pytest.raises(error, match=match):
        methods.OptFIEM(**options)


@pytest.mark.parametrize("n", [1000, 10**6])
@pytest.mark.parametrize("n_iter", [None, 300, 10**7])
def test_the_steps_of_the_paper(n, n_iter):
    """They solve their equation, for the best λ on a grid of other values."""
    L_s, L_V, upsilon, mu = 3.0, 2.0, 0.4, 0.25
    gamma = schedules.fiem_bound(L_s, L_V, upsilon, n_iter, mu).resolve(n, 1)(1)
    right = 2 * mu * upsilon * L_s / L_V
    if n_iter == 300:
        C = (gamma * L_s) ** 2 * (n * n_iter) ** (2 / 3)
        left = (n * n_iter) ** (-1 / 3) + C * (1 / n_iter + 1) * np.exp(1 + C * n ** (-1 / 3))
        assert np.sqrt(C) * left == pytest.approx(right, rel=1e-9)
        return
    C = (gamma * L_s) ** 2 * (n ** (4 / 3) if n_iter is None else (n * n_iter) ** (2 / 3))
    kept = np.linspace(0.3, 0.8, 51)
    left = n ** (-2 / 3) + C / (kept - C * n ** (-1 / 3)) * (1 / n + 1 / (1 - kept))
    assert (np.sqrt(C) * left).min() == pytest.approx(right, rel=1e-3)
    assert gamma < 1 / n ** (2 / 3)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"L_s": 0.0}, "L_s must be positive, got 0.0"),
        ({"mu": 1.0}, "mu must be below 1, got 1.0"),
        ({"n_iter": 0}, "n_iter must be at least 1, got 0"),
    ],
)
def test_bad_constants(options, match):
    with pytest.raises(ValueError, match=match):
        schedules.fiem_bound(**{"L_s": 1.0, "L_V": 1.0, "upsilon_min": 0.5} | options)
