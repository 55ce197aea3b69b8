"""Gaussian mixtures with covariances: against scikit-learn, under offsets, with priors, and bad input."""

import pickle

import helpers
import numpy as np
import pytest
from sklearn.mixture._gaussian_mixture import _estimate_log_gaussian_prob

import swiftem
from swiftem import methods, models, posterior
from swiftem.core.compute import Compute
from swiftem.data import ArraySource, as_source
from swiftem.mixture.covariance import COVARIANCES, ESTIMATED
from swiftem.mixture.gaussian_mixture import full_covariances

RNG = np.random.default_rng(3)
KINDS = list(ESTIMATED)
KERNELS = ["auto", "reference"]


def clusters(n=400, d=3, M=3, spread=4.0, seed=0):
    rng = np.random.default_rng(seed)
    shape = rng.normal(size=(d, d)) / 2 + np.eye(d)
    return spread * rng.normal(size=(M, d))[rng.integers(M, size=n)] + rng.normal(size=(n, d)) @ shape


def start(kind, y, M=3, seed=0, **options):
    """Return the model, and parameters after one step from its own start."""
    model = models.GaussianMixtureModel(M, covariance=kind, **options)
    return model, swiftem.run(model, y, methods.EM(), n_iter=1, seed=seed, kernels="reference").theta


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_densities_are_scikit_learns(kind, kernels):
    y = clusters() + 10.0
    model, theta = start(kind, y)
    log_joint = np.log(theta.weights) + _estimate_log_gaussian_prob(
        y, theta.means, theta.precisions_cholesky, kind
    )
    expected = np.logaddexp.reduce(log_joint, axis=1)
    found = posterior(model, y, theta, responsibilities=True, labels=True, kernels=kernels)
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-10)
    np.testing.assert_allclose(found.responsibilities, np.exp(log_joint - expected[:, None]), atol=1e-10)
    np.testing.assert_array_equal(found.labels, log_joint.argmax(axis=1))
    assert swiftem.objective(model, y, theta) == pytest.approx(-expected.mean(), rel=1e-12)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_repetitions_also_in_the_prior(kind, kernels):
    y, times = clusters(120), RNG.integers(3, size=120)
    prior = models.NormalInverseWishart(6.0, 1.0, mean_precision=2.0, mean=[1.0, 0.0, 0.0])
    model, theta = start(kind, y, prior=prior, concentration=3.0)
    options = {"theta0": theta, "n_iter": 5, "kernels": kernels}
    weighted = swiftem.run(model, y, methods.EM(), sample_weight=times.astype(float), **options)
    repeated = swiftem.run(model, np.repeat(y, times, axis=0), methods.EM(), **options)
    for one, other in zip(weighted.theta, repeated.theta, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_reported_penalty_is_the_log_density_of_the_prior(kind):
    """Differences of the penalty are those of textbook densities, from SciPy."""
    from scipy.stats import dirichlet, invgamma, invwishart, multivariate_normal

    y, nu, kappa, m0 = clusters(60, d=2, M=2), 4.5, 1.5, np.array([0.3, -0.2])
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    prior = models.NormalInverseWishart(nu, scale, mean_precision=kappa, mean=m0)
    model = models.GaussianMixtureModel(2, covariance=kind, prior=prior, concentration=2.0)
    bound = model.bind(ArraySource(y))

    def log_prior(theta):
        total = dirichlet.logpdf(theta.weights, [2.0, 2.0])
        covariances = {
            "full": lambda c: list(c),
            "tied": lambda c: [c, c],
            "diag": lambda c: [np.diag(v) for v in c],
            "spherical": lambda c: [v * np.eye(2) for v in c],
        }[kind](theta.covariances)
        for mean, covariance in zip(theta.means, covariances, strict=True):
            total += multivariate_normal.logpdf(mean, m0, covariance / kappa)
        if kind in ("full", "tied"):
            total += sum(invwishart.logpdf(c, nu, scale) for c in covariances[: 2 if kind == "full" else 1])
        else:
            shape = (nu - 2 + 1) / 2
            for c in covariances:
                total += sum(invgamma.logpdf(c[j, j], shape, scale=scale[j, j] / 2) for j in range(2))
        return total

    thetas = [bound.initial_theta(np.random.default_rng(0))]
    thetas.append(bound.m_step(Compute(bound, bound.source).full(thetas[0])))
    expected = -(log_prior(thetas[1]) - log_prior(thetas[0])) / len(y)
    assert bound.penalty(thetas[1]) - bound.penalty(thetas[0]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_offset_of_the_data_changes_nothing(kind, kernels):
    y = np.round(clusters(300) * 64) / 64  # so that the offset rounds nothing away
    model = models.GaussianMixtureModel(3, covariance=kind)
    near, far = (
        swiftem.run(model, data, methods.EM(), n_iter=5, seed=1, kernels=kernels).theta
        for data in (y, y + 1e8)
    )
    np.testing.assert_allclose(far.means - 1e8, near.means, atol=1e-6)
    np.testing.assert_allclose(far.covariances, near.covariances, rtol=1e-5, atol=1e-6)
    for name in helpers.STOCHASTIC:
        method = helpers.make_method(name, step_size=0.05, batch_size=20)
        near, far = (
            swiftem.run(model, data, method, n_iter=20, seed=1, kernels=kernels).theta
            for data in (y, y + 1e8)
        )
        np.testing.assert_allclose(far.covariances, near.covariances, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", KINDS)
def test_clusters_a_million_standard_deviations_apart(kind, kernels):
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [1e6, 0.0], [0.0, 1e6]])
    near = centres[[0, 0, 1, 2]] + np.array([[-1.0, 0], [1, 0], [0, 0], [0, 0]])
    y = near[rng.integers(4, size=300)] + rng.normal(size=(300, 2))
    ones = {"full": np.stack([np.eye(2)] * 4), "tied": np.eye(2), "diag": np.ones((4, 2))}
    model = models.GaussianMixtureModel(4, covariance=kind)
    theta = model.theta(means=near, covariances=ones.get(kind, np.ones(4)))
    log_joint = np.log(0.25) - 0.5 * ((y[:, None] - near) ** 2).sum(axis=2) - np.log(2 * np.pi)
    expected = np.logaddexp.reduce(log_joint, axis=1)
    # Relative to a centre of its own, and to the data's.
    found = posterior(model, y, theta, responsibilities=True, kernels=kernels)
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-8)
    np.testing.assert_allclose(found.responsibilities, np.exp(log_joint - expected[:, None]), atol=1e-8)
    assert swiftem.objective(model, y, theta) == pytest.approx(-expected.mean(), rel=1e-9)
    result = swiftem.run(model, y, methods.EM(), theta0=theta, n_iter=3, kernels=kernels)
    assert result.rejected == 0
    np.testing.assert_allclose(result.theta.means, near, atol=1.0)


def test_statistics_outside_the_domain():
    bound = models.GaussianMixtureModel(2, covariance="full").bind(ArraySource(clusters(60)))
    s = Compute(bound, bound.source).full(bound.initial_theta(RNG))
    parts = bound.unpack(s.copy())
    parts.squares[0] = 0.0
    flat = np.concatenate([part.ravel() for part in parts[:3]])
    assert bound.in_domain(s)
    assert not bound.in_domain(flat)
    with pytest.raises(ValueError, match="domain"):
        bound.m_step(flat)
    flat = s.copy()
    flat[0] = 0.0
    assert not bound.in_domain(flat)
    assert bound.in_domain(s)  # what was kept of it is not taken for other statistics
    assert not np.array_equal(bound.m_step(1.01 * s).means, bound.m_step(s).means + np.inf)


@pytest.mark.parametrize("kind", KINDS)
def test_models_pickle_compare_and_hash(kind):
    prior = models.NormalInverseWishart(4.0, np.eye(2), mean=np.zeros(2))
    model = models.GaussianMixtureModel(2, covariance=kind, prior=prior)
    assert model == pickle.loads(pickle.dumps(model))
    assert len({model, models.GaussianMixtureModel(2, covariance=kind, prior=prior)}) == 1
    assert (model.delta, model.epsilon) == (0.0, 0.0)
    unit = models.GaussianMixtureModel(2, known_weights=[0.2, 0.8])
    assert (unit.delta, unit.epsilon) == (1e-3, 1e-3)
    assert unit == models.GaussianMixtureModel(2, known_weights=(0.2, 0.8)) != models.GaussianMixtureModel(2)


EYES = np.stack([np.eye(2)] * 2)
MEANS = np.zeros((2, 2))
UNIT = models.GaussianMixtureModel(2)


def full(M=2, **options):
    return models.GaussianMixtureModel(M, covariance="full", **options)


def prior(*given, **options):
    return models.NormalInverseWishart(*given, **options)


def theta(covariances, kind="full"):
    return models.GaussianMixtureModel(2, covariance=kind).theta(means=MEANS, covariances=covariances)


def bound(y=30, M=2, **options):
    return full(M, **options).bind(ArraySource(clusters(y)))


def run(y, **options):
    return swiftem.run(full(), y, methods.EM(), n_iter=1, seed=0, **options)


REFUSED = {
    "no covariances": (lambda: full().theta(means=MEANS), "covariances", "must be given"),
    "covariances of unit": (lambda: UNIT.theta(means=MEANS, covariances=EYES), "covariances", "left out"),
    "shape": (lambda: theta(np.eye(2)), "covariances", r"shape \(2, 2, 2\)"),
    "asymmetric": (lambda: theta(EYES + np.triu(EYES[0] + 0.1, 1)), "covariances", "symmetric"),
    "indefinite": (lambda: theta([np.eye(2), [[1, 2], [2, 1]]]), "covariances", "positive definite"),
    "negative variance": (lambda: theta([[1, 1], [1, 0]], "diag"), "covariances", "positive"),
    "nan": (lambda: theta(EYES * np.nan), "covariances", "finite"),
    "delta": (lambda: full(delta=0.1), "delta", "prior"),
    "both": (lambda: full(epsilon=0.1, concentration=2.0), "concentration", "epsilon"),
    "concentration": (lambda: full(concentration=0.5), "concentration", "at least 1"),
    "reg_covar": (lambda: full(reg_covar=-1.0), "reg_covar", "at least 0"),
    "prior": (lambda: full(prior=1.0), "prior", "NormalInverseWishart"),
    "unit": (lambda: models.GaussianMixtureModel(2, reg_covar=1e-6), "reg_covar", "left out"),
    "degrees": (lambda: prior(-1.0, 1.0), "degrees_of_freedom", "at least 0"),
    "scale": (lambda: prior(1.0, -1.0), "scale", "positive definite"),
    "scale shape": (lambda: prior(1.0, np.ones((2, 3))), "scale", "square"),
    "asymmetric scale": (lambda: prior(1.0, [[1.0, 0.5], [0.0, 1.0]]), "scale", "symmetric"),
    "few degrees": (lambda: bound(prior=prior(1.0, 1.0)), "prior.degrees_of_freedom", "above"),
    "scale of other data": (lambda: bound(prior=prior(5.0, np.eye(2))), "prior.scale", "3 columns"),
    "mean of other data": (lambda: bound(prior=prior(5.0, 1.0, mean=[0.0])), "prior.mean", "3"),
    "constant column": (lambda: run(clusters(30) * [1, 1, 0]), "data", "positive definite"),
    "other theta": (lambda: run(clusters(30), theta0=UNIT.theta(means=MEANS)), "theta0", "covariances="),
    "other dimension": (lambda: run(clusters(30), theta0=theta(EYES)), "theta0.means", "3"),
    "posterior of other data": (lambda: posterior(full(), clusters(30), theta(EYES)), "theta.means", "3"),
    "words": (lambda: full().bind(as_source(([0, 1], [0, 1]))), "data", "rows of numbers"),
    "few rows": (lambda: bound(4, 5), "data", "at least"),
    "centre": (lambda: full().bind(ArraySource(clusters(9)), centre=[0.0]), "centre", "shape"),
}


@helpers.parametrize_cases(REFUSED)
def test_refused(case):
    helpers.assert_refused(*case)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_coloured_rows_are_noise_again_if_whitened(kind):
    _, theta = start(kind, clusters())
    noise, labels = np.random.default_rng(4).normal(size=(50, 3)), np.arange(50) % 3
    rows = COVARIANCES[kind].coloured(noise, theta.precisions_cholesky, labels)
    covariances = full_covariances(theta.covariances, kind, 3, 3)
    for row, z, m in zip(rows, noise, labels, strict=True):
        assert row @ np.linalg.solve(covariances[m], row) == pytest.approx(z @ z, rel=1e-10)


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_unit_factors_are_inverse_deviations_and_their_products(kind):
    y = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 10.0, 100.0]
    bound = models.GaussianMixtureModel(2, covariance=kind).bind(as_source(y))
    batch = next(iter(bound.source.blocks(4096)))
    s = bound.statistics(batch, np.full((200, 2), 0.5), np.ones(200)) / 200
    weights, sums, squares, _ = bound.unpack(bound.unit_factors(s))
    scale = 1.0 / y.std(axis=0)
    expected = scale**2 if kind == "diag" else np.outer(scale, scale)[np.tril_indices(3)]
    np.testing.assert_allclose(weights, 1.0)
    np.testing.assert_allclose(sums, [scale, scale], rtol=1e-12)
    np.testing.assert_allclose(np.atleast_2d(squares)[0], expected, rtol=1e-12)
