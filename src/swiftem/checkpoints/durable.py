"""Files that are there whole after a crash, or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["read_sealed", "sync_folder", "telling_where", "write_all", "write_sealed"]

MAGIC = b"swiftem checkpoint, format 1\n"
"""First line of sealed files; the number changes when the layout does."""
FAMILY = b"swiftem checkpoint, format "
DIGEST = 16


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file with a checksum: to a temporary name, to the disk, then under its own name.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_sealed(pathlib.Path(folder, "file"), b"content")
    ...     read_sealed(pathlib.Path(folder, "file"))
    b'content'
    """
    temporary = path.with_name(f".{path.name}.new")  # one name: whoever was killed leaves one file at most
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            digest = hashlib.blake2b(content, digest_size=DIGEST).digest()
            write_all(handle, MAGIC + digest, 0)
            write_all(handle, content, len(MAGIC) + DIGEST)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)  # a full disk has room again
        raise
    sync_folder(path.parent)


def read_sealed(path: Path) -> bytes:
    """Return the content of a file of :func:`write_sealed`; ValueError where it is not as it was written."""
    found = path.read_bytes()
    if not found.startswith(MAGIC):
        if found.startswith(FAMILY):
            raise ValueError("it was written by another version of swiftem, in another format")
        raise ValueError("it is no file of a checkpoint")
    body = memoryview(found)[len(MAGIC) + DIGEST :]
    if hashlib.blake2b(body, digest_size=DIGEST).digest() != found[len(MAGIC) :][:DIGEST]:
        raise ValueError("its checksum is wrong")
    return bytes(body)


def write_all(handle: int, content: Any, position: int) -> int:
    """Write bytes at a position of an open file, all of them; return the position after them."""
    view = memoryview(content).cast("B")
    done = 0
    while done < len(view):
        # One call may write less than it is given; and Ctrl-C should not wait for a gigabyte.
        done += os.pwrite(handle, view[done : done + (1 << 24)], position + done)
    return position + done


def sync_folder(folder: Path) -> None:
    """Make names in a folder as lasting as the files behind them."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def telling_where(folder: Path, what: str) -> Iterator[None]:
    """Say which folder it is about where the system refuses something."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        reason = (error.strerror or str(error)).lower()
        raise OSError(error.errno, f"checkpoint={str(folder)!r} {what} ({reason}).") from None
