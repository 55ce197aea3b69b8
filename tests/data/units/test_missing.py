"""Units with missing cells: the fits of rows in an array, the same bits on workers, and bad input."""

import numpy as np
import pandas as pd
import pytest
from cluster_processes import NOISE
from helpers import leaves

import swiftem
from swiftem import methods, models
from swiftem.data import ArraySource, UnitSource, open_units

pytestmark = NOISE
RNG = np.random.default_rng(0)
Z = RNG.random(900) < 0.4
X = RNG.normal(size=(900, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]]
X += 20.0 + np.where(Z[:, None], 0.0, [5.0, -4.0, 3.0])
X[RNG.random(X.shape) < 0.2] = np.nan
X[200:300, 1] = np.nan  # a whole unit has no value in a column
COUNTS = np.floor(X)
WEIGHT = RNG.integers(0, 3, len(X)).astype(float)
CUTS = [slice(0, 200), slice(200, 300), slice(300, 900)]


def units(rows, weighted=False, **options):
    weights = [WEIGHT[cut] for cut in CUTS] if weighted else None
    return UnitSource([rows[cut] for cut in CUTS], weights, **{"allow_missing": True, **options})


def problem(kind):
    if kind in ("full", "tied", "diag", "spherical"):
        model = models.GaussianMixtureModel(2, covariance=kind, missing="ignore", reg_covar=1e-3)
        covariances = {"full": [9 * np.eye(3)] * 2, "tied": 9 * np.eye(3), "diag": np.full((2, 3), 9.0)}
        given = covariances.get(kind, [9.0, 9.0])
        return model, X, model.theta(means=[[20.0] * 3, [24.0, 16.0, 23.0]], covariances=given)
    model = models.MixtureModel(2, kind, missing="ignore")
    if kind == "poisson":
        return model, COUNTS, model.theta(rates=[[20.0] * 3, [24.0, 16.0, 23.0]])
    return model, X, model.theta(means=[[20.0] * 3, [24.0, 16.0, 23.0]], variances=np.full((2, 3), 9.0))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "poisson", "gaussian"])
def test_em_of_units_is_em_of_rows(kind, weighted):
    model, rows, theta0 = problem(kind)
    ours = swiftem.run(model, units(rows, weighted), methods.EM(), theta0=theta0, n_iter=12)
    weight = WEIGHT if weighted else None
    kept = slice(None) if weight is None else weight > 0
    theirs = swiftem.run(
        model, rows[kept], methods.EM(), theta0=theta0, n_iter=12,
        sample_weight=None if weight is None else weight[kept],
    )  # fmt: skip
    for one, other in zip(leaves_of(ours.theta), leaves_of(theirs.theta), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def leaves_of(theta):
    return [part for leaf in leaves(theta) for part in (leaf.values() if isinstance(leaf, dict) else [leaf])]


@pytest.mark.parametrize("name", ["sem", "iem", "sem-vr", "fiem", "spider"])
@pytest.mark.parametrize("kind", ["full", "diag", "poisson"])
def test_methods_fit_units(kind, name):
    model, rows, theta0 = problem(kind)
    method = methods.METHODS[name](**({} if name == "iem" else {"step_size": 0.3}))
    found = swiftem.run(model, units(rows), method, theta0=theta0, n_iter=40, seed=0)
    best = swiftem.run(model, rows, methods.EM(), theta0=theta0, n_iter=60)
    assert swiftem.objective(model, rows, found.theta) < swiftem.objective(model, rows, best.theta) + 0.1


def test_estimators_of_units(tmp_path):
    rows = swiftem.GaussianMixture(2, missing="ignore", random_state=0, tol=1e-7, max_iter=500).fit(X)
    ours = swiftem.GaussianMixture(2, missing="ignore", random_state=0, tol=1e-7, max_iter=500).fit(units(X))
    assert ours.score(units(X)) == pytest.approx(rows.score(X), abs=1e-6)
    assert ours.score(units(X)) == pytest.approx(ours.score(X), abs=1e-10)
    counted = swiftem.Mixture(2, family="poisson", missing="ignore", random_state=0).fit(units(COUNTS))
    assert counted.score(units(COUNTS)) == pytest.approx(counted.score(COUNTS), abs=1e-10)
    with pytest.raises(ValueError, match="missing must be 'ignore' for rows with allow_missing=True"):
        swiftem.GaussianMixture(2).fit(units(X))
    with pytest.raises(ValueError, match="missing must be 'ignore' for rows with allow_missing=True"):
        swiftem.run(models.GaussianMixtureModel(2, covariance="full"), units(X), methods.EM(), n_iter=1)
    source = ArraySource(X, allow_missing=True)
    with pytest.raises(ValueError, match="missing must be 'ignore' for rows with allow_missing=True"):
        swiftem.run(models.GaussianMixtureModel(2, covariance="full"), source, methods.EM(), n_iter=1)


def test_complete_units_have_the_same_bits_with_the_option():
    complete = np.nan_to_num(X, nan=20.0)
    one = swiftem.GaussianMixture(2, missing="ignore", random_state=0).fit(units(complete))
    other = swiftem.GaussianMixture(2, random_state=0).fit(units(complete, allow_missing=False))
    np.testing.assert_array_equal(one.covariances_, other.covariances_)


def test_what_is_known_of_units():
    source = units(X, weighted=True)
    seen, weight = ~np.isnan(X), WEIGHT[:, None]
    np.testing.assert_allclose(source.masses, (weight * seen).sum(axis=0))
    mean = (weight * np.nan_to_num(X)).sum(axis=0) / (weight * seen).sum(axis=0)
    np.testing.assert_allclose(source.mean, mean, rtol=1e-13)
    assert source.fingerprint() == units(X, weighted=True).fingerprint()
    other = X.copy()
    other[5] = np.nan
    assert source.fingerprint() != units(other, weighted=True).fingerprint()
    assert units(np.nan_to_num(X)).masses is None


def test_row_groups(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    file = tmp_path / "rows.parquet"
    frame.to_parquet(file, row_group_size=250)
    source = open_units(str(file), allow_missing=True)
    assert (source.n, source.rows) == (4, 900)
    model, rows, theta0 = problem("full")
    ours, theirs = (
        swiftem.run(model, data, methods.EM(), theta0=theta0, n_iter=8) for data in (source, rows)
    )
    np.testing.assert_allclose(ours.theta.means, theirs.theta.means, rtol=1e-10)
    place = (
        r"rows.parquet must hold finite numbers, got a missing value in column '[abc]', row \d+ \(from 0\)"
    )
    with pytest.raises(ValueError, match=place):
        open_units(str(file))


@pytest.mark.parametrize("kind", ["full", "diag", "poisson"])
def test_bad_units(kind):
    model, rows, _ = problem(kind)
    infinite, empty = rows.copy(), rows.copy()
    infinite[450, 2], empty[:, 2] = np.inf, np.nan
    with pytest.raises(
        ValueError, match=r"unit 2 of data must be finite, got an infinity at position \(150, "
    ):
        units(infinite)
    with pytest.raises(ValueError, match="data must have a value in every column, got none in column 2"):
        swiftem.run(model, units(empty), methods.EM(), n_iter=1, seed=0)
    with pytest.raises(ValueError, match="unit 0 of data must be finite, got NaN"):
        units(rows, allow_missing=False)


def test_workers_change_no_bit():
    pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    planned = da.from_array(X, chunks=(250, 3))
    frame = pd.DataFrame({"a": X[:, 0], "n": pd.array(np.arange(len(X)) % 9, dtype="Int64")})
    frame.loc[::7, "n"] = pd.NA
    frame = dd.from_pandas(frame, npartitions=3)

    def fits():
        for kind, data in (("full", planned), ("diag", planned), ("full", frame)):
            yield swiftem.GaussianMixture(2, covariance_type=kind, missing="ignore", random_state=0).fit(data)
        yield swiftem.GaussianMixture(2, missing="ignore", method="fiem", random_state=0).fit(planned)

    here = list(fits())
    counts = da.from_array(COUNTS, chunks=(250, 3))
    counted = swiftem.Mixture(2, family="poisson", missing="ignore", random_state=0).fit(counts)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster),
    ):
        for ours, theirs in zip(fits(), here, strict=True):
            np.testing.assert_array_equal(ours.covariances_, theirs.covariances_)
            np.testing.assert_array_equal(ours.means_, theirs.means_)
        there = swiftem.Mixture(2, family="poisson", missing="ignore", random_state=0).fit(
            da.from_array(COUNTS, chunks=(250, 3))
        )
        np.testing.assert_array_equal(there.params_["rates"], counted.params_["rates"])
        assert there.predict(counts).compute().shape == (len(X),)
        with pytest.raises(ValueError, match="must be finite, got NaN at position"):
            swiftem.GaussianMixture(2).fit(planned)
