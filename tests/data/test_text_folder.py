"""Folders of text files: which are read, in which encoding, and what is said about the others."""

import gzip
import os

import pytest

from swiftem.data import read_folder


def fill(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_files_of_all_folders_are_sorted_and_named_by_their_paths(tmp_path):
    fill(tmp_path, {"b.txt": "rye", "a/2": "two", "a/1.md": "one", "a/c/d": "deep"})
    assert read_folder(tmp_path) == (
        ["one", "two", "deep", "rye"],
        ["a/1.md", "a/2", "a/c/d", "b.txt"],
        [],
        None,
    )


def test_hidden_files_and_folders_are_left_out(tmp_path):
    fill(tmp_path, {"a": "rye", ".DS_Store": "x", ".git/config": "y"})
    assert read_folder(str(tmp_path)).names == ["a"]


def test_a_folder_inside_can_be_left_out(tmp_path):
    fill(tmp_path, {"a": "rye", "results/topics/topics.html": "x", "results/b": "y"})
    assert read_folder(tmp_path, leave_out=tmp_path / "results" / "topics").names == ["a", "results/b"]


def test_encodings(tmp_path):
    fill(
        tmp_path,
        {
            "bom": b"\xef\xbb\xbfcaf\xc3\xa9",
            "latin": b"caf\xe9 \x93quoted\x94",
            "odd": b"caf\xe9 \x81",
            "utf16": "café".encode("utf-16"),
            "packed.gz": gzip.compress("café".encode()),
        },
    )
    texts, names, notes, _ = read_folder(tmp_path)
    assert dict(zip(names, texts, strict=True)) == {
        "bom": "café",
        "latin": "café “quoted”",
        "odd": "café \ufffd",
        "packed.gz": "café",
        "utf16": "café",
    }
    assert notes == ["2 files are not UTF-8 and read as Windows-1252: latin, odd."]


def test_what_is_no_text_is_named_and_left_out(tmp_path):
    fill(tmp_path, {"a": "rye", "e": "", "f": " \n", "z.jpg": b"\xff\xd8\0\1", "bad.gz": b"\x1f\x8bnothing"})
    fill(tmp_path, {"half": b"\xff\xfea"})
    texts, _, notes, _ = read_folder(tmp_path)
    assert texts == ["rye"]
    assert notes == [
        "2 files are empty and left out: e, f.",
        "2 files are binary and left out: half, z.jpg.",
        "1 file is unreadable and left out: bad.gz.",
    ]


def test_nothing_to_read(tmp_path):
    with pytest.raises(ValueError, match=r"at least one text file, got no files\."):
        read_folder(tmp_path)
    fill(tmp_path, {"e": ""})
    with pytest.raises(ValueError, match=r"text file, got none: 1 file is empty and left out: e\."):
        read_folder(tmp_path)
    with pytest.raises(NotADirectoryError, match="got a file"):
        read_folder(tmp_path / "e")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_folder(tmp_path / "nowhere")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_pipes_and_broken_links_are_not_waited_for(tmp_path):
    fill(tmp_path, {"a": "rye"})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert read_folder(tmp_path).names == ["a"]
