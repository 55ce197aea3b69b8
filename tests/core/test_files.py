"""Files that are replaced, and the lock of a folder."""

import os
import resource

import pytest

from swiftem.core.files import open_regular, write_atomically


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    """Here it is the system's limit on the size of a file."""
    write_atomically(tmp_path / "file", b"before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        with pytest.raises(OSError, match="File too large"):
            write_atomically(tmp_path / "file", b"after" * 99)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
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
