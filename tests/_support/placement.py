"""Calls of compiled kernels, taken from real fits and repeated with their arrays at other places in memory.

Where a kernel's result depends on addresses, it is because LLVM compares the distances of arrays at run time.
:func:`recorded_calls` keeps copies of the arguments of every kernel that a function calls; :func:`results`
repeats a call with all its arrays in one piece of memory, at given distances and in a given order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

KERNELS = ("swiftem.kernels.", "swiftem.mixture.compute.", "swiftem.topics.compute.", "swiftem.functions.")
"""Packages of compiled code."""
LARGEST = 1 << 22
"""Bytes of a call's arrays; larger calls are not kept, as small ones take the same code."""
MOST_CALLS = 3
"""Calls that are kept of a kernel with the same types of arguments."""


class Call(NamedTuple):
    """A kernel and what it was given."""

    name: str
    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]


class _Recorder:
    """Stands in for a kernel, and keeps what it is called with."""

    def __init__(self, name: str, kernel: Any, calls: dict[Any, list[Call]]) -> None:
        self._name, self._kernel, self._calls = name, kernel, calls

    def __call__(self, *arguments: Any) -> Any:
        kept = self._calls.setdefault((self._name, _types(arguments)), [])
        size = sum(root.nbytes for root in _roots(arguments).values())
        if len(kept) < MOST_CALLS and size <= LARGEST:
            kept.append(Call(self._name, self._kernel, _placed(arguments, [0], 0)[0]))
        return self._kernel(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


def recorded_calls(function: Callable[[], Any], patch: pytest.MonkeyPatch) -> list[Call]:
    """Run a function twice, and return calls of every kernel that it made from Python the second time.

    The first time everything is imported and compiled: Numba must not find the recorders.
    """
    from numba.core.dispatcher import Dispatcher

    function()
    calls: dict[Any, list[Call]] = {}
    modules = [module for name, module in sorted(sys.modules.items()) if name.startswith("swiftem.")]
    for module in modules:
        for name, value in sorted(vars(module).items()):
            if isinstance(value, Dispatcher) and value.__module__.startswith(KERNELS):
                patch.setattr(module, name, _Recorder(name_of(value), value, calls))
    function()
    patch.undo()
    return [call for kept in calls.values() for call in kept]


def name_of(kernel: Any) -> str:
    """Return the module below the package and the name of a kernel."""
    return f"{kernel.__module__.removeprefix('swiftem.')}.{kernel.__name__}"


def results(call: Call, gaps: list[int], first: int) -> bytes:
    """Return what a call returns and leaves in its arrays, with these ``gaps`` (bytes) between the arrays.

    Arrays lie in the order of ``gaps``' length: a list of several gaps is used in turns; an odd ``first``
    reverses the order. ``first`` times 8 bytes lie before all arrays.
    """
    arguments, roots = _placed(call.arguments, gaps, first)
    returned = call.kernel(*arguments)
    parts = [_bytes(returned)]
    parts += [root.tobytes() for root in roots]
    return b"".join(parts)


def _leaves(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)


def _types(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.ndim, value.flags.c_contiguous, value.flags.writeable)
    if isinstance(value, tuple):
        return tuple(_types(part) for part in value)
    return type(value).__name__


def _root(array: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory: several arguments may be views of one."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _roots(arguments: Any) -> dict[int, np.ndarray]:
    return {id(_root(array)): _root(array) for array in _leaves(arguments)}


def _placed(
    arguments: tuple[Any, ...], gaps: list[int], first: int
) -> tuple[tuple[Any, ...], list[np.ndarray]]:
    """Return copies of the arguments in one piece of memory, and the arrays that own the memory."""
    roots = list(_roots(arguments).values())
    order = range(len(roots))[::-1] if first % 2 else range(len(roots))
    places, position = {}, 8 * first
    for turn, number in enumerate(order):
        places[id(roots[number])] = position
        size = -(-_extent(roots[number]) // 8) * 8
        position += size + gaps[turn % len(gaps)]
    arena = np.zeros(position + 64, dtype=np.uint8)
    shift = -arena.ctypes.data % 64
    for root in roots:
        _view(arena, shift + places[id(root)], root)[...] = root

    def moved(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            root = _root(value)
            offset = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
            view = _view(arena, shift + places[id(root)] + offset, value)
            view.flags.writeable = value.flags.writeable
            return view
        if isinstance(value, tuple):
            parts = [moved(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value

    return tuple(moved(argument) for argument in arguments), [
        _view(arena, shift + places[id(root)], root) for root in roots
    ]


def _extent(array: np.ndarray) -> int:
    """Return the bytes from an array's first to its last number."""
    if not array.size:
        return 0
    steps = zip(array.shape, array.strides, strict=True)
    return array.itemsize + sum((length - 1) * abs(stride) for length, stride in steps)


def _view(arena: np.ndarray, offset: int, like: np.ndarray) -> np.ndarray:
    return np.ndarray(like.shape, like.dtype, arena.data, offset, like.strides)


def _bytes(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, tuple):
        return b"".join(map(_bytes, value))
    return np.asarray(value).tobytes()
