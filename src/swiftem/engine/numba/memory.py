"""Memory of kernels: prefetching, views and products of buffers, and cache lines as vectors.

With randomly drawn samples, waiting for memory takes most of the time: it is prefetched.

:func:`matrix`, :func:`vector` and :func:`multiply` do what ``reshape`` and ``np.dot`` do, without
their checks, which take long to compile.

A :class:`Line` is a vector of 64 bytes, 16 numbers of float32 or 8 of float64: a cache line. Loops over the
lines of padded rows (:func:`padded`) need no comparison of addresses and no scalar remainder, compile faster
than loops that LLVM has to vectorise, and sum in the order in which they are written.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import numba.extending
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import lower_builtin, models, register_model, type_callable
from numpy.typing import DTypeLike

from swiftem.engine.numba.compile import KNOWN, inlined

__all__ = [
    "LINE", "Line", "Shared", "Spare", "above", "across", "fma", "larger", "load", "matrix", "multiply",
    "padded", "piece", "plus", "prefetch", "prefetch_row", "spread", "store", "times", "vector", "width",
]  # fmt: skip

intrinsic: Any = numba.extending.intrinsic  # called without its first argument

LINE = 64
"""Bytes of a cache line."""


def _sizes(context, builder, kinds, values):
    """Return integers of these kinds as sizes."""
    return [context.cast(builder, value, kind, types.intp) for value, kind in zip(values, kinds, strict=True)]


@intrinsic
def prefetch(context, table, row, offset):
    """Prefetch the cache line ``offset`` bytes into ``table[row]``, without waiting."""

    def emit(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        row, offset = _sizes(context, builder, signature.args[1:], arguments[1:])
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
        prefetch(table, row, offset)
    prefetch(table, row, size - 1)


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


def multiply(x: Any, y: Any, out: Any) -> None:
    """Write the product of ``x`` (m, k) and ``y`` (k, n), in C order or transposed, into ``out`` (m, n)."""
    np.dot(x, y, out)


def _kind(values, ndim):
    return values.copy(ndim=ndim) if values.layout == "C" else None


def _of_product(x, y, out):
    is_known = x.layout in "CF" and y.layout in "CF" and out.layout == "C"
    return types.none if is_known and x.dtype == y.dtype == out.dtype else None


type_callable(matrix)(lambda context: lambda values, rows, columns: _kind(values, 2))
type_callable(vector)(lambda context: lambda values: _kind(values, 1))
type_callable(piece)(lambda context: lambda values, row, first, stop: _kind(values, 1))
type_callable(multiply)(lambda context: _of_product)


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


@lower_builtin(multiply, types.Array, types.Array, types.Array)
def _lower_multiply(context, builder, signature, arguments):
    """Call BLAS as ``np.dot`` does: for matrices, for a matrix and a vector, or for two vectors."""
    if numba.version_info.short != KNOWN:  # its inner parts are not known

        def product(x, y, out):
            np.dot(x, y, out)

        return context.compile_internal(builder, product, signature, arguments)
    from numba.np.linalg import call_xxdot, call_xxgemm, call_xxgemv, ensure_blas

    ensure_blas()
    kinds = signature.args
    x, y, out = (
        context.make_array(kind)(context, builder, value)
        for kind, value in zip(kinds, arguments, strict=True)
    )
    left, right, result = (cgutils.unpack_tuple(builder, array.shape) for array in (x, y, out))
    (m, k), n = left, right[1]
    zero, one = (context.get_constant(types.intp, value) for value in (0, 1))
    is_empty = builder.icmp_signed("==", builder.mul(builder.mul(m, k), n), zero)
    with builder.if_else(is_empty, likely=False) as (empty, filled):
        with empty:
            cgutils.memset(builder, out.data, builder.mul(out.itemsize, out.nitems), 0)
        with filled, builder.if_else(builder.icmp_signed("==", n, one)) as (by_vector, by_matrix):
            with by_vector, builder.if_else(builder.icmp_signed("==", m, one)) as (one_number, column):
                with one_number:
                    call_xxdot(context, builder, False, kinds[0].dtype, k, x.data, y.data, out.data)
                with column:
                    by_rows = kinds[0].layout == "C"
                    call_xxgemv(context, builder, by_rows, kinds[0], left, x.data, y.data, out.data)
            with by_matrix, builder.if_else(builder.icmp_signed("==", m, one)) as (row, whole):
                with row:
                    by_columns = kinds[1].layout != "C"
                    call_xxgemv(context, builder, by_columns, kinds[1], right, y.data, x.data, out.data)
                with whole:
                    call_xxgemm(
                        context, builder, kinds[0], left, x.data, kinds[1], right, y.data,
                        kinds[2], result, out.data,
                    )  # fmt: skip
    return context.get_dummy_value()


def width(columns: int, dtype: DTypeLike) -> int:
    """Return the number of columns, rounded up to whole lines.

    >>> width(10, np.float32), width(18, np.float64)
    (16, 24)
    """
    each = LINE // np.dtype(dtype).itemsize
    return -(-columns // each) * each


def padded(rows: int, columns: int, dtype: DTypeLike, make: Any = np.zeros) -> Any:
    """Return zeros of shape (rows, :func:`width` of ``columns``); each row begins with a cache line."""
    size = rows * width(columns, dtype) * np.dtype(dtype).itemsize
    memory = make(size + LINE, np.uint8)
    first = -memory.__array_interface__["data"][0] % LINE
    return memory[first : first + size].view(dtype).reshape(rows, width(columns, dtype))


class Spare:
    """Padded arrays for tables and sums, reused in the next pass: new memory pages cost more than sums."""

    def __init__(self, most: int = 10) -> None:
        self._arrays: list[Any] = []
        self._most = most

    def rows(self, rows: int, columns: int, dtype: type) -> Any:
        """Return an array of (rows, columns), rounded up to cache lines, with any numbers in it."""
        for place, array in enumerate(self._arrays):
            if array.shape == (rows, width(columns, dtype)) and array.dtype == dtype:
                return self._arrays.pop(place)
        return padded(rows, columns, dtype)

    def keep(self, arrays: list[Any]) -> None:
        """Take back arrays that are no longer needed; of those of earlier shapes, few are kept."""
        self._arrays = [*arrays, *self._arrays][: self._most]


class Shared:
    """Tables and sums that the blocks of a pass have in common.

    Attributes
    ----------
    tables : dict of padded arrays
        Words of topics, converted once.
    parts : list of padded arrays
        Sums of pieces: piece i of every block adds to part i.
    """

    def __init__(self, n_words: int, n_topics: int, dtype: type, parts: int) -> None:
        self.tables: dict[str, Any] = {}
        self.parts = [padded(n_words, n_topics, dtype) for _ in range(parts)]
        self._total, self._entries = np.zeros((n_words, n_topics)), 0

    def add(self, entries: int, most: int) -> None:
        """Take note of entries that were added; add the parts to the total after ``most`` of them."""
        self._entries += entries
        if self._entries > most:
            self.total()

    def total(self) -> Any:
        """Return the sums in float64, shape (V, K)."""
        for part in self.parts:
            self._total += part[:, : self._total.shape[1]]
            part[:] = 0.0
        self._entries = 0
        return self._total


class Line(types.Type):
    """Numba's type of a vector of 64 bytes."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Line({dtype})")


@register_model(Line)
class _LineModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        number = ir.FloatType() if kind.dtype.bitwidth == 32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(number, 8 * LINE // kind.dtype.bitwidth))


def _address(context, builder, signature, arguments, line):
    """Return where line ``arguments[2]`` of row ``arguments[1]`` of a padded array is."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    row, number = _sizes(context, builder, signature.args[1:3], arguments[1:3])
    before = builder.mul(row, builder.extract_value(array.strides, 0))
    within = builder.mul(number, ir.Constant(row.type, LINE))
    start = builder.add(builder.ptrtoint(array.data, row.type), builder.add(before, within))
    return builder.inttoptr(start, context.get_value_type(line).as_pointer())


@intrinsic
def load(context, table, row, number):
    """Return line ``number`` of ``table[row]``; the table is :func:`padded`."""
    line = Line(table.dtype)

    def emit(context, builder, signature, arguments):
        found = builder.load(_address(context, builder, signature, arguments, line))
        found.align = table.dtype.bitwidth // 8
        return found

    return line(table, row, number), emit


@intrinsic
def store(context, table, row, number, value):
    """Write line ``number`` of ``table[row]``."""

    def emit(context, builder, signature, arguments):
        address = _address(context, builder, signature, arguments, value)
        builder.store(arguments[3], address).align = table.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(table, row, number, value), emit


@intrinsic
def spread(context, table, value):
    """Return a line of the table's type with ``value`` in all places."""
    line = Line(table.dtype)

    def emit(context, builder, signature, arguments):
        kind = context.get_value_type(line)
        one = context.cast(builder, arguments[1], signature.args[1], table.dtype)
        none, place = ir.Constant(kind, ir.Undefined), ir.IntType(32)
        first = builder.insert_element(none, one, ir.Constant(place, 0))
        return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(place, kind.count), None))

    return line(table, value), emit


@intrinsic
def plus(context, x, y):
    """Return x + y."""
    return x(x, y), lambda context, builder, signature, arguments: builder.fadd(*arguments)


@intrinsic
def times(context, x, y):
    """Return x·y."""
    return x(x, y), lambda context, builder, signature, arguments: builder.fmul(*arguments)


@intrinsic
def fma(context, x, y, z):
    """Return x·y + z, rounded once if the machine has an instruction for it."""

    def emit(context, builder, signature, arguments):
        product = builder.fmul(arguments[0], arguments[1], flags=("contract",))
        return builder.fadd(product, arguments[2], flags=("contract",))

    return x(x, y, z), emit


@intrinsic
def larger(context, x, y):
    """Return the larger number in each place."""

    def emit(context, builder, signature, arguments):
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return x(x, y), emit


@intrinsic
def above(context, x, y):
    """Return x where it is larger than y, else zero."""

    def emit(context, builder, signature, arguments):
        zero = ir.Constant(arguments[0].type, None)
        return builder.select(builder.fcmp_ordered(">", *arguments), arguments[0], zero)

    return x(x, y), emit


@intrinsic
def across(context, x):
    """Return the sum of a line: its halves are added until one number is left."""

    def emit(context, builder, signature, arguments):
        (found,), place = arguments, ir.IntType(32)
        while found.type.count > 1:
            half = found.type.count // 2
            halves = (
                builder.shuffle_vector(
                    found, found, ir.Constant(ir.VectorType(place, half), list(range(start, start + half)))
                )
                for start in (0, half)
            )
            found = builder.fadd(*halves)
        return builder.extract_element(found, ir.Constant(place, 0))

    return x.dtype(x), emit
