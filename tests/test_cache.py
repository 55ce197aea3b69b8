import os
from pathlib import Path

import pytest

from swiftem._cache import is_writable, user_cache
from swiftem.files.durable import write_atomically


def test_the_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    # Windows looks for the home elsewhere.
    assert user_cache() == Path(os.path.expanduser("~/.cache/swiftem"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert user_cache() == tmp_path / "xdg" / "swiftem"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert user_cache() == tmp_path / "numba" / "swiftem"


def test_folders_that_cannot_be_written_to(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert not is_writable(tmp_path / "file")
    assert not is_writable(tmp_path / "file" / "below")
    assert not is_writable(Path("~/.cache/swiftem"))  # there is no home
    assert os.listdir(tmp_path) == ["file"]
    assert is_writable(tmp_path / "new")
    assert os.listdir(tmp_path / "new") == []


def test_a_write_that_fails_leaves_what_was_there(monkeypatch, tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"before")

    def fail(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"after")
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]
