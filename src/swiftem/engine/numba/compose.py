"""A user's compiled functions and the loops of :mod:`swiftem.engine.numba.functions`, put together.

No class of the user's may be part of a loop's signature: Numba would import the user's module whenever it
reads the disk cache. Parameters that are a NamedTuple therefore travel as a plain tuple.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np

from swiftem.engine.numba.functions import LOOPS
from swiftem.engine.numba.pointer import Pointer, address, compiled, types

__all__ = ["Loop", "compose"]

log = logging.getLogger("swiftem")

_VECTOR = types.Array(types.float64, 1, "C")
_READ = types.Array(types.float64, 1, "C", readonly=True)
_INDEX = types.Array(types.intp, 2, "C", readonly=True)


class Loop(NamedTuple):
    """A compiled loop of one method for one user's functions.

    Attributes
    ----------
    run : callable
        The loop without its first three arguments. It trusts the types of the others.
    theta : numba type
        Of the parameters that it takes and returns.
    names : type or None
        The NamedTuple class of the user's parameters, where they are one.
    functions : tuple
        Kept alive, as ``run`` knows their addresses only.
    """

    run: Callable[..., tuple[Any, Any, int]]
    theta: Any
    names: Any
    functions: tuple[Any, ...]


@lru_cache(maxsize=64)
def compose(
    name: str, functions: tuple[Any, Any, Any], dtype: np.dtype[Any], ndim: int, memory_dtype: np.dtype[Any]
) -> Loop | None:
    """Compile the loop of method ``name``, or return None where Numba cannot.

    Parameters
    ----------
    name : str
        Of the method.
    functions : tuple of numba functions
        (expected_statistics, m_step, in_domain).
    dtype, ndim
        Of the data.
    memory_dtype
        Of the memory, where the method has one.
    """
    try:
        numbers = numba.from_dtype(dtype), numba.from_dtype(memory_dtype)
        return _compose(name, functions, *numbers, ndim)
    except Exception as error:  # Numba refuses in many ways; none of them may stop what NumPy can do
        log.debug("%s goes iteration by iteration, as its model does not compile: %s", name, error)
        return None


def _compose(name: str, functions: tuple[Any, Any, Any], number: Any, remembered: Any, ndim: int) -> Loop:
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
    common = (rows, batch, types.Array(number, 2, "C"), _READ, _READ, _READ, theta, _INDEX)
    memory = types.Array(remembered, 2, "C")
    own = {
        "sem": (types.float64,),
        "iem": (types.float64, _VECTOR, memory),
        "sem-vr": (types.float64, theta, _READ),
        "fiem": (_INDEX, types.float64, types.float64, _VECTOR, memory),
    }[name]
    loop = LOOPS[name].compile((*map(Pointer, signatures), *common, *own))
    begin = tuple(map(address, chosen, signatures))

    def run(*arguments: Any) -> tuple[Any, Any, int]:
        result: tuple[Any, Any, int] = loop(*begin, *arguments)
        return result

    return Loop(run, theta, names, chosen)


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
    """Tell whether the type is made of arrays and numbers, so that the cache can hold it."""
    if isinstance(theta, types.BaseNamedTuple):
        return False
    if isinstance(theta, types.BaseTuple):
        return all(_is_plain(part) for part in theta.types)
    kind = theta.dtype if isinstance(theta, types.Array) else theta
    return isinstance(kind, types.Integer | types.Float | types.Boolean)


def _check_types(statistics: Any, domain: Any) -> None:
    """Refuse what the loops cannot read, so that the reference says what is wrong with it."""
    pair = isinstance(statistics, types.BaseTuple) and len(statistics) == 2
    if not pair or not all(isinstance(part, types.Array) and _is_plain(part) for part in statistics):
        raise TypeError(f"expected_statistics returns {statistics}")
    if (statistics[0].ndim, statistics[1].ndim) != (2, 1):
        raise TypeError(f"expected_statistics returns {statistics}")
    if not isinstance(domain, types.Boolean | types.Integer):
        raise TypeError(f"in_domain returns {domain}")
