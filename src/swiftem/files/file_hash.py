"""One hash for what files hold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["file_hash"]

BYTES = 1 << 20


def file_hash(kind: str, files: Sequence[Path]) -> str:
    """Return a hash of the bytes of ``files``, one after the other, whatever their names.

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
