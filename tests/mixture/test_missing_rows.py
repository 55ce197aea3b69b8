"""Estimators on tables with missing cells: fits, queries, files, bad input."""

import numpy as np
import pandas as pd
import pytest
from mixture_data import fitted

import swiftem
from swiftem import families, methods
from swiftem.data import ArraySource, open_source
from swiftem.models import NormalInverseWishart

N = 1200
RNG = np.random.default_rng(0)
Z = RNG.random(N) < 0.4
COUNTS = RNG.poisson(np.where(Z[:, None], [2.0, 9.0, 4.0], [9.0, 2.0, 14.0]))
NUMBERS = RNG.multivariate_normal([0.0, 0.0, 0.0], [[2.0, 1.2, 0.3], [1.2, 1.0, 0.1], [0.3, 0.1, 1.0]], N)
NUMBERS = 50.0 + NUMBERS + np.where(Z[:, None], 0.0, [6.0, -5.0, 4.0])


def holes(X, share=0.2, seed=1):
    H = np.array(X, dtype=float)
    H[np.random.default_rng(seed).random(H.shape) < share] = np.nan
    return H


HOLES, NORMAL = holes(COUNTS), holes(NUMBERS)
SETTINGS = {"random_state": 0, "tol": 1e-7, "max_iter": 400}


def mixture(**options):
    return swiftem.Mixture(2, **{"family": "poisson", "missing": "ignore", **SETTINGS, **options})


def gaussians(**options):
    return swiftem.GaussianMixture(2, **{"missing": "ignore", **SETTINGS, **options})


KINDS = ("full", "tied", "diag", "spherical")
STUDENT_T = "student-t(covariance='diag')"


def of_kind(kind, **options):
    """Return a mixture of a family or with covariances of a kind, and rows without holes and with them."""
    if kind in KINDS:
        return gaussians(covariance_type=kind, **options), NUMBERS, NORMAL
    X, H = (NUMBERS, NORMAL) if kind == STUDENT_T else (COUNTS, HOLES)
    return mixture(family=kind, **options), X, H


def agreement(labels):
    return max((labels == Z).mean(), (labels != Z).mean())


@pytest.mark.parametrize("method", ["em", "iem", "sem-vr", "fiem", "spider"])
@pytest.mark.parametrize("kind", [*KINDS, "poisson"])
def test_every_method_finds_the_optimum_of_em(kind, method):
    best, _, H = of_kind(kind, method="em")
    best.fit(H)
    found = of_kind(kind, method=method)[0].fit(H)
    assert found.log_likelihood_ == pytest.approx(best.log_likelihood_, abs=1e-5)
    assert agreement(found.predict(H)) > 0.95
    assert found.score(H) == pytest.approx(found.log_likelihood_, abs=1e-9)
    assert found.predict_proba(H).sum(axis=1) == pytest.approx(np.ones(N))
    assert found.bic(H) == pytest.approx(best.bic(H), rel=1e-5)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_sem_is_near_the_optimum(kind):
    found = gaussians(covariance_type=kind, method=methods.OnlineEM(batch_size=100), max_iter=30)
    fitted(found, NORMAL)
    assert found.log_likelihood_ > gaussians(covariance_type=kind).fit(NORMAL).log_likelihood_ - 0.02


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_without_holes_are_those_of_a_plain_fit(kind):
    plain = swiftem.GaussianMixture(2, covariance_type=kind, **SETTINGS).fit(NUMBERS)
    found = gaussians(covariance_type=kind).fit(NUMBERS)
    np.testing.assert_array_equal(found.covariances_, plain.covariances_)


def test_conditional_means_are_regressions():
    found = swiftem.GaussianMixture.from_parameters(
        [1.0], [[1.0, 2.0]], [[[4.0, 2.0], [2.0, 3.0]]], missing="ignore"
    )
    row = np.array([[3.0, np.nan], [np.nan, np.nan], [3.0, 1.0]])
    np.testing.assert_allclose(found.impute(row), [[3.0, 3.0], [1.0, 2.0], [3.0, 1.0]])
    draws = found.impute(np.repeat(row[:1], 40_000, axis=0), random_state=0)
    assert (draws[:, 0] == 3.0).all()
    assert draws[:, 1].mean() == pytest.approx(3.0, abs=0.03)
    assert draws[:, 1].var() == pytest.approx(2.0, abs=0.06)  # 3 - 2 * 2 / 4
    again = found.impute(np.repeat(row[:1], 40_000, axis=0), random_state=0)
    np.testing.assert_array_equal(draws, again)


@pytest.mark.parametrize("kind", [*KINDS, STUDENT_T])
def test_imputed_means_are_those_of_draws(kind):
    found, rows = of_kind(kind)[0].fit(NORMAL), NORMAL[:30]
    draws = found.impute(np.repeat(rows, 1000, axis=0), random_state=0).reshape(30, 1000, 3).mean(axis=1)
    filled = found.impute(rows)
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[~np.isnan(rows)], rows[~np.isnan(rows)])
    np.testing.assert_allclose(filled, draws, atol=0.5)
    assert found.impute(rows.astype(np.float32)).dtype == np.float32


def table():
    frame = pd.DataFrame({
        "age": np.where(Z, 30.5, 60.25) + RNG.normal(size=N) * 4,
        "job": np.where(Z, RNG.choice(["a", "b"], N, p=[0.9, 0.1]), RNG.choice(["a", "b"], N, p=[0.2, 0.8])),
        "visits": pd.array(RNG.poisson(np.where(Z, 30.0, 60.0)), dtype="Int64"),
        "yes": pd.array(RNG.random(N) < np.where(Z, 0.9, 0.1), dtype="boolean"),
        "opted": (RNG.random(N) < 0.5).astype(object),
        "stays": RNG.poisson(np.where(Z, 40.0, 70.0)).astype(float),
    })  # fmt: skip
    marks = {"age": np.nan, "job": None, "visits": pd.NA, "yes": pd.NA, "opted": None, "stays": np.nan}
    for name, mark in marks.items():
        frame.loc[RNG.random(N) < 0.15, name] = mark
    return frame


def test_a_table_with_every_kind_of_hole():
    frame = table()
    found = mixture(family="auto").fit(frame)
    assert found.family_.name == "gaussian + categorical + poisson + bernoulli"
    assert found.family_.columns == ((0,), (1,), (2, 5), (3, 4))
    assert agreement(found.predict(frame)) > 0.95
    filled = found.impute(frame)
    assert list(filled.columns) == list(frame.columns)
    assert not filled.isna().any().any()
    assert set(filled["job"]) == {"a", "b"}
    known = frame["job"].notna()
    assert (filled["job"][known] == frame["job"][known]).all()
    drawn = found.impute(frame, random_state=0)
    assert set(drawn["yes"]) == {0.0, 1.0}
    assert not np.array_equal(drawn["age"], filled["age"])
    as_objects = frame.astype(object).where(frame.notna(), None).to_numpy()
    again = mixture(family="auto").fit(as_objects)
    assert again.log_likelihood_ == pytest.approx(found.log_likelihood_, abs=1e-6)
    assert again.impute(as_objects).dtype == object
    found.plot(frame)


def test_weights_are_repeated_rows():
    counts = np.random.default_rng(3).integers(0, 3, N)
    for make, H in ((mixture, HOLES), (gaussians, NORMAL)):
        once = make(init_params="kmeans").fit(H, sample_weight=counts)
        twice = make(init_params="kmeans").fit(np.repeat(H, counts, axis=0))
        assert once.log_likelihood_ == pytest.approx(twice.log_likelihood_, abs=1e-5)
        assert once.score(H, sample_weight=counts) == pytest.approx(once.log_likelihood_, abs=1e-9)


@pytest.mark.parametrize("kind", ["poisson", STUDENT_T, "full", "diag", "spherical"])
def test_partial_fit_on_complete_rows_and_rows_with_holes(kind, tmp_path):
    best, X, H = of_kind(kind)
    best.fit(H)
    score = best.score(H)
    found = of_kind(kind)[0].partial_fit(X[:300]).partial_fit(H[300:700]).partial_fit(X[700:900])
    found.save(tmp_path / "a.model")
    loaded = type(found).load(tmp_path / "a.model")
    for one in (found, loaded):
        one.partial_fit(H[900:])
    np.testing.assert_array_equal(loaded.weights_, found.weights_)
    assert found.score(H) > score - 0.03
    assert of_kind(kind)[0].fit(X).partial_fit(H).score(H) > score - 0.03
    best.save(tmp_path / "a.model")
    loaded = type(found).load(tmp_path / "a.model")
    assert loaded.missing == "ignore"
    np.testing.assert_array_equal(loaded.predict_proba(H), best.predict_proba(H))
    loaded.partial_fit(H[:200])
    assert loaded.score(H) > score - 0.05


def test_a_row_with_nothing_observed_has_the_weights():
    for found, H in ((mixture().fit(HOLES), HOLES), (gaussians().fit(NORMAL), NORMAL)):
        nothing = [[None] * H.shape[1]]
        np.testing.assert_allclose(found.predict_proba(nothing)[0], found.weights_, rtol=1e-12)
        assert found.score_samples(nothing)[0] == pytest.approx(0.0, abs=1e-14)
        assert found.predict(nothing)[0] == found.weights_.argmax()


@pytest.mark.parametrize("family", ["poisson", "gamma", "categorical"])
def test_a_column_with_nothing_observed(family):
    H = HOLES + 1.0
    H[:, 1] = np.nan
    with pytest.raises(ValueError, match="data must have a value in every column, got none in column 1"):
        mixture(family=family).fit(H)
    with pytest.raises(ValueError, match="data must have a value in every column, got none in column 1"):
        gaussians().fit(H)
    with pytest.raises(ValueError, match=r"X must have values in every column, got none in column"):
        mixture(family="auto").fit(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [None] * 3}))


def test_what_is_still_an_error():
    H = HOLES.copy()
    H[5, 0] = np.inf
    for make in (mixture, gaussians):
        with pytest.raises(ValueError, match="infinity"):
            make().fit(H)
    H[5, 0] = -1.0
    with pytest.raises(ValueError, match=r"must be counts .* got -1 in row 5"):
        mixture().fit(H)
    coded = mixture(family="categorical", tol=1e-3).fit(np.where(np.isnan(HOLES), np.nan, HOLES % 3))
    with pytest.raises(ValueError, match=r"must be codes from 0 to 2 in column 0 \(levels=3\), got 7"):
        coded.predict([[7.0, np.nan, 1.0]])
    for family in ("student-t", "von-mises-fisher"):
        with pytest.raises(ValueError, match=f"must not be missing in columns of family '{family}'"):
            mixture(family=family).fit(NORMAL)
    with pytest.raises(ValueError, match="X must have no missing values in a mixture of regressions"):
        swiftem.RegressionMixture(2).fit(NORMAL, np.ones(N))


def test_the_sentence_names_the_option():
    sentence = r"Input X contains NaN: give GaussianMixture missing='ignore' if cells are missing at random"
    with pytest.raises(ValueError, match=sentence):
        swiftem.GaussianMixture(2).fit(NORMAL)
    with pytest.raises(ValueError, match="Input X contains NaN: give Mixture missing='ignore'"):
        mixture(missing="error").fit(HOLES)
    source = ArraySource(NORMAL, allow_missing=True)
    with pytest.raises(ValueError, match="contains NaN"):
        swiftem.GaussianMixture(2).fit(source)
    assert gaussians().fit(source).score(source) > -10.0


def test_a_source_with_holes_needs_the_option(tmp_path):
    np.save(tmp_path / "rows.npy", NORMAL)
    source = open_source(tmp_path / "rows.npy", allow_missing=True)
    with pytest.raises(ValueError, match="missing must be 'ignore' for rows with allow_missing=True"):
        swiftem.GaussianMixture(2).fit(source)
    assert gaussians().fit(source).log_likelihood_ < 0.0


def test_levels_of_one_kind_only():
    one = np.where(np.isnan(HOLES), np.nan, 0.0)
    found = mixture(family="categorical").fit(one)
    assert found.family_.levels == (1, 1, 1)
    assert found.score(one) == pytest.approx(0.0, abs=1e-12)


def test_the_tag_says_what_is_taken():
    def allowed(estimator):
        return estimator.__sklearn_tags__().input_tags.allow_nan

    assert allowed(swiftem.Mixture(missing="ignore"))
    assert not allowed(swiftem.Mixture())
    assert allowed(gaussians())
    assert not allowed(swiftem.GaussianMixture())


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_a_prior_on_weights_beside_missing_cells(kind):
    """Also on complete rows, which are fitted as without the choice."""
    prior = NormalInverseWishart(concentration=2.0)
    parameters = {"covariance_type": kind, "prior": prior, **SETTINGS}
    mixture = swiftem.GaussianMixture(2, missing="ignore", **parameters).fit(NUMBERS)
    plain = swiftem.GaussianMixture(2, **parameters).fit(NUMBERS)
    np.testing.assert_allclose(mixture.weights_, plain.weights_, rtol=1e-12)
    mixture.fit(NORMAL).partial_fit(NORMAL)
    assert np.isfinite(mixture.means_).all()
    assert abs(mixture.weights_.min() - 0.4) < 0.05


@pytest.mark.parametrize("rows", [NORMAL, NUMBERS])
def test_rows_after_a_start_that_was_partly_given(rows):
    mixture = swiftem.Mixture(
        2, family="gaussian", missing="ignore", max_iter=0, weights_init=[0.5, 0.5], random_state=0
    )
    mixture.fit(NORMAL).partial_fit(rows)
    assert abs(mixture.weights_.min() - 0.4) < 0.05


class WithoutMeans(families.Poisson):
    """A family that does not say what the mean of a column is."""

    name = "without-means"
    expected = families.Family.expected


def test_a_family_of_ones_own():
    found = mixture(family=WithoutMeans()).fit(HOLES)
    with pytest.raises(ValueError, match=r"must define expected\(params\)"):
        found.impute(HOLES)
    assert not np.isnan(found.impute(HOLES, random_state=0)).any()
