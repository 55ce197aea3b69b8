"""Combines a user's compiled functions with the loop of :mod:`swiftem.engine.numba.functions`.

No user-defined class may be part of a loop's signature: Numba would import the user's module whenever it
reads the disk cache. Parameters that are a NamedTuple are therefore passed as a plain tuple.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np

from swiftem.engine.numba.functions import iterate
from swiftem.engine.numba.pointer import Pointer, address, compiled, types

__all__ = ["Loop", "compose"]

log = logging.getLogger("swiftem")

_VECTOR = types.Array(types.float64, 1, "C")
_READ = types.Array(types.float64, 1, "C", readonly=True)
_INDEX = types.Array(types.intp, 2, "C", readonly=True)


class Loop(NamedTuple):
    """The compiled loop for a user's functions.

    Attributes
    ----------
    run : callable
        The loop without its first three arguments. It trusts the types of the others.
    theta : numba type
        Type of the parameters that it takes and returns.
    names : type or None
        The NamedTuple class of the user's parameters, if they are one.
    m_step : callable
        The user's function, with parameters of type ``theta``.
    functions : tuple
        References to the functions, as ``run`` has only their addresses.
    """

    run: Callable[..., tuple[Any, ...]]
    theta: Any
    names: Any
    m_step: Any
    functions: tuple[Any, ...]


@lru_cache(maxsize=64)
def compose(
    functions: tuple[Any, Any, Any], dtype: np.dtype[Any], ndim: int, memory_dtype: np.dtype[Any]
) -> Loop | None:
    """Compile the loop, or return None if Numba cannot.

    Parameters
    ----------
    functions : tuple of numba functions
        (expected_statistics, m_step, in_domain).
    dtype, ndim
        Of the data.
    memory_dtype
        Of the memory.
    """
    try:
        numbers = numba.from_dtype(dtype), numba.from_dtype(memory_dtype)
        return _compose(functions, *numbers, ndim)
    except Exception as error:  # Numba fails in many ways; none of them may stop what NumPy can do
        log.debug("runs go iteration by iteration, as the model does not compile: %s", error)
        return None


def _compose(functions: tuple[Any, Any, Any], number: Any, remembered: Any, ndim: int) -> Loop:
    expected_statistics, m_step, in_domain = functions
    batch = types.Array(number, ndim, "C")
    theta = compiled(m_step, _VECTOR).return_type
    names = None
    if isinstance(theta, types.BaseNamedTuple):
        names = theta.instance_class
        expected_statistics, m_step = _without_names(expected_statistics, m_step, names)
        theta = compiled(m_step, _VECTOR).return_type
    if not _is_plain(theta):
        raise TypeError(f"parameters of type {theta}")
    chosen = (expected_statistics, m_step, in_domain)
    signatures = (
        compiled(expected_statistics, batch, theta),
        compiled(m_step, _VECTOR),
        compiled(in_domain, _VECTOR),
    )
    _check_types(signatures[0].return_type, signatures[2].return_type)
    rows = types.Array(number, 2, "A", readonly=True)
    samples = (rows, batch, types.Array(number, 2, "C"), _READ)
    numbers, flags = (types.float64,) * 2, (types.boolean,) * 2
    update = (*flags, types.float64, _VECTOR, *flags, types.boolean)
    state = (_READ, theta, theta, _VECTOR, types.Array(remembered, 2, "C"))
    loop = iterate.compile((
        *map(Pointer, signatures), *samples, *numbers, *update, _READ, _INDEX, _INDEX, *state
    ))  # fmt: skip
    begin = tuple(map(address, chosen, signatures))

    def run(*arguments: Any) -> tuple[Any, ...]:
        result: tuple[Any, ...] = loop(*begin, *arguments)
        return result

    return Loop(run, theta, names, m_step, chosen)


@lru_cache(maxsize=64)
def _without_names(expected_statistics: Any, m_step: Any, kind: Any) -> tuple[Any, Any]:
    """Return the functions with the parameters as a plain tuple instead of a NamedTuple."""

    @numba.njit(nogil=True)
    def plain_expected_statistics(y, theta):  # type: ignore[no-untyped-def]
        return expected_statistics(y, kind(*theta))

    @numba.njit(nogil=True)
    def plain_m_step(s):  # type: ignore[no-untyped-def]
        return m_step(s)[:]

    return plain_expected_statistics, plain_m_step


def _is_plain(theta: Any) -> bool:
    """Tell whether the type consists of arrays and numbers, so that it can be cached."""
    if isinstance(theta, types.BaseNamedTuple):
        return False
    if isinstance(theta, types.BaseTuple):
        return all(_is_plain(part) for part in theta.types)
    kind = theta.dtype if isinstance(theta, types.Array) else theta
    return isinstance(kind, types.Integer | types.Float | types.Boolean)


def _check_types(statistics: Any, domain: Any) -> None:
    """Raise TypeError for types that the loops cannot read; the reference then reports the error."""
    pair = isinstance(statistics, types.BaseTuple) and len(statistics) == 2
    if not pair or not all(isinstance(part, types.Array) and _is_plain(part) for part in statistics):
        raise TypeError(f"expected_statistics returns {statistics}")
    if (statistics[0].ndim, statistics[1].ndim) != (2, 1):
        raise TypeError(f"expected_statistics returns {statistics}")
    if not isinstance(domain, types.Boolean | types.Integer):
        raise TypeError(f"in_domain returns {domain}")
