"""What compiled code needs beyond Numba: vectors of 64 bytes, prefetching, views of buffers, borrowed arrays.

A vector is one cache line, 16 numbers of float32 or 8 of float64.

Loops over whole vectors of padded rows (:func:`padded`) need no comparison of addresses and no scalar
remainder, compile faster than loops that LLVM has to vectorise, and sum in the order in which they are
written. They are ``while`` loops over unsigned columns: LLVM does not unroll these.

With randomly drawn samples, waiting for memory takes most of the time: :func:`prefetch` avoids it.

:func:`matrix` and :func:`vector` do what ``reshape`` does, without its checks, which take long to compile.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from math import log as logarithm
from typing import Any

import numba.extending
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import models, register_model
from numpy.typing import DTypeLike

from swiftem.kernels.compile import inlined

intrinsic: Any = numba.extending.intrinsic  # called without its first argument

LINE = 64
"""Bytes of a cache line."""
START = np.uint64(0)
"""The first column."""
SMALLEST = 1e-150
""":func:`log` returns the logarithm of this for smaller probabilities."""
SERIES = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
"""log(1 + t) ≈ t − t²/2 + t³·(series in t), for t between √½ − 1 and √2 − 1 (Cephes, logf)."""
LOG_TWO = 0.693359375, -2.12194440e-4
"""log 2 in two parts: products of the first with small integers are exact."""
ROOT_OF_HALF = 0x3F3504F3
"""√½ in float32, as an integer."""

SHORT, LONG = ir.IntType(32), ir.IntType(64)


def width(columns: int, dtype: DTypeLike) -> int:
    """Return the number of columns, rounded up to whole vectors.

    >>> width(10, np.float32), width(18, np.float64)
    (16, 24)
    """
    each = LINE // np.dtype(dtype).itemsize
    return -(-columns // each) * each


def padded(rows: int, columns: int, dtype: DTypeLike) -> Any:
    """Return zeros of shape (rows, :func:`width` of ``columns``); each row begins with a cache line."""
    size = rows * width(columns, dtype) * np.dtype(dtype).itemsize
    memory = np.zeros(size + LINE, np.uint8)
    first = -memory.__array_interface__["data"][0] % LINE
    return memory[first : first + size].view(dtype).reshape(rows, width(columns, dtype))


class Line(types.Type):
    """Numba's type of a vector."""

    def __init__(self, dtype: Any, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Line({dtype}, {count})")


@register_model(Line)
class _LineModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        number = ir.FloatType() if kind.dtype.bitwidth == 32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(number, kind.count))


def _line(table):
    return Line(table.dtype, 8 * LINE // table.dtype.bitwidth)


@intrinsic
def step(context, table):
    """Return the number of columns in a vector, unsigned and known at compile time."""
    count = _line(table).count
    return types.uint64(table), lambda context, *given: context.get_constant(types.uint64, count)


def _integer(context, builder, signature, arguments, place):
    return context.cast(builder, arguments[place], signature.args[place], types.intp)


def _pointer(context, builder, signature, arguments):
    """Return a pointer to ``array[row, k]``; the first three arguments are array, row and k."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    row, k = (_integer(context, builder, signature, arguments, place) for place in (1, 2))
    size = signature.args[0].dtype.bitwidth // 8
    before = builder.mul(row, builder.extract_value(array.strides, 0))
    offset = builder.add(before, builder.mul(k, ir.Constant(LONG, size)))
    address = builder.add(builder.ptrtoint(array.data, LONG), offset)
    return builder.inttoptr(address, array.data.type)


def _vector_pointer(context, builder, signature, arguments, kind):
    pointer = _pointer(context, builder, signature, arguments)
    return builder.bitcast(pointer, context.get_value_type(kind).as_pointer())


class Borrowed(types.Array):
    """Numba's type of an array whose references are not counted, nor those to its views."""

    def copy(self, dtype=None, ndim=None, layout=None, readonly=None):
        """Return the type of a view."""
        return _borrowed_type(super().copy(dtype, ndim, layout, readonly))

    def unify(self, context, other):
        """Return the type that has the values of both, or None."""
        kind = super().unify(context, other)
        return None if kind is None else _borrowed_type(kind)


@register_model(Borrowed)
class _BorrowedModel(models.ArrayModel):
    def traverse(self, builder):
        return []  # nothing whose references are counted

    def inner_models(self):
        return []


def _borrowed_type(kind):
    if isinstance(kind, types.Array):
        return Borrowed(kind.dtype, kind.ndim, kind.layout, not kind.mutable, aligned=kind.aligned)
    if isinstance(kind, types.BaseTuple):
        parts = map(_borrowed_type, kind)  # type: ignore[call-overload]
        return types.BaseTuple.from_types(tuple(parts), getattr(kind, "instance_class", None))
    return kind


@intrinsic
def borrowed(context, values):
    """Return an array or a tuple of arrays, also nested, whose references are not counted.

    Numba counts references to every array of a tuple at every call of a helper, which costs microseconds per
    iteration. Only for arguments of a kernel, which its caller keeps alive, and not for results.
    """
    return _borrowed_type(values)(values), lambda context, builder, signature, arguments: arguments[0]


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


@intrinsic
def prefetch(context, table, row, k):
    """Prefetch the cache line of ``table[row, k]``, without waiting."""

    def emit(context, builder, signature, arguments):
        pointer = ir.IntType(8).as_pointer()
        place = builder.bitcast(_pointer(context, builder, signature, arguments), pointer)
        call = ir.FunctionType(ir.VoidType(), [pointer, SHORT, SHORT, SHORT])
        instruction = cgutils.get_or_insert_function(builder.module, call, "llvm.prefetch.p0")
        # To read, into all caches, as data.
        builder.call(instruction, [place, *(ir.Constant(SHORT, value) for value in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(table, row, k), emit


@inlined
def prefetch_row(table: Any, row: int) -> None:
    """Prefetch the whole row ``table[row]``."""
    each = np.int64(step(table))
    count = table.strides[0] // (LINE // each)
    for k in range(0, count, each):
        prefetch(table, row, k)
    prefetch(table, row, count - 1)


@inlined
def weighted(weight, i, factor):
    """Return ``factor`` times the weight of sample i; ``weight`` is (n,), or (0,) for ones."""
    return factor * weight[i] if weight.shape[0] > 0 else factor


@intrinsic
def load(context, table, row, k):
    """Return the vector of ``table[row]`` from column k on; the table is :func:`padded`."""
    line = _line(table)

    def emit(context, builder, signature, arguments):
        found = builder.load(_vector_pointer(context, builder, signature, arguments, line))
        found.align = table.dtype.bitwidth // 8
        return found

    return line(table, row, k), emit


@intrinsic
def store(context, table, row, k, value):
    """Write a vector to ``table[row]`` from column k on."""

    def emit(context, builder, signature, arguments):
        pointer = _vector_pointer(context, builder, signature, arguments, value)
        builder.store(arguments[3], pointer).align = table.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(table, row, k, value), emit


def _masked(context, builder, signature, arguments, kind):
    """Return pointer, alignment and mask for the columns from k to ``stop`` − 1 of an array of float64."""
    pointer = _vector_pointer(context, builder, signature, arguments, kind)
    k, stop = (_integer(context, builder, signature, arguments, place) for place in (2, 3))
    left = builder.sub(stop, k)
    longs = ir.VectorType(LONG, kind.count)
    places = ir.Constant(longs, list(range(kind.count)))
    return pointer, ir.Constant(SHORT, 8), builder.icmp_signed("<", places, _spread(builder, left, longs))


@intrinsic
def load_wide(context, values, row, k, stop, table):
    """Return ``values[row]``, float64, from column k on, as many numbers as the table's vectors have.

    They are zero from column ``stop`` on, which is not read: ``values`` need not be padded.
    """
    kind = Line(types.float64, _line(table).count)

    def emit(context, builder, signature, arguments):
        pointer, align, mask = _masked(context, builder, signature, arguments, kind)
        vector = pointer.type.pointee
        call = ir.FunctionType(vector, [pointer.type, SHORT, mask.type, vector])
        name = f"llvm.masked.load.v{kind.count}f64.p0"
        instruction = cgutils.get_or_insert_function(builder.module, call, name)
        return builder.call(instruction, [pointer, align, mask, ir.Constant(vector, None)])

    return kind(values, row, k, stop, table), emit


@intrinsic
def store_wide(context, values, row, k, stop, value):
    """Write numbers to ``values[row]``, float64, from column k to ``stop`` − 1."""

    def emit(context, builder, signature, arguments):
        pointer, align, mask = _masked(context, builder, signature, arguments, value)
        call = ir.FunctionType(ir.VoidType(), [pointer.type.pointee, pointer.type, SHORT, mask.type])
        name = f"llvm.masked.store.v{value.count}f64.p0"
        instruction = cgutils.get_or_insert_function(builder.module, call, name)
        builder.call(instruction, [arguments[4], pointer, align, mask])
        return context.get_dummy_value()

    return types.void(values, row, k, stop, value), emit


def _spread(builder, value, kind):
    none = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(none, value, ir.Constant(SHORT, 0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(SHORT, kind.count), None))


@intrinsic
def spread(context, like, value):
    """Return a vector with ``value`` in all places: of a table's type, or of another vector's."""
    line = like if isinstance(like, Line) else _line(like)

    def emit(context, builder, signature, arguments):
        number = context.cast(builder, arguments[1], signature.args[1], line.dtype)
        return _spread(builder, number, context.get_value_type(line))

    return line(like, value), emit


@intrinsic
def wide(context, x):
    """Return a vector in float64."""

    def emit(context, builder, signature, arguments):
        kind = ir.VectorType(ir.DoubleType(), x.count)
        return arguments[0] if x.dtype.bitwidth == 64 else builder.fpext(arguments[0], kind)

    return Line(types.float64, x.count)(x), emit


@intrinsic
def narrow(context, x, table):
    """Return a vector of float64 in the table's precision."""
    line = _line(table)

    def emit(context, builder, signature, arguments):
        kind = context.get_value_type(line)
        return arguments[0] if line.dtype.bitwidth == 64 else builder.fptrunc(arguments[0], kind)

    return line(x, table), emit


def _fma(builder, x, y, z):
    return builder.fadd(builder.fmul(x, y, flags=("contract",)), z, flags=("contract",))


@intrinsic
def fma(context, x, y, z):
    """Return x·y + z, rounded once if the machine has an instruction for it."""
    return x(x, y, z), lambda context, builder, signature, arguments: _fma(builder, *arguments)


def _above(builder, x, y):
    return builder.select(builder.fcmp_unordered(">", x, y), x, ir.Constant(x.type, None))


def _elementwise(instructions):
    """Return an intrinsic of two vectors of one type that is done in each place."""

    def operation(context, x, y):
        return x(x, y), lambda context, builder, signature, arguments: instructions(builder, *arguments)

    return intrinsic(operation)


def _select(relation):
    return lambda builder, x, y: builder.select(builder.fcmp_ordered(relation, x, y), x, y)


plus = _elementwise(ir.IRBuilder.fadd)
"""Return x + y."""
times = _elementwise(ir.IRBuilder.fmul)
"""Return x·y."""
over = _elementwise(ir.IRBuilder.fdiv)
"""Return x / y."""
larger = _elementwise(_select(">"))
"""Return the larger number in each place."""
smaller = _elementwise(_select("<"))
"""Return the smaller number in each place."""
above = _elementwise(_above)
"""Return x where it is larger than y, else zero; NaN stays."""


def _chosen(builder, x, y, places):
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(SHORT, len(places)), places))


def _halved(builder, vector, count):
    """Return a vector whose halves were added until ``count`` numbers are left."""
    while vector.type.count > count:
        half = vector.type.count // 2
        parts = (list(range(half)), list(range(half, 2 * half)))
        vector = builder.fadd(*(_chosen(builder, vector, vector, part) for part in parts))
    return vector


@intrinsic
def across(context, x):
    """Return the sum of a vector: its halves are added until one number is left."""

    def emit(context, builder, signature, arguments):
        return builder.extract_element(_halved(builder, arguments[0], 1), ir.Constant(SHORT, 0))

    return x.dtype(x), emit


@intrinsic
def store_sums(context, table, row, k, w, x, y, z):
    """Write the sums of four vectors, each as :func:`across` adds it, to ``table[row]`` from column k on."""

    def emit(context, builder, signature, arguments):
        w, x, y, z = (_halved(builder, vector, 4) for vector in arguments[3:])
        low, high = [0, 1, 4, 5], [2, 3, 6, 7]
        one = builder.fadd(_chosen(builder, w, x, low), _chosen(builder, w, x, high))
        two = builder.fadd(_chosen(builder, y, z, low), _chosen(builder, y, z, high))
        even, odd = [0, 2, 4, 6], [1, 3, 5, 7]
        sums = builder.fadd(_chosen(builder, one, two, even), _chosen(builder, one, two, odd))
        pointer = _pointer(context, builder, signature, arguments)
        place = builder.bitcast(pointer, sums.type.as_pointer())
        builder.store(sums, place).align = table.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(table, row, k, w, x, y, z), emit


@intrinsic
def log(context, p, smallest):
    """Return log p; log :data:`SMALLEST`, in either precision, where p is not larger than ``smallest``."""

    def emit(context, builder, signature, arguments):
        find = _log_single if p.dtype.bitwidth == 32 else _log_double
        impossible = _number(arguments[0].type, logarithm(SMALLEST))
        is_possible = builder.fcmp_ordered(">", *arguments)
        return builder.select(is_possible, find(builder, arguments[0]), impossible)

    return p(p, smallest), emit


def _number(kind, value):
    rounded = float(np.float32(value)) if isinstance(kind.element, ir.FloatType) else value
    return ir.Constant(kind, [rounded] * kind.count)


def _log_double(builder, p):
    call, name = ir.FunctionType(p.type, [p.type]), f"llvm.log.v{p.type.count}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, call, name), [p])


def _log_single(builder, p):
    """Return log p with an error of about 1e-7: p = 2^e·(1 + t)."""
    whole = ir.VectorType(SHORT, p.type.count)
    root, shift = (ir.Constant(whole, [value] * whole.count) for value in (ROOT_OF_HALF, 23))
    bits = builder.bitcast(p, whole)
    exponent = builder.ashr(builder.sub(bits, root), shift)
    mantissa = builder.bitcast(builder.sub(bits, builder.shl(exponent, shift)), p.type)
    t, e = builder.fsub(mantissa, _number(p.type, 1.0)), builder.sitofp(exponent, p.type)
    series, square = _number(p.type, SERIES[0]), builder.fmul(t, t)
    for coefficient in SERIES[1:]:
        series = _fma(builder, series, t, _number(p.type, coefficient))
    rest = builder.fmul(builder.fmul(series, t), square)
    rest = _fma(builder, e, _number(p.type, LOG_TWO[1]), rest)
    found = builder.fadd(t, _fma(builder, square, _number(p.type, -0.5), rest))
    return _fma(builder, e, _number(p.type, LOG_TWO[0]), found)
