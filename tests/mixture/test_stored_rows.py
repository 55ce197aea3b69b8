"""GaussianMixture on files, sources and blocks: the fit of the same rows in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import SequentialSource
from mixture_data import KINDS, METHODS, fitted
from stored_sources import make, write
from surroundings import fit_within

from swiftem import GaussianMixture
from swiftem.core import draws
from swiftem.data import ArraySource, CountSource, open_source
from swiftem.fit.validated import open_rows, some_rows

pytest.importorskip("pyarrow")
rng = np.random.default_rng(0)
N = 1500
ROWS = rng.normal(size=(N, 3)) + rng.normal(scale=5.0, size=(3, 3))[rng.integers(3, size=N)]
WEIGHT = rng.integers(3, size=N).astype(float)
FILES = ("npy", "parquet", "csv", "blocks")


@pytest.fixture(autouse=True)
def _few_draws_ahead(monkeypatch):
    """Have draws made for a thousand iterations ahead: for 65,536 they take longer than the runs here."""
    monkeypatch.setattr(draws, "CHUNK", 1024)


def mixture(**parameters):
    return GaussianMixture(3, random_state=0, **parameters)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stored", FILES)
def test_em_is_the_fit_of_the_rows_in_memory(kind, stored, tmp_path):
    source = make(stored, tmp_path, ROWS, WEIGHT)
    found = mixture(covariance_type=kind, method="em").fit(source)
    expected = mixture(covariance_type=kind, method="em").fit(ROWS, sample_weight=WEIGHT)
    assert found.n_iter_ == expected.n_iter_
    assert np.allclose(found.means_, expected.means_, rtol=1e-9, atol=1e-9)
    assert np.allclose(found.covariances_, expected.covariances_, rtol=1e-8, atol=1e-9)
    assert found.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-10)
    assert found.stationarity_ == pytest.approx(expected.stationarity_, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize(("kind", "stored"), list(zip(KINDS, FILES, strict=True)))
@pytest.mark.parametrize("method", METHODS[1:])
def test_other_methods_end_where_they_end_in_memory(kind, method, stored, tmp_path):
    source = make(stored, tmp_path, ROWS, window=400)
    made = mixture(covariance_type=kind, method=method)
    if stored in ("csv", "blocks") and method in ("iem", "fiem"):
        with pytest.raises(ValueError, match=f"in order, and {method} must .* use em, sem or sem-vr"):
            made.fit(source)
        return
    made.fit(source)
    expected = mixture(covariance_type=kind, method=method).fit(ROWS)
    assert made.method_ == method
    tolerance = 1e-2 if method == "sem" else 5e-3  # whose noise stays
    assert made.lower_bound_ == pytest.approx(expected.lower_bound_, abs=tolerance)


def test_other_columns_are_refused(tmp_path):
    made = mixture(method="em").fit(write(tmp_path, "a.csv", ROWS))
    with pytest.raises(ValueError, match="X has 2 features, but GaussianMixture is expecting 3"):
        made.predict(write(tmp_path, "b.csv", ROWS[:, :2]))
    source = open_source(tmp_path / "a.csv", columns=["c2", "c1", "c0"])
    with pytest.raises(
        ValueError, match="must be those of the fit, in the same order: c0, c1, c2, got c2, c1, c0"
    ):
        made.predict(source)


def test_too_few_rows_and_one_dimension(tmp_path):
    with pytest.raises(ValueError, match="Expected n_samples >= n_components but got n_components = 3"):
        mixture().fit(write(tmp_path, "few.npy", ROWS[:2]))
    np.save(tmp_path / "flat.npy", ROWS[:, 0])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        mixture().fit(tmp_path / "flat.npy")


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
def test_starts_by_name(init, tmp_path):
    file = write(tmp_path, "rows.npy", ROWS)
    made = fitted(mixture(method="em", init_params=init, max_iter=100), file)
    least = -8.0 if init == "random" else -6.0  # which begins in the middle, and rests there
    assert made.score(file) > least


@pytest.mark.parametrize(("n", "count"), [(5000, 5000), (6000, 5000)])
def test_starts_are_from_a_sample_of_eight_megabytes(n, count, tmp_path):
    np.save(tmp_path / "wide.npy", np.zeros((n, 200)))
    found = some_rows(open_rows(tmp_path / "wide.npy"), 3, np.random.RandomState(0))
    assert found.n == count


def test_starts_from_labels_of_all_rows_and_from_functions(tmp_path):
    file = write(tmp_path, "rows.npy", ROWS)
    labels = rng.integers(3, size=N)
    found = mixture(method="em", init_params=labels).fit(file)
    expected = mixture(method="em", init_params=labels).fit(ROWS)
    assert np.allclose(found.means_, expected.means_, rtol=1e-8, atol=1e-8)
    function = lambda X, n_components, random_state: np.arange(len(X)) % 3  # noqa: E731
    found = mixture(method="em", init_params=function).fit(file)
    assert np.isfinite(found.lower_bound_)
    with pytest.raises(ValueError, match=r"integer labels of shape \(1500,\)"):
        mixture(method="em", init_params=labels[:5]).fit(file)


@pytest.mark.parametrize("method", METHODS)
def test_an_array_with_a_limit_is_as_a_file(method, tmp_path):
    file = write(tmp_path, "rows.npy", ROWS[WEIGHT > 0])
    labels = rng.integers(3, size=N)
    given = {"method": method, "memory_limit": "300MB"}
    positive = (WEIGHT > 0).astype(float)
    found = fit_within(mixture, ROWS, sample_weight=positive, init_params=labels, **given)
    expected = fit_within(mixture, file, init_params=labels[WEIGHT > 0], **given)
    if method == "em":
        assert np.allclose(found.means_, expected.means_, rtol=1e-6, atol=1e-6)
    assert found.lower_bound_ == pytest.approx(expected.lower_bound_, abs=1e-3)


def test_sources_of_other_kinds():
    expected = mixture(method="em").fit(ROWS, sample_weight=WEIGHT)
    found = mixture(method="em").fit(ArraySource(ROWS, WEIGHT))
    assert np.allclose(found.means_, expected.means_, rtol=1e-12)
    assert np.array_equal(found.predict(ArraySource(ROWS)), expected.predict(ROWS))
    own = mixture(method="em").fit(SequentialSource(ROWS))
    assert np.allclose(own.means_, mixture(method="em").fit(ROWS).means_, rtol=1e-9)
    with pytest.raises(ValueError, match="to the source, not as a separate argument"):
        mixture().fit(ArraySource(ROWS), sample_weight=WEIGHT)
    with pytest.raises(TypeError, match="got word counts or tokens"):
        mixture().fit(CountSource(sp.csr_array([[1, 2], [3, 4]])))


def test_partial_fit_takes_files_and_blocks_of_rows(tmp_path):
    assert mixture().partial_fit(write(tmp_path, "rows.csv", ROWS)).score(ROWS) > -9.0
    with pytest.raises(ValueError, match="at least one row, got blocks with none"):
        mixture().partial_fit(iter([]))
    with pytest.raises(ValueError, match="with each block, as a pair"):
        mixture().partial_fit(iter([ROWS]), sample_weight=WEIGHT)


@pytest.mark.parametrize("method", METHODS)
def test_a_limit_that_cannot_be_kept_is_refused_before_the_start(method, tmp_path):
    file = write(tmp_path, "rows.npy", ROWS)
    with pytest.raises(ValueError, match=rf"memory_limit must be at least \d+ MB for {method} .* got 20 MB"):
        fit_within(mixture, file, method=method, memory_limit="20MB")
