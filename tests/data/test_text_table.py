"""Tables with a column of text: which column, titles, and the line of whatever is wrong."""

import csv
import gzip
import re

import pytest

from swiftem.data import read_text_csv, read_text_parquet


def write(folder, content, name="toy.csv"):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_texts_and_titles(tmp_path):
    file = write(tmp_path, 'title,body,year\nRice,"One, two\nthree",1998\n,Fish,1999\n')
    texts, names, notes, _ = read_text_csv(file, "body")
    assert texts == ["One, two\nthree", "Fish"]
    assert names == ["Rice", "row 2"]
    assert notes == []


@pytest.mark.parametrize(
    "content",
    ["n;t\n1;a b\n2,5;c\n", "n\tt\n1\ta b\n2\tc\n", "\ufeffn,t\r\n1,a b\r\n\r\n2,c\r\n", "t\na b\nc\n"],
    ids=["semicolons", "tabs", "BOM and CRLF", "one column"],
)
def test_layouts(tmp_path, content):
    assert read_text_csv(write(tmp_path, content)).texts == ["a b", "c"]


def test_compressed(tmp_path):
    file = write(tmp_path, gzip.compress(b"id,t\n7,rice\n"), "toy.csv.gz")
    assert read_text_csv(file) == (["rice"], ["7"], ["The texts are in column 't'."], None)


def test_a_cell_may_be_long(tmp_path):
    limit = csv.field_size_limit()
    assert len(read_text_csv(write(tmp_path, "t\n" + "rice " * 100_000 + "\n")).texts[0]) == 500_000
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    ("header", "row", "chosen"),
    [
        ("id,label,score", "1,rice,0.5", "label"),
        ("Text,author", "rice,me", "Text"),
        ("title,abstract", "rice,long", "abstract"),
        ("a,b,c", "1,NaN,rice", "c"),
    ],
)
def test_the_column_is_guessed(tmp_path, header, row, chosen):
    notes = read_text_csv(write(tmp_path, f"{header}\n{row}\n")).notes
    assert notes == [f"The texts are in column {chosen!r}."]


@pytest.mark.parametrize(
    ("content", "column", "sentence"),
    [
        ("a,b\nx,y\n", None, "one column of text, got 'a', 'b': name it with text_column (--text-column"),
        ("a,b\n1,2\n", None, "got none among 'a', 'b'"),
        ("a,b\nx,y\n", "c", "must have a column 'c', got 'a', 'b'"),
        ("a,b\nx\n", "a", "2 cells in each row, got 1 in line 2"),
        ('a,b\n"x\ny",1\nx,y,z\n', "a", "got 3 in line 4"),
        ('a,b\nx,"y\n', "a", "got line 2 (unexpected end of data)"),
        ("a,b\n", "a", "at least one row"),
        ("", None, "at least one row"),
        (b"a,b\nx,\xe9\n", "b", "the byte 0xe9 in line 2"),
    ],
)
def test_what_is_wrong(tmp_path, content, column, sentence):
    file = write(tmp_path, content)
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        read_text_csv(file, column)
    assert str(error.value).startswith(str(file))


def test_missing_files(tmp_path):
    for read in (read_text_csv, read_text_parquet):
        with pytest.raises(FileNotFoundError, match="column of text, but does not exist"):
            read(tmp_path / "nowhere")
        with pytest.raises(IsADirectoryError, match="got a folder"):
            read(tmp_path)


@pytest.fixture
def parquet(tmp_path):
    """Return a function that writes a Parquet file."""
    pa = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    from pyarrow import parquet

    def make(**columns):
        parquet.write_table(pa.table(columns), tmp_path / "toy.parquet")
        return tmp_path / "toy.parquet"

    return make


def test_parquet(parquet):
    file = parquet(id=[7, None], body=["rice", None], score=[0.5, 1.0])
    assert read_text_parquet(file) == (
        ["rice", ""],
        ["7", "row 2"],
        ["The texts are in column 'body'."],
        None,
    )
    assert read_text_parquet(file, "body").notes == []


def test_parquet_with_categories(parquet):
    import pyarrow as pa

    assert read_text_parquet(parquet(a=pa.array(["x", "y", "x"]).dictionary_encode())).texts == [
        "x",
        "y",
        "x",
    ]


def test_what_is_wrong_in_parquet(parquet, tmp_path):
    for columns, column, sentence in (
        ({"a": ["x"], "b": ["y"]}, None, "got 'a', 'b': name it"),
        ({"a": [1]}, None, "got none among 'a'"),
        ({"a": ["x"]}, "b", "must have a column 'b', got 'a'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            read_text_parquet(parquet(**columns), column)
    with pytest.raises(ValueError, match="got another or a damaged file"):
        read_text_parquet(write(tmp_path, "no parquet", "bad.parquet"))
