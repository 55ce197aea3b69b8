"""The one place where kernels are compiled: options, disk cache, the line that says so, and the clock.

A kernel's cache is in a folder named after the content of all kernel files, so that a change of any of them,
also of a helper that another file imports, can never run stale code. Numba's own key, date and size of the
kernel's file, does not detect such a change. If that folder is not writable, or others can write there,
kernels compile in memory: Numba's own fallback, a folder that all versions share, could have stale code, and
what others write there would run in this process.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numba
from numba.core import event

from swiftem._cache import cache_in, user_cache
from swiftem.process import compile_clock

__all__ = [
    "cache_folder",
    "caller",
    "fused",
    "helper",
    "inlined",
    "is_kept",
    "kernel",
    "lean",
    "summed",
    "why_not_kept",
]

log = logging.getLogger("swiftem")

AT_LEAST = 1.0
"""Seconds that something is compiled for before a line says so."""

ABOUT: dict[str, tuple[str, int]] = {
    "gaussian_batches.batches": ("steps of Gaussian mixtures", 10),
    "gaussian_passes.blocks": ("passes over mixtures", 5),
}
"""What kernels that take longer are for, and about how many seconds they take."""
PARTS = {
    "softmax": "passes over mixtures with unit variances",
    "gaussian_mixture": "steps of mixtures with unit variances",
    "mixture_batches": "steps of mixtures with unit variances",
    "code_passes": "passes over categories",
    "functions": "steps of a model of functions",
}
"""What the other kernels of a file are for; those of topics begin with "plsa"."""

KNOWN = (0, 68)
"""The version of Numba whose inner parts are known: others compile helpers as Numba does."""
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
REORDERED = {"reassoc", "nsz", "contract"}


def _digest_of_sources() -> str:
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def cache_folder() -> Path:
    """Return the folder of compiled kernels: below NUMBA_CACHE_DIR, else the user's cache folder."""
    return _FOLDER


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
        found = numba.njit(cache=is_kept(), **OPTIONS, **more)(function)
        # Numba takes another folder if it cannot write to this one, as on a full disk.
        if not is_kept() or not hasattr(found, "stats") or _FOLDER in Path(found.stats.cache_path).parents:
            return found
    except RuntimeError:  # a function that is in no file, as in the example
        pass
    finally:
        settings.CACHE_DIR = before
    return numba.njit(**OPTIONS, **more)(function)


def lean(function: Callable[..., Any]) -> Any:
    """As :func:`kernel`, for those that create no arrays: without counts of references to them."""
    return kernel(function, _nrt=False)


def caller(function: Callable[..., Any]) -> Any:
    """Return a function in Python that calls a kernel with memory for it; like kernels, it has no types."""
    return function


def helper(function: Callable[..., Any], **more: Any) -> Any:
    """Compile a helper that kernels call: for rare cases that would only slow down the caller if inlined.

    Helpers that work on blocks are called, too: with plain arrays as arguments their loops vectorise.
    Unsigned indices (``np.uintp``) help there. A helper neither creates nor returns arrays: references to
    them are not counted, a third of the code. From Python, call ``kernel(helper.py_func)`` instead.
    """

    def refuse(*arguments: Any, **keywords: Any) -> NoReturn:
        raise TypeError(f"{function.__name__} is a helper, to be called by kernels.")

    if _HELPERS is None:
        return numba.njit(**OPTIONS, **more)(function)
    options: dict[str, Any] = {"pipeline_class": _HELPERS, "no_cpython_wrapper": True, "_nrt": False}
    found: Any = numba.njit(**(options | OPTIONS | more))(function)
    if hasattr(found, "overloads"):  # not with NUMBA_DISABLE_JIT
        found.add_overload = lambda made: found.overloads.update({tuple(made.signature.args): made})
        found._compile_for_args = refuse
    return found


def _helper_compiler() -> Any:
    """Return the compiler of helpers, or None for versions of Numba whose inner parts are not known.

    A helper is then linked into the kernels that call it, and only there made machine code. Numba does that
    for every helper, and optimises it again in each helper that calls it: half of the time.
    """
    if numba.version_info.short != KNOWN:
        return None
    names = ("codegen", "compiler", "compiler_machinery", "typed_passes")
    parts: Any = [import_module(f"numba.core.{name}") for name in names]
    codegen, compiler, compiler_machinery, typed_passes = parts

    class Unfinished(codegen.JITCodeLibrary):  # type: ignore[misc, name-defined]
        """The code of a helper."""

        def _optimize_final_module(self) -> None:
            """Optimise what calls no helper: loops then vectorise with their arguments apart."""
            if not any(isinstance(one, Unfinished) for one in self._linking_libraries):
                super()._optimize_final_module()

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

    @compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
    class LowerHelper(typed_passes.NativeLowering):  # type: ignore[misc, name-defined]
        """Numba's last pass, without machine code at its end."""

        _name = "lower_helper"

        def run_pass(self, state: Any) -> bool:
            state.library = Unfinished(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            if state.targetctx.data_model_manager[state.return_type].contains_nrt_meminfo():
                raise TypeError(f"{state.func_id.func_name} is a helper and returns an array, uncounted.")
            super().run_pass(state)
            lowered, key = state["cr"], object()  # by the key kernels find the code
            state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
            state["cr"] = lowered._replace(cfunc=key)
            return True

    class HelperCompiler(compiler.Compiler):  # type: ignore[misc, name-defined]
        def define_pipelines(self) -> list[Any]:
            """Return Numba's passes, with :class:`LowerHelper` as the last."""
            (found,) = super().define_pipelines()
            found.passes = [
                (LowerHelper if kind is typed_passes.NativeLowering else kind, words)
                for kind, words in found.passes
            ]
            return [found]

    return HelperCompiler


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a helper into every kernel that calls it; a call would cost more than most helpers."""
    return helper(function, forceinline=True)


def fused(function: Callable[..., Any]) -> Any:
    """As :func:`helper`, with fused multiply-add, which rounds once, if the machine has it."""
    return helper(function, fastmath={"contract"})


def summed(function: Callable[..., Any]) -> Any:
    """As :func:`helper`, with sums in an order chosen by the compiler, which allows vector instructions.

    The order is the same in every call. If a loop reads one array and writes another, LLVM compares their
    addresses at run time, and arrays that are close are processed by a scalar loop, which sums in another
    order: a loop that sums and writes at the same time may write only to its own input.
    """
    return helper(function, fastmath=REORDERED)


def is_kept() -> bool:
    """Tell whether what is compiled is kept for other processes."""
    return not why_not_kept()


def why_not_kept() -> str:
    """Return why nothing that is compiled is kept; empty if it is."""
    return _WHY_NOT


_HELPERS = _helper_compiler()
_FOLDER, _WHY_NOT = cache_in(user_cache().parent, "swiftem", _digest_of_sources())
if _WHY_NOT:
    log.warning("swiftem compiles in every process, without a cache, as %s.", _WHY_NOT)


_SAID: set[str] = set()


class _Listener(event.Listener):
    """Stops the clock while something is compiled, and says what takes longer than a second.

    What a kernel calls is compiled within it. Numba tells of nothing that it finds in the cache.
    """

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def on_start(self, event: Any) -> None:
        """Take note that Numba begins to compile."""
        depth = getattr(self._of_thread, "depth", 0)
        self._of_thread.depth = depth + 1
        if depth:
            return
        compile_clock.stop()
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("swiftem."):  # not a function of the user's
            self._of_thread.timer = timer = threading.Timer(AT_LEAST, _say, (function,))
            timer.daemon = True
            timer.start()

    def on_end(self, event: Any) -> None:
        """Take note that it has ended."""
        self._of_thread.depth -= 1
        if self._of_thread.depth:
            return
        compile_clock.go_on()
        timer = self._of_thread.__dict__.pop("timer", None)
        if timer is not None:
            timer.cancel()


def _say(function: Any) -> None:
    """Log one line about what is being compiled."""
    file = function.__module__.rpartition(".")[2]
    of_file = "steps of topics" if file.startswith("plsa") else PARTS.get(file, f"a kernel ({file})")
    what, seconds = ABOUT.get(f"{file}.{function.__name__}", (of_file, None))
    how_long = "a few seconds" if seconds is None else f"about {seconds} s"
    when = "once on this machine" if is_kept() else "in every process"
    said = f"swiftem compiles {what}: {how_long}, {when}."
    if said not in _SAID:  # several kernels may be parts of one
        _SAID.add(said)
        log.warning(said)


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
