"""Files that are replaced, and the lock of a folder."""

import errno
import os

import pytest

from swiftem.core.files import open_regular, write_atomically


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace

    def sync(handle):
        done.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        fsync(handle)

    def rename(source, target):
        done.append("name")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    write_atomically(tmp_path / "file", b"content")
    assert done == ["file", "name", "folder"]


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call):
    write_atomically(tmp_path / "file", b"before")

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match="No space left"):
            write_atomically(tmp_path / "file", b"after")
    assert (tmp_path / "file").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("mode", ["rb", "r+b"])
def test_links_and_pipes_are_not_opened(tmp_path, mode):
    (tmp_path / "other").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="link is a symbolic link"):
        open_regular(tmp_path / "link", mode)
    with pytest.raises(OSError, match="pipe is not a regular file"):
        open_regular(tmp_path / "pipe", mode)
    assert (tmp_path / "other").read_bytes() == b"mine"
