"""Documents whose rows have few lines, several at a time: topics and sums stay in registers.

What ``four_dots`` and ``add_four`` do, in loops over all entries of a block of documents: first the
probabilities of all entries (:func:`short_dots`), then counts over probabilities (:func:`ratios`), then the
sums (:func:`short_sums`). No entry waits for another one in any of them, so that the processor has several in
work. All sums of a document and of words have the order of the loops for long rows.

Common arguments are those of ``entries.py``, and

- start, stop : the entries of a document. Up to :data:`SLACK` later ones are read, too.
- first : the first entry of the block.
- ratio : ndarray, a number for each entry of the block, and some more.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from contextlib import contextmanager

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types

from swiftem.engine.numba.lines.emitter import LONG, SHORT, Emitter
from swiftem.engine.numba.lines.numbers import log_of_line
from swiftem.engine.numba.memory import LINE, intrinsic

__all__ = ["SLACK", "ratios", "short_dots", "short_sums"]

SEVERAL = 8
"""Entries whose probabilities are computed at a time."""
AHEAD = 16
"""Entries between one and that whose row is prefetched."""
SLACK = AHEAD + SEVERAL
"""Entries after a document that are read: they must be there."""


class Entries(Emitter):
    """Writes what is done with some entries of a document at a time."""

    def sums_of(self, lines):
        """Return the sums of several lines, a power of two of them, as a vector.

        Halves of lines are added until one number is left, of all lines at once: each addition is of the
        low halves of the numbers of two vectors and of the high ones.
        """
        order, size = [[i] for i in range(len(lines))], self.line.count
        while len(lines) > 1 and size > 1:
            pairs, size = [], size // 2
            for x, y in zip(lines[::2], lines[1::2], strict=True):
                low, high = self._halves(size)
                pairs.append(self.builder.fadd(self.chosen(x, y, low), self.chosen(x, y, high)))
            lines = pairs
            order = [self._merged(x, y, size) for x, y in zip(order[::2], order[1::2], strict=True)]
        found, (places,) = lines[0], order
        while size > 1:
            size //= 2
            starts = range(0, found.type.count, 2 * size)
            low = [start + i for start in starts for i in range(size)]
            high = [place + size for place in low]
            found = self.builder.fadd(self.chosen(found, found, low), self.chosen(found, found, high))
        return self.chosen(found, found, [places.index(i) for i in range(len(places))])

    def _halves(self, size):
        """Return the places of the low and the high halves of the numbers of two vectors, 2·size in each."""
        count, lane = self.line.count, 128 // (8 * self.size)
        if 2 * size > lane:  # whole lanes of 128 bits: first x, then y
            low = [
                v * count + start + i
                for v in (0, 1)
                for start in range(0, count, 2 * size)
                for i in range(size)
            ]
        else:  # within lanes
            low = [
                v * count + first + start + i
                for first in range(0, count, lane)
                for v in (0, 1)
                for start in range(0, lane, 2 * size)
                for i in range(size)
            ]
        return low, [place + size for place in low]

    def _merged(self, x, y, size):
        """Return which lines the numbers of a sum are of: ``size`` of each."""
        lane = 128 // (8 * self.size)
        if 2 * size > lane:
            return x + y
        per = lane // (2 * size)  # of x, and of y, in a lane
        return [
            one
            for first in range(0, len(x), per)
            for one in (*x[first : first + per], *y[first : first + per])
        ]

    @contextmanager
    def while_less(self, first, stop, step, held):
        """Loop from ``first`` while less than ``stop``; ``held`` is renewed in place."""
        builder, before, began = self.builder, self.builder.block, list(held)
        test, body, after = (builder.append_basic_block(name) for name in ("test", "body", "after"))
        builder.branch(test)
        builder.position_at_end(test)
        number = builder.phi(LONG)
        number.add_incoming(first, before)
        phis = [builder.phi(value.type) for value in began]
        held[:] = phis
        builder.cbranch(builder.icmp_signed("<", number, stop), body, after)
        builder.position_at_end(body)
        yield number
        number.add_incoming(self.plus(number, step), builder.block)
        for phi, start, last in zip(phis, began, held, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(last, builder.block)
        builder.branch(test)
        builder.position_at_end(after)
        held[:] = phis

    def prefetch(self, address):
        """Prefetch the line at an address, to read, into all caches, as data."""
        pointer = ir.IntType(8).as_pointer()
        shape = ir.FunctionType(ir.VoidType(), [pointer, SHORT, SHORT, SHORT])
        call = cgutils.get_or_insert_function(self.builder.module, shape, "llvm.prefetch.p0")
        flags = [ir.Constant(SHORT, value) for value in (0, 3, 1)]
        self.builder.call(call, [self.builder.inttoptr(address, pointer), *flags])

    def row_of(self, name, e, k, lines):
        """Return the address of the row of a table for entry e + k."""
        word = self.builder.load(self.builder.gep(self.data("word"), [self.plus(e, k)]))
        place = self.builder.mul(self.builder.zext(word, LONG), ir.Constant(LONG, LINE * lines))
        return self.builder.add(self.start(name), place)

    def row(self, name, number, lines):
        """Return the lines of a row of an array."""
        start = self.start(name, self.integer(number))
        return [self.load(self.plus(start, LINE * j)) for j in range(lines)]

    def ratio_at(self, e):
        """Return where the number for entry e is."""
        place = self.builder.sub(e, self.integer("first"))
        return self.builder.gep(self.data("ratio"), [place])


def short_dots(lines):
    """Return an intrinsic for rows of this many lines: it writes Σ ab of a document's entries."""

    @intrinsic
    def dots(context, table, word, start, stop, first, work, a, smallest, ratio):
        def emit(*given):
            to = Entries("table word start stop first work a smallest ratio", *given)
            builder, a = to.builder, to.row("work", "a", lines)
            least = to.spread(to.number("smallest"), ir.VectorType(to.line.element, SEVERAL))
            with to.while_less(to.integer("start"), to.integer("stop"), SEVERAL, []) as e:
                for k in range(SEVERAL):
                    later = to.row_of("table", e, AHEAD + k, lines)
                    for j in range(lines):
                        to.prefetch(to.plus(later, LINE * j))
                found = []
                for k in range(SEVERAL):
                    row, total = to.row_of("table", e, k, lines), to.zero
                    for j in range(lines):
                        total = to.fma(a[j], to.load(to.plus(row, LINE * j)), total)
                    found.append(total)
                to.store(to.larger(to.sums_of(found), least), builder.ptrtoint(to.ratio_at(e), LONG))
            return to.context.get_dummy_value()

        return types.void(table, word, start, stop, first, work, a, smallest, ratio), emit

    return dots


@intrinsic
def ratios(context, table, count, first, stop, smallest, ratio):
    """Replace the probabilities of the entries from ``first`` to ``stop`` − 1 by n / p; return Σ n log p."""

    def emit(*given):
        to = Entries("table count first stop smallest ratio", *given)
        builder, stop = to.builder, to.integer("stop")
        least, total = to.spread(to.number("smallest"), to.line), [ir.Constant(to.doubles, None)]
        with to.while_less(to.integer("first"), stop, to.line.count, total) as e:
            mask = to.within(builder.sub(stop, e), to.line.count)
            n = to.rounded(to.masked("load", builder.gep(to.data("count"), [e]), mask))
            place = builder.ptrtoint(to.ratio_at(e), LONG)
            p = to.load(place)
            to.store(builder.fdiv(n, p), place)
            found = builder.fmul(n, log_of_line(builder, p, least))
            total[0] = builder.fadd(total[0], to.extended(found))
        return builder.extract_element(to.halved(total[0], 1), ir.Constant(SHORT, 0))

    return types.float64(table, count, first, stop, smallest, ratio), emit


def short_sums(lines):
    """Return an intrinsic for rows of this many lines: it adds n·b / Σ ab, and n / Σ ab times a weighted a.

    The former are the document's sums, written to the row ``acc`` of ``work``, the latter those of the words.
    """

    @intrinsic
    def sums_of(context, table, sums, word, start, stop, first, weight, work, a, acc, ratio):
        def emit(*given):
            to = Entries("table sums word start stop first weight work a acc ratio", *given)
            builder, stop = to.builder, to.integer("stop")
            heavy = to.spread(to.number("weight"), to.line)
            heavy, held = [builder.fmul(heavy, one) for one in to.row("work", "a", lines)], [to.zero] * lines

            def add(e, factors):
                rows = [to.row_of("table", e, k, lines) for k in range(4)]
                into = [to.row_of("sums", e, k, lines) for k in range(4)]
                for k in range(4):
                    later = to.row_of("sums", e, SEVERAL + k, lines)
                    for j in range(lines):
                        to.prefetch(to.plus(later, LINE * j))
                for j in range(lines):
                    b = [to.load(to.plus(row, LINE * j)) for row in rows]
                    pairs = [to.fma(factors[k + 1], b[k + 1], builder.fmul(factors[k], b[k])) for k in (0, 2)]
                    held[j] = builder.fadd(held[j], builder.fadd(*pairs))
                    for k in range(4):
                        place = to.plus(into[k], LINE * j)
                        to.store(to.fma(factors[k], heavy[j], to.load(place)), place)

            whole = builder.sub(
                stop, builder.and_(builder.sub(stop, to.integer("start")), ir.Constant(LONG, 3))
            )
            with to.while_less(to.integer("start"), whole, 4, held) as e:
                place = to.ratio_at(e)
                each = [builder.load(builder.gep(place, [ir.Constant(LONG, k)])) for k in range(4)]
                add(e, [to.spread(one, to.line) for one in each])
            with to.while_less(whole, stop, 4, held) as e:
                four = to.load(builder.ptrtoint(to.ratio_at(e), LONG), to.four)
                is_own = to.within(builder.sub(stop, e), 4)
                add(e, to.each(builder.select(is_own, four, ir.Constant(to.four, None))))
            into = to.start("work", to.integer("acc"))
            for j in range(lines):
                to.store(held[j], to.plus(into, LINE * j))
            return to.context.get_dummy_value()

        return types.void(table, sums, word, start, stop, first, weight, work, a, acc, ratio), emit

    return sums_of
