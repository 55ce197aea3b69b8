"""The softmax of the rows of a block, and what methods do with it, tile by tile.

A tile is a few rows, which stay in the first-level cache from their logits to what is multiplied with the
samples. A row is read as lines of eight numbers and a remainder: LLVM would not vectorise the maximum of a
row, and does rows that are shorter than its vector loops one number at a time. Loads and stores of a part of
a line take longer than a remainder by single numbers (measured, with AVX-512).
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types

from swiftem.engine.numba.compile import helper
from swiftem.engine.numba.gaussian_batches import ANCHOR, MEMORY
from swiftem.engine.numba.memory import (
    LINE,
    Line,
    above,
    across,
    intrinsic,
    larger,
    plus,
    prefetch_row,
    spread,
    times,
    vector,
)
from swiftem.engine.numba.softmax import LOWEST, NEGLIGIBLE, exponentiate, fill

__all__ = ["change"]

EIGHT = LINE // 8
"""Numbers of float64 in a line."""

TILE = 512
"""Numbers in a tile, 4 kB: with its rows of the memory or of an anchor, a fourth of a first-level cache."""


def _place(context, builder, signature, arguments):
    """Return the pointer to line ``arguments[2]``, of eight numbers, of row ``arguments[1]`` of an array."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    row, line = (
        context.cast(builder, value, kind, types.intp)
        for value, kind in zip(arguments[1:3], signature.args[1:3], strict=True)
    )
    dtype = signature.args[0].dtype
    before = builder.mul(row, builder.extract_value(array.strides, 0))
    within = builder.mul(line, ir.Constant(row.type, EIGHT * dtype.bitwidth // 8))
    start = builder.add(builder.ptrtoint(array.data, row.type), builder.add(before, within))
    return builder.inttoptr(start, ir.VectorType(context.get_value_type(dtype), EIGHT).as_pointer())


@intrinsic
def read(context, table, row, line):
    """Return line ``line`` of ``table[row]``, eight numbers of either precision, in float64."""
    found = Line(types.float64)

    def emit(context, builder, signature, arguments):
        value = builder.load(_place(context, builder, signature, arguments))
        value.align = table.dtype.bitwidth // 8
        return value if table.dtype.bitwidth == 64 else builder.fpext(value, context.get_value_type(found))

    return found(table, row, line), emit


@intrinsic
def write(context, table, row, line, value):
    """Write eight numbers as line ``line`` of ``table[row]``; return them as they are rounded there."""

    def emit(context, builder, signature, arguments):
        place, given = _place(context, builder, signature, arguments), arguments[3]
        is_single = table.dtype.bitwidth == 32
        rounded = builder.fptrunc(given, place.type.pointee) if is_single else given
        builder.store(rounded, place).align = table.dtype.bitwidth // 8
        return builder.fpext(rounded, given.type) if is_single else given

    return value(table, row, line, value), emit


@intrinsic
def highest(context, x):
    """Return the largest number of a line, none of which is NaN."""

    def emit(context, builder, signature, arguments):
        (line,) = arguments
        shape = ir.FunctionType(line.type.element, [line.type])
        name = f"llvm.vector.reduce.fmax.v{line.type.count}f64"
        function = cgutils.get_or_insert_function(builder.module, shape, name)
        return builder.call(function, [line], fastmath=("nnan",))

    return x.dtype(x), emit


@helper
def _shift(rows: Any, constant: Any) -> None:
    """Add ``constant`` (M,) to the rows of a tile, ``rows`` (b, M), and subtract the largest of each."""
    n_components, lines = rows.shape[1], rows.shape[1] // EIGHT
    lowest, least = spread(rows, LOWEST), spread(rows, -math.inf)
    for t in range(len(rows)):
        tops = least
        for line in range(lines):
            tops = larger(plus(read(rows, t, line), read(constant, 0, line)), tops)  # NaN is not larger
        top = highest(tops)
        for m in range(EIGHT * lines, n_components):
            top = max(top, rows[t, m] + constant[m])
        down = spread(rows, -top)
        for line in range(lines):
            value = plus(plus(read(rows, t, line), read(constant, 0, line)), down)
            write(rows, t, line, larger(lowest, value))
        for m in range(EIGHT * lines, n_components):
            rows[t, m] = max(rows[t, m] + constant[m] - top, LOWEST)


@helper
def _weigh_change(
    rows: Any, olds: Any, index: Any, memory: Any, reference: Any, renew: Any, correction: Any,
    sample_weight: Any, factor: Any, sums: Any,
) -> None:  # fmt: skip
    """Do the second half of :func:`change` for a tile: ``rows`` (b, M) are exponentials."""
    n_components, lines = rows.shape[1], rows.shape[1] // EIGHT
    minus, minus_one = spread(rows, -correction), spread(rows, -1.0)
    negligible, zero = spread(rows, NEGLIGIBLE), spread(rows, 0.0)
    for t in range(len(rows)):
        i = np.uintp(index[t])
        totals = zero
        for line in range(lines):
            totals = plus(totals, read(rows, t, line))
        total = across(totals)
        for m in range(EIGHT * lines, n_components):
            total += rows[t, m]
        inverse = 1.0 / total
        weight = factor * sample_weight[i] if len(sample_weight) else factor
        inverses, weights = spread(rows, inverse), spread(rows, weight)
        for line in range(lines):
            row = above(times(read(rows, t, line), inverses), negligible)
            if renew:
                kept = times(minus_one, read(memory, i, line))
                row = plus(write(memory, i, line, row), kept)
            elif reference == MEMORY:
                row = plus(row, times(minus, read(memory, i, line)))
            elif reference == ANCHOR:
                row = plus(row, times(minus, read(olds, t, line)))
            row = times(row, weights)
            write(rows, t, line, row)
            write(sums, 0, line, plus(read(sums, 0, line), row))
        for m in range(EIGHT * lines, n_components):
            value = rows[t, m] * inverse
            value = value if value > NEGLIGIBLE else 0.0
            if renew:
                old = np.float64(memory[i, m])
                memory[i, m] = value
                value = np.float64(memory[i, m]) - old
            elif reference == MEMORY:
                value -= correction * memory[i, m]
            elif reference == ANCHOR:
                value -= correction * olds[t, m]
            value *= weight
            rows[t, m] = value
            sums[m] += value


@helper
def change(
    rows: Any, constant: Any, olds: Any, index: Any, memory: Any, reference: Any, renew: Any, correction: Any,
    sample_weight: Any, factor: Any, sums: Any,
) -> None:  # fmt: skip
    """Replace ``rows`` (b, M), logits without ``constant`` (M,), by the weighted change of their softmax.

    ``correction`` times the reference is subtracted from the softmax: ``olds`` (b, M), or rows ``index``
    (b,) of the memory (n, M). If ``renew``, the softmax is written into the memory instead, and replaced by
    the change of the stored values: a repeated sample changes nothing from the second time on, without a
    search. The rest is multiplied by ``factor`` and the weights of samples ``index``, unless
    ``sample_weight`` is (0,), and its sum over the samples is written into ``sums`` (M,).
    """
    fill(sums, 0.0)
    size = max(TILE // rows.shape[1], 1)
    for first in range(0, len(rows), size):
        tile, here = rows[first : first + size], index[first : first + size]
        if renew or reference == MEMORY:
            for t in range(len(here)):
                prefetch_row(memory, here[t])
        _shift(tile, constant)
        exponentiate(vector(tile))
        _weigh_change(
            tile, olds[first : first + size], here, memory, reference, renew, correction, sample_weight,
            factor, sums,
        )  # fmt: skip
