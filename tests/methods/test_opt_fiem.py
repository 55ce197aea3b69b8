"""opt-FIEM: λ = 1 is fiem, the learned λ is that of least variance, and compiled stretches do the same."""

import helpers
import numpy as np
import pytest

import swiftem
from swiftem import methods, models, schedules
from swiftem.core.compute import Compute
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


def proxies(method, problem, coefficient, repetitions):
    """Return proxies of many batches from one old memory, at λ = ``coefficient``."""
    source = swiftem.data.ArraySource(problem.data)
    bound = problem.model.bind(source)
    e_step = Compute(bound, source)
    s, memory = e_step.remember(problem.theta0)
    theta = problem.theta0
    for _ in range(30):
        theta = bound.m_step(e_step.full(theta))
    state = method.init(problem.theta0, s, memory)._replace(moments=np.array([0.0, 0.0, coefficient]))
    rng, found = np.random.default_rng(1), []
    for _ in range(repetitions):
        i = rng.integers(source.n, size=method.batch_size)
        proxy, after = method.proxy(0, theta, (i, i), state._replace(memory=memory.copy()), e_step)
        state = state._replace(moments=after.moments)
        found.append(proxy)
    return np.array(found), state.moments, e_step.full(theta), e_step, theta, memory, s


@pytest.mark.parametrize("b", [1, 5])
def test_the_coefficient_has_the_least_variance(b):
    """λ* from all samples; the learned one is near it, and its proxy has less variance than that of fiem."""
    problem = helpers.mixture(400, d=2, M=3, spread=3.0, seed=2)
    fixed = {
        value: proxies(methods.OptFIEM(batch_size=b, correction=value), problem, value, 4000)
        for value in (0.0, 1.0)
    }
    learned, moments, mean, e_step, theta, memory, centre = proxies(
        methods.OptFIEM(batch_size=b), problem, 1.0, 4000
    )
    single = [e_step.take(np.array([i])) for i in range(e_step.n)]
    now = np.array([e_step.mean(one, e_step.rows(one, theta)) for one in single])
    kept = np.array([e_step.mean(one, memory[one.index]) for one in single])
    best = np.sum((now - mean) * (kept - centre)) / np.sum((kept - centre) ** 2)
    assert abs(moments[2] - best) < 0.15
    spread = {value: found[0].var(axis=0).sum() for value, found in fixed.items()}
    assert abs(best - 1.0) > 0.1
    assert learned.var(axis=0).sum() < 0.97 * min(spread.values())
    np.testing.assert_allclose(learned.mean(axis=0), mean, atol=5 * np.sqrt(learned.var(axis=0).max() / 4000))


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


def test_it_works_by_name_in_the_estimators():
    y = rows(3000)
    fitted = swiftem.GaussianMixture(2, method="opt-fiem", random_state=0).fit(y)
    exact = swiftem.GaussianMixture(2, method="em", random_state=0).fit(y)
    assert abs(fitted.score(y) - exact.score(y)) < 1e-3
    family = swiftem.Mixture(2, family="poisson", method="opt-fiem", random_state=0)
    assert family.fit(np.random.default_rng(0).poisson(3.0, size=(2000, 2))).method_ == "opt-fiem"


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
