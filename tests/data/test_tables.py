"""Tables in files: numbers and types of every format, and every choice of columns and rows."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest
from table_files import npy_file, parquet_file, sentence_of, write_file

from swiftem.data import UnknownColumnError, open_source, read_table

X = np.array([[1.0, 2.5], [3.0, -4.0], [0.1, 1e-300]])

# Arrays.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_floats_stay_in_the_file(tmp_path, dtype, order):
    table = read_table(npy_file(tmp_path, np.asarray(X, dtype=dtype, order=order)))
    np.testing.assert_array_equal(table.values, X.astype(dtype))
    assert table.values.dtype == dtype
    assert not table.values.flags.owndata
    assert not table.values.flags.writeable
    assert table.names == ()


@pytest.mark.parametrize(
    ("dtype", "becomes"),
    [(">f8", "f8"), (">f4", "f4"), ("f2", "f4"), ("i1", "f8"), ("i4", "f8"), ("u2", "f8"), ("?", "f8")],
)
def test_other_numbers_become_floats(tmp_path, dtype, becomes):
    for values in (np.array([[0, 1], [1, 1], [0, 0]]), np.array([0, 1, 1])):
        expected = values.astype(dtype).reshape(len(values), -1)
        for array in (values.astype(dtype), np.asfortranarray(values.astype(dtype))):
            table = read_table(npy_file(tmp_path, array))
            np.testing.assert_array_equal(table.values, expected)
            assert table.values.dtype == np.dtype(becomes)
            assert table.values.dtype.isnative


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }",
        '{"shape": (2,1) , "descr":"<f8","fortran_order": False}',
        "{'fortran_order':True,'descr':'<f8','shape':( 2,1 )}",
    ],
    ids=["NumPy's", "another order", "without blanks"],
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_headers_that_others_write(tmp_path, header, version):
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    content = b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + np.array([3.0, 4.0]).tobytes()
    assert read_table(write_file(tmp_path, content, "toy.npy")).values.tolist() == [[3.0], [4.0]]


# Parquet.


def test_numeric_columns(tmp_path):
    columns = {
        "a": [1.5, 2.5, 3.5],
        "kind": ["x", "y", "z"],
        "whole": [1, 2, 2**53 + 2],
        "yes": [True, False, True],
        "when": [datetime.date(2020, 1, 1)] * 3,
        "money": [decimal.Decimal("1.25")] * 3,
        "some": pa.array(["u", "v", "u"]).dictionary_encode(),
        "rows": [[1.0], [2.0], [3.0]],
        "nothing": pa.nulls(3),
    }
    table = read_table(parquet_file(tmp_path, columns, row_group_size=2))
    np.testing.assert_array_equal(table.values, [[1.5, 1, 1], [2.5, 2, 0], [3.5, 2.0**53 + 2, 1]])
    assert table.names == ("a", "whole", "yes")
    assert table.values.dtype == np.float64
    words = ("text", "dates", "decimals", "categories", "lists", "no values")
    names = ("kind", "when", "money", "some", "rows", "nothing")
    assert table.left_out == dict(zip(names, words, strict=True))


def test_float32_stays(tmp_path):
    columns = {"a": pa.array([1, 2, 3], pa.float32()), "b": [1.0, 2.0, 3.0], "w": [1, 0, 1]}
    file = parquet_file(tmp_path, columns)
    table = read_table(file, columns=["a"], weights="w")
    assert (table.values.dtype, table.weights.tolist()) == (np.float32, [1, 0, 1])
    assert read_table(file).values.dtype == np.float64


def test_columns_by_name_and_number(tmp_path):
    file = parquet_file(tmp_path, {"a": [1, 2], "a.b": [3, 4], "c": [5, 6]})
    np.testing.assert_array_equal(read_table(file, columns=["a"]).values, [[1], [2]])
    np.testing.assert_array_equal(read_table(file, columns=["c", "a.b"]).values, [[5, 3], [6, 4]])
    assert read_table(file, columns=[2, "0"]).names == ("c", "a")


def test_an_index_of_pandas_is_left_out(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "kind": ["x", "y"], "b": [3.0, 4.0]})
    frame.to_csv(tmp_path / "frame.csv")
    table = read_table(tmp_path / "frame.csv")
    np.testing.assert_array_equal(table.values, frame[["a", "b"]].to_numpy())
    assert table.left_out == {"column 0": "no name", "kind": "text"}
    frame.index = pandas.Index([7, 8])
    frame.to_parquet(tmp_path / "frame.parquet")
    table = read_table(tmp_path / "frame.parquet")
    assert table.names == ("a", "b")
    assert "an index" in table.left_out.values()
    frame.index.name = "id"
    frame.to_parquet(tmp_path / "frame.parquet")
    assert read_table(tmp_path / "frame.parquet").left_out == {"kind": "text", "id": "an index"}
    assert read_table(tmp_path / "frame.parquet", columns=["id"]).values.tolist() == [[7], [8]]


@pytest.mark.parametrize("note", [b"{", b"[]", b"3", b"\xff", b'{"index_columns": 3}'])
def test_notes_of_pandas_that_are_none(tmp_path, note):
    table = pa.table({"a": [1.0, 2.0]}).replace_schema_metadata({b"pandas": note})
    assert read_table(parquet_file(tmp_path, table)).values.tolist() == [[1.0], [2.0]]


def test_each_files_own_notes(tmp_path):
    contents = (
        {"a": [1.0], "kind": ["x"]},
        {"a": [2.0]},
        {"a": [3.0], "at": ["y"]},
        {"a": [1.0], "kind": ["x"]},
    )
    one, two, three, four = (parquet_file(tmp_path, c, f"{k}.parquet") for k, c in enumerate(contents))
    notes = (f"Left out of {one}: kind (text).", f"Left out of {three}: at (text).")
    for files, expected in (
        ([one, two, three], notes),
        ([one, two], notes[:1]),
        ([two, one], notes[:1]),
        ([two], ()),
        ([one, four], notes[:1]),
    ):
        assert open_source(files, leave_out=True).notes == expected


# Choices of columns and rows.

ROWS = np.array([[1.0, 2.0, 0.0], [3.0, np.nan, 1.0], [5.0, 6.0, 0.0], [np.nan, 8.0, 1.0]])
LABELS = ["red", "blue", "", "red"]
KINDS = ["csv", "npy", "parquet"]


def write(tmp_path, kind):
    """Return a file with the columns a, b and w of ``ROWS``, and kind in formats that have text."""
    if kind == "npy":
        return npy_file(tmp_path, np.column_stack([ROWS, [2.0, 7.5, 2.0, 7.5]])), [0, 1, 2, 3]
    if kind == "parquet":
        columns = {name: pa.array(ROWS[:, j], from_pandas=True) for j, name in enumerate("abw")}
        return parquet_file(tmp_path, columns | {"kind": LABELS}), ["a", "b", "w", "kind"]
    cells = [["NA" if np.isnan(x) else repr(x) for x in row] for row in ROWS.tolist()]
    lines = [",".join([*row, label]) for row, label in zip(cells, LABELS, strict=True)]
    return write_file(tmp_path, "\n".join(["a,b,w,kind", *lines])), ["a", "b", "w", "kind"]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_missing_values_are_skipped(kind, tmp_path):
    file, (a, b, w, label) = write(tmp_path, kind)
    assert "skip_missing=True" in sentence_of(lambda: read_table(file, [a, b]))
    table = read_table(file, [a, b], label=label, skip_missing=True)
    np.testing.assert_array_equal(table.values, ROWS[[0, 2], :2])
    np.testing.assert_array_equal(table.rows, [0, 2])
    assert table.labels.tolist() == (["2", "2"] if kind == "npy" else ["red", ""])
    assert table.notes[-1] == f"Skipped 2 of 4 rows of {file}: missing values."
    table = read_table(file, [w], skip_missing=True)  # only what is data is looked at
    assert (len(table.values), table.rows) == (4, None)
    assert not any("Skipped" in note for note in table.notes)
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
    source = open_source(file, drop=[a, b, label])
    np.testing.assert_array_equal(next(source.blocks(10)).y, ROWS[:, 2:])


@pytest.mark.parametrize(
    ("options", "argument", "sentence"),
    [
        ({"columns": ["Heigth"]}, "columns", "{file} has no column 'Heigth': did you mean 'height'?"),
        ({"columns": ["q"]}, "columns", "{file} has no column 'q': it has kind, height, width."),
        ({"weights": "weight"}, "weights", "{file} has no column 'weight': did you mean 'height'?"),
        ({"drop": ["hight"]}, "drop", "{file} has no column 'hight': did you mean 'height'?"),
        ({"label": "knd"}, "label", "{file} has no column 'knd': did you mean 'kind'?"),
        ({"columns": [3]}, "columns", "The number of a column of {file} must be from 0 to 2, got 3 in"),
        ({"weights": -1}, "weights", "The number of a column of {file} must be from 0 to 2, got -1 in"),
        ({"drop": [7]}, "drop", "The number of a column of {file} must be from 0 to 2, got 7 in drop"),
        ({"columns": ["1" * 5000]}, "columns", "The number of a column of {file} must be from 0 to 2"),
        ({"columns": []}, "columns", "columns must name at least one column, got none."),
        ({"columns": ["height", 1]}, "columns", "columns must be distinct, got 'height' twice."),
        ({"columns": ["width"], "weights": "width"}, "columns", "columns must not include the weights, got"),
        ({"columns": ["height"], "drop": ["height"]}, "columns", "columns must not include dropped columns"),
        ({"columns": ["height"], "label": "height"}, "columns", "columns must not include the labels, got"),
        ({"weights": "width", "label": "width"}, "label", "label must not be the column of the weights"),
    ],
)
def test_choices_that_cannot_be(options, argument, sentence, tmp_path):
    file = write_file(tmp_path, "kind,height,width\nred,1,2\nblue,3,4\n")
    with pytest.raises(UnknownColumnError) as raised:
        read_table(file, **options)
    assert str(raised.value).startswith(sentence.format(file=file))
    assert raised.value.argument == argument


def test_names_that_are_missing_or_there_twice(tmp_path):
    file = write_file(tmp_path, "1\n2\n")
    assert "must be 0, got 1" in sentence_of(lambda: read_table(file, columns=[1]))
    assert "choose by number, 0." in sentence_of(lambda: read_table(file, columns=["a"]))
    file = write_file(tmp_path, "a,a,b\n1,2,3\n")
    assert "has 2 of name 'a'." in sentence_of(lambda: read_table(file, columns=["a"]))
    assert read_table(file, columns=["b", 1]).names == ("b", "a")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"columns": "a,b"}, "columns must be a sequence of names or numbers, got the string"),
        ({"drop": "a"}, "drop must be a sequence of names or numbers, got the string"),
        *(
            ({"columns": [bad]}, "columns must be names or numbers of columns, got")
            for bad in (1.0, True, None)
        ),
    ],
)
@pytest.mark.parametrize("read", [read_table, open_source])
def test_choices_of_wrong_types(tmp_path, read, options, sentence):
    with pytest.raises(TypeError, match=sentence):
        read(write_file(tmp_path, "a,b\n1,2\n"), **options)


def test_nothing_is_left(tmp_path):
    file = write_file(tmp_path, "a,b\n1,2\n")
    assert sentence_of(lambda: read_table(file, drop=["a"], label="b")) == (
        f"{file} must have a numeric column, got none except dropped columns and the labels."
    )
    file = npy_file(tmp_path, np.full((4, 2), np.nan))
    assert "must have a row without a missing value, got none among 4" in sentence_of(
        lambda: read_table(file, skip_missing=True)
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a,b\n1,2\n3,NA\ninf,2\n", "got an infinity in column 'a', row 2"),
        ("a,b\n1,2\n3,NA\n1,red\n", "got 'red' in column 'b', row 2"),
        (np.array([[np.nan, 0.0], [0.0, np.inf]]), "got an infinity in row 1"),
    ],
)
def test_infinities_and_text_are_not_missing(tmp_path, content, sentence):
    file = (write_file if isinstance(content, str) else npy_file)(tmp_path, content)
    assert sentence in sentence_of(lambda: read_table(file, skip_missing=True))


# Paths.


def test_bad_paths(tmp_path):
    endings = "(.csv, .tsv, .txt, .parquet, .npy)"
    assert sentence_of(lambda: read_table(tmp_path), IsADirectoryError) == (
        f"{tmp_path} must be a table {endings}, got a folder."
    )
    write_file(tmp_path, "a\n1\n", "flowers.csv")
    for name, end in (
        ("fish.csv", "but does not exist."),
        ("flowrs.csv", f"but does not exist: did you mean {tmp_path / 'flowers.csv'}?"),
    ):
        sentence = sentence_of(lambda name=name: read_table(tmp_path / name), FileNotFoundError)
        assert sentence == f"{tmp_path / name} must be a table {endings}, {end}"
    for name, got in (("table.xlsx", ".xlsx"), ("table", "no ending")):
        assert sentence_of(lambda name=name: read_table(write_file(tmp_path, "", name))) == (
            f"{tmp_path / name} must end in .csv, .tsv, .txt, .parquet or .npy, got {got}."
        )
    for path in (0, None, b"table.csv"):
        with pytest.raises(TypeError, match="path must be the name of a file, got "):
            read_table(path)


@pytest.mark.parametrize(
    ("name", "opener"), [("a.csv", "pathlib.Path.open"), ("a.parquet", "pyarrow.parquet.ParquetFile")]
)
def test_a_file_that_may_not_be_read(tmp_path, monkeypatch, name, opener):
    """Not by permissions of the file: those do not bind root, which tests may run as."""

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    file = write_file(tmp_path, "a\n1\n", name)
    monkeypatch.setattr(opener, refuse)
    assert sentence_of(lambda: read_table(file), OSError) == f"{file} cannot be read (permission denied)."


def test_endings_in_capitals(tmp_path):
    assert read_table(write_file(tmp_path, "a\n1\n", "TABLE.CSV")).names == ("a",)
    assert read_table(str(write_file(tmp_path, "a\tb\n1\t2\n", "table.tsv"))).names == ("a", "b")
