import helpers
import numpy as np
import pytest
import scipy.stats

from swiftem.data import ArraySource
from swiftem.models import GaussianMixtureModel, GaussianMixtureTheta

S = np.array([0.3, 0.7, 1.0, 2.0, -3.0, 0.5])  # M = 2, d = 2


def bound(model, y=((0.0, 1.0), (2.0, 3.0))):
    return model.bind(ArraySource(np.array(y)))


@pytest.mark.parametrize(("b", "d", "M"), [(1, 1, 1), (5, 1, 2), (4, 3, 2), (2, 2, 6)])
def test_posterior_and_statistics(b, d, M):
    """Against densities of SciPy and one loop over everything."""
    rng = np.random.default_rng(0)
    y, means, weights = rng.normal(size=(b, d)), rng.normal(size=(M, d)), rng.dirichlet(np.ones(M))
    densities = [scipy.stats.multivariate_normal(mean).pdf for mean in means]
    joint = np.array([[weights[m] * densities[m](row) for m in range(M)] for row in y])
    source = ArraySource(y)
    model = GaussianMixtureModel(M).bind(source, centre=np.zeros(d))
    batch, theta = source.take(np.arange(b)), GaussianMixtureTheta(weights, means)
    rows, log_likelihood = model.posterior(batch, theta)
    np.testing.assert_allclose(log_likelihood, np.log(joint.sum(axis=1)), rtol=1e-12)
    np.testing.assert_allclose(rows, joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(model.log_densities(batch, theta) + np.log(weights), np.log(joint), rtol=1e-12)

    weight = rng.normal(size=b)
    expected = np.zeros(M + M * d)
    for i in range(b):
        for m in range(M):
            expected[m] += weight[i] * rows[i, m]
            for column in range(d):
                expected[M + m * d + column] += weight[i] * rows[i, m] * y[i, column]
    np.testing.assert_allclose(model.statistics(batch, rows, weight), expected, rtol=1e-12, atol=1e-15)


def test_m_step():
    theta = bound(GaussianMixtureModel(2, delta=0.2, epsilon=0.1)).m_step(S)
    np.testing.assert_allclose(theta.weights, [0.4 / 1.2, 0.8 / 1.2], rtol=1e-15)
    np.testing.assert_allclose(theta.means, [[1 / 0.5, 2 / 0.5], [-3 / 0.9, 0.5 / 0.9]], rtol=1e-15)


def test_m_step_with_known_weights():
    theta = bound(GaussianMixtureModel(2, delta=0.0, known_weights=[0.25, 0.75])).m_step(S)
    np.testing.assert_array_equal(theta.weights, [0.25, 0.75])
    np.testing.assert_allclose(theta.means[1], [-3 / 0.7, 0.5 / 0.7], rtol=1e-15)


@pytest.mark.parametrize("known_weights", [None, (0.4, 0.6)])
def test_m_step_minimises_the_surrogate(known_weights):
    """penalty(θ) − ⟨s, φ(θ)⟩ + ψ(θ) is smallest at θ̄(s)."""
    model = bound(GaussianMixtureModel(2, delta=0.2, epsilon=0.1, known_weights=known_weights))
    s1, s2 = S[:2], S[2:].reshape(2, 2)

    def surrogate(theta):
        value = model.penalty(theta) - s1 @ np.log(theta.weights) - (s2 * theta.means).sum()
        return value + 0.5 * s1 @ (theta.means**2).sum(axis=1)

    best, rng = model.m_step(S), np.random.default_rng(0)
    for _ in range(50):
        weights = best.weights
        if known_weights is None:
            weights = np.abs(weights + 0.05 * rng.normal(size=2))
        other = GaussianMixtureTheta(weights / weights.sum(), best.means + 0.1 * rng.normal(size=(2, 2)))
        assert surrogate(other) > surrogate(best)


def test_m_step_makes_new_arrays():
    model, s = bound(GaussianMixtureModel(2, delta=0.0, epsilon=0.0)), S.copy()
    assert not any(np.shares_memory(part, s) for part in model.m_step(s))


def test_penalty():
    theta = GaussianMixtureTheta(np.array([0.25, 0.75]), np.array([[1.0, 2.0], [0.0, -1.0]]))
    value = bound(GaussianMixtureModel(2, delta=0.2, epsilon=0.1)).penalty(theta)
    assert value == pytest.approx(0.1 * 6 - 0.1 * np.log(0.25 * 0.75))
    known = bound(GaussianMixtureModel(2, delta=0.2, epsilon=0.1, known_weights=[0.25, 0.75])).penalty(theta)
    assert known == pytest.approx(0.1 * 6)


@pytest.mark.parametrize(
    ("delta", "epsilon", "smallest", "inside"),
    [
        (0.1, 0.2, -0.09, True), (0.1, 0.2, -0.1, False), (0.2, 0.1, -0.1, False), (0.2, 0.1, -0.09, True),
        (0.0, 0.1, 0.0, False), (0.1, 0.0, 0.0, False), (0.1, 0.1, 0.0, True), (0.0, 0.0, 1e-300, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("component", [0, 1])
def test_domain(delta, epsilon, smallest, inside, component):
    s = np.array([0.5, 0.5, 9.0, -9.0])
    s[component] = smallest
    model = bound(GaussianMixtureModel(2, delta=delta, epsilon=epsilon), y=(1.0, 2.0))
    assert model.in_domain(s) is inside


@pytest.mark.parametrize("d", [1, 3])
def test_unpack_gives_views(d):
    s = np.arange(2.0 + 2 * d)
    for parts in (
        GaussianMixtureModel(2).unpack(s),
        bound(GaussianMixtureModel(2), np.arange(2.0 * d).reshape(2, d)).unpack(s),
    ):
        np.testing.assert_array_equal(parts.weights, s[:2])
        np.testing.assert_array_equal(parts.sums, s[2:].reshape(2, d))
        assert np.shares_memory(parts.weights, s)
        assert np.shares_memory(parts.sums, s)


@pytest.mark.parametrize("size", [0, 2, 5])
def test_unpack_refuses_other_sizes(size):
    with pytest.raises(ValueError, match="s must have shape"):
        GaussianMixtureModel(2).unpack(np.ones(size))
    with pytest.raises(ValueError, match="s must have shape"):
        GaussianMixtureModel(2).unpack(np.ones((2, 2)))


def test_unpack_of_a_result():
    """s¹ sums to 1, and the rest is the mean of r_m y."""
    problem = helpers.mixture(30, d=2)
    result = problem.run(helpers.make_method("em"), n_iter=5)
    parts = problem.model.unpack(result.s)
    assert parts.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(parts.sums.sum(axis=0), problem.data.mean(axis=0))


def test_initial_theta():
    """Means are different rows of the data; weights are equal, or the known ones."""
    y = np.random.default_rng(0).normal(size=(6, 2))
    for seed in range(20):
        theta = bound(GaussianMixtureModel(5), y).initial_theta(np.random.default_rng(seed))
        numbers = [int(np.flatnonzero((y == mean).all(axis=1))[0]) for mean in theta.means]
        assert len(set(numbers)) == 5
        np.testing.assert_array_equal(theta.weights, np.full(5, 0.2))
    known = bound(GaussianMixtureModel(2, known_weights=[0.2, 0.8]), y).initial_theta(
        np.random.default_rng(0)
    )
    np.testing.assert_array_equal(known.weights, [0.2, 0.8])


def test_theta():
    model, means = GaussianMixtureModel(2), np.zeros((2, 3))
    theta = model.theta(means=means)
    np.testing.assert_array_equal(theta.weights, [0.5, 0.5])
    assert not np.shares_memory(theta.means, means)
    assert model.theta(weights=[1, 0], means=[[0], [1]]).means.dtype == np.float64
    known = GaussianMixtureModel(2, known_weights=[0.2, 0.8])
    np.testing.assert_array_equal(known.theta(means=means).weights, [0.2, 0.8])
    np.testing.assert_array_equal(known.theta(weights=[0.2, 0.8], means=means).weights, [0.2, 0.8])


def test_models_compare_and_hash():
    assert GaussianMixtureModel(2, known_weights=[0.2, 0.8]) == GaussianMixtureModel(
        2, known_weights=(0.2, 0.8)
    )
    assert len({GaussianMixtureModel(2), GaussianMixtureModel(2), GaussianMixtureModel(3)}) == 2
