"""Arrays in a file, for data that do not fit into memory."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_words", "is_scratch", "scratch_array"]


def scratch_array(
    shape: tuple[int, ...], dtype: Any, folder: str | os.PathLike[str] | None = None
) -> NDArray[Any]:
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
    >>> from swiftem.files.scratch import is_scratch, scratch_array
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


def is_scratch(array: Any) -> bool:
    """Tell whether an array, or its base, is from :func:`scratch_array`."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(getattr(array, "obj", array), mmap.mmap)


def in_words(size: float) -> str:
    """Return a size with its unit, rounded up so that it is enough.

    >>> in_words(64_200_000), in_words(3_200_000_000), in_words(999)
    ('65 MB', '3.2 GB', '1 MB')
    """
    if size < 10**9:
        return f"{max(1, -int(-size // 10**6))} MB"
    return f"{-int(-size // 10**8) / 10:g} GB"
