"""Compile kernels: options, the disk cache, and the clock that stops meanwhile.

The cache is in a folder named after the content of all files with compiled code, so that a change of any of
them, also of a helper in another file, never runs stale code. Numba's own key, the date and size of the
kernel's file, does not detect such a change. If that folder is not writable, or others can write there,
kernels compile in memory: a file of the cache is code that runs in this process.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from swiftem.core.process import compile_clock
from swiftem.kernels.cache import cache_in, user_cache

log = logging.getLogger("swiftem")

FOLDERS = ("kernels", "functions", "mixture/compute", "topics/compute", "hmm/compute")
"""Folders of the package with compiled code."""

AT_LEAST = 1.0
"""Seconds of compilation after which a line announces it."""

Compiled = Callable[..., Any]

_njit: Callable[..., Compiled] = partial(numba.njit, nogil=True, error_model="numpy")

FUSED = {"contract"}
"""Fast-math flags of a helper with fused multiply-add, which rounds once, if the machine has it."""

REORDERED = {"reassoc", "nsz", "contract"}
"""Fast-math flags of a helper that sums in an order chosen by the compiler, which allows vector instructions.

The order is the same in every call. If a loop reads one array and writes another, LLVM compares their
addresses at run time, and arrays that are close are processed by a scalar loop, which sums in another order:
a loop that sums and writes at the same time may write only to its own input.
"""


def kernel(function: Compiled) -> Any:
    """Compile a function that Python calls at its first call, with the disk cache if possible.

    >>> @kernel
    ... def twice(x):
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """
    if WHY_NOT_KEPT:
        return _njit(function)
    # Numba looks up the folder in the decorator, and has no argument for it.
    settings: Any = numba.config
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(CACHE_FOLDER)
    try:
        compiled = _njit(function, cache=True)
    except RuntimeError:  # a function that is in no file, as in the example
        return _njit(function)
    finally:
        settings.CACHE_DIR = before
    # Numba takes another folder if it cannot write to this one, as on a full disk.
    if hasattr(compiled, "stats") and CACHE_FOLDER not in Path(compiled.stats.cache_path).parents:
        return _njit(function)
    return compiled


helper: Callable[..., Compiled] = partial(_njit, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Compile a function that only kernels call; Python must not call it.

Takes the options of :func:`numba.njit`, as in ``@helper(fastmath=REORDERED)``. LLVM decides whether it is
inlined. Helpers that work on blocks are better called: with plain arrays as arguments their loops vectorise.
Unsigned indices (``np.uintp``) help there.
"""

inlined: Callable[..., Compiled] = partial(helper, forceinline=True)
"""Compile a function into every kernel that calls it, as a call would cost more than the function."""


def _digest_of_sources() -> str:
    """Return a hash of Numba's version and of all files with compiled code."""
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    package = Path(__file__).parents[1]
    for folder in FOLDERS:
        for path in sorted((package / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


class _Listener(event.Listener):
    """Stops the clock while Numba compiles, and announces what takes longer than a second, once.

    Helpers are compiled within their kernel. Numba emits no event if a kernel is in the cache.
    """

    def __init__(self) -> None:
        self._thread = threading.local()
        self._is_announced = False

    def on_start(self, event: event.Event) -> None:
        """Stop the clock if this is not a helper."""
        depth = getattr(self._thread, "depth", 0)
        self._thread.depth = depth + 1
        if depth:
            return
        compile_clock.stop()
        if event.data["dispatcher"].py_func.__module__.startswith("swiftem."):  # not a user's function
            self._thread.timer = timer = threading.Timer(AT_LEAST, self._announce)
            timer.daemon = True
            timer.start()

    def on_end(self, event: event.Event) -> None:
        """Start the clock again."""
        self._thread.depth -= 1
        if self._thread.depth:
            return
        compile_clock.go_on()
        timer = self._thread.__dict__.pop("timer", None)
        if timer is not None:
            timer.cancel()

    def _announce(self) -> None:
        if not self._is_announced:
            self._is_announced = True
            when = "in every process" if WHY_NOT_KEPT else "once on this machine"
            log.warning("swiftem compiles its kernels, %s: this takes several seconds.", when)


CACHE_FOLDER, WHY_NOT_KEPT = cache_in(user_cache().parent, "swiftem", _digest_of_sources())
"""The folder of compiled kernels, and why none are kept there for other processes; empty if they are."""
if WHY_NOT_KEPT:
    log.warning("swiftem compiles in every process, without a cache, as %s.", WHY_NOT_KEPT)
event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
