"""Components that sit on few distinct values are seen, and nothing else is."""

import warnings

import numpy as np
import pandas as pd
import pytest
from mixture_data import blobs

import swiftem
from swiftem.mixture.starts.collapsed_components import SpuriousComponentWarning, units, with_noise


def counts(n=3000, seed=0):
    """Return rows whose second column is small counts, with many zeros."""
    rng = np.random.default_rng(seed)
    few = np.where(rng.random(n) < 0.5, 0, rng.poisson(6.0, size=n))
    return np.stack([rng.normal(size=n), few, rng.normal(size=n)], axis=1)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_the_warning_names_component_column_and_cure(kind):
    X = counts()
    with pytest.warns(SpuriousComponentWarning, match=r"\(column 1\).*uniform noise.*multiples of 1,"):
        mixture = swiftem.GaussianMixture(4, covariance_type=kind, random_state=0).fit(X)
    with pytest.warns(SpuriousComponentWarning) as found:
        mixture.fit(pd.DataFrame(X, columns=["a", "visits", "b"]))
    assert "(column 'visits')" in str(found[0].message)
    assert len(found) == 1
    assert found[0].filename == __file__


def test_rows_in_a_plane_are_named_as_such():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, size=(200, 4)) for m in (0.0, 8.0)])
    X[:, 3] = 0.3 * X[:, 0] - 0.25 * X[:, 2]
    reason = r"whose rows lie in a plane, .*: 0 \(column 0 − 0\.83·column 2 − 3\.3·column 3 is constant\), 1 "
    with pytest.warns(SpuriousComponentWarning, match=reason) as found:
        swiftem.GaussianMixture(2, random_state=0).fit(X)
    assert "few distinct values" not in str(found[0].message)
    assert "Use fewer columns, as some are combinations of others" in str(found[0].message)
    X[:, 3] = np.where(
        np.arange(400) < 200, 0.0, 0.3 * X[:, 1]
    )  # one column that is constant in one component
    with pytest.warns(SpuriousComponentWarning) as found:
        swiftem.GaussianMixture(2, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")))
    said = str(found[0].message)
    assert "sit on few distinct values or whose rows lie in a plane" in said
    assert "(column 'd')" in said
    assert "is constant)" in said


def test_a_prior_is_a_cure():
    prior = swiftem.models.NormalInverseWishart(degrees_of_freedom=10.0, scale=np.eye(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SpuriousComponentWarning)
        swiftem.GaussianMixture(4, random_state=0, prior=prior, max_iter=300).fit(counts())


def test_no_false_alarm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", SpuriousComponentWarning)
        for seed in range(100):
            rng = np.random.default_rng(seed)
            d, components = int(rng.integers(1, 6)), int(rng.integers(2, 6))
            X, _ = blobs(int(rng.integers(200, 1500)), d, components, apart=rng.uniform(0.5, 4.0), seed=seed)
            kind = ("full", "diag", "spherical", "tied")[seed % 4]
            swiftem.GaussianMixture(components, covariance_type=kind, random_state=seed, max_iter=30).fit(X)


def test_a_column_of_a_small_unit_is_no_alarm():
    """Prices in cents: multiples of a unit, but nobody sits on one of them."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 3.0, size=(2000, 2)) for m in (0.0, 30.0)]).round(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SpuriousComponentWarning)
        swiftem.GaussianMixture(2, random_state=0).fit(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_units(dtype):
    rng = np.random.default_rng(0)
    X = np.stack(
        [
            rng.integers(0, 50, size=2000), 0.1 * rng.integers(0, 9, size=2000) + 3.0, rng.normal(size=2000),
            np.zeros(2000), rng.choice([0.0, 1.0, np.pi], size=2000),
        ], axis=1,
    )  # fmt: skip
    found = units(X.astype(dtype))
    np.testing.assert_allclose(found, [1.0, 0.1, 0.0, 0.0, 0.0], rtol=1e-4)
    noisy = with_noise(X.astype(dtype), found, np.arange(len(X)))
    assert noisy.dtype == dtype
    np.testing.assert_array_equal(noisy[:, 2:], X[:, 2:].astype(dtype))
    assert np.abs(noisy[:, 0] - X[:, 0]).max() <= 0.5 + 1e-5


def test_the_noise_is_uniform_and_that_of_a_row():
    rows, unit = np.zeros((20_000, 3)), np.array([1.0, 0.0, 0.5])
    noisy = with_noise(rows, unit, np.arange(len(rows)))
    assert (noisy[:, 1] == 0.0).all()
    for column, width in ((0, 1.0), (2, 0.5)):
        share, _ = np.histogram(noisy[:, column], bins=10, range=(-width / 2, width / 2))
        assert share.sum() == len(rows)
        assert ((share - 2000) ** 2 / 2000).sum() < 30.0  # chi-squared with 9 degrees of freedom
        assert abs(np.corrcoef(noisy[1:, column], noisy[:-1, column])[0, 1]) < 0.03
    assert abs(np.corrcoef(noisy[:, 0], noisy[:, 2])[0, 1]) < 0.03
    some = np.array([7, 3, 19_999])
    np.testing.assert_array_equal(with_noise(rows[some], unit, some), noisy[some])
