import numpy as np
import pytest
import scipy.stats

from swiftem.engine.reference.gaussian_mixture import posterior, statistics


@pytest.mark.parametrize(("b", "d", "M"), [(1, 1, 1), (5, 1, 2), (4, 3, 2), (2, 2, 6)])
def test_posterior_and_statistics(b, d, M):
    """Against densities of SciPy and one loop over everything."""
    rng = np.random.default_rng(0)
    y, means, weights = rng.normal(size=(b, d)), rng.normal(size=(M, d)), rng.dirichlet(np.ones(M))
    densities = [scipy.stats.multivariate_normal(mean).pdf for mean in means]
    joint = np.array([[weights[m] * densities[m](row) for m in range(M)] for row in y])
    rows, loglik = posterior(y, weights, means)
    np.testing.assert_allclose(loglik, np.log(joint.sum(axis=1)), rtol=1e-12)
    np.testing.assert_allclose(rows, joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)

    weight = rng.normal(size=b)
    expected = np.zeros(M + M * d)
    for i in range(b):
        for m in range(M):
            expected[m] += weight[i] * rows[i, m]
            for coordinate in range(d):
                expected[M + m * d + coordinate] += weight[i] * rows[i, m] * y[i, coordinate]
    np.testing.assert_allclose(statistics(y, rows, weight), expected, rtol=1e-12, atol=1e-15)


def test_far_from_every_mean():
    """exp underflows there, and yet rows sum to 1."""
    y = np.array([[1e4], [-1e4], [0.0]])
    rows, loglik = posterior(y, np.array([0.5, 0.5]), np.array([[1.0], [-1.0]]))
    np.testing.assert_allclose(rows, [[1, 0], [0, 1], [0.5, 0.5]])
    np.testing.assert_allclose(loglik[:2], np.log(0.5) - 0.5 * (1e4 - 1) ** 2 - 0.5 * np.log(2 * np.pi))


def test_far_from_the_origin():
    """Nothing is lost when data and means lie at 1e9."""
    y, means, weights = np.array([[0.25], [-0.5]]), np.array([[1.0], [-1.0]]), np.array([0.3, 0.7])
    near, far = posterior(y, weights, means), posterior(y + 2.0**30, weights, means + 2.0**30)
    np.testing.assert_allclose(far[0], near[0], rtol=1e-14)
    np.testing.assert_allclose(far[1], near[1], rtol=1e-14)


def test_a_weight_of_zero():
    rows, loglik = posterior(np.array([[0.0], [5.0]]), np.array([1.0, 0.0]), np.array([[0.0], [5.0]]))
    np.testing.assert_array_equal(rows, [[1, 0], [1, 0]])
    assert np.isfinite(loglik).all()
