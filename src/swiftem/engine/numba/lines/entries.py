"""Intrinsics over four entries of a document at a time.

Common arguments:

- table, sums : padded ndarrays, V rows: words of topics, and the sums over their entries.
- places : ndarray of int64, shape (2, 16): where the rows of entries begin, in bytes, and of later ones.
- i : the first of the four entries, a place in a row of ``places``.
- work : padded ndarray: rows of a document. a, acc, ...: their numbers.
- part : ndarray, lines of one number per entry. n, of, left: their numbers; counts, and what they are divided
  by.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types

from swiftem.engine.numba.lines.emitter import LONG, SHORT, Emitter
from swiftem.engine.numba.memory import LINE, intrinsic

__all__ = ["add_four", "four_dots", "four_left", "prefetch_four", "rows_at", "share_four"]

MOST = 16
"""Entries in a row of ``places``."""


def _places(to, which=0):
    """Return where the rows of the four entries begin, relative to a table."""
    first = to.builder.add(to.integer("i"), ir.Constant(LONG, which * MOST))
    return [
        to.builder.load(to.builder.gep(to.data("places"), [to.builder.add(first, ir.Constant(LONG, k))]))
        for k in range(4)
    ]


def _rows(to, name, places):
    """Return the addresses of the rows."""
    start = to.start(name)
    return [to.builder.add(start, place) for place in places]


def _part(to, name):
    """Return the address of the four numbers in a line of ``part``."""
    place = to.builder.mul(to.integer("i"), ir.Constant(LONG, to.size))
    line = to.builder.mul(to.integer(name), ir.Constant(LONG, LINE))
    return to.builder.add(to.builder.ptrtoint(to.data("part"), LONG), to.builder.add(line, place))


@intrinsic
def rows_at(context, table, word, e, stop, places, which):
    """Write where the rows of the entries from e to ``stop`` begin to row ``which``, else the first row."""

    def emit(*given):
        to = Emitter("table word e stop places which", *given)
        builder, e, longs = to.builder, to.integer("e"), ir.VectorType(LONG, to.line.count)
        mask = to.within(builder.sub(to.integer("stop"), e), to.line.count)
        words = to.masked("load", builder.gep(to.data("word"), [e]), mask)
        found = builder.mul(builder.zext(words, longs), to.spread(to.width, longs))
        row = builder.mul(to.integer("which"), ir.Constant(LONG, 8 * MOST))
        to.store(found, builder.add(builder.ptrtoint(to.data("places"), LONG), row))
        return to.context.get_dummy_value()

    return types.void(table, word, e, stop, places, which), emit


@intrinsic
def prefetch_four(context, table, sums, places, i):
    """Prefetch the rows of four later entries, in ``places[1]``."""

    def emit(*given):
        to = Emitter("table sums places i", *given)
        builder, places = to.builder, _places(to, 1)
        pointer = ir.IntType(8).as_pointer()
        shape = ir.FunctionType(ir.VoidType(), [pointer, SHORT, SHORT, SHORT])
        call = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        # To read, into all caches, as data.
        flags = [ir.Constant(SHORT, value) for value in (0, 3, 1)]
        rows = _rows(to, "table", places) + _rows(to, "sums", places)
        with to.lines([]) as offset:
            for row in rows:
                builder.call(call, [builder.inttoptr(builder.add(row, offset), pointer), *flags])
        return to.context.get_dummy_value()

    return types.void(table, sums, places, i), emit


@intrinsic
def four_dots(context, table, places, i, work, a, smallest, part, of):
    """Write Σ ab of four entries, at least ``smallest``, for topics a in a row of ``work``."""

    def emit(*given):
        to = Emitter("table places i work a smallest part of", *given)
        rows, a = _rows(to, "table", _places(to)), to.start("work", to.integer("a"))
        sums = [to.zero] * 4
        with to.lines(sums) as offset:
            factor = to.load(to.builder.add(a, offset))
            for k, row in enumerate(rows):
                sums[k] = to.fma(factor, to.load(to.builder.add(row, offset)), sums[k])
        least = to.spread(to.number("smallest"), to.four)
        to.store(to.larger(to.across(sums), least), _part(to, "of"))
        return to.context.get_dummy_value()

    return types.void(table, places, i, work, a, smallest, part, of), emit


@intrinsic
def add_four(context, table, sums, places, i, work, heavy, acc, part, n, of):
    """Add n·b / Σ ab to the document's sums, and n / Σ ab times the row ``heavy`` to those of the words."""

    def emit(*given):
        to = Emitter("table sums places i work heavy acc part n of", *given)
        builder, places = to.builder, _places(to)
        rows, into = _rows(to, "table", places), _rows(to, "sums", places)
        heavy, acc = (to.start("work", to.integer(name)) for name in ("heavy", "acc"))
        ratio = to.each(builder.fdiv(to.load(_part(to, "n"), to.four), to.load(_part(to, "of"), to.four)))
        with to.lines([]) as offset:
            b = [to.load(builder.add(row, offset)) for row in rows]
            _add_pairs(to, builder.add(acc, offset), ratio, b)
            a = to.load(builder.add(heavy, offset))
            for k in range(4):
                place = builder.add(into[k], offset)
                to.store(to.fma(ratio[k], a, to.load(place)), place)
        return to.context.get_dummy_value()

    return types.void(table, sums, places, i, work, heavy, acc, part, n, of), emit


def _add_pairs(to, place, factors, lines):
    """Add the products of four factors and lines to the line at an address."""
    pairs = [to.fma(factors[k + 1], lines[k + 1], to.builder.fmul(factors[k], lines[k])) for k in (0, 2)]
    to.store(to.builder.fadd(to.load(place), to.builder.fadd(*pairs)), place)


@intrinsic
def four_left(
    context, table, floor, places, i, work, a, least, inverse, r, part, n, of, left, own, share, smallest
):
    r"""Write a'b' of four entries to the rows r + i of ``work``, and their sums to ``part``.

    :math:`a' = max(a - own·x, least)` and :math:`b' = max(b - share·inverse·x, floor)`, where x is
    :math:`min(n, 1)·ab / \sum ab`. A floor of one row is that of all words. Returns whether a sum is not
    larger than ``smallest``.
    """

    def emit(*given):
        names = "table floor places i work a least inverse r part n of left own share smallest"
        to = Emitter(names, *given)
        builder, places = to.builder, _places(to)
        rows = _rows(to, "table", places)
        has_many = builder.icmp_signed(">", to.rows("floor"), ir.Constant(LONG, 1))
        none = ir.Constant(LONG, 0)
        floors = _rows(to, "floor", [builder.select(has_many, place, none) for place in places])
        a, least, inverse = (to.start("work", to.integer(name)) for name in ("a", "least", "inverse"))
        first = builder.add(to.integer("r"), to.integer("i"))
        into = [to.start("work", builder.add(first, ir.Constant(LONG, k))) for k in range(4)]
        one = to.spread(ir.Constant(to.line.element, 1.0), to.four)
        count = to.load(_part(to, "n"), to.four)
        token = builder.select(builder.fcmp_ordered("<", count, one), count, one)
        token = builder.fneg(builder.fdiv(token, to.load(_part(to, "of"), to.four)))
        of_a, of_b = (
            to.each(builder.fmul(to.spread(to.number(name), to.four), token)) for name in ("own", "share")
        )
        found = []
        for pair in ((0, 1), (2, 3)):  # two at a time, as vectors of all four would not fit into registers
            sums = [to.zero] * 2
            with to.lines(sums) as offset:
                x, low, scale = (to.load(builder.add(row, offset)) for row in (a, least, inverse))
                for at, k in enumerate(pair):
                    y = to.load(builder.add(rows[k], offset))
                    joint = builder.fmul(x, y)
                    without = builder.fmul(
                        to.larger(to.fma(of_a[k], joint, x), low),
                        to.larger(
                            to.fma(builder.fmul(of_b[k], scale), joint, y),
                            to.load(builder.add(floors[k], offset)),
                        ),
                    )
                    to.store(without, builder.add(into[k], offset))
                    sums[at] = builder.fadd(sums[at], without)
            found += sums
        total = to.across(found)
        to.store(total, _part(to, "left"))
        is_little = builder.fcmp_ordered("<=", total, to.spread(to.number("smallest"), to.four))
        return builder.icmp_unsigned(
            "!=", builder.bitcast(is_little, ir.IntType(4)), ir.Constant(ir.IntType(4), 0)
        )

    given = (
        table, floor, places, i, work, a, least, inverse, r, part, n, of, left, own, share, smallest,
    )  # fmt: skip
    return types.boolean(*given), emit


@intrinsic
def share_four(context, table, sums, places, i, work, acc, r, part, n, left, weight):
    """Add n·a'b' / Σ a'b' to the document's sums, and ``weight`` times that to those of the words."""

    def emit(*given):
        to = Emitter("table sums places i work acc r part n left weight", *given)
        builder, into = to.builder, _rows(to, "sums", _places(to))
        acc, first = to.start("work", to.integer("acc")), builder.add(to.integer("r"), to.integer("i"))
        rows = [to.start("work", builder.add(first, ir.Constant(LONG, k))) for k in range(4)]
        ratio = builder.fdiv(to.load(_part(to, "n"), to.four), to.load(_part(to, "left"), to.four))
        heavy = to.each(builder.fmul(to.spread(to.number("weight"), to.four), ratio))
        ratio = to.each(ratio)
        with to.lines([]) as offset:
            shares = [to.load(builder.add(row, offset)) for row in rows]
            _add_pairs(to, builder.add(acc, offset), ratio, shares)
            for k in range(4):
                place = builder.add(into[k], offset)
                to.store(to.fma(heavy[k], shares[k], to.load(place)), place)
        return to.context.get_dummy_value()

    return types.void(table, sums, places, i, work, acc, r, part, n, left, weight), emit
