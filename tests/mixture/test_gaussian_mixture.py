import numpy as np
import pytest

from swiftem.data import ArraySource
from swiftem.mixture.covariance import COVARIANCES
from swiftem.models import GaussianMixtureModel, GaussianMixtureTheta

S = np.array([0.3, 0.7, 1.0, 2.0, -3.0, 0.5])  # M = 2, d = 2


def bound(model, y=((0.0, 1.0), (2.0, 3.0))):
    return model.bind(ArraySource(np.array(y)))


def test_m_step():
    theta = bound(GaussianMixtureModel(2, delta=0.2, epsilon=0.1)).m_step(S)
    np.testing.assert_allclose(theta.weights, [0.4 / 1.2, 0.8 / 1.2], rtol=1e-15)
    np.testing.assert_allclose(theta.means, [[1 / 0.5, 2 / 0.5], [-3 / 0.9, 0.5 / 0.9]], rtol=1e-15)


def test_m_step_with_known_weights():
    theta = bound(GaussianMixtureModel(2, delta=0.0, known_weights=[0.25, 0.75])).m_step(S)
    np.testing.assert_array_equal(theta.weights, [0.25, 0.75])
    np.testing.assert_allclose(theta.means[1], [-3 / 0.7, 0.5 / 0.7], rtol=1e-15)


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
@pytest.mark.parametrize("kind", COVARIANCES)
def test_unpack_gives_views(kind, d):
    model = GaussianMixtureModel(2, covariance=kind)
    s = np.arange(float(model.size(d)))
    for known in (model, bound(model, np.arange(2.0 * d).reshape(2, d))):
        parts = known.unpack(s)
        np.testing.assert_array_equal(np.concatenate([part.ravel() for part in parts if part is not None]), s)
        assert parts.sums.shape == (2, d)
        assert all(np.shares_memory(part, s) for part in parts if part is not None)
        for other in (s[:-1], np.append(s, 0.5), s[None], s[:0]):
            with pytest.raises(ValueError, match="s must have shape"):
                known.unpack(other)


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
