"""Arrays for a kernel's internal use, apart from all others, so that no result depends on addresses.

If a loop reads one array and writes another, LLVM compares their addresses at run time: arrays closer than a
few vectors are processed by a scalar loop. Under :func:`swiftem.engine.numba.compile.reordered` the two loops
sum in different orders, and a result would depend on the address of an array. A loop that sums and writes
at the same time therefore writes only to such arrays, or to its own input.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.engine.numba.compile import inlined

__all__ = ["APART", "part", "room"]

APART = 64
"""Numbers before, between and after the arrays: 512 bytes, more than LLVM reads in one loop iteration."""


@inlined
def room(count: Any, size: Any) -> Any:
    """Return memory for ``count`` arrays of ``size`` numbers; :func:`part` returns one of them."""
    return np.empty(count * (size + APART) + APART)


@inlined
def part(memory: Any, number: Any, size: Any) -> Any:
    """Return array ``number`` (from 0), shape (size,)."""
    first = APART + number * (size + APART)
    return memory[first : first + size]
