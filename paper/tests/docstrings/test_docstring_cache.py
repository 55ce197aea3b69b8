import gzip
import json
import logging
from pathlib import Path

import pytest

from paper.docstrings import loader as docstring_cache
from paper.docstrings.loader import cache_file, load_docstrings, save_docstrings
from paper.docstrings.reader import Docstring, InstalledPackage

TOY = InstalledPackage("toy", "1.0", (("toy", Path("/somewhere/toy")),))
DOCSTRINGS = [Docstring("toy", "The package, größer."), Docstring("toy.f", "A lone \ud800 surrogate.\n")]


def test_what_is_saved_is_loaded(tmp_path):
    assert load_docstrings(tmp_path, TOY) is None
    save_docstrings(tmp_path / "new", TOY, DOCSTRINGS)
    assert load_docstrings(tmp_path / "new", TOY) == DOCSTRINGS
    content = cache_file(tmp_path / "new", TOY).read_bytes()
    save_docstrings(tmp_path, TOY, DOCSTRINGS)
    assert cache_file(tmp_path, TOY).read_bytes() == content


def test_the_key(tmp_path, monkeypatch):
    save_docstrings(tmp_path, TOY, DOCSTRINGS)
    others = [
        TOY._replace(name="other"),
        TOY._replace(version="1.1"),
        TOY._replace(modules=(("toy", Path("/elsewhere/toy")),)),
    ]
    for other in others:
        assert load_docstrings(tmp_path, other) is None
        # Not even where its file is renamed.
        cache_file(tmp_path, other).write_bytes(cache_file(tmp_path, TOY).read_bytes())
        assert load_docstrings(tmp_path, other) is None
    monkeypatch.setattr(docstring_cache, "FORMAT", docstring_cache.FORMAT + 1)
    assert load_docstrings(tmp_path, TOY) is None


def zipped(content):
    return gzip.compress(json.dumps(content).encode())


KEY = docstring_cache._key(TOY)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-20],
        lambda content: content[:40] + b"\xff\0\xff" + content[43:],
        lambda content: content + b"more",
        lambda content: b"not gzip",
        lambda content: gzip.compress(b"not JSON"),
        lambda content: gzip.compress(b"\xff"),
        lambda content: zipped([]),
        lambda content: zipped({}),
        lambda content: zipped({"key": KEY}),
        lambda content: zipped({"key": KEY, "names": None, "texts": None}),
        lambda content: zipped({"key": KEY, "names": ["a", "b"], "texts": ["c"]}),
    ],
)
def test_damaged_files_are_not_used(tmp_path, caplog, damage):
    save_docstrings(tmp_path, TOY, DOCSTRINGS)
    file = cache_file(tmp_path, TOY)
    file.write_bytes(damage(file.read_bytes()))
    with caplog.at_level(logging.INFO, logger="swiftem"):
        assert load_docstrings(tmp_path, TOY) is None
    assert "cannot be used and is created again" in caplog.text
    save_docstrings(tmp_path, TOY, DOCSTRINGS)
    assert load_docstrings(tmp_path, TOY) == DOCSTRINGS


def test_where_nothing_can_be_written(tmp_path, caplog, monkeypatch):
    (tmp_path / "file").touch()
    with caplog.at_level(logging.INFO, logger="swiftem"):
        save_docstrings(tmp_path / "file" / "folder", TOY, DOCSTRINGS)
        assert "cannot be written to" in caplog.text

        def fail(path, content):
            raise OSError("No space left on device")

        monkeypatch.setattr(docstring_cache, "write_atomically", fail)
        save_docstrings(tmp_path, TOY, DOCSTRINGS)
        assert "No space left" in caplog.text
    assert load_docstrings(tmp_path, TOY) is None
