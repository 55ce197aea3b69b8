"""Where swiftem keeps what would take seconds to make again: compiled kernels, read docstrings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["is_writable", "replacing", "user_cache", "write_atomically"]


def user_cache() -> Path:
    """Return swiftem's folder below NUMBA_CACHE_DIR, else in the user's cache folder; it need not exist."""
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(base)) / "swiftem"


def is_writable(folder: Path) -> bool:
    """Tell whether files can be written to ``folder``, which is made where it is missing.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     is_writable(pathlib.Path(folder, "new", "folder"))
    True
    """
    # Where there is no home, the path still begins with ~ and would be made below the current folder.
    if folder.parts[:1] == ("~",):
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that other processes see complete or not at all; its folder must exist.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "file")
    ...     with replacing(file) as stream:
    ...         _ = stream.write(b"content")
    ...         there = file.exists()
    ...     there, file.read_bytes()
    (False, b'content')
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            yield file
        os.replace(name, path)
    except BaseException:  # also Ctrl-C: nothing half-written stays behind
        Path(name).unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that other processes see complete or not at all; its folder must exist.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "file")
    ...     write_atomically(file, b"content")
    ...     file.read_bytes()
    b'content'
    """
    with replacing(path) as file:
        file.write(content)
