"""Prefetching: with randomly drawn samples, waiting for memory takes most of the time."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from swiftem.engine.numba.compile import inlined

__all__ = ["prefetch", "prefetch_row"]

LINE = 64
"""Bytes of a cache line."""


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
