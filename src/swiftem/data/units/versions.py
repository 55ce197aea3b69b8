"""Versions that workers and client must share: files of swiftem, NumPy, SciPy and Numba."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["difference", "versions"]


@cache
def versions() -> dict[str, str]:
    """Return the versions of this process; that of swiftem has a hash of its files, as copies may differ."""
    import scipy

    package = Path(__file__).parents[2]
    digest = hashlib.blake2b(digest_size=4)
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    try:
        numba = version("numba")
    except PackageNotFoundError:  # it is in the path, but was not installed
        numba = "unknown"
    return {
        "swiftem": f"{sys.modules['swiftem'].__version__} with files {digest.hexdigest()}",
        "NumPy": np.__version__, "SciPy": scipy.__version__, "Numba": numba,
    }  # fmt: skip


def difference(worker: str, theirs: Any) -> str:
    """Return the sentence about a worker whose versions, or the error instead of them, are not the client's.

    It is empty if they are the same.

    >>> difference("tcp://a:1", versions())
    ''
    >>> difference("tcp://a:1", versions() | {"NumPy": "1.0"}).partition(" of NumPy")[0]
    'Worker tcp://a:1 must have the versions of the client, got 1.0'
    """
    ours = versions()
    if theirs == ours:
        return ""
    if not isinstance(theirs, dict):
        got = f"another version of swiftem ({theirs})" if theirs else "another version of swiftem"
    else:
        names = [name for name in ours if theirs.get(name) != ours[name]]
        got = "; ".join(f"{theirs.get(name)} of {name}, not {ours[name]}" for name in names)
    return (
        f"Worker {worker} must have the versions of the client, got {got}: install the same there, and start "
        "the worker again."
    )
