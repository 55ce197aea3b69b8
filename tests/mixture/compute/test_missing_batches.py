"""Compiled stretches on rows with missing cells do what plain NumPy does, which others compare with SciPy."""

import helpers
import numpy as np
import pytest
from helpers import STOCHASTIC

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


@pytest.mark.parametrize("options", [{}, {"prior": PRIOR}, {"known_weights": (0.3, 0.7)}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STOCHASTIC)
def test_the_reference_with_priors_and_known_weights(name, kind, options):
    y = rows(200, 4)
    model, theta0 = start(kind, y, **options)
    for dtype, order, b in (("float64", "iid", 1), ("float64", "iid", 23), ("float32", "weighted", 23)):
        method = helpers.make_method(name, batch_size=b, step_size=0.1, memory_dtype=dtype, order=order)
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
