"""Files that are written whole or not at all, hashes of data, and errors of damaged files."""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import DTypeLike


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


BLOCK_BYTES = 1 << 24
"""Bytes of a scratch array that :func:`row_blocks` has in memory."""


def scratch_array(
    shape: tuple[int, ...], dtype: DTypeLike, folder: str | os.PathLike[str] | None = None
) -> np.ndarray:
    """Return an array of zeros whose pages are in a file, not in memory.

    The file has no name: its space is freed when the array is deleted or the process ends, in any way. The
    space is reserved at once, so that a full disk is an error here and not a crash later.

    Parameters
    ----------
    shape, dtype
        As in :func:`numpy.zeros`.
    folder : path, optional
        Folder of the file; by default the system's folder for temporary files. A folder that is itself in
        memory (``tmpfs``) is of no use.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.core.files import is_scratch, scratch_array
    >>> array = scratch_array((3, 2), np.float32)
    >>> array[1] = 5.0
    >>> array.sum(), is_scratch(array)
    (np.float32(10.0), True)
    """
    kind = np.dtype(dtype)
    size = max(1, int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
    where = tempfile.gettempdir() if folder is None else os.fspath(folder)
    if not os.path.isdir(where):
        raise FileNotFoundError(f"scratch must be a folder, but {where} is not.")
    try:
        if shutil.disk_usage(where).free < size:
            raise OSError(errno.ENOSPC, "the disk is full")
        with tempfile.TemporaryFile(dir=where) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            mapped = mmap.mmap(file.fileno(), size)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise OSError(
                f"{where} must have {in_words(size)} of free space for a method's memory, got "
                f"{in_words(shutil.disk_usage(where).free)}: use another folder with scratch."
            ) from None
        reason = (error.strerror or str(error)).lower()
        raise OSError(f"{where} cannot be used as scratch ({reason}).") from None
    return np.frombuffer(mapped, dtype=kind, count=int(np.prod(shape, dtype=np.int64))).reshape(shape)


def is_scratch(array: object) -> bool:
    """Return whether an array, or its base, is from :func:`scratch_array`."""
    return _mapped(array) is not None


def release(array: np.ndarray) -> None:
    """Remove consecutive rows of a scratch array from the process's memory: the file keeps their values.

    Pages of a mapped file are resident memory of a process after their first use, until the system needs
    the room. Other arrays are left alone.

    >>> array = scratch_array((1000, 4), np.float64)
    >>> array[:] = 3.0
    >>> release(array[100:900])
    >>> array.sum()
    np.float64(12000.0)
    """
    found = _mapped(array)
    if found is None or not array.size or not hasattr(mmap, "MADV_DONTNEED"):
        return
    mapped, address = found
    start = array.ctypes.data - address
    first = start - start % mmap.PAGESIZE
    mapped.madvise(mmap.MADV_DONTNEED, first, min(start + array.nbytes, len(mapped)) - first)


def row_blocks(*arrays: np.ndarray) -> Iterator[slice]:
    """Yield ranges of rows: all rows at once or, of scratch arrays, blocks that are released afterwards.

    Parameters
    ----------
    arrays : ndarrays, shape (n, ...)
        With the same number of rows.

    Examples
    --------
    >>> array = scratch_array((3, 2), np.float64)
    >>> for rows in row_blocks(array):
    ...     array[rows] = 1.0
    >>> array.sum(), list(row_blocks(np.zeros((3, 2))))
    (np.float64(6.0), [slice(0, 3, None)])
    """
    n, step = len(arrays[0]), max(1, len(arrays[0]))
    if any(is_scratch(array) for array in arrays):
        step = max(1, BLOCK_BYTES * n // max(1, *(array.nbytes for array in arrays)))
    for first in range(0, n, step):
        rows = slice(first, min(first + step, n))
        yield rows
        for array in arrays:
            release(array[rows])


def _mapped(array: object) -> tuple[mmap.mmap, int] | None:
    """Return the mapped file of a scratch array and its address, or None for another array."""
    address = 0
    while isinstance(array, np.ndarray):
        address, array = array.ctypes.data, array.base
    mapped = getattr(array, "obj", array)
    return (mapped, address) if isinstance(mapped, mmap.mmap) else None


def in_words(size: float) -> str:
    """Return a size with its unit, rounded up so that it is enough.

    >>> in_words(64_200_000), in_words(3_200_000_000), in_words(999)
    ('65 MB', '3.2 GB', '1 MB')
    """
    if size < 10**9:
        return f"{max(1, -int(-size // 10**6))} MB"
    return f"{-int(-size // 10**8) / 10:g} GB"
