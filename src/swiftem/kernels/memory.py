"""Views and products of buffers in kernels, for mixtures.

:func:`matrix` and :func:`vector` do what ``reshape`` does, without its checks, which take long to compile.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np
from numba.core import cgutils, types

from swiftem.kernels import vector as vectors
from swiftem.kernels.compile import helper, inlined
from swiftem.kernels.vector import LINE, fma, intrinsic, plus, spread, times

__all__ = [
    "LINE",
    "borrowed",
    "fma",
    "load",
    "matrix",
    "multiply",
    "piece",
    "plus",
    "spread",
    "store",
    "times",
    "vector",
]


@inlined
def load(table, row, number):
    """Return vector ``number`` of ``table[row]``."""
    return vectors.load(table, row, np.uint64(number) * vectors.step(table))


@inlined
def store(table, row, number, value):
    """Write vector ``number`` of ``table[row]``."""
    vectors.store(table, row, np.uint64(number) * vectors.step(table), value)


@helper
def multiply(x, y, out):
    """Write the product of ``x`` (m, k) and ``y`` (k, n), in C order or transposed, into ``out`` (m, n)."""
    np.dot(x, y, out)


def _view(values, ndim, integers, place):
    """Return the signature and the code of a view of an array in C order.

    ``place`` gets the instruction builder, the array and the ``integers``, further arguments; it returns the
    number of the view's first element, and its shape.
    """
    if values.layout != "C":
        return None
    kind = values.copy(ndim=ndim)

    def emit(context, builder, signature, arguments):
        array = context.make_array(values)(context, builder, arguments[0])
        sizes = [
            context.cast(builder, value, given, types.intp)
            for value, given in zip(arguments[1:], signature.args[1:], strict=True)
        ]
        first, shape = place(builder, array, *sizes)
        size = context.get_constant(types.intp, kind.dtype.bitwidth // 8)
        strides = [size, builder.mul(size, shape[-1])][ndim - 1 :: -1]
        view = context.make_array(kind)(context, builder)
        view.data = array.data if first is None else builder.gep(array.data, [first])
        view.shape, view.strides = (cgutils.pack_array(builder, numbers) for numbers in (shape, strides))
        view.nitems = shape[0] if ndim == 1 else builder.mul(*shape)
        view.itemsize, view.meminfo, view.parent = size, array.meminfo, array.parent
        context.nrt.incref(builder, kind, view._getvalue())
        return view._getvalue()

    return kind(values, *integers), emit


def _without_owner(context, builder, kind, value):
    """Return a value of type ``kind`` in which arrays refer to no owner of their memory."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for place, part in enumerate(tuple(kind)):  # type: ignore[var-annotated, arg-type]
            entry = _without_owner(context, builder, part, builder.extract_value(value, place))
            value = builder.insert_value(value, entry, place)
    return value


@intrinsic
def borrowed(context, values):
    """Return an array or a tuple of arrays, also nested, whose references are not counted.

    Numba counts references to every array of a tuple at every call of a helper, which costs microseconds per
    iteration. Only for arguments of a kernel, which its caller keeps alive, and not for results.
    """

    def emit(context, builder, signature, arguments):
        return _without_owner(context, builder, values, arguments[0])

    return values(values), emit


@intrinsic
def matrix(context, values, rows, columns):
    """Return the first rows · columns numbers of a vector as a matrix."""
    return _view(values, 2, (rows, columns), lambda builder, array, *shape: (None, shape))


@intrinsic
def vector(context, values):
    """Return all numbers of an array in C order, as a vector."""
    return _view(values, 1, (), lambda builder, array: (None, [array.nitems]))


@intrinsic
def piece(context, values, row, first, stop):
    """Return numbers ``first`` to ``stop`` of a row of a matrix."""

    def place(builder, array, row, first, stop):
        before = builder.mul(row, builder.extract_value(array.shape, 1))
        return builder.add(before, first), [builder.sub(stop, first)]

    return _view(values, 1, (row, first, stop), place)
