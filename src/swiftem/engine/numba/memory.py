"""Memory of kernels: prefetching, and arrays for internal use.

With randomly drawn samples, waiting for memory takes most of the time: it is prefetched.

Arrays for internal use are apart from all others, so that no result depends on addresses. If a loop reads one
array and writes another, LLVM compares their addresses at run time: arrays closer than a few vectors are
processed by a scalar loop. Under :func:`swiftem.engine.numba.compile.reordered` the two loops sum in
different orders, and a result would depend on the address of an array. A loop that sums and writes at the
same time therefore writes only to such arrays, or to its own input.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from swiftem.engine.numba.compile import inlined

__all__ = ["APART", "part", "prefetch", "prefetch_row", "room"]

LINE = 64
"""Bytes of a cache line."""

APART = 64
"""Numbers before, between and after the arrays: 512 bytes, more than LLVM reads in one loop iteration."""


@intrinsic
def prefetch(context, table, row, offset):
    """Prefetch the cache line ``offset`` bytes into ``table[row]``, without waiting."""

    def emit(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        row, offset = (
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(arguments[1:], signature.args[1:], strict=True)
        )
        stride = builder.extract_value(array.strides, 0)
        start = builder.ptrtoint(array.data, row.type)
        address = builder.add(start, builder.add(builder.mul(row, stride), offset))
        number, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
        call = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        instruction = cgutils.get_or_insert_function(builder.module, call, "llvm.prefetch.p0")
        # To read, into all caches, as data.
        flags = [ir.Constant(number, value) for value in (0, 3, 1)]
        builder.call(instruction, [builder.inttoptr(address, pointer), *flags])
        return context.get_dummy_value()

    return types.void(table, row, offset), emit


@inlined
def prefetch_row(table: Any, row: int) -> None:
    """Prefetch the whole row ``table[row]``."""
    size = table.strides[0]
    for offset in range(0, size, LINE):
        prefetch(table, row, offset)  # type: ignore[call-arg]  # the context is Numba's
    prefetch(table, row, size - 1)  # type: ignore[call-arg]


@inlined
def room(count: Any, size: Any) -> Any:
    """Return memory for ``count`` arrays of ``size`` numbers; :func:`part` returns one of them."""
    return np.empty(count * (size + APART) + APART)


@inlined
def part(memory: Any, number: Any, size: Any) -> Any:
    """Return array ``number`` (from 0), shape (size,)."""
    first = APART + number * (size + APART)
    return memory[first : first + size]
