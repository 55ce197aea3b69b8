"""The one place where kernels are compiled: options, disk cache, and the line that says so.

A kernel's cache lies in a folder named after the content of all kernel files, so that a change of any of
them, also of a helper that another file imports, can never run stale code. Where no folder can be written
to, kernels compile in memory.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

__all__ = ["cache_folder", "inlined", "kernel", "say_when_compiling"]

log = logging.getLogger("swiftem")

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def _digest_of_sources() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return where compiled kernels are kept: below NUMBA_CACHE_DIR, else the user's cache folder."""
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "swiftem" / _digest_of_sources()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel at its first call, with the disk cache where there can be one.

    >>> @kernel
    ... def twice(x):
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    # Numba asks for the folder when it decorates, and has no argument for it.
    settings: Any = numba.config
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(_FOLDER)
    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    except (RuntimeError, OSError):  # no folder can be written to
        return numba.njit(**OPTIONS)(function)
    finally:
        settings.CACHE_DIR = before


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a helper into every kernel that calls it; a call would cost more than most helpers do."""
    return numba.njit(forceinline=True, **OPTIONS)(function)


_FOLDER = cache_folder()
_FIRST_TIME = not any(_FOLDER.rglob("*.nbi")) if _FOLDER.is_dir() else True


def say_when_compiling() -> None:
    """Log one line, once, where this machine has not compiled these kernels before."""
    global _FIRST_TIME
    if _FIRST_TIME:
        _FIRST_TIME = False
        log.warning("swiftem compiles its kernels for the first time on this machine: a few seconds, once.")
