"""The one place where kernels are compiled: options, disk cache, and the message about compiling.

A kernel's cache is in a folder named after the content of all kernel files, so that a change of any of them,
also of a helper that another file imports, can never run stale code. Numba's own key, date and size of the
kernel's file, does not detect such a change. If that folder is not writable, kernels compile in memory:
Numba's own fallback, a folder that all versions share, could have stale code.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from swiftem._cache import is_writable, user_cache

__all__ = [
    "cache_folder",
    "fused",
    "helper",
    "inlined",
    "kernel",
    "reordered",
    "say_when_compiling",
    "summed",
]

log = logging.getLogger("swiftem")

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
REORDERED = {"reassoc", "nsz", "contract"}


def _digest_of_sources() -> str:
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return the folder of compiled kernels: below NUMBA_CACHE_DIR, else the user's cache folder."""
    return user_cache() / _digest_of_sources()


def reordered(function: Callable[..., Any]) -> Any:
    """As :func:`kernel`, with sums in an order chosen by the compiler, which allows vector instructions.

    The order is the same in every call, so results are the same, bit by bit, on one machine, wherever arrays
    are in memory: see :mod:`swiftem.engine.numba.scratch` for what a loop that sums may write to.
    """
    return kernel(function, fastmath=REORDERED)


def kernel(function: Callable[..., Any], **more: Any) -> Any:
    """Compile a kernel at its first call, with the disk cache if possible.

    >>> @kernel
    ... def twice(x):
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    # Numba looks up the folder in the decorator, and has no argument for it.
    settings: Any = numba.config
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(_FOLDER)
    try:
        return numba.njit(cache=_CACHED, **OPTIONS, **more)(function)
    except RuntimeError:  # a function that is in no file, as in the example
        return numba.njit(**OPTIONS, **more)(function)
    finally:
        settings.CACHE_DIR = before


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a helper into every kernel that calls it; a call would cost more than most helpers."""
    return numba.njit(forceinline=True, **OPTIONS)(function)


def helper(function: Callable[..., Any], **more: Any) -> Any:
    """Compile a helper that kernels call: for rare cases that would only slow down the caller if inlined.

    Helpers that work on blocks are called, too: with plain arrays as arguments their loops vectorise.
    Unsigned indices (``np.uintp``) help there.
    """
    return numba.njit(**OPTIONS, **more)(function)


def fused(function: Callable[..., Any]) -> Any:
    """As :func:`helper`, with fused multiply-add, which rounds once, if the machine has it."""
    return helper(function, fastmath={"contract"})


def summed(function: Callable[..., Any]) -> Any:
    """As :func:`helper`, with sums in an order chosen by the compiler: see :func:`reordered`."""
    return helper(function, fastmath=REORDERED)


_FOLDER = cache_folder()
_CACHED = is_writable(_FOLDER)
_SAY = not _CACHED or not any(_FOLDER.rglob("*.nbi"))


def say_when_compiling() -> None:
    """Log one line, once, if kernels have not been compiled before, or cannot be cached."""
    global _SAY
    if _SAY:
        _SAY = False
        when = "for the first time on this machine: a few seconds, once"
        if not _CACHED:
            when = f"in memory, as {_FOLDER} cannot be written to: a few seconds in every process"
        log.warning("swiftem compiles its kernels %s.", when)
