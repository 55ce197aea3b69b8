"""Texts in files: lines, folders, columns of tables; and the line of whatever is wrong."""

import csv
import gzip
import os
import re

import pytest
from table_files import refused, traced_peak, write_file

from swiftem.data import (
    read_corpus,
    read_documents,
    read_folder,
    read_text_csv,
    read_text_parquet,
)
from swiftem.data.documents import counts, text_files

# Lines.


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\n \t\none\n\r\n\xc2\xa0\ntwo", ["one", "two"]),
        (b"\xef\xbb\xbf\none\r\ntwo", ["one", "two"]),
        ("Süßes Reisfeld\n稲\n".encode(), ["Süßes Reisfeld", "稲"]),
        # Only line ends end a line; the rest of it stays as it is.
        ("  one\vtwo\u2028three\x85 \n".encode(), ["  one\vtwo\u2028three\x85 "]),
    ],
)
def test_one_document_per_line(tmp_path, content, documents):
    file = write_file(tmp_path, content, "a.txt")
    assert read_documents(file) == read_documents(str(file)) == documents


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must have at least one document, got an empty file."),
        (b" \n\r\n\t", "must have at least one document, got only white space."),
        (b"\xef\xbb\xbf", "must have at least one document, got only white space."),
        (b"one\n\ncaf\xe9\n", "must be text in UTF-8, got the byte 0xe9 in line 3: convert the file first."),
        (b"one\ntw\xc3", "must be text in UTF-8, got the byte 0xc3 in line 2: convert the file first."),
        (b"one\nt\0wo", "must be text in UTF-8, got a NUL byte in line 2: it is a binary file, or UTF-16."),
        ("one".encode("utf-16"), "must be text in UTF-8, got a NUL byte in line 1: it is a binary"),
    ],
)
def test_bad_lines(tmp_path, content, message):
    file = write_file(tmp_path, content, "a.txt")
    with pytest.raises(ValueError, match=re.escape(f"{file} {message}")):
        read_documents(file)


def test_bad_paths(tmp_path):
    with pytest.raises(IsADirectoryError, match=rf"^{re.escape(str(tmp_path))} must be a text .* a folder\."):
        read_documents(tmp_path)
    missing = tmp_path / "missing.txt"
    with pytest.raises(FileNotFoundError, match=rf"^{re.escape(str(missing))} must be .* does not exist\.$"):
        read_documents(missing)
    for path in (0, None, b"file.txt"):
        with pytest.raises(TypeError, match="path must be the name of a file, got "):
            read_documents(path)


@pytest.mark.parametrize("size", [1, 3, 8, 1000])
@pytest.mark.parametrize("content", [b"1\n22\n\n a line that is longer\n333", b"\n\n", b"", b"no end"])
def test_pieces_of_a_file_are_the_file(tmp_path, size, content, in_pieces):
    in_pieces(size)
    pieces = list(text_files.read_pieces(write_file(tmp_path, content, "a.txt"), "a text"))
    assert b"".join(pieces) == content
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


def test_lines_are_counted_from_piece_to_piece(tmp_path, in_pieces):
    in_pieces(8)
    file = write_file(tmp_path, "one\ntwo\n\nthree\nfour\nfive\n", "a.txt")
    expected = [(1, "one"), (2, "two"), (3, ""), (4, "three"), (5, "four"), (6, "five")]
    assert list(text_files.read_lines(file)) == expected
    assert list(text_files.filled_lines(file)) == [line for line in expected if line[1]]
    file.write_bytes(b"one\ntwo\n\nthree\nfo\xe9r\n")
    with pytest.raises(ValueError, match="the byte 0xe9 in line 5"):
        list(text_files.read_lines(file))


def test_a_file_that_would_fill_the_memory_is_stopped(tmp_path):
    """Of all that was read so far, not of the last piece."""
    content = gzip.compress(bytes(counts.FREE + 8 * text_files.PIECE))
    file = write_file(tmp_path, content, "a.gz")
    with pytest.raises(ValueError, match="must be at most 100 times as large when unpacked"):
        list(text_files.read_pieces(file, "a text"))
    small = write_file(tmp_path, gzip.compress(b"fish rice\n" * 10**4, mtime=0), "b.txt.gz")
    assert len(read_corpus(small)) == 10**4


# Folders.


def fill(folder, **files):
    for name, content in files.items():
        name = name.replace("__", "/")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_file(folder, content, name)
    return folder


def test_files_of_all_folders_are_sorted_and_named_by_their_paths(tmp_path):
    fill(tmp_path, b="rye", a__2="two", a__1="one", a__c__d="deep")
    fill(tmp_path, **{".DS_Store": "x", ".git__config": "y", "results__topics__topics.html": "x"})
    found = read_folder(str(tmp_path), leave_out=tmp_path / "results" / "topics")
    assert found == (["one", "two", "deep", "rye"], ["a/1", "a/2", "a/c/d", "b"], [], None)


def test_encodings(tmp_path):
    fill(
        tmp_path,
        bom=b"\xef\xbb\xbfcaf\xc3\xa9",
        latin=b"caf\xe9 \x93quoted\x94",
        odd=b"caf\xe9 \x81",
        utf16="café".encode("utf-16"),
        packed=gzip.compress("café".encode()),
    )
    (tmp_path / "packed").rename(tmp_path / "packed.gz")
    texts, names, notes, _ = read_folder(tmp_path)
    assert names == ["bom", "latin", "odd", "packed.gz", "utf16"]
    assert texts == ["café", "café “quoted”", "café \ufffd", "café", "café"]
    assert notes == ["2 files are not UTF-8 and read as Windows-1252: latin, odd."]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_what_is_no_text_is_named_and_left_out(tmp_path):
    fill(tmp_path, a="rye", e="", f=" \n", half=b"\xff\xfea", z=b"\xff\xd8\0\1")
    write_file(tmp_path, b"\x1f\x8bnothing", "bad.gz")
    write_file(tmp_path, 5 * gzip.compress(b"fish " * (16 << 20), mtime=0), "bomb.gz")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    used, (texts, _, notes, _) = traced_peak(lambda: read_folder(tmp_path))
    assert used < 100e6
    assert texts == ["rye"]
    assert notes == [
        "2 files are empty and left out: e, f.",
        "2 files are binary and left out: half, z.",
        "2 files are unreadable and left out: bad.gz, bomb.gz.",
    ]


def test_nothing_to_read(tmp_path):
    with pytest.raises(ValueError, match=r"at least one text file, got no files\."):
        read_folder(tmp_path)
    fill(tmp_path, e="")
    with pytest.raises(ValueError, match=r"text file, got none: 1 file is empty and left out: e\."):
        read_folder(tmp_path)
    with pytest.raises(NotADirectoryError, match="got a file"):
        read_folder(tmp_path / "e")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_folder(tmp_path / "nowhere")


# Columns of tables.


def test_texts_and_titles(tmp_path):
    file = write_file(tmp_path, 'title,body,year\nRice,"One, two\nthree",1998\n,Fish,1999\n')
    assert read_text_csv(file, "body") == (["One, two\nthree", "Fish"], ["Rice", "row 2"], [], None)
    file = write_file(tmp_path, gzip.compress(b"id,t\n7,rice\n"), "toy.csv.gz")
    assert read_text_csv(file) == (["rice"], ["7"], ["The texts are in column 't'."], None)


@pytest.mark.parametrize(
    "content",
    ["n;t\n1;a b\n2,5;c\n", "n\tt\n1\ta b\n2\tc\n", "\ufeffn,t\r\n1,a b\r\n\r\n2,c\r\n", "t\na b\nc\n"],
    ids=["semicolons", "tabs", "BOM and CRLF", "one column"],
)
def test_layouts(tmp_path, content):
    assert read_text_csv(write_file(tmp_path, content)).texts == ["a b", "c"]


def test_a_cell_may_be_long(tmp_path):
    limit = csv.field_size_limit()
    assert len(read_text_csv(write_file(tmp_path, "t\n" + "rice " * 100_000 + "\n")).texts[0]) == 500_000
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
    notes = read_text_csv(write_file(tmp_path, f"{header}\n{row}\n")).notes
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
def test_what_is_wrong_in_csv(tmp_path, content, column, sentence):
    file = write_file(tmp_path, content)
    refused(lambda: read_text_csv(file, column), file, sentence)


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def write(**columns):
        parquet.write_table(pa.table(columns), tmp_path / "toy.parquet")
        return tmp_path / "toy.parquet"

    file = write(id=[7, None], body=["rice", None], score=[0.5, 1.0])
    expected = (["rice", ""], ["7", "row 2"], ["The texts are in column 'body'."], None)
    assert read_text_parquet(file) == expected
    assert read_text_parquet(file, "body").notes == []
    file = write(a=pa.array(["x", "y", "x"]).dictionary_encode())
    assert read_text_parquet(file).texts == ["x", "y", "x"]
    for columns, column, sentence in (
        ({"a": ["x"], "b": ["y"]}, None, "got 'a', 'b': name it"),
        ({"a": [1]}, None, "got none among 'a'"),
        ({"a": ["x"]}, "b", "must have a column 'b', got 'a'"),
    ):
        file = write(**columns)
        refused(lambda file=file, column=column: read_text_parquet(file, column), file, sentence)
    file = write_file(tmp_path, "no parquet", "bad.parquet")
    refused(lambda: read_text_parquet(file), file, "got another or a damaged file")


@pytest.mark.parametrize("read", [read_text_csv, read_text_parquet])
def test_missing_tables(tmp_path, read):
    with pytest.raises(FileNotFoundError, match="column of text, but does not exist"):
        read(tmp_path / "nowhere")
    with pytest.raises(IsADirectoryError, match="got a folder"):
        read(tmp_path)


def test_blanks_in_a_cell_take_no_time(tmp_path):
    """Expressions that can divide blanks in two ways try all of them."""
    from time import process_time

    file = write_file(tmp_path, b"id,text\n1," + b" " * 50_000 + b"x\n")
    began = process_time()
    with pytest.raises(ValueError, match="at least one word"):
        read_corpus(file, stop_words=None)
    assert process_time() - began < 5
