"""Arrays for a kernel's own use that lie apart from all others, so that no result depends on addresses.

Where a loop reads one array and writes another, LLVM compares their addresses at run time: arrays closer than
a few vectors go through a loop of single numbers. Under :func:`swiftem.engine.numba.compile.reordered` the
two loops add up in different orders, and a result would depend on where the system has put an array. A loop
that adds up and writes at once therefore writes only to such arrays, or to what it reads itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.engine.numba.compile import inlined

__all__ = ["APART", "part", "room"]

APART = 64
"""Numbers before, between and after the arrays: 512 bytes, more than LLVM reads in one turn of a loop."""


@inlined
def room(count: Any, size: Any) -> Any:
    """Return memory for ``count`` arrays of ``size`` numbers; :func:`part` gives one of them."""
    return np.empty(count * (size + APART) + APART)


@inlined
def part(memory: Any, number: Any, size: Any) -> Any:
    """Return array ``number`` (from 0), shape (size,)."""
    first = APART + number * (size + APART)
    return memory[first : first + size]
