"""Columns that are no numbers: an error that names them in every container, unless the caller drops them."""

import datetime
import decimal

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import swiftem
from swiftem import GaussianMixture, Mixture, methods, models
from swiftem.data import open_source, open_units

N = 60
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(day) for day in range(N)]
OTHERS = {
    "dates": DAYS,
    "durations": [datetime.timedelta(hours) for hours in range(N)],
    "decimals": [decimal.Decimal(part) for part in range(N)],
    "lists": [[1, part] for part in range(N)],
    "text": ["north", "south"] * (N // 2),
}


def columns(what=None):
    """Return two columns of numbers, one of them of true and false, and another column."""
    rng = np.random.default_rng(0)
    found = {"x": rng.normal(size=N), "yes": rng.random(N) < 0.5}
    return found if what is None else found | {"other": OTHERS[what]}


def container(kind, data, folder):
    if kind in ("parquet", "source", "units"):
        parquet.write_table(pa.table(data), folder / "a.parquet")
        return folder / "a.parquet"
    if kind == "csv":
        pd.DataFrame(data).to_csv(folder / "a.csv", index=False)
        return folder / "a.csv"
    return {
        "pandas": lambda: pd.DataFrame(data),
        "arrow-backed": lambda: pa.table(data).to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda: pl.DataFrame(data),
        "pyarrow": lambda: pa.table(data),
        "objects": lambda: pd.DataFrame(data).to_numpy(dtype=object),
        "list": lambda: [list(row) for row in zip(*data.values(), strict=True)],
        "dask": lambda: dd.from_pandas(pd.DataFrame(data), npartitions=2),
        "blocks": lambda: lambda: iter([pd.DataFrame(data)]),
    }[kind]()  # fmt: skip


KINDS = ["pandas", "arrow-backed", "polars", "pyarrow", "objects", "list", "dask", "blocks", "parquet", "csv"]


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_error_names_the_column(kind, what, tmp_path):
    if kind == "csv" and what == "decimals":
        return  # a number in text
    X = container(kind, columns(what), tmp_path)
    name = 2 if kind in ("objects", "list") else "'other'"
    # Dask turns objects into text.
    said = "text" if kind == "dask" and what in ("dates", "decimals", "lists") else what
    sentence = f"must have numbers in every column, got {said} in column {name}: leave out such columns"
    for fit in (
        GaussianMixture(2, random_state=0).fit,
        GaussianMixture(2, random_state=0, missing="ignore").fit,
        lambda rows: swiftem.run(models.GaussianMixtureModel(2), rows, methods.EM(), n_iter=1, seed=0),
    ):
        with pytest.raises(ValueError, match=sentence):
            fit(X)
    if what != "text" or kind in ("dask", "blocks", "parquet", "csv"):
        with pytest.raises(ValueError, match=sentence):
            Mixture(2, family={"gaussian": [0, 1, 2]}, random_state=0).fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_true_and_false_are_one_and_zero(kind, tmp_path):
    X = container(kind, columns(), tmp_path)
    rows = np.column_stack(list(columns().values())).astype(float)
    found = GaussianMixture(1, random_state=0).fit(X).means_[0]
    assert found == pytest.approx(rows.mean(axis=0), rel=1e-9)


@pytest.mark.parametrize("what", OTHERS)
def test_a_fitted_model_refuses_them(what):
    model = GaussianMixture(1, random_state=0).fit(pd.DataFrame(columns() | {"other": np.arange(N)}))
    for call in (model.predict, model.score_samples, model.bic):
        with pytest.raises(
            ValueError, match=f"X must have numbers in every column, got {what} in column 'other'"
        ):
            call(pd.DataFrame(columns(what)))


def test_text_is_taken_where_the_family_takes_it(tmp_path):
    frame = pd.DataFrame(columns("text"))
    with pytest.raises(ValueError, match=r'column \'other\': .* or use Mixture\(family="auto"\) for text'):
        GaussianMixture(2).fit(frame)
    with pytest.raises(ValueError, match=r'column \'other\': .* or use Mixture\(family="auto"\) for text'):
        swiftem.select(frame, [1])
    for table in (frame, pl.DataFrame(columns("text")), pa.table(columns("text"))):
        mixture = Mixture(2, family="auto", random_state=0, tol=0.1).fit(table)
        assert mixture.categories_ == {"other": ("north", "south")}
    for what in set(OTHERS) - {"text"}:
        with pytest.raises(ValueError, match=f"got {what} in column 'other'"):
            Mixture(2, family="auto").fit(pl.DataFrame(columns(what)))
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=r"got text in column 'other': .* read the table into memory"):
        Mixture(2, family="categorical").fit(tmp_path / "a.csv")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_caller_leaves_columns_of_files_out(kind, tmp_path):
    file = container(kind, columns("dates") | {"region": OTHERS["text"]}, tmp_path)
    with pytest.raises(ValueError, match="got dates in column 'other', text in column 'region'"):
        open_source(file)
    for source in (
        open_source(file, drop=["other", "region"]),
        open_source(file, ["x", "yes"]),
        open_source(file, leave_out=True),
    ):
        assert source.names == ("x", "yes")
    assert source.notes == (f"Left out of {file}: other (dates), region (text).",)
    if kind == "parquet":
        with pytest.raises(ValueError, match="got dates in column 'other'"):
            open_units(file)
        units = open_units(file, leave_out=True)
        assert units.names == ("x", "yes")
        assert GaussianMixture(1, random_state=0).fit(units).n_features_in_ == 2
    with pytest.raises(ValueError, match=r"number.* 'other'"):
        GaussianMixture(2).fit(open_source(file, ["x", "other"]))


def test_arrays_that_are_no_rows_of_numbers():
    days = np.array(DAYS, dtype="M8[D]")[:, None]
    structured = np.zeros(N, dtype=[("when", "M8[s]"), ("a", float)])
    for estimator in (GaussianMixture(2), Mixture(2, family="gaussian"), Mixture(2, family="auto")):
        for X, sentence in (
            (days, "got dates in column 0"),
            (structured, "got dates in column 'when'"),
            (structured[["a"]], "got a structured array: pass it as a data frame"),
            (np.ones((9, 2)) * 1j, "X must have real numbers, got dtype complex128"),
            (np.array(3.0), r"X must have rows and columns, \(n, d\)"),
            (3.0, r"X must have rows and columns, \(n, d\)"),
            ([[10**400, 1], [2, 3], [4, 5]], "numbers that a float can hold, got an integer above 1e308"),
        ):
            if isinstance(X, list) and estimator.get_params().get("family") == "auto":
                sentence = "family must be given for data whose columns have no types"
            with pytest.raises(ValueError, match=sentence) as error:
                estimator.fit(X)
            assert "\n" not in str(error.value)


def test_responses_that_are_no_numbers():
    x = np.random.default_rng(0).normal(size=(N, 1))
    for y, what in ((OTHERS["text"], "text"), (pd.Series(DAYS), "dates"), (OTHERS["decimals"], "decimals"),
                    (np.array(DAYS, dtype="M8[D]"), "dates"), (1j * x[:, 0], "complex numbers")):  # fmt: skip
        with pytest.raises(ValueError, match=f"y must have numbers, got {what}"):
            swiftem.RegressionMixture(2).fit(x, y)


def test_integers_above_all_floats():
    x = np.random.default_rng(0).normal(size=(N, 1))
    sentence = "must have numbers that a float can hold, got an integer above 1e308"
    for call in (
        lambda: GaussianMixture(2).fit(x, sample_weight=[10**400] * N),
        lambda: GaussianMixture(2, means_init=[[10**400], [1]]).fit(x),
        lambda: GaussianMixture(2, random_state=0).fit(x).predict([[10**400]]),
        lambda: swiftem.RegressionMixture(2).fit(x, [10**400] * N),
        lambda: swiftem.RegressionMixture(2).fit(x, [10**400, None] * (N // 2)),
        lambda: swiftem.RegressionMixture(2).fit([[10**400]] * N, x[:, 0]),
        lambda: swiftem.PLSA(2).fit([[10**400, 1], [2, 3]]),
        lambda: swiftem.data.as_source([[10**400, 1], [2, 3]]),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
