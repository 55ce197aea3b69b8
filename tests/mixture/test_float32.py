"""float32 data: as good as float64, also far from zero, and never copied as float64."""

import tracemalloc

import numpy as np
import pytest
from mixture_data import ARRAYS, KINDS, METHODS, blobs, fitted, given_start

import swiftem
from swiftem.mixture.starts import named_starts

X, _ = blobs(800, 3, 3, apart=4.0, seed=2)
OFFSET = X + 1e4
SINGLE = OFFSET.astype(np.float32)


def fit(data, **parameters):
    return fitted(swiftem.GaussianMixture(3, random_state=0, **parameters), data)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_offset_costs_nothing(method, kind):
    parameters = dict(method=method, covariance_type=kind, max_iter=30, **given_start(OFFSET, 3, kind))
    single, double = fit(SINGLE, **parameters), fit(OFFSET, **parameters)
    assert single.score(SINGLE) == pytest.approx(double.score(OFFSET), abs=1e-3)
    # On the same rows the two models are hardly to be told apart.
    assert single.score(OFFSET) == pytest.approx(double.score(OFFSET), abs=1e-3)
    assert (single.predict(SINGLE) == double.predict(OFFSET)).mean() > 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_an_offset_does_not_disturb_the_kmeans_start(kind):
    single, plain = fit(SINGLE, covariance_type=kind), fit(X, covariance_type=kind)
    assert single.score(SINGLE) == pytest.approx(plain.score(X), abs=1e-3)


def test_nor_that_by_mini_batches(monkeypatch):
    monkeypatch.setattr(named_starts, "LARGE", 500)
    single, plain = fit(SINGLE), fit(X)
    assert single.score(SINGLE) == pytest.approx(plain.score(X), abs=1e-2)


def test_partial_fit_with_an_offset():
    scores = []
    for data in (SINGLE, OFFSET):
        mixture = swiftem.GaussianMixture(3, random_state=0)
        for _ in range(3):
            for start in range(0, len(data), 200):
                mixture.partial_fit(data[start : start + 200])
        scores.append(mixture.score(data))
        assert mixture.means_.dtype == data.dtype
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_float32_stays_float32(method):
    data = X.astype(np.float32)
    mixture = fit(data, method=method, max_iter=5)
    assert {getattr(mixture, name).dtype for name in ARRAYS} == {np.dtype(np.float32)}
    assert mixture.predict_proba(data).dtype == np.float32
    assert mixture.score_samples(data).dtype == np.float32
    # As in scikit-learn: what is asked about decides.
    assert mixture.predict_proba(X).dtype == np.float64
    np.testing.assert_allclose(mixture.predict_proba(data).sum(axis=1), 1.0, atol=1e-6)
    assert mixture.marginal([0, 1]).means_.dtype == np.float32
    assert mixture.condition([0], [0.0]).covariances_.dtype == np.float32
    again = fit(data, method=method, warm_start=True, max_iter=5)
    assert fitted(again, data).means_.dtype == np.float32


@pytest.mark.parametrize("method", METHODS)
def test_no_copy_of_the_data(method):
    """Neither in float64 nor otherwise; a memory of M float32 numbers a row is iem's and fiem's alone."""
    data = np.random.default_rng(0).normal(size=(60_000, 48)).astype(np.float32)
    mixture = swiftem.GaussianMixture(
        2, random_state=0, method=method, covariance_type="diag", max_iter=4, **given_start(data, 2, "diag")
    )
    fitted(mixture, data)  # compiled before
    tracemalloc.start()
    fitted(mixture, data)
    fitting = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    for ask in (mixture.score, mixture.predict, mixture.icl):
        ask(data)
    asking = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    memory = 4 * 2 * len(data) if method in ("iem", "fiem") else 0
    drawn = 4 * 8 * 65_536  # sample numbers, ahead of their use, whatever the data
    assert fitting < memory + drawn + 0.9 * data.nbytes
    assert asking < 0.9 * data.nbytes
