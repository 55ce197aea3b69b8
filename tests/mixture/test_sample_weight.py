"""Weights: zero is absent, a whole number is repetition, in fits and in scores."""

import numpy as np
import pytest
from combinations.inputs import KINDS as SOURCES
from mixture_data import ARRAYS, KINDS, METHODS, assert_same_model, blobs, fitted, given_start

import swiftem
from swiftem.data import BlockSource, open_units
from swiftem.models import NormalInverseWishart

X, _ = blobs(400, 2, 2, seed=1)
RNG = np.random.default_rng(0)
WHOLE = RNG.integers(1, 4, size=len(X))
ZERO = RNG.random(len(X)) < 0.2


def fit(data, weight=None, **parameters):
    return fitted(swiftem.GaussianMixture(2, random_state=0, **parameters), data, weight)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_weight_zero_is_as_if_absent(method, kind):
    """To the last bit, whatever it holds."""
    wild = X.copy()
    wild[ZERO] = 1e6 * RNG.normal(size=(ZERO.sum(), 2))
    ones, others = np.where(ZERO, 0.0, 1.0), np.where(ZERO, 0.0, WHOLE)
    parameters = dict(method=method, covariance_type=kind, max_iter=7)
    assert_same_model(fit(wild, ones, **parameters), fit(X[~ZERO], **parameters))
    assert_same_model(fit(wild, others, **parameters), fit(X[~ZERO], WHOLE[~ZERO], **parameters))


@pytest.mark.parametrize("init_params", ["k-means++", "random", "random_from_data"])
def test_rows_of_weight_zero_do_not_move_the_start(init_params):
    weight = np.where(ZERO, 0.0, 1.0)
    options = {"init_params": init_params, "max_iter": 1}
    assert_same_model(fit(X, weight, **options), fit(X[~ZERO], **options))
    if init_params != "random":  # a row as a start counts the same whatever its weight
        np.testing.assert_allclose(fit(X, WHOLE, init_params=init_params, max_iter=0).weights_, 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_weights_are_repetition_under_em(kind):
    start = given_start(X, 2, kind)
    parameters = dict(method="em", covariance_type=kind, max_iter=30, tol=1e-9, **start)
    weighted, repeated = fit(X, WHOLE, **parameters), fit(np.repeat(X, WHOLE, axis=0), **parameters)
    for name in ARRAYS:
        np.testing.assert_allclose(
            getattr(weighted, name), getattr(repeated, name), rtol=1e-9, atol=1e-12, err_msg=name
        )
    np.testing.assert_allclose(weighted.lower_bounds_, repeated.lower_bounds_, rtol=1e-9)
    assert weighted.stationarity_ == pytest.approx(repeated.stationarity_, rel=1e-3)


@pytest.mark.parametrize(("method", "kind"), [("iem", "full"), ("sem-vr", "tied"), ("fiem", "spherical")])
def test_whole_weights_are_repetition_at_convergence(method, kind):
    start = given_start(X, 2, kind)
    parameters = dict(method=method, covariance_type=kind, max_iter=250, tol=1e-10, **start)
    repeated = np.repeat(X, WHOLE, axis=0)
    scores = [
        fit(X, WHOLE, **parameters).score(X, sample_weight=WHOLE),
        fit(repeated, **parameters).score(repeated),
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-6)


@pytest.mark.parametrize(
    "prior",
    [NormalInverseWishart(concentration=5.0), NormalInverseWishart(5.0, 2.0, mean_precision=3.0)],
    ids=["weights", "components"],
)
def test_whole_weights_are_repetition_under_priors(prior):
    """Priors are in counts: what is repeated weighs more against them."""
    start = given_start(X, 2, "full")
    few, counts = X[:60], np.full(60, 3)
    weighted = fit(few, counts, method="em", **start, prior=prior)
    repeated = fit(np.repeat(few, counts, axis=0), method="em", **start, prior=prior)
    np.testing.assert_allclose(weighted.covariances_, repeated.covariances_, rtol=1e-9)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-9)
    assert not np.allclose(
        weighted.covariances_, fit(few, method="em", **start, prior=prior).covariances_, rtol=1e-4
    )


@pytest.mark.parametrize("method", METHODS)
def test_equal_weights_are_none(method):
    assert_same_model(
        fit(X, np.full(len(X), 0.3), method=method, max_iter=7), fit(X, method=method, max_iter=7)
    )


@pytest.mark.parametrize("method", ["em", "sem-vr"])
def test_the_unit_of_weights_does_not_matter(method):
    """Nor does it make components seem dead."""
    tiny, plain = (fit(X, WHOLE * unit, method=method, max_iter=7) for unit in (1e-9, 1.0))
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(tiny, name), getattr(plain, name), rtol=1e-6, err_msg=name)


def test_weights_move_the_kmeans_start():
    heavy = np.where(X[:, 0] > np.median(X[:, 0]), 50.0, 1.0)
    started, plain = (fit(X, weight, method="em", max_iter=0) for weight in (heavy, None))
    assert abs(started.means_[:, 0].mean() - plain.means_[:, 0].mean()) > 0.1


def test_scores_and_criteria():
    mixture = fit(X, WHOLE)
    repeated = np.repeat(X, WHOLE, axis=0)
    for name in ("score", "bic", "aic", "icl"):
        ask = getattr(mixture, name)
        assert ask(X, sample_weight=WHOLE) == pytest.approx(ask(repeated), rel=1e-12)
        assert ask(X, sample_weight=np.ones(len(X))) == pytest.approx(ask(X), rel=1e-12)
        assert ask(np.vstack([X, [[9.0, 9.0]]]), sample_weight=np.append(WHOLE, 0)) == pytest.approx(
            ask(repeated), rel=1e-12
        )


def test_log_n_becomes_the_log_of_the_sum_of_weights():
    mixture, weight = fit(X), np.full(len(X), 0.5)
    total, p = weight @ mixture.score_samples(X), mixture.n_parameters_
    assert mixture.bic(X, weight) == pytest.approx(-2 * total + p * np.log(weight.sum()))
    assert mixture.aic(X, weight) == pytest.approx(-2 * total + 2 * p)
    r = mixture.predict_proba(X)
    entropy = -weight @ np.where(r > 0, r * np.log(np.where(r > 0, r, 1)), 0).sum(axis=1)
    assert mixture.icl(X, weight) == pytest.approx(mixture.bic(X, weight) + 2 * entropy)


def with_fourth(value):
    return np.where(np.arange(len(X)) == 3, value, 1.0)


BAD = {
    "negative": (with_fourth(-1.0), "sample_weight must not be negative, got -1 at position 3"),
    "NaN": (with_fourth(np.nan), "sample_weight must be finite, got NaN"),
    "infinite": (with_fourth(np.inf), "sample_weight must be finite, got an infinity"),
    "too few": (np.ones(len(X) - 1), r"sample_weight must have shape \(\d+,\), one weight per row"),
    "two-dimensional": (np.ones((len(X), 2)), "one weight per row, got"),
    "all zero": (np.zeros(len(X)), "sample_weight must have a positive entry"),
    "words": (["a"] * len(X), "sample_weight must hold real numbers"),
}


@pytest.mark.parametrize(("weight", "message"), list(BAD.values()), ids=list(BAD))
def test_bad_weights_get_one_sentence(weight, message):
    mixture, new = fit(X), swiftem.GaussianMixture(2)
    for ask in (mixture.score, mixture.bic, mixture.aic, mixture.icl, new.fit, new.partial_fit):
        with pytest.raises((TypeError, ValueError), match=message) as error:
            ask(X, sample_weight=weight)
        assert "\n" not in str(error.value)


def test_too_few_rows_with_weight():
    weight = np.zeros(len(X))
    weight[0] = 1.0
    with pytest.raises(ValueError, match="sample_weight must have at least 2 positive entries, got 1"):
        swiftem.GaussianMixture(1).fit(X, sample_weight=weight)
    weight[1] = 1.0
    with pytest.raises(ValueError, match="n_components = 3, n_samples = 2"):
        swiftem.GaussianMixture(3).fit(X, sample_weight=weight)


@pytest.mark.parametrize("kind", ["ArraySource", "npy", "blocks", "CSV", "Parquet"])
def test_a_source_has_results_for_rows_of_weight_zero(kind, tmp_path):
    weight = np.where(ZERO, 0.0, 1.0 + np.arange(len(X)) % 3)
    weight[:140] = 0.0  # a whole row group
    source = SOURCES[kind].make(X, weight, tmp_path).X
    source = BlockSource(source) if kind == "blocks" else source
    mixture = swiftem.GaussianMixture(2, random_state=0, missing="ignore")
    labels = mixture.fit_predict(source)
    plain = swiftem.GaussianMixture(2, random_state=0, missing="ignore")
    expected = plain.fit_predict(X, sample_weight=weight)
    assert labels.shape == (len(X),)
    assert np.array_equal(labels, expected)
    for name in ("predict", "predict_proba", "score_samples", "impute"):
        found, same = getattr(mixture, name)(source), getattr(plain, name)(X)
        assert np.allclose(found, same, rtol=1e-6), name
    for name in ("score", "bic", "aic", "icl"):  # rows count by their weights
        found, same = getattr(mixture, name)(source), getattr(plain, name)(X, sample_weight=weight)
        assert found == pytest.approx(same, rel=1e-9), name


def test_units_have_no_results_by_row(tmp_path):
    np.save(tmp_path / "a.npy", X)
    mixture = swiftem.GaussianMixture(2, random_state=0).fit(X)
    for name in ("predict", "predict_proba", "score_samples", "impute", "icl"):
        with pytest.raises(TypeError, match="got units"):
            getattr(mixture, name)(open_units(tmp_path / "a.npy"))
