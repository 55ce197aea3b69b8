"""Codes of ``family="categorical"``: those of the data are the levels, wherever the rows come from."""

import numpy as np
import pandas as pd
import pytest
from combinations.inputs import DASK, KINDS

import swiftem
from swiftem import Mixture
from swiftem.data import open_units
from swiftem.mixture.families.categorical import Categorical

CODES = (1, 2, 3, 4, 5, 9)
NOT_THESE = ("sparse", "generator", "bool")


def survey(n=600, seed=0):
    """Return answers 1 to 5, and 9 for none, to four questions, of two kinds of people."""
    rng = np.random.default_rng(seed)
    one, other = (rng.choice(CODES, (n, 4), p=p) for p in ([0.5, 0.1, 0.1, 0.1, 0.1, 0.1],
                                                           [0.1, 0.1, 0.1, 0.1, 0.4, 0.2]))  # fmt: skip
    return np.where(rng.random((n, 1)) < 0.5, one, other)


ROWS = survey()
X = ROWS[np.argsort((ROWS == 9).any(axis=1), kind="stable")]  # the last code is in the last row group only


def fitted(rows, family="categorical", sample_weight=None, **options):
    return Mixture(2, family=family, random_state=0, **options).fit(rows, sample_weight=sample_weight)


@pytest.mark.parametrize("kind", [*(kind for kind in KINDS if kind not in NOT_THESE), "units"])
def test_the_codes_of_the_data_are_the_levels(kind, tmp_path):
    made = KINDS["Parquet" if kind == "units" else kind]
    rows = made.make(X.astype(float), None, tmp_path).X
    mixture = fitted(open_units(rows) if kind == "units" else rows)
    assert mixture.categories_ == dict.fromkeys(getattr(mixture, "feature_names_in_", range(4)), CODES)
    assert mixture.params_["probabilities"].shape == (2, 4, 6)
    numbered = fitted(np.searchsorted(CODES, X))
    assert numbered.n_parameters_ == mixture.n_parameters_ == 1 + 2 * 4 * 5
    if kind not in (*DASK, "units"):
        rel = max(made.precision, 1e-8)
        assert mixture.bic(rows) == pytest.approx(numbered.bic(np.searchsorted(CODES, X)), rel=rel)


def test_plain_codes_are_as_before():
    mixture = fitted(np.searchsorted(CODES, X))
    assert mixture.family_ == Categorical(levels=(6, 6, 6, 6))
    assert mixture.categories_ == dict.fromkeys(range(4), (0, 1, 2, 3, 4, 5))


def test_given_levels_count_all_codes_from_zero():
    mixture = fitted(X, Categorical(levels=(12, 10, 10, 10)))
    assert mixture.n_parameters_ == 1 + 2 * (11 + 3 * 9)
    assert mixture.categories_[0] == tuple(range(12))
    assert np.isfinite(mixture.score_samples([[11, 0, 7, 6]])).all()


def test_only_codes_of_positive_weight():
    weight = np.where((X == 9).any(axis=1), 0.0, 2.0)
    mixture = fitted(X, sample_weight=weight)
    assert mixture.categories_ == dict.fromkeys(range(4), (1, 2, 3, 4, 5))
    assert mixture.n_parameters_ == 1 + 2 * 4 * 4
    found = swiftem.select(X, [2], family="categorical", sample_weight=weight, random_state=0)
    assert found.table[0].n_parameters == 1 + 2 * 4 * 4
    text = pd.DataFrame(np.array(list("_abcde___z"), dtype=object)[X])
    of_text = fitted(text, sample_weight=weight)
    assert of_text.categories_ == dict.fromkeys(range(4), tuple("abcde"))
    assert fitted(text[[0]], sample_weight=weight).categories_ == {0: tuple("abcde")}
    with pytest.raises(ValueError, match=r"categories of the fit in column 0 .*, got 'z'"):
        of_text.predict(pd.DataFrame([["z", "a", "a", "a"]]))


def test_a_code_that_the_fit_never_saw():
    mixture = fitted(X)
    sentence = (
        r"data must have categories of the fit in column 1 \(1, 2, 3, 4, 5, 9\), as levels= was not given, "
        r"got 6 in row 1 \(family 'categorical'\)"
    )
    for call in (mixture.predict, mixture.score_samples, mixture.partial_fit, mixture.bic):
        with pytest.raises(ValueError, match=sentence):
            call([[1, 1, 1, 1], [1, 6, 1, 1]])
    for bad in (-1, 1.5, 1e7, 1e30):
        with pytest.raises(ValueError, match=r"(codes|categories).* in column 0 .*got|in column 0, got"):
            mixture.predict([[bad, 1, 1, 1]])
    with pytest.raises(
        ValueError, match=r"must be codes, whole numbers from 0 on, in column 2, got 2.5 in row 3"
    ):
        fitted(np.where(np.arange(600)[:, None] == 3, [1, 1, 2.5, 1], X))


def test_missing_cells_are_filled_in_with_codes_of_the_user():
    holes = X.astype(float)
    holes[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    mixture = fitted(holes, missing="ignore")
    assert mixture.categories_ == dict.fromkeys(range(4), CODES)
    assert set(np.unique(mixture.impute(holes, random_state=0))) == set(CODES)
    assert set(np.unique(mixture.sample(500)[0])) == set(CODES)
    # A component whose answers are known: the most likely level, given the other cells.
    given = Mixture.from_parameters(
        [0.5, 0.5], {"probabilities": [[[0.1, 0.7, 0.2]] * 2, [[0.8, 0.1, 0.1]] * 2]},
        family=Categorical(categories=((2, 5, 7), (1, 3, 4))), missing="ignore",
    )  # fmt: skip
    assert given.impute([[5, np.nan], [np.nan, 1], [7, 4]]).tolist() == [[5, 3], [2, 1], [7, 4]]
    plain = np.where(np.isnan(holes), np.nan, np.searchsorted(CODES, X))
    again = fitted(plain, missing="ignore")
    assert np.array_equal(np.searchsorted(CODES, mixture.impute(holes)), again.impute(plain))
    assert again.n_parameters_ == mixture.n_parameters_


def test_samples_of_text_are_text():
    text = np.array(list("_abcde___z"), dtype=object)[X]
    rows, _ = fitted(text).sample(20)
    assert set(rows.ravel()) <= set("abcdez")
    assert fitted(text).predict(rows).shape == (20,)


@pytest.mark.parametrize("family", ["auto", {"categorical": [0, 1], "gaussian": [2]}])
def test_codes_beside_numbers(family):
    rows = np.column_stack([X[:, :2], np.random.default_rng(0).normal(6 * (X[:, 2] > 3))])
    table = pd.DataFrame(rows, columns=["a", "b", "x"]).astype({"a": int, "b": int})
    mixture = fitted(table, family)
    assert mixture.categories_ == {"a": CODES, "b": CODES}
    assert mixture.n_parameters_ == 1 + 2 * (2 * 5 + 2)
    drawn = mixture.sample(300)[0]
    assert set(np.unique(drawn[:, :2])) <= set(CODES)
    assert mixture.predict(table).shape == (600,)
    assert list(mixture.profile_["a"]) == ["1", "2", "3", "4", "5", "9"]
    assert "9: " in str(mixture.summary())
    with pytest.raises(ValueError, match=r"categories of the fit in column 1 .*got 7 in row 0"):
        mixture.predict(table.assign(b=7))


def test_a_stream_without_levels():
    first = X[(X < 9).all(axis=1) & (X != 3).all(axis=1)]
    mixture = Mixture(2, family="categorical", random_state=0).partial_fit(first)
    assert mixture.n_parameters_ == 1 + 2 * 4 * 3  # 1, 2, 4, 5
    assert mixture.categories_ == dict.fromkeys(range(4), (0, 1, 2, 3, 4, 5))
    mixture.partial_fit([[3, 0, 1, 1], [1, 1, 1, 1]])
    assert mixture.n_parameters_ == 1 + 2 * (4 * 3 + 2)
    with pytest.raises(ValueError, match=r"codes from 0 to 5 in column 2 \(levels=6.*levels=.*got 9"):
        mixture.partial_fit([[1, 1, 9, 1]])
    given = Mixture(2, family=Categorical(levels=(10,) * 4), random_state=0).partial_fit(first).partial_fit(X)
    assert given.n_parameters_ == 1 + 2 * 4 * 9


def test_files_keep_the_categories(tmp_path):
    for number, mixture in enumerate(
        (fitted(X), fitted(pd.DataFrame(X, columns=list("abcd")), "auto"),
         Mixture(2, family="categorical", random_state=0).partial_fit(X[-50:]))
    ):  # fmt: skip
        mixture.save(tmp_path / f"{number}.model")
        loaded = Mixture.load(tmp_path / f"{number}.model")
        assert loaded.categories_ == mixture.categories_
        assert loaded.family_ == mixture.family_
        assert loaded.n_parameters_ == mixture.n_parameters_
        rows = pd.DataFrame(X, columns=list("abcd")) if number == 1 else X
        assert np.array_equal(loaded.predict(rows), mixture.predict(rows))
        assert loaded.partial_fit(rows).family_ == mixture.partial_fit(rows).family_


def test_selection_does_not_depend_on_the_first_code():
    plain = swiftem.select(np.searchsorted(CODES, X), [1, 2, 3], family="categorical", random_state=0)
    found = swiftem.select(X, [1, 2, 3], family="categorical", random_state=0)
    assert [row.bic for row in found.table] == pytest.approx([row.bic for row in plain.table], rel=1e-12)
    assert found.table[1].n_parameters == 1 + 2 * 4 * 5
    assert found.best.categories_[0] == CODES


def test_impossible_categories():
    for given in (((1, 1),), ((-1, 2),), ((2.5,),), ((),), ((3, 2),)):
        with pytest.raises(ValueError, match="categories must have increasing codes"):
            Categorical(categories=given)
    with pytest.raises(ValueError, match=r"levels must be the numbers of categories, \(2,\), got \(3,\)"):
        Categorical(levels=(3,), categories=((1, 2),))
