"""Compiled stretches on rows with missing cells: against dense methods, the reference, and themselves."""

import dense
import helpers
import numpy as np
import pytest
from helpers import STOCHASTIC
from scipy import stats

import swiftem
from swiftem import methods, models
from swiftem.data import ArraySource, NpySource
from swiftem.kernels.compile import kernel
from swiftem.mixture.compute import conditionals as missing_cells
from swiftem.mixture.compute.missing_kernel import complete_rows, make_completion

N, D, M, REG = 60, 3, 2, 0.05
KINDS = ("full", "tied", "diag", "spherical")
PRIOR = models.NormalInverseWishart(6.0, 2.0, mean_precision=0.5)


def rows(n=N, d=D, share=0.3, seed=0):
    """Return rows of two clusters with missing cells; one row misses all."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4 * rng.normal(size=(d, d)))
    z += 7.0 + 3.0 * rng.normal(size=(M, d))[rng.integers(M, size=n)]
    z[rng.random((n, d)) < share] = np.nan
    z[2] = np.nan
    return z


def start(kind, y, seed=1, **options):
    """Return a model and parameters of a start."""
    rng = np.random.default_rng(seed)
    model = models.GaussianMixtureModel(M, covariance=kind, reg_covar=REG, missing="ignore", **options)
    d = y.shape[1]
    a = rng.normal(size=(M, d, d))
    matrices = a @ np.swapaxes(a, 1, 2) + 3.0 * np.eye(d)
    diagonal = np.einsum("mii->mi", matrices)
    covariances = {"full": matrices, "tied": matrices[0], "diag": diagonal, "spherical": [4.0, 9.0]}[kind]
    means = np.nanmean(y, axis=0) + 2.0 * rng.normal(size=(M, d))
    weights = options.get("known_weights", (0.4, 0.6))
    return model, model.theta(weights=weights, means=means, covariances=covariances)


class Dense:
    """Statistics and M-step of the four kinds, row by row, from scipy's densities."""

    def __init__(self, kind, y):
        self.kind, self.centre = kind, np.nanmean(y, axis=0)
        self.z = y - self.centre
        self.lower = np.tril_indices(y.shape[1])

    def matrix(self, covariances, m):
        d = self.z.shape[1]
        if self.kind in ("full", "tied"):
            return covariances[m] if self.kind == "full" else covariances
        return np.diag(np.broadcast_to(covariances[m], d))

    def statistics(self, index, theta):
        weights, means, covariances = theta
        found = []
        for row in self.z[index]:
            o, u = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
            joint, parts = [], []
            for m in range(M):
                mean, matrix = means[m] - self.centre, self.matrix(covariances, m)
                inner, across = matrix[np.ix_(o, o)], matrix[np.ix_(u, o)]
                density = stats.multivariate_normal(mean[o], inner).logpdf(row[o]) if len(o) else 0.0
                joint.append(np.log(weights[m]) + density)
                z, left = row.copy(), np.zeros_like(matrix)
                z[u] = mean[u] + across @ np.linalg.solve(inner, row[o] - mean[o])
                left[np.ix_(u, u)] = matrix[np.ix_(u, u)] - across @ np.linalg.solve(inner, across.T)
                parts.append((z, (np.outer(z, z) + left)[self.lower]))
            r = np.exp(joint - np.max(joint))
            r = r / r.sum()
            if self.kind in ("diag", "spherical"):
                z, seen = np.where(np.isnan(row), 0.0, row), ~np.isnan(row)
                found.append(np.concatenate([r, np.outer(r, np.concatenate([z, z * z, seen])).ravel()]))
                continue
            squares = np.array([r[m] * parts[m][1] for m in range(M)])
            squares = squares.sum(axis=0) if self.kind == "tied" else squares
            sums = np.array([r[m] * parts[m][0] for m in range(M)])
            found.append(np.concatenate([r, sums.ravel(), squares.ravel()]))
        return np.array(found)

    def m_step(self, s):
        d, s1 = self.z.shape[1], s[:M]
        if self.kind in ("diag", "spherical"):
            sums, squares, masses = np.moveaxis(s[M:].reshape(M, 3, d), 1, 0)
            means = sums / masses
            scatter = squares - masses * means**2
            if self.kind == "diag":
                covariances = scatter / masses + REG
            else:
                covariances = scatter.sum(axis=1) / masses.sum(axis=1) + REG
        else:
            means = s[M : M * (1 + d)].reshape(M, d) / s1[:, None]
            squares = s[M * (1 + d) :].reshape(-1, len(self.lower[0]))
            second = np.zeros((len(squares), d, d))
            second[:, self.lower[0], self.lower[1]] = second[:, self.lower[1], self.lower[0]] = squares
            outer = s1[:, None, None] * means[:, :, None] * means[:, None, :]
            if self.kind == "full":
                covariances = (second - outer) / s1[:, None, None] + REG * np.eye(d)
            else:
                covariances = (second[0] - outer.sum(axis=0)) / s1.sum() + REG * np.eye(d)
        theta = s1 / s1.sum(), means + self.centre, covariances
        return theta, theta

    def in_domain(self, s):
        if not (s[:M] > 0).all():
            return False
        if self.kind in ("diag", "spherical"):
            masses = s[M:].reshape(M, 3, -1)[:, 2]
            return bool((masses > 0).all() and (np.array(self.m_step(s)[0][2]) > 0).all())
        matrices = self.m_step(s)[0][2].reshape(-1, self.z.shape[1], self.z.shape[1])
        return bool((np.linalg.eigvalsh(matrices) > 0).all())


@pytest.mark.parametrize("b", [1, 20])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STOCHASTIC)
def test_the_dense_trajectory(name, kind, b):
    y = rows()
    model, theta0 = start(kind, y)
    weight = np.random.default_rng(4).uniform(0.5, 2.0, N)
    draws, n_iter, gamma = helpers.random_draws(name, N, 40, b), 40, swiftem.schedules.inverse(1, 12)
    truth = Dense(kind, y)
    share = weight / weight.sum()
    truth.centre = np.sum(share[:, None] * np.where(np.isnan(y), 0.0, y), axis=0) / (share @ ~np.isnan(y))
    truth.z = y - truth.centre
    run = dense._run(
        name, truth.statistics, truth.m_step, truth.in_domain, tuple(theta0[:3]), share, draws, n_iter, gamma,
        9, False,
    )  # fmt: skip
    method = helpers.make_method(name, batch_size=b, step_size=gamma, epoch_length=9)
    found = swiftem.run(
        model, y, method, theta0=theta0, n_iter=n_iter, draws=draws, sample_weight=weight, record_every=1
    )
    assert found.rejected == run.rejected
    for iterate, s, mean in zip(found.path, run.s, run.theta[1], strict=True):
        np.testing.assert_allclose(iterate.s, s, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(iterate.theta.means, mean, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"prior": PRIOR}, {"known_weights": (0.3, 0.7)}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STOCHASTIC)
def test_the_reference_with_priors_and_known_weights(name, kind, options):
    y = rows(200, 4)
    model, theta0 = start(kind, y, **options)
    for dtype, order in (("float64", "iid"), ("float32", "weighted")):
        method = helpers.make_method(name, batch_size=23, step_size=0.1, memory_dtype=dtype, order=order)
        weight = np.random.default_rng(4).uniform(0.5, 2.0, len(y))
        one, other = (
            swiftem.run(
                model, y, method, theta0=theta0, n_iter=30, seed=0, kernels=kernels, sample_weight=weight
            )
            for kernels in ("auto", "reference")
        )
        assert (one.rejected, one.passes) == (other.rejected, other.passes)
        close = {"rtol": 1e-9, "atol": 1e-10} if dtype == "float64" else {"rtol": 1e-5, "atol": 1e-5}
        np.testing.assert_allclose(one.s, other.s, **close)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STOCHASTIC)
def test_a_run_in_two_parts_has_the_same_bits_and_files_have_the_same_rows(name, kind, tmp_path):
    y = rows(200, 4)
    np.save(tmp_path / "rows.npy", y)
    model, theta0 = start(kind, y)
    options = {"theta0": theta0, "seed": 1}
    method = helpers.make_method(name, step_size=0.05, batch_size=23, epoch_length=8)
    whole = swiftem.run(model, y, method, n_iter=30, **options)
    first = swiftem.run(model, y, method, n_iter=13, record_every=5, **options)
    rest = swiftem.run(model, y, method, theta0=first.theta, s0=first.s, state=first.state, n_iter=17)
    helpers.assert_same_result(rest, whole)
    stored = NpySource(tmp_path / "rows.npy", allow_missing=True)
    one, other = (
        swiftem.run(model, stored, method, n_iter=30, record_every=7, kernels=kernels, **options)
        for kernels in ("auto", "reference")
    )
    np.testing.assert_allclose(one.s, other.s, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_float32(kind):
    y = rows(200, 4).astype(np.float32)
    model, theta0 = start(kind, y.astype(float))
    one, other = (
        swiftem.run(
            model, y, methods.OnlineEM(batch_size=8), theta0=theta0, n_iter=20, seed=0, kernels=kernels
        )
        for kernels in ("auto", "reference")
    )
    np.testing.assert_allclose(one.s, other.s, rtol=1e-9, atol=1e-10)


def completed(z, given):
    """Return the compiled statistics of centred rows (b, d)."""
    d, size = z.shape[1], z.shape[1] * (z.shape[1] + 1) // 2
    found = np.empty((len(z), M * (1 + d) + len(given.whiten) * size))
    on = make_completion(len(given.whiten), M, d)
    kernel(complete_rows.py_func)(np.ascontiguousarray(z.T), given, on, found)
    return found


@pytest.mark.parametrize("share", [0.0, 0.15, 0.6, 1.0])
@pytest.mark.parametrize("d", [1, 2, 9])
@pytest.mark.parametrize("kind", ["full", "tied"])
def test_rows_are_those_of_the_reference(kind, d, share):
    y = rows(50, d, share, seed=d)
    y[3] = 7.0
    model, theta = start(kind, y)
    bound = model.bind(ArraySource(y, allow_missing=True))
    z, means = y - bound.centre, theta.means - bound.centre
    expected, _ = missing_cells.completed(z, theta.weights, means, bound.matrices(theta))
    np.testing.assert_allclose(completed(z, bound.coefficients(theta)), expected, rtol=1e-12, atol=1e-13)


def test_a_precision_that_is_not_positive_definite_gives_no_statistics():
    y = rows()
    model, theta = start("full", y)
    bound = model.bind(ArraySource(y, allow_missing=True))
    given = bound.coefficients(theta)
    given.whiten[1] = 0.0
    found = completed(np.array([[1.0, np.nan, 0.0], [1.0, 2.0, 3.0]]), given)
    assert np.isnan(found[0]).all()
    assert not np.isnan(found[1]).any()
