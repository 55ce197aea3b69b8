"""Views and products of buffers in kernels, for mixtures.

:func:`matrix` and :func:`vector` do what ``reshape`` does, without its checks, which take long to compile.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import lower_builtin, type_callable

from swiftem.kernels import vector as vectors
from swiftem.kernels.compile import helper, inlined
from swiftem.kernels.vector import (
    LINE,
    across,
    fma,
    intrinsic,
    larger,
    plus,
    prefetch_row,
    spread,
    times,
)

__all__ = [
    "LINE",
    "Line",
    "above",
    "across",
    "fma",
    "intrinsic",
    "larger",
    "load",
    "matrix",
    "multiply",
    "piece",
    "plus",
    "prefetch_row",
    "spread",
    "store",
    "times",
    "vector",
]


def Line(dtype):
    """Return Numba's type of a vector of 64 bytes."""
    return vectors.Line(dtype, 8 * LINE // dtype.bitwidth)


@inlined
def load(table, row, number):
    """Return vector ``number`` of ``table[row]``."""
    return vectors.load(table, row, np.uint64(number) * vectors.step(table))


@inlined
def store(table, row, number, value):
    """Write vector ``number`` of ``table[row]``."""
    vectors.store(table, row, np.uint64(number) * vectors.step(table), value)


def _sizes(context, builder, kinds, values):
    """Return integers of these kinds as sizes."""
    return [context.cast(builder, value, kind, types.intp) for value, kind in zip(values, kinds, strict=True)]


def matrix(values: Any, rows: int, columns: int) -> Any:
    """Return the first rows · columns numbers of a vector as a matrix.

    >>> matrix(np.arange(7.0), 2, 3).tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    return values[: rows * columns].reshape(rows, columns)


def vector(values: Any) -> Any:
    """Return all numbers of an array in C order, as a vector.

    >>> vector(np.ones((2, 2)))
    array([1., 1., 1., 1.])
    """
    return values.reshape(values.size)


def piece(values: Any, row: int, first: int, stop: int) -> Any:
    """Return numbers ``first`` to ``stop`` of a row of a matrix.

    >>> piece(np.array([[1.0, 2.0], [3.0, 4.0]]), 1, 0, 2)
    array([3., 4.])
    """
    return values[row, first:stop]


@helper
def multiply(x, y, out):
    """Write the product of ``x`` (m, k) and ``y`` (k, n), in C order or transposed, into ``out`` (m, n)."""
    np.dot(x, y, out)


def _kind(values, ndim):
    return values.copy(ndim=ndim) if values.layout == "C" else None


type_callable(matrix)(lambda context: lambda values, rows, columns: _kind(values, 2))
type_callable(vector)(lambda context: lambda values: _kind(values, 1))
type_callable(piece)(lambda context: lambda values, row, first, stop: _kind(values, 1))


def _view(context, builder, signature, array, data, shape):
    """Return a view of an array, in C order, that begins at ``data``."""
    from numba.core.imputils import impl_ret_borrowed
    from numba.np.arrayobj import populate_array

    kind = signature.return_type
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [size]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    made = context.make_array(kind)(context, builder)
    populate_array(made, data, shape, strides, size, array.meminfo, array.parent)
    return impl_ret_borrowed(context, builder, kind, made._getvalue())


@lower_builtin(matrix, types.Array, types.Integer, types.Integer)
def _lower_matrix(context, builder, signature, arguments):
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    shape = _sizes(context, builder, signature.args[1:], arguments[1:])
    return _view(context, builder, signature, array, array.data, shape)


@lower_builtin(vector, types.Array)
def _lower_vector(context, builder, signature, arguments):
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return _view(context, builder, signature, array, array.data, [array.nitems])


@lower_builtin(piece, types.Array, types.Integer, types.Integer, types.Integer)
def _lower_piece(context, builder, signature, arguments):
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    row, first, stop = _sizes(context, builder, signature.args[1:], arguments[1:])
    before = builder.mul(row, builder.extract_value(array.shape, 1))
    data = builder.gep(array.data, [builder.add(before, first)])
    return _view(context, builder, signature, array, data, [builder.sub(stop, first)])


@intrinsic
def above(context, x, y):
    """Return x where it is larger than y, else zero, also for NaN."""

    def emit(context, builder, signature, arguments):
        zero = ir.Constant(arguments[0].type, None)
        return builder.select(builder.fcmp_ordered(">", *arguments), arguments[0], zero)

    return x(x, y), emit
