import gzip
import re
from pathlib import Path

import pytest

from swiftem.data import read_documents
from swiftem.data.documents import counts, text_files

FAO = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize(
    ("content", "documents"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\n \t\none\n\r\n\xc2\xa0\ntwo", ["one", "two"]),
        (b"\xef\xbb\xbfone\r\ntwo", ["one", "two"]),
        (b"\xef\xbb\xbf\none", ["one"]),
        ("Süßes Reisfeld\n稲\n".encode(), ["Süßes Reisfeld", "稲"]),
        # Only line ends end a line; the rest of it stays as it is.
        ("  one\vtwo\u2028three\x85 \n".encode(), ["  one\vtwo\u2028three\x85 "]),
    ],
)
def test_one_document_a_line(tmp_path, content, documents):
    (tmp_path / "file.txt").write_bytes(content)
    assert read_documents(tmp_path / "file.txt") == documents
    assert read_documents(str(tmp_path / "file.txt")) == documents


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
def test_bad_content(tmp_path, content, message):
    file = tmp_path / "file.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(f"{file} {message}")):
        read_documents(file)


def test_bad_paths(tmp_path):
    with pytest.raises(
        IsADirectoryError, match=rf"^{re.escape(str(tmp_path))} must be a text .* a folder\.$"
    ):
        read_documents(tmp_path)
    missing = tmp_path / "missing.txt"
    with pytest.raises(FileNotFoundError, match=rf"^{re.escape(str(missing))} must be .* does not exist\.$"):
        read_documents(missing)
    for path in (0, None, b"file.txt"):
        with pytest.raises(TypeError, match="path must be the name of a file, got "):
            read_documents(path)


@pytest.mark.parametrize(("name", "n_documents"), [("fao-1k.txt", 1068), ("fao-10k.txt", 10730)])
def test_the_paper_s_texts(name, n_documents):
    if not (FAO / name).exists():
        pytest.skip(f"{FAO / name} is not here")
    assert len(read_documents(FAO / name)) == n_documents


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 1000])
@pytest.mark.parametrize("content", [b"1\n22\n\n a line that is longer\n333", b"\n\n", b"", b"no end"])
def test_pieces_of_a_file_are_the_file(tmp_path, size, content, monkeypatch):
    monkeypatch.setattr(text_files, "PIECE", size)
    (tmp_path / "file.txt").write_bytes(content)
    pieces = list(text_files.read_pieces(tmp_path / "file.txt", "a text"))
    assert b"".join(pieces) == content
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


def test_lines_are_counted_from_piece_to_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "PIECE", 8)
    (tmp_path / "file.txt").write_text("one\ntwo\n\nthree\nfour\nfive\n")
    expected = [(1, "one"), (2, "two"), (3, ""), (4, "three"), (5, "four"), (6, "five")]
    assert list(text_files.read_lines(tmp_path / "file.txt")) == expected
    assert list(text_files.filled_lines(tmp_path / "file.txt")) == [line for line in expected if line[1]]
    (tmp_path / "file.txt").write_bytes(b"one\ntwo\n\nthree\nfo\xe9r\n")
    with pytest.raises(ValueError, match="the byte 0xe9 in line 5"):
        list(text_files.read_lines(tmp_path / "file.txt"))


def test_a_file_that_would_fill_the_memory_is_stopped(tmp_path):
    """Of all that was read so far, not of the last piece."""
    (tmp_path / "file.gz").write_bytes(gzip.compress(bytes(counts.FREE + 8 * text_files.PIECE)))
    with pytest.raises(ValueError, match="must be at most 100 times as large when unpacked"):
        list(text_files.read_pieces(tmp_path / "file.gz", "a text"))
