"""Files that are written whole or not at all, hashes of data, and errors of damaged files."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that other processes see complete or not at all; its folder must exist.

    The content is flushed to disk before the file gets its name, and the name afterwards. An existing file
    keeps its permissions. A link is replaced, and its target stays as it is.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "file")
    ...     with replacing(file) as stream:
    ...         _ = stream.write(b"content")
    ...         is_there = file.exists()
    ...     is_there, file.read_bytes()
    (False, b'content')
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(handle)
        # A temporary file is private to its owner, and the result would be, too.
        is_file = path.exists() and not path.is_symlink()
        os.chmod(name, path.stat().st_mode & 0o777 if is_file else 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:  # also Ctrl-C: nothing half-written remains
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, if the file system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomically(path: Path, content: bytes | memoryview) -> None:
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


def open_regular(path: Path, mode: str = "rb") -> BinaryIO:
    """Open a file as :func:`open` does, in mode "rb" or "r+b"; the second creates a missing file.

    A symbolic link raises OSError, because its target belongs to somebody else; so does a pipe, which would
    block.
    """
    flags = os.O_RDONLY if mode == "rb" else os.O_RDWR | os.O_CREAT
    try:
        handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, f"{path.name} is a symbolic link") from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, f"{path.name} is not a regular file")
    return open(handle, mode)  # type: ignore[return-value]


def _umask() -> int:
    mask = os.umask(0o077)  # it cannot be read without being set
    os.umask(mask)
    return mask


ROWS = 4096
"""Rows that have a checksum together."""


def fingerprint(kind: str, *arrays: np.ndarray | None) -> str:
    """Return a hash of the values, shapes and dtypes of ``arrays``; memory layout does not matter.

    >>> import numpy as np
    >>> a = np.arange(6.0).reshape(2, 3)
    >>> fingerprint("demo", a) == fingerprint("demo", np.asfortranarray(a))
    True
    """
    digest = hashlib.blake2b(kind.encode(), digest_size=16)
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        for start in range(0, len(array), ROWS):
            # A checksum of each block is four times as fast as hashing it; no security is needed.
            checksum = zlib.crc32(np.ascontiguousarray(array[start : start + ROWS]).data)
            digest.update(checksum.to_bytes(4, "little"))
    return digest.hexdigest()


def file_hash(kind: str, files: Sequence[Path]) -> str:
    """Return a hash of the bytes of ``files``, in order, whatever their names.

    Whole files are hashed: dates change when a file is copied, and date and size may stay after an edit.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = [pathlib.Path(folder, name) for name in "ab"]
    ...     _ = [file.write_text("1,2") for file in files]
    ...     file_hash("demo", files[:1]) == file_hash("demo", files[1:])
    True
    """
    digest = hashlib.blake2b(kind.encode(), digest_size=16)
    for file in files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "blake2b").digest())
    return digest.hexdigest()


@contextmanager
def damage_named(file: Path, what: str) -> Iterator[None]:
    """Convert any error of a library that reads ``file`` into a sentence; ``what`` is the expected content.

    Libraries that parse binary files raise various errors: ``zlib.error``, ``EOFError``, ``OverflowError``,
    ``KeyError`` and others. Errors of the system keep their type, and errors that already name the file are
    raised unchanged.

    Examples
    --------
    >>> with damage_named(Path("toy.npz"), "an archive"):
    ...     {}["indptr.npy"]
    Traceback (most recent call last):
    ...
    ValueError: toy.npz must be an archive, got another or a damaged file (indptr.npy).
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ImportError) or str(error).startswith(str(file)):
            raise
        # An invalid argument is an impossible position in the file, from its directory.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            reason = (error.strerror or type(error).__name__).lower()
            raise type(error)(f"{file} cannot be read ({reason}).") from None
        if isinstance(error, MemoryError):  # a damaged file may claim any size
            raise ValueError(
                f"{file} must be {what} that fits into memory, got a larger or a damaged one."
            ) from None
        raise ValueError(
            f"{file} must be {what}, got another or a damaged file ({in_brackets(error)})."
        ) from None


def in_brackets(error: Exception) -> str:
    r"""Return an error's text as part of a sentence.

    >>> in_brackets(OSError("Couldn't deserialize thrift: invalid data.\nMore.")), in_brackets(EOFError())
    ("Couldn't deserialize thrift: invalid data", 'EOFError')
    """
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first.rstrip(". ")[:200] or type(error).__name__
