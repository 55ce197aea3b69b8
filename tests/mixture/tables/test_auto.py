"""Tables given to ``swiftem.Mixture``: text and categories as codes, ``family="auto"``, selections."""

import logging

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import swiftem
from swiftem import Mixture
from swiftem.fit.model_file import save_arrays
from swiftem.mixture.families.binomial import Binomial
from swiftem.mixture.families.categorical import Categorical


def survey(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.random(n) < 0.4
    frame = pd.DataFrame(
        {
            "age": rng.normal(np.where(kind, 30, 60), 5.0),
            "visits": rng.poisson(np.where(kind, 2, 30)),
            "member": rng.random(n) < np.where(kind, 0.2, 0.8),
            "job": np.where(rng.random(n) < np.where(kind, 0.8, 0.3), "clerk", "baker"),
            "agrees": 1 + rng.binomial(4, np.where(kind, 0.3, 0.7)),
            "region": pd.Categorical(rng.choice(["n", "s", "w"], n), categories=["w", "s", "n", "e"]),
            "income": rng.integers(20_000, 90_000, n),
            "smokes": rng.integers(0, 2, n),
            "change": rng.integers(-5, 6, n),
        }
    )
    return frame, kind


LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.from_pandas(frame).with_columns(
        pl.col(name).cast(pl.Enum(frame[name].cat.categories)) for name in frame.select_dtypes("category")
    ),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


CHOSEN = {"gaussian": (0, 6, 8), "poisson": (1,), "bernoulli": (2, 7), "categorical": (3, 4, 5)}


@pytest.mark.parametrize("library", LIBRARIES)
def test_auto_reads_types(library, caplog, tmp_path):
    frame, kind = survey()
    table = LIBRARIES[library](frame)
    with caplog.at_level(logging.INFO, logger="swiftem"):
        mixture = Mixture(2, family="auto", random_state=0).fit(table)
    (said,) = [line for line in caplog.messages if line.startswith("family='auto'")]
    assert said == (
        "family='auto': gaussian for age, income, change; poisson for visits; bernoulli for member, smokes; "
        "categorical for job, agrees, region."
    )
    found = dict(zip((part.name for part in mixture.family_.families), mixture.family_.columns, strict=True))
    assert found == CHOSEN
    assert mixture.categories_ == {
        "job": ("baker", "clerk"), "agrees": (1, 2, 3, 4, 5), "region": ("w", "s", "n"),
    }  # fmt: skip
    same = np.mean(mixture.predict(table) == kind)
    assert max(same, 1 - same) > 0.98
    mixture.save(tmp_path / "a.model")
    loaded = Mixture.load(tmp_path / "a.model")
    assert loaded.categories_ == mixture.categories_
    assert np.array_equal(loaded.predict_proba(frame), mixture.predict_proba(frame))
    assert loaded.partial_fit(table).family_ == mixture.family_
    assert np.isfinite(loaded.bic(table))


def test_codes_are_those_of_the_same_numbers():
    frame, kind = survey()
    settings = {"family": "categorical", "init_params": np.eye(2)[kind.astype(int)], "random_state": 0}
    mixture = Mixture(2, **settings).fit(frame[["job", "region"]])
    by_hand = np.column_stack([frame["job"] == "clerk", frame["region"].cat.codes]).astype(float)
    theirs = Mixture(2, **settings).fit(by_hand)
    assert np.array_equal(mixture.params_["probabilities"], theirs.params_["probabilities"])
    one = [["baker", "n"]]
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(mixture.predict_proba(one), theirs.predict_proba([[0, 2]]))
    of_arrays = Mixture(2, **settings).fit(frame[["job", "region"]].to_numpy(dtype=object))
    assert of_arrays.categories_ == {0: ("baker", "clerk"), 1: ("n", "s", "w")}
    named = pd.DataFrame(one, columns=["job", "region"])
    assert of_arrays.score(one) == pytest.approx(mixture.score(named), rel=1e-9)


def test_an_array_of_integers():
    frame, _ = survey()
    X = frame[["visits", "agrees"]].to_numpy()
    mixture = Mixture(2, family={"poisson": [0], "categorical": [1]}, random_state=0).fit(X)
    assert mixture.family_.name == "poisson + categorical"
    assert mixture.categories_ == {1: (1, 2, 3, 4, 5)}
    assert np.array_equal(mixture.predict(X.astype(float)), mixture.predict(X))
    for numbers in (X, X.astype(float), X.tolist()):
        with pytest.raises(ValueError, match="family must be given for data whose columns have no types"):
            Mixture(2).fit(numbers)


def changed(**changes):
    return survey(50)[0].assign(**changes)


def auto(X, **options):
    return Mixture(2, family="auto", random_state=0, **options).fit(X)


def poisson(X):
    return Mixture(2, family="poisson").fit(X)


NAMED = {"poisson": ["job"], "gaussian": ["age"]}
BAD = {
    r"X must have categories of the fit in column 'job' \(baker, clerk\), got 'pilot'": (
        lambda: auto(changed()).predict(changed(job="pilot"))
    ),
    "columns of family 'poisson', got text in column 'job': give it family 'categorical'": (
        lambda: Mixture(2, family=NAMED).fit(changed()[["job", "age"]])
    ),
    "family 'poisson', got text in column 0": lambda: poisson([["a", "b"], ["b", "c"]]),
    "family 'poisson', got text in column 0: give": lambda: poisson([[1, 2], [2, 3]]).predict([["a", "b"]]),
    "numbers in every column, got dates in column 'when'": lambda: auto(
        changed(when=pd.Timestamp(2020, 1, 1))
    ),
    "family='auto' must have columns of numbers, text or categories, got column 'thing'": (
        lambda: auto(changed(thing=[{}] * 50))
    ),
    "family must be given for data whose columns have no types": lambda: auto("rows.csv"),
    "family must be given if there are no data to choose it by, got 'auto'": (
        lambda: Mixture.from_parameters([1.0], {"rates": [[1.0]]}, family="auto")
    ),
    "X must be a table in memory with the categories of": lambda: auto(changed()).predict("rows.csv"),
    "every column, got none in column 'job': leave it out": lambda: auto(changed(job=None)),
    "every column, got none in column 'age': leave it out": lambda: auto(changed(age=np.nan)),
    "Input X contains NaN: give Mixture missing='ignore'": lambda: auto(changed(job=["a", None] * 25)),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_tables(sentence):
    with pytest.raises(ValueError, match=sentence):
        BAD[sentence]()


def test_auto_again_on_other_columns():
    frame, _ = survey()
    mixture = Mixture(2, family="auto", random_state=0).fit(frame)
    mixture.fit(frame[["age", "visits"]])
    assert mixture.family_.name == "gaussian + poisson"
    assert not hasattr(mixture, "categories_")
    warm = Mixture(2, family="auto", random_state=0, warm_start=True).fit(frame).fit(frame)
    assert warm.family_.name == "gaussian + poisson + bernoulli + categorical"


def test_selections_take_tables():
    frame, _ = survey()
    found = swiftem.select(frame[["job", "agrees", "visits"]], [1, 2], family="auto", random_state=0)
    assert found.best.n_components == 2
    assert found.best.categories_["job"] == ("baker", "clerk")
    assert found.best.predict(frame[["job", "agrees", "visits"]]).shape == (1500,)


def test_selections_of_families():
    rng = np.random.default_rng(0)
    kind = rng.random((2000, 1)) < 0.4
    X = rng.binomial(20, np.where(kind, [[0.1, 0.2]], [[0.6, 0.9]]))
    families = ["poisson", "binomial(trials=20)", Binomial(trials=40), "log-normal"]
    found = swiftem.select(X, [1, 2, 3], family=families, random_state=0)
    assert found.ranking[0].key == ("binomial(trials=20)", 2)
    assert len(found.table) == 12
    assert {
        row.failed.partition(" in row")[0] for row in found.table if row.covariance_type == "log-normal"
    } == {"data must be positive amounts, got 0"}
    assert "binomial(trials=20) mixtures, 2 components" in repr(found)
    alone = swiftem.select(X, [2], family="poisson", random_state=0)
    assert alone.best.score(X) == found.models["poisson", 2].score(X)
    for family, sentence in [(["poisson", "poisson"], "'poisson' twice"), ([], "at least one family")]:
        with pytest.raises(ValueError, match=sentence):
            swiftem.select(X, [1], family=family)


@pytest.mark.parametrize(
    "broken", [3, (("job",),), {"dict": [("job", "ab")]}, {"dict": [("job", (("a",),))]}]
)
def test_categories_of_a_damaged_file(broken, tmp_path):
    frame, _ = survey(300)
    mixture = Mixture(2, family="categorical", random_state=0).fit(frame[["job"]])
    header, arrays = mixture._to_file()
    header["categories_"] = broken
    save_arrays(tmp_path / "a.model", "Mixture", header, arrays)
    with pytest.raises(ValueError, match="categories_ must be a dict of columns and their categories"):
        Mixture.load(tmp_path / "a.model")


@pytest.mark.parametrize(
    ("values", "family"),
    [
        ([0, 1], "bernoulli"),
        ([0, 2], "categorical"),
        ([1, 20], "categorical"),
        ([1, 21], "poisson"),
        (range(10), "categorical"),
        (range(11), "poisson"),
        (range(11, 21), "categorical"),
        ([0, 1000], "poisson"),
        ([0, 1001], "gaussian"),
        ([-1, 1], "gaussian"),
    ],
)
def test_auto_by_the_values_of_integers(values, family):
    X = pd.DataFrame(np.resize(np.array(values), (110, 1)))
    mixture = Mixture(1, family="auto", random_state=0).fit(X)
    assert mixture.family_.name == family
    if family == "categorical":
        assert mixture.categories_ == {0: tuple(values)}


def test_trials_of_a_binomial_that_are_learnt():
    rng = np.random.default_rng(0)
    X = (rng.random((300, 3)) < [0.2, 0.5, 0.9]).astype(float) * [1, 1, 4]
    X = np.column_stack([X, np.zeros(300)])
    mixture = Mixture(1, family="binomial", random_state=0, smoothing=0.0).fit(X)
    assert mixture.family_.trials == (1, 1, 4, 1)
    answers = Mixture(1, family="bernoulli", random_state=0, smoothing=0.0).fit(X[:, :2])
    plain = Mixture(1, family="binomial", random_state=0, smoothing=0.0).fit(X[:, :2])
    assert plain.score(X[:, :2]) == pytest.approx(answers.score(X[:, :2]), rel=1e-12)
    assert mixture.params_["probabilities"] == pytest.approx(X.mean(axis=0)[None] / [1, 1, 4, 1], rel=1e-9)


@pytest.mark.parametrize("library", LIBRARIES)
def test_imputed_tables_are_of_the_same_library(library):
    frame, _ = survey(300)
    frame = frame[["job", "agrees", "age"]].astype({"job": object, "agrees": float})
    frame.loc[::3, "job"] = None
    frame.loc[1::3, "agrees"] = np.nan
    table = LIBRARIES[library](frame)
    family = {"categorical": ["job", "agrees"], "gaussian": ["age"]}
    mixture = Mixture(2, family=family, missing="ignore", random_state=0).fit(table)
    for seed in (None, 0):
        filled = mixture.impute(table, random_state=seed)
        assert type(filled) is type(table)
        found = filled if library == "pandas" else filled.to_pandas()
        assert list(found.columns) == list(frame.columns)
        assert set(found["job"]) == {"baker", "clerk"}
        assert set(found["agrees"]) == {1, 2, 3, 4, 5}
        seen = frame["job"].notna()
        assert (found["job"][seen] == frame["job"][seen]).all()


def test_imputed_categories_are_the_most_likely_ones_of_all_components():
    params = {"probabilities": [[[0.4, 0.35, 0.25]], [[0.0, 0.45, 0.55]]]}
    family = Categorical(categories=((2, 4, 7),))
    mixture = Mixture.from_parameters([0.55, 0.45], params, family=family, missing="ignore")
    assert mixture.impute([[np.nan]]).tolist() == [[4.0]]  # each component alone would say 2, or 7
    drawn = mixture.impute(np.full((4000, 1), np.nan), random_state=0)
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [2, 4, 7]
    assert counts / 4000 == pytest.approx([0.22, 0.395, 0.385], abs=0.03)


def test_a_dask_collection_is_imputed_in_parts():
    X = np.random.default_rng(0).normal(size=(50, 2))
    mixture = swiftem.GaussianMixture(1, missing="ignore", random_state=0).fit(X)
    with pytest.raises(TypeError, match="for values of each row, got a Dask collection: give its parts"):
        mixture.impute(da.from_array(X, chunks=(10, 2)))
