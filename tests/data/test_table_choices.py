"""Columns that are dropped, columns of labels, and rows with missing values, in all formats."""

import numpy as np
import pytest
from table_files import csv_file, sentence_of

from swiftem.data import UnknownColumnError, open_source, read_table

ROWS = np.array([[1.0, 2.0, 0.0], [3.0, np.nan, 1.0], [5.0, 6.0, 0.0], [np.nan, 8.0, 1.0]])
LABELS = ["red", "blue", "", "red"]


def write(tmp_path, kind):
    """Return a file with the columns a, b and w of ``ROWS``, and kind in formats that have text."""
    if kind == "npy":
        np.save(tmp_path / "t.npy", np.column_stack([ROWS, [2.0, 7.5, 2.0, 7.5]]))
        return tmp_path / "t.npy", [0, 1, 2, 3]
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = {
            name: [None if np.isnan(x) else x for x in ROWS[:, j].tolist()] for j, name in enumerate("abw")
        }
        parquet.write_table(pa.table(columns | {"kind": LABELS}), tmp_path / "t.parquet")
        return tmp_path / "t.parquet", ["a", "b", "w", "kind"]
    cells = [["NA" if np.isnan(x) else repr(x) for x in row] for row in ROWS.tolist()]
    lines = [",".join([*row, label]) for row, label in zip(cells, LABELS, strict=True)]
    return csv_file(tmp_path, "\n".join(["a,b,w,kind", *lines])), ["a", "b", "w", "kind"]


KINDS = ["csv", "npy", "parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_missing_values_are_skipped(kind, tmp_path):
    file, (a, b, _w, label) = write(tmp_path, kind)
    sentence = sentence_of(lambda: read_table(file, [a, b]))
    assert "skip_missing=True" in sentence
    table = read_table(file, [a, b], label=label, skip_missing=True)
    np.testing.assert_array_equal(table.values, ROWS[[0, 2], :2])
    np.testing.assert_array_equal(table.rows, [0, 2])
    assert table.labels.tolist() == (["2", "2"] if kind == "npy" else ["red", ""])
    assert table.notes[-1] == f"Skipped 2 of 4 rows of {file}: missing values."


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_data_is_looked_at(kind, tmp_path):
    file, (_a, _b, w, _label) = write(tmp_path, kind)
    table = read_table(file, [w], skip_missing=True)
    assert (len(table.values), table.rows) == (4, None)
    assert not any("Skipped" in note for note in table.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_weight_is_a_missing_value(kind, tmp_path):
    file, (_a, b, w, _label) = write(tmp_path, kind)
    table = read_table(file, [w], weights=b, skip_missing=True)
    np.testing.assert_array_equal(table.weights, [2.0, 6.0, 8.0])
    np.testing.assert_array_equal(table.rows, [0, 2, 3])


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_dropped(kind, tmp_path):
    file, (a, b, _w, label) = write(tmp_path, kind)
    table = read_table(file, drop=[a, b], label=label)
    np.testing.assert_array_equal(table.values, ROWS[:, 2:])
    assert table.left_out == {}
    assert len(table.labels) == 4
    source = open_source(file, drop=[a, b, label] if kind != "npy" else [0, 1, 3])
    np.testing.assert_array_equal(next(source.blocks(10)).y, ROWS[:, 2:])


def test_nothing_but_missing_values(tmp_path):
    np.save(tmp_path / "n.npy", np.full((4, 2), np.nan))
    with pytest.raises(ValueError, match="must have a row without a missing value, got none among 4"):
        read_table(tmp_path / "n.npy", skip_missing=True)


def test_an_infinity_is_not_missing(tmp_path):
    file = csv_file(tmp_path, "a,b\n1,2\n3,NA\ninf,2\n")
    assert "got an infinity in column 'a', row 2" in sentence_of(lambda: read_table(file, skip_missing=True))
    np.save(tmp_path / "t.npy", [[np.nan, 0.0], [0.0, np.inf]])
    assert "got an infinity in row 1" in sentence_of(
        lambda: read_table(tmp_path / "t.npy", skip_missing=True)
    )


def test_text_is_not_missing(tmp_path):
    file = csv_file(tmp_path, "a,b\n1,2\n3,NA\n1,red\n")
    assert "got 'red' in column 'b', row 2" in sentence_of(lambda: read_table(file, skip_missing=True))


@pytest.mark.parametrize(
    ("options", "argument", "words"),
    [
        ({"drop": ["hight"]}, "drop", "did you mean 'height'?"),
        ({"label": "knd"}, "label", "did you mean 'kind'?"),
        ({"columns": ["height"], "drop": ["height"]}, "columns", "must not include dropped columns"),
        ({"columns": ["height"], "label": "height"}, "columns", "must not include the labels, got 'height'"),
        ({"weights": "width", "label": "width"}, "label", "must not be the column of the weights"),
        ({"drop": [7]}, "drop", "must be from 0 to 2, got 7 in drop"),
    ],
)
def test_choices_that_cannot_be(options, argument, words, tmp_path):
    file = csv_file(tmp_path, "kind,height,width\nred,1,2\nblue,3,4\n")
    with pytest.raises(UnknownColumnError) as raised:
        read_table(file, **options)
    assert raised.value.argument == argument
    assert words in str(raised.value)


def test_nothing_is_left(tmp_path):
    file = csv_file(tmp_path, "a,b\n1,2\n")
    assert sentence_of(lambda: read_table(file, drop=["a"], label="b")) == (
        f"{file} must have a numeric column, got none except dropped columns and the labels."
    )


def test_a_file_of_nearly_that_name(tmp_path):
    csv_file(tmp_path, "a\n1\n", "flowers.csv")
    sentence = sentence_of(lambda: read_table(tmp_path / "flowrs.csv"), FileNotFoundError)
    assert sentence.endswith(f"but does not exist: did you mean {tmp_path / 'flowers.csv'}?")
    sentence = sentence_of(lambda: read_table(tmp_path / "fish.csv"), FileNotFoundError)
    assert sentence.endswith("but does not exist.")


def test_a_name_instead_of_a_list(tmp_path):
    file = csv_file(tmp_path, "a,b\n1,2\n")
    for call in (read_table, open_source):
        with pytest.raises(TypeError, match="drop must be a sequence of names or numbers, got the string"):
            call(file, drop="a")
