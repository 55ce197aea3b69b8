"""Arrays in a file, for data that do not fit into memory."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator

import numpy as np
from numpy.typing import DTypeLike

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
    >>> from swiftem.core.scratch import is_scratch, scratch_array
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
    short = OSError(
        f"{where} must have {in_words(size)} of free space for a method's memory, got "
        f"{in_words(shutil.disk_usage(where).free)}: use another folder with scratch."
    )
    if shutil.disk_usage(where).free < size:
        raise short
    try:
        with tempfile.TemporaryFile(dir=where) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
            mapped = mmap.mmap(file.fileno(), size)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise short from None
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
