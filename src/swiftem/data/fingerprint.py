"""Hashes of arrays and files, for all sources."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["file_hash", "fingerprint"]

ROWS, BYTES = 4096, 1 << 20


def fingerprint(kind: str, *arrays: NDArray[Any] | None) -> str:
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
            # A checksum of each piece is four times as fast as hashing it; no security is needed.
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
        digest.update(str(file.stat().st_size).encode())
        with file.open("rb") as stream:
            while part := stream.read(BYTES):
                digest.update(part)
    return digest.hexdigest()
