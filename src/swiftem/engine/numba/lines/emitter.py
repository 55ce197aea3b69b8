"""What intrinsics over lines are written with: addresses, vectors, and the loop over the lines of a row.

Numba's own loops check the sign of every index, and LLVM unrolls loops over lines: that takes longer than the
work if a row has one line. Here, addresses are integers, and loops over lines are not unrolled, as LLVM
cannot count them.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from contextlib import contextmanager

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types

from swiftem.engine.numba.memory import LINE, Line

__all__ = ["Emitter"]

SHORT, LONG = ir.IntType(32), ir.IntType(64)


class Emitter:
    """Writes the body of an intrinsic.

    Parameters
    ----------
    names : str
        Names of the arguments, separated by blanks; "table" is among them and says what lines are made of.
    context, builder, signature, arguments
        What Numba gives to the body of an intrinsic.

    Attributes
    ----------
    line, four, doubles : llvmlite.ir.VectorType
        A line, four numbers, and as many numbers in float64 as a line has.
    """

    def __init__(self, names, context, builder, signature, arguments):
        self.context, self.builder = context, builder
        self._given = dict(zip(names.split(), zip(signature.args, arguments, strict=True), strict=True))
        dtype = self._given["table"][0].dtype
        self.line = context.get_value_type(Line(dtype))
        self.size, self._dtype = dtype.bitwidth // 8, dtype
        self.four = ir.VectorType(self.line.element, 4)
        self.doubles = ir.VectorType(ir.DoubleType(), self.line.count)
        self.zero = ir.Constant(self.line, [0.0] * self.line.count)
        # Padded rows follow each other without gaps.
        self.width = self.builder.extract_value(self._array("table").strides, 0)

    def _array(self, name):
        kind, value = self._given[name]
        return self.context.make_array(kind)(self.context, self.builder, value)

    def integer(self, name):
        """Return an argument as an integer of 64 bits."""
        kind, value = self._given[name]
        return self.context.cast(self.builder, value, kind, types.intp)

    def number(self, name):
        """Return an argument in the table's precision."""
        kind, value = self._given[name]
        return self.context.cast(self.builder, value, kind, self._dtype)

    def exact(self, name):
        """Return an argument in float64."""
        kind, value = self._given[name]
        return self.context.cast(self.builder, value, kind, types.float64)

    def extended(self, line):
        """Return a line in float64."""
        return line if self.size == 8 else self.builder.fpext(line, self.doubles)

    def rounded(self, doubles):
        """Return numbers of float64 as a line."""
        return doubles if self.size == 8 else self.builder.fptrunc(doubles, self.line)

    def data(self, name):
        """Return the pointer to the data of an array."""
        return self._array(name).data

    def rows(self, name):
        """Return the number of rows of an array."""
        return self.builder.extract_value(self._array(name).shape, 0)

    def columns(self, name):
        """Return the number of columns of an array."""
        return self.builder.extract_value(self._array(name).shape, 1)

    def start(self, name, row=None):
        """Return the address of an array of padded rows, or of one of its rows."""
        address = self.builder.ptrtoint(self.data(name), LONG)
        if row is None:
            return address
        return self.builder.add(address, self.builder.mul(row, self.width))

    def plus(self, address, constant):
        """Return the address plus a constant."""
        return self.builder.add(address, ir.Constant(LONG, constant))

    def load(self, address, kind=None):
        """Return a line, or another vector, at the address."""
        kind = self.line if kind is None else kind
        found = self.builder.load(self.builder.inttoptr(address, kind.as_pointer()))
        found.align = 4
        return found

    def store(self, value, address):
        """Write a vector to the address."""
        place = self.builder.inttoptr(address, value.type.as_pointer())
        self.builder.store(value, place).align = 4

    def fma(self, x, y, z):
        """Return x·y + z."""
        product = self.builder.fmul(x, y, flags=("contract",))
        return self.builder.fadd(product, z, flags=("contract",))

    def larger(self, x, y):
        """Return the larger number in each place."""
        return self.builder.select(self.builder.fcmp_ordered(">", x, y), x, y)

    def chosen(self, x, y, places):
        """Return these places of x followed by y."""
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(SHORT, len(places)), places))

    def spread(self, value, kind):
        """Return a vector with ``value`` in all places."""
        none = ir.Constant(kind, ir.Undefined)
        return self.chosen(
            self.builder.insert_element(none, value, ir.Constant(SHORT, 0)), none, [0] * kind.count
        )

    def each(self, four):
        """Return four lines, each with one of four numbers in all places."""
        return [self.chosen(four, four, [i] * self.line.count) for i in range(4)]

    def halved(self, vector, count):
        """Return a vector whose halves were added until ``count`` numbers are left."""
        while vector.type.count > count:
            half = vector.type.count // 2
            low, high = list(range(half)), list(range(half, 2 * half))
            vector = self.builder.fadd(self.chosen(vector, vector, low), self.chosen(vector, vector, high))
        return vector

    def across(self, lines):
        """Return the sums of four lines."""
        add, found = self.builder.fadd, [self.halved(one, 4) for one in lines]
        x, y = (
            add(self.chosen(one, two, [0, 1, 4, 5]), self.chosen(one, two, [2, 3, 6, 7]))
            for one, two in (found[:2], found[2:])
        )
        return add(self.chosen(x, y, [0, 2, 4, 6]), self.chosen(x, y, [1, 3, 5, 7]))

    def within(self, left, count):
        """Return which of ``count`` places are before ``left``."""
        longs = ir.VectorType(LONG, count)
        places = ir.Constant(longs, list(range(count)))
        return self.builder.icmp_signed("<", places, self.spread(left, longs))

    def masked(self, name, pointer, mask, value=None, otherwise=0):
        """Load the numbers at a pointer that ``mask`` allows, else ``otherwise``; or store ``value``."""
        element, count = pointer.type.pointee, mask.type.count
        kind = ir.VectorType(element, count)
        place = self.builder.bitcast(pointer, kind.as_pointer())
        letter = f"i{element.width}" if isinstance(element, ir.IntType) else "f64"
        align = ir.Constant(SHORT, 4 if letter == "i32" else 8)
        if value is None:
            shape = ir.FunctionType(kind, [place.type, SHORT, mask.type, kind])
            given = [place, align, mask, ir.Constant(kind, [otherwise] * count)]
        else:
            shape = ir.FunctionType(ir.VoidType(), [kind, place.type, SHORT, mask.type])
            given = [value, place, align, mask]
        called = f"llvm.masked.{name}.v{count}{letter}.p0"
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, shape, called), given)

    @contextmanager
    def lines(self, sums):
        """Loop over the lines of a row: yields the offset of a line, and ``sums`` is renewed in place."""
        builder, before, began = self.builder, self.builder.block, list(sums)
        body, after = (builder.append_basic_block(name) for name in ("lines", "after"))
        builder.branch(body)
        builder.position_at_end(body)
        offset = builder.phi(LONG)
        offset.add_incoming(ir.Constant(LONG, 0), before)
        held = [builder.phi(value.type) for value in began]
        sums[:] = held
        yield offset
        following, end = self.plus(offset, LINE), builder.block
        offset.add_incoming(following, end)
        for phi, first, last in zip(held, began, sums, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(last, end)
        builder.cbranch(builder.icmp_signed("<", following, self.width), body, after)
        builder.position_at_end(after)
