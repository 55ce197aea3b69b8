"""Intrinsics over the numbers of one document: its counts, its topics, and logarithms."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from math import log

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types

from swiftem.engine.numba.lines.emitter import LONG, SHORT, Emitter
from swiftem.engine.numba.memory import Line, intrinsic
from swiftem.engine.reference.plsa_documents import SMALLEST

__all__ = [
    "add_row", "counts_at", "log_of", "read_topics", "scaled", "with_prior", "write_sums", "write_topics",
]  # fmt: skip

SERIES = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
"""log(1 + t) ≈ t − t²/2 + t³·(series in t), for t between √½ − 1 and √2 − 1 (Cephes, logf)."""
LOG_TWO = 0.693359375, -2.12194440e-4
"""log 2 in two parts: products of the first with small integers are exact."""
ROOT_OF_HALF = 0x3F3504F3


@intrinsic
def counts_at(context, table, count, e, stop):
    """Return a line of counts, of the entries from e on; zero from ``stop`` on."""
    line = Line(table.dtype)

    def emit(*given):
        to = Emitter("table count e stop", *given)
        e = to.integer("e")
        mask = to.within(to.builder.sub(to.integer("stop"), e), to.line.count)
        return to.rounded(to.masked("load", to.builder.gep(to.data("count"), [e]), mask))

    return line(table, count, e, stop), emit


@intrinsic
def log_of(context, p, smallest):
    """Return log p; the logarithm of 1e-150, in either precision, if p is not larger than ``smallest``."""

    def emit(context, builder, signature, arguments):
        return log_of_line(builder, *arguments)

    return p(p, smallest), emit


def log_of_line(builder, p, smallest):
    """Return log p of a vector, as :func:`log_of`."""
    single = isinstance(p.type.element, ir.FloatType)
    found = _single(builder, p) if single else _double(builder, p)
    is_possible = builder.fcmp_ordered(">", p, smallest)
    impossible = ir.Constant(p.type, [_value(log(SMALLEST), single)] * p.type.count)
    return builder.select(is_possible, found, impossible)


def _value(number, single):
    return float(np.float32(number)) if single else number


def _double(builder, p):
    call = ir.FunctionType(p.type, [p.type])
    name = f"llvm.log.v{p.type.count}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, call, name), [p])


def _single(builder, p):
    """Return log p with an error of about 1e-7: p = 2^e·(1 + t)."""
    count = p.type.count
    whole = ir.VectorType(SHORT, count)

    def integer(value):
        return ir.Constant(whole, [value] * count)

    def number(value):
        return ir.Constant(p.type, [_value(value, True)] * count)

    def fma(x, y, z):
        return builder.fadd(builder.fmul(x, y, flags=("contract",)), z, flags=("contract",))

    bits = builder.bitcast(p, whole)
    exponent = builder.ashr(builder.sub(bits, integer(ROOT_OF_HALF)), integer(23))
    t = builder.bitcast(builder.sub(bits, builder.shl(exponent, integer(23))), p.type)
    t, e = builder.fsub(t, number(1.0)), builder.sitofp(exponent, p.type)
    series, square = number(SERIES[0]), builder.fmul(t, t)
    for coefficient in SERIES[1:]:
        series = fma(series, t, number(coefficient))
    found = fma(e, number(LOG_TWO[1]), builder.fmul(builder.fmul(series, t), square))
    found = builder.fadd(t, fma(square, number(-0.5), found))
    return fma(e, number(LOG_TWO[0]), found)


def _topics_at(to, offset, name="doc_topic", row="d"):
    """Return the pointer to the numbers of a line in a row of topics, and which of them there are."""
    builder, n_topics = to.builder, to.columns(name)
    k = builder.sdiv(offset, ir.Constant(LONG, to.size))
    place = builder.add(builder.mul(to.integer(row), n_topics), k)
    return builder.gep(to.data(name), [place]), to.within(builder.sub(n_topics, k), to.line.count)


def _if_any(to, offset, name, row, otherwise):
    """Return the numbers of a line in a row of an array, or ``otherwise`` if it has no rows."""
    pointer, mask = _topics_at(to, offset, name, row)
    is_there = to.builder.icmp_signed(">", to.rows(name), ir.Constant(LONG, 0))
    mask = to.builder.and_(mask, to.spread(is_there, mask.type))
    return to.masked("load", pointer, mask, otherwise=otherwise)


@intrinsic
def read_topics(context, table, doc_topic, d, tiny, work, row):
    """Copy the topics of document d to a row of ``work``: zero if they are not larger than ``tiny``."""
    if doc_topic.layout != "C":
        return None

    def emit(*given):
        to = Emitter("table doc_topic d tiny work row", *given)
        into, tiny = to.start("work", to.integer("row")), to.spread(to.number("tiny"), to.line)
        with to.lines([]) as offset:
            found = to.rounded(to.masked("load", *_topics_at(to, offset)))
            is_there = to.builder.fcmp_unordered(">", found, tiny)  # NaN stays
            to.store(to.builder.select(is_there, found, to.zero), to.builder.add(into, offset))
        return to.context.get_dummy_value()

    return types.void(table, doc_topic, d, tiny, work, row), emit


@intrinsic
def write_topics(context, table, work, row, factor, tiny, doc_topic, d):
    """Write ``factor`` times a row of ``work`` to the topics of document d, small ones as zero."""
    if doc_topic.layout != "C":
        return None

    def emit(*given):
        to = Emitter("table work row factor tiny doc_topic d", *given)
        start = to.start("work", to.integer("row"))
        factor, tiny = (to.spread(to.exact(name), to.doubles) for name in ("factor", "tiny"))
        with to.lines([]) as offset:
            found = to.builder.fmul(factor, to.extended(to.load(to.builder.add(start, offset))))
            is_there = to.builder.fcmp_ordered(">", found, tiny)
            found = to.builder.select(is_there, found, ir.Constant(to.doubles, None))
            pointer, mask = _topics_at(to, offset)
            to.masked("store", pointer, mask, found)
        return to.context.get_dummy_value()

    return types.void(table, work, row, factor, tiny, doc_topic, d), emit


@intrinsic
def add_row(context, table, row, to_row):
    """Add a row of the table to another one."""

    def emit(*given):
        to = Emitter("table row to_row", *given)
        start, into = (to.start("table", to.integer(name)) for name in ("row", "to_row"))
        with to.lines([]) as offset:
            place = to.builder.add(into, offset)
            found = to.builder.fadd(to.load(place), to.load(to.builder.add(start, offset)))
            to.store(found, place)
        return to.context.get_dummy_value()

    return types.void(table, row, to_row), emit


@intrinsic
def write_sums(context, table, v, before, factor, out):
    """Write (before + row v of the table)·factor to row v of ``out``; an array of no rows has no part."""

    def emit(*given):
        to = Emitter("table v before factor out", *given)
        start = to.start("table", to.integer("v"))
        with to.lines([]) as offset:
            found = to.extended(to.load(to.builder.add(start, offset)))
            found = to.builder.fadd(_if_any(to, offset, "before", "v", 0.0), found)
            found = to.builder.fmul(found, _if_any(to, offset, "factor", "v", 1.0))
            pointer, mask = _topics_at(to, offset, "out", "v")
            to.masked("store", pointer, mask, found)
        return to.context.get_dummy_value()

    return types.void(table, v, before, factor, out), emit


@intrinsic
def scaled(context, table, work, row, factor, to_row):
    """Write ``factor`` times a row of ``work`` to another one."""

    def emit(*given):
        to = Emitter("table work row factor to_row", *given)
        start, into = (to.start("work", to.integer(name)) for name in ("row", "to_row"))
        factor = to.spread(to.number("factor"), to.line)
        with to.lines([]) as offset:
            found = to.builder.fmul(factor, to.load(to.builder.add(start, offset)))
            to.store(found, to.builder.add(into, offset))
        return to.context.get_dummy_value()

    return types.void(table, work, row, factor, to_row), emit


@intrinsic
def with_prior(context, table, work, row, factors, alpha):
    """Multiply a row of ``work`` by the row ``factors``, add the row ``alpha``; return the sum in float64."""

    def emit(*given):
        to = Emitter("table work row factors alpha", *given)
        start, factors, alpha = (to.start("work", to.integer(name)) for name in ("row", "factors", "alpha"))
        sums = [ir.Constant(to.doubles, None)]
        with to.lines(sums) as offset:
            place, x, y = (to.builder.add(address, offset) for address in (start, factors, alpha))
            found = to.fma(to.load(x), to.load(place), to.load(y))
            to.store(found, place)
            sums[0] = to.builder.fadd(sums[0], to.extended(found))
        return to.builder.extract_element(to.halved(sums[0], 1), ir.Constant(SHORT, 0))

    return types.float64(table, work, row, factors, alpha), emit
