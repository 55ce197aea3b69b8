"""Mixtures with covariances where some blocks of rows are too far for expanded squares and others are not.

Expanded squares lose digits where the squares are large and what is left of them is not: along a direction in
which covariances are wide, between axes in which they are not. Rows are t·(1, 1) + w·(1, −1), t being far or
near, and w tells the components apart.
"""

import helpers
import numpy as np
import pytest
from mixture_data import fitted

import swiftem
from swiftem import methods, models, posterior
from swiftem.core.problem import Problem
from swiftem.data import ArraySource

KINDS = ["full", "tied", "diag", "spherical"]
every_kind = pytest.mark.parametrize("kind", KINDS)
correlated = pytest.mark.parametrize("kind", ["full", "tied"])
FAR = 2.0**20
ALONG, ACROSS = np.array([1.0, 1.0]), np.array([1.0, -1.0])


def shape(kind, wide=FAR, M=2):
    """Return covariances with ``wide`` along and 1 across; where they have no correlations, of one."""
    matrix = wide**2 * np.outer(ALONG, ALONG) + np.outer(ACROSS, ACROSS)
    return {"full": np.stack([matrix] * M), "tied": matrix, "diag": np.ones((M, 2))}.get(kind, np.ones(M))


def sorted_rows(far=FAR):
    """Return rows whose first blocks are far on one side, then on the other; the last blocks are near."""
    rng = np.random.default_rng(0)
    w, near = np.tile(1.5 * rng.normal(size=1100), 2), 1.5 * rng.normal(size=1300)
    t = np.concatenate([np.full(1100, -far), np.full(1100, far), rng.normal(size=1300)])
    return np.outer(t, ALONG) + np.outer(np.concatenate([w, near]), ACROSS)


def shares(rows, theta, kind):
    """Return responsibilities (n, M) by whitened differences."""
    factors = theta.precisions_cholesky
    logits = np.empty((len(rows), len(theta.means)))
    for m, mean in enumerate(theta.means):
        factor = factors if kind == "tied" else factors[m]
        factor = factor if kind in ("full", "tied") else np.diag(factor * np.ones(2))
        logits[:, m] = np.log(theta.weights[m] * np.diag(factor).prod())
        logits[:, m] -= 0.5 * (((rows - mean) @ factor) ** 2).sum(axis=1)
    return np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])


@every_kind
@pytest.mark.parametrize("last", ["near", "far"])
def test_two_passes(kind, last):
    """The first pass looks at every block; the second knows how far the rows of all of them are."""
    rows = sorted_rows(FAR if kind in ("full", "tied") else 1000.0)
    rows = rows if last == "near" else rows[::-1].copy()
    model = models.GaussianMixtureModel(2, covariance=kind)
    theta0 = model.theta(means=np.outer([-1, 1], ACROSS), covariances=shape(kind))
    result = swiftem.run(model, rows, methods.EM(), theta0=theta0, n_iter=1, record_every=1)
    r = shares(rows, theta0, kind)
    for iterate in result.path:
        np.testing.assert_allclose(iterate.s[:2], r.mean(axis=0), rtol=1e-8)
    first = swiftem.run(model, rows, methods.IncrementalEM(), theta0=theta0, n_iter=0)
    np.testing.assert_allclose(first.state.method.memory, r, atol=1e-8)
    found = posterior(model, rows, theta0, responsibilities=True)
    np.testing.assert_allclose(found.responsibilities, r, atol=1e-8)


@every_kind
@pytest.mark.parametrize("b", [None, 5])
def test_narrow_components_behind_a_wide_one(kind, b):
    """Whether squares may be expanded depends on all components, not on the first."""
    places = np.concatenate([[[0.0, 0.0]], 1e6 * ALONG + np.outer([-1, 1], ACROSS)])
    rng = np.random.default_rng(0)
    rows = places[rng.integers(3, size=300)] + rng.normal(size=(300, 2))
    model = models.GaussianMixtureModel(3, covariance=kind, prior=models.NormalInverseWishart(4.0, 4.0))
    covariances = ones(kind, 3)
    if kind != "tied":
        covariances[0] *= 1e14
    theta0 = model.theta(means=places, covariances=covariances)
    if b is None:
        first = swiftem.run(model, rows, methods.IncrementalEM(), theta0=theta0, n_iter=0)
        np.testing.assert_allclose(first.state.method.memory, shares(rows, theta0, kind), atol=1e-8)
    else:
        method = methods.OnlineEM(step_size=1.0, batch_size=b)
        result = swiftem.run(model, rows, method, theta0=theta0, n_iter=1, seed=0, draws=[[0, 1, 2, 3, 4]])
        np.testing.assert_allclose(result.s[:3], shares(rows[:5], theta0, kind).mean(axis=0), atol=1e-8)


@correlated
def test_rows_that_are_far_only_for_later_parameters(kind):
    """Wide components need no look at the rows; those of the M-step, which are not wide across, do."""
    rows = sorted_rows()[:2200]
    model = models.GaussianMixtureModel(2, covariance=kind)
    wide = 2.0**24 * np.eye(2)
    wide = wide if kind == "tied" else np.stack([wide] * 2)
    theta0 = model.theta(means=np.outer([-FAR, FAR], ACROSS), covariances=wide)
    path = swiftem.run(model, rows, methods.EM(), theta0=theta0, n_iter=2, record_every=1).path
    assert np.abs(path[1].theta.means).max() < 3
    np.testing.assert_allclose(path[1].s[:2], shares(rows, theta0, kind).mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(path[2].s[:2], shares(rows, path[1].theta, kind).mean(axis=0), rtol=1e-8)


@every_kind
@pytest.mark.parametrize("b", [1, 7])
def test_an_anchor_that_is_far_and_parameters_that_are_near(kind, b):
    """The anchor is narrow, in clusters far apart; the parameters are wide, as the prior wants them."""
    rng = np.random.default_rng(0)
    places = 1e6 * np.repeat([ALONG, -ALONG], 2, axis=0) + np.outer([-1, 1, -1, 1], ACROSS)
    rows = np.repeat(places, 10, axis=0) + rng.normal(size=(40, 2))
    model = models.GaussianMixtureModel(4, covariance=kind, prior=models.NormalInverseWishart(1e9, 1e21))
    theta0 = model.theta(means=places, covariances=ones(kind, 4))
    step = lambda k: 1.0 if k == 1 else 0.1  # noqa: E731
    method = methods.VarianceReducedEM(step_size=step, batch_size=b, epoch_length=99)
    compiled, plain = (
        swiftem.run(model, rows, method, theta0=theta0, n_iter=12, seed=0, record_every=1, kernels=kernels)
        for kernels in ("auto", "reference")
    )
    assert plain.rejected == 0
    for ours, theirs in zip(compiled.path, plain.path, strict=True):
        np.testing.assert_allclose(ours.s[:4], theirs.s[:4], rtol=1e-8)


def ones(kind, M=2):
    """Return unit covariances."""
    matrices = {"full": np.stack([np.eye(2)] * M), "tied": np.eye(2), "diag": np.ones((M, 2))}
    return matrices.get(kind, np.ones(M))


@every_kind
@pytest.mark.parametrize("weights", [False, True], ids=["alike", "weights"])
def test_the_bound_of_a_pass(kind, weights):
    """The estimator's bound comes with the pass, in which near blocks of "tied" lack −½ yᵀPy."""
    rows = sorted_rows(1000.0)  # too far, and yet a likelihood with digits
    weight = np.linspace(0.2, 1.8, len(rows))
    means = np.outer([-1, 1], ACROSS)
    fit = swiftem.GaussianMixture(
        2, covariance_type=kind, method="em", weights_init=[0.5, 0.5], means_init=means,
        precisions_init=ones(kind), max_iter=1, tol=0.0, reg_covar=0.0,
    )  # fmt: skip
    fitted(fit, rows, weight if weights else None)
    log_joint = np.log(0.5) - 0.5 * ((rows[:, None] - means) ** 2).sum(axis=2) - np.log(2 * np.pi)
    expected = np.logaddexp.reduce(log_joint, axis=1)
    model = models.GaussianMixtureModel(2, covariance=kind)
    theta = model.theta(means=means, covariances=ones(kind))
    found = posterior(model, rows, theta)
    np.testing.assert_allclose(found.log_likelihood, expected, rtol=1e-12)
    problem = Problem(model, ArraySource(rows, weight if weights else None))  # compiled, also for few rows
    problem.compute.full(theta)
    of_pass = problem.bound.penalty(theta) - problem.compute.objective(theta)
    weight = weight if weights else np.ones(len(rows))
    assert fit.lower_bound_ == pytest.approx(weight @ expected / weight.sum(), rel=1e-12)
    assert of_pass == pytest.approx(weight @ expected / weight.sum(), rel=1e-12)


@every_kind
def test_the_bound_of_many_components_that_are_alike(kind):
    """Sums of 20 equal exponentials, multiplied over a block, would leave the range of a float."""
    rows = np.random.default_rng(0).normal(size=(3000, 2))
    fit = swiftem.GaussianMixture(
        20, covariance_type=kind, method="em", weights_init=np.full(20, 0.05), means_init=np.zeros((20, 2)),
        precisions_init=ones(kind, 20), max_iter=1,
    )  # fmt: skip
    fitted(fit, rows)
    expected = -0.5 * (rows**2).sum(axis=1).mean() - np.log(2 * np.pi)
    assert fit.lower_bound_ == pytest.approx(expected, rel=1e-12)


@every_kind
def test_labels_of_components_that_are_alike(kind):
    """The first of the likeliest, as argmax says."""
    rows = sorted_rows(1000.0)
    model = models.GaussianMixtureModel(4, covariance=kind)
    theta = model.theta(means=np.outer([-1, -1, 1, 1], ACROSS), covariances=ones(kind, 4))
    found = posterior(model, rows, theta, responsibilities=True, labels=True)
    np.testing.assert_array_equal(found.labels, found.responsibilities.argmax(axis=1))
    np.testing.assert_array_equal(found.labels, np.where(rows @ ACROSS > 0, 2, 0))


@every_kind
@pytest.mark.parametrize("name", helpers.STOCHASTIC)
@pytest.mark.filterwarnings("ignore:All 100 steps of the run were rejected")
def test_a_variance_of_rounding_alone_rejects_the_step(kind, name):
    """Equal rows far from the centre: what is left of their variance has either sign."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(40, 2)), np.tile([1234.567, -987.654], (20, 1))])
    model = models.GaussianMixtureModel(2, covariance=kind)
    theta0 = model.theta(means=[[0.0, 0.0], rows[-1]], covariances=ones(kind))
    if kind == "tied":  # one matrix for all: it collapses where all rows of a batch are alike
        rows = rows[40:]
        rows = np.concatenate([rows, -rows])
        theta0 = model.theta(means=rows[[0, -1]], covariances=ones(kind))
    method = helpers.make_method(name, step_size=1.0, batch_size=9)
    for kernels in ("auto", "reference"):
        result = swiftem.run(model, rows, method, theta0=theta0, n_iter=100, seed=0, kernels=kernels)
        assert result.rejected == 100
        np.testing.assert_array_equal(result.theta.means, theta0.means)


@pytest.mark.parametrize("kind", ["full", "diag"])
@pytest.mark.filterwarnings("ignore:All 20 steps of the run were rejected")
def test_rounding_of_either_sign_rejects_the_step(kind):
    """What is left of the variance of equal rows depends on their value: some are above zero."""
    rng = np.random.default_rng(1)
    model = models.GaussianMixtureModel(2, covariance=kind)
    method = helpers.make_method("sem", step_size=1.0, batch_size=9)
    for value in rng.normal(scale=1e3, size=(30, 2)):
        rows = np.concatenate([rng.normal(size=(40, 2)), np.tile(value, (20, 1))])
        theta0 = model.theta(means=[[0.0, 0.0], value], covariances=ones(kind))
        assert swiftem.run(model, rows, method, theta0=theta0, n_iter=20, seed=0).rejected == 20


@every_kind
@pytest.mark.parametrize("d", [1, 2, 3, 6, 17])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 700])
def test_differences_of_every_size(kind, d, n):
    """Rows come in tiles of 16 and factors in pairs of rows; what is left of both is done as well."""
    rng, M = np.random.default_rng(d + n), 3
    factors = np.tril(rng.normal(size=(M, d, d)), -1) + np.eye(d)
    covariances = factors @ factors.swapaxes(1, 2)
    covariances = {
        "full": covariances, "tied": covariances[0], "diag": rng.uniform(1.0, 4.0, size=(M, d)),
    }.get(kind, rng.uniform(1.0, 4.0, size=M))  # fmt: skip
    means = 2.0**20 + rng.integers(-2, 3, size=(M, d))
    # Rows at the other end: all are far from the centre.
    rows = rng.normal(size=(2 * n, d)) + np.repeat([[2.0**20], [-(2.0**20)]], n, axis=0)
    model = models.GaussianMixtureModel(M, covariance=kind)
    theta = model.theta(means=means, covariances=covariances)
    found = posterior(model, rows, theta, responsibilities=True)
    logits = np.empty((n, M))
    for m in range(M):
        matrix = covariances if kind == "tied" else covariances[m]
        matrix = matrix if kind in ("full", "tied") else np.diag(matrix * np.ones(d))
        away = rows[:n] - means[m]
        logits[:, m] = -0.5 * (away * np.linalg.solve(matrix, away.T).T).sum(axis=1) - np.log(M)
        logits[:, m] -= 0.5 * np.linalg.slogdet(2 * np.pi * matrix)[1]
    value = np.logaddexp.reduce(logits, axis=1)
    np.testing.assert_allclose(found.log_likelihood[:n], value, rtol=1e-9)
    np.testing.assert_allclose(found.responsibilities[:n], np.exp(logits - value[:, None]), atol=1e-9)
