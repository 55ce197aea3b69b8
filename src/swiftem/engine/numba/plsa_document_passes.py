r"""pLSA by documents: passes that update documents and sum words.

Common arrays of all loops:

- begin (D + 1,), word (m,), count (m,): the entries of the documents in CSR order; entries of document d are
  begin[d] to begin[d + 1] − 1. Counts are float64.
- weight (D,): of documents; their parts of sums over documents are multiplied by it.
- doc_topic (D, K): topics of documents, float64, whatever the tables are.
- table: θ, words of topics, V rows of K numbers in whole cache lines (``memory.padded``), float32 or float64.
  It says what all sums over topics are computed in; float32 has twice as many numbers in a line.
- alpha (K,): added to a document's counts of topics.

With :math:`a_k = \theta_{dk}` and :math:`b_k = \theta_{kv}`, an entry of count n has responsibilities
:math:`r_k = a_k b_k / \sum a b`, equation (condexp_plsa). It adds n·r_k to the counts of its document and of
its word. As a is the same for all entries of a document, its counts are a_k times a sum of n·b_k / Σ ab; as b
is the same for all entries of a word, its counts are b_k times a sum of n·a_k / Σ ab.

**Leaving one out.** With topics of documents :math:`a_k = (n_{dk} + \alpha_k) / A` and words
of topics :math:`b_k = (n_{kv} + \beta_{kv}) / B_k`, an entry has responsibilities
:math:`r_k \propto a_k b_k`. One of its tokens has added :math:`r_k` to either count, so that without it

.. math::  a'_k = \max(a_k - r_k / A, \alpha_k / A),  b'_k = \max(b_k - r_k / B_k, \beta_{kv} / B_k),

and :math:`r'_k \propto a'_k b'_k` is used. This is the update of CVB0 (Asuncion, Welling, Smyth and Teh,
2009), with the token's own part recomputed instead of stored: no array of entries times topics.

``engine/reference/plsa_documents.py`` has the same in plain NumPy.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.engine.numba.compile import caller, inlined, lean
from swiftem.engine.numba.lines.entries import (
    MOST,
    add_four,
    four_dots,
    four_left,
    prefetch_four,
    rows_at,
    share_four,
)
from swiftem.engine.numba.lines.numbers import (
    counts_at,
    log_of,
    read_topics,
    scaled,
    with_prior,
    write_topics,
)
from swiftem.engine.numba.lines.short_rows import SLACK, ratios, short_dots, short_sums
from swiftem.engine.numba.memory import LINE, across, fma, load, matrix, padded, spread, store, times, vector

__all__ = ["leave_one_out_pass", "pass_over"]

SMALLEST, SMALLEST_SINGLE = 1e-150, 1e-30
"""Smaller probabilities are replaced by this: no division by zero, and no subnormal numbers."""
TINY, TINY_SINGLE = 1e-60, 1e-12
"""Smaller shares of a topic are read as zero, for the same reason."""
SHORT_ROWS, LONG_ROWS = 8, 16
"""Lines of rows up to which 16 and 8 entries are in work, else 4: their rows are read twice, from the
nearest cache."""
A, ACC, ALPHA, HEAVY, OF_BLOCK = range(5)
"""Rows of a kernel's memory: topics of the document, its sums, α, topics times the weight, and the first of
the rows of a block: topics of its documents, then their sums."""
BLOCK, ROOM = 16, 256
"""Documents in a block, and its entries times the lines of their rows: these stay in the nearest cache."""
ONES, LEAST, INVERSE, R = 3, 4, 5, 6
"""Leaving one out: ones, the least shares, 1 / B, and the first of the rows of entries."""
OF, N, LEFT, PARTS = range(4)
"""Lines with a number for each entry in work: probabilities, counts, and probabilities without the token."""

SHORT, one_dot, two_dot, three_dot, four_dot = 4, *(short_dots(lines) for lines in (1, 2, 3, 4))
one_sum, two_sum, three_sum, four_sum = (short_sums(lines) for lines in (1, 2, 3, 4))
"""For rows of up to four lines."""


@inlined
def limits(table):
    """Return the least probability, and the least share of a topic."""
    return (SMALLEST, TINY) if table.itemsize == 8 else (SMALLEST_SINGLE, TINY_SINGLE)


@inlined
def read_row(doc_topic, d, tiny, work, row):
    """Copy the topics of document d to a row of ``work``."""
    for k in range(doc_topic.shape[1]):
        work[row, k] = doc_topic[d, k] if doc_topic[d, k] > tiny else 0.0


@inlined
def write_row(work, row, tiny, doc_topic, d):
    """Write a row of ``work``, normalised, to the topics of document d: uniform if all are zero."""
    n_topics, total = doc_topic.shape[1], 0.0
    for k in range(n_topics):
        total += work[row, k]
    inverse = 1.0 / total if total > 0.0 else 0.0
    for k in range(n_topics):
        new = work[row, k] * inverse if total > 0.0 else 1.0 / n_topics
        doc_topic[d, k] = new if new > tiny else 0.0


@inlined
def dots(table, v, w, work, row, smallest):
    """Return Σ ab of the words v and w, for topics a in a row of ``work``: at least ``smallest``."""
    one, two = spread(table, 0.0), spread(table, 0.0)
    for j in range(table.shape[1] * table.itemsize // LINE):
        a = load(work, row, j)
        one = fma(a, load(table, v, j), one)
        two = fma(a, load(table, w, j), two)
    return max(np.float64(across(one)), smallest), max(np.float64(across(two)), smallest)


@inlined
def entries_in_work(table):
    """Return how many entries are in work at a time."""
    lines = table.shape[1] * table.itemsize // LINE
    return min(LINE // table.itemsize, 16 if lines <= SHORT_ROWS else 8 if lines <= LONG_ROWS else 4)


@inlined
def explain(word, count, table, sums, e, end, work, places, part, smallest):
    """Write counts and probabilities of the entries e to ``end`` − 1; prefetch the rows of later ones.

    Returns Σ n log p.
    """
    rows_at(table, word, e, end, places, 0)
    rows_at(table, word, end, word.shape[0], places, 1)
    n = counts_at(table, count, e, end)
    store(part, N, 0, n)
    for i in range(0, end - e, 4):
        prefetch_four(table, sums, places, i)
        four_dots(table, places, i, work, A, smallest, part, OF)
    return np.float64(across(times(n, log_of(load(part, OF, 0), spread(table, smallest)))))


@inlined
def renew(table, work, factors, acc, tiny, doc_topic, d):
    """Write the topics of document d after the M-step: uniform if all are zero."""
    total = with_prior(table, work, acc, factors, ALPHA)
    if total > 0.0:
        write_topics(table, work, acc, 1.0 / total, tiny, doc_topic, d)
    else:
        for k in range(doc_topic.shape[1]):
            doc_topic[d, k] = 1.0 / doc_topic.shape[1]


def memory_of(table, rows, alpha):
    """Return a kernel's memory: rows as wide as the table's, one with α, lines of entries, their places."""
    memory, line = padded(rows + PARTS, table.shape[1], table.dtype), LINE // table.itemsize
    memory[ALPHA, : len(alpha)] = alpha
    part = matrix(vector(memory[rows:]), PARTS, line)
    part[:] = 1.0
    return memory[:rows], part, np.zeros((2, MOST), np.int64)


@caller
def pass_over(begin, word, count, weight, doc_topic, table, alpha, sums, first, last):
    """One iteration of EM for the documents ``first`` to ``last`` − 1, without the topics' M-step.

    Parameters
    ----------
    doc_topic : ndarray, shape (D, K)
        Topics of documents: input of the E-step, replaced by the result of the M-step.
    sums : padded ndarray, V rows
        Σ n·a_k / Σ ab of the words is added to it: times b it is their counts.

    Returns
    -------
    float
        Σ n log p of the entries, weighted.
    """
    memory = memory_of(table, OF_BLOCK + 2 * BLOCK, alpha)
    ratio = np.ones(ROOM + 2 * SLACK, table.dtype)
    return _pass_over(begin, word, count, weight, doc_topic, table, sums, first, last, *memory, ratio)


@lean
def _pass_over(begin, word, count, weight, doc_topic, table, sums, first, last, work, part, places, ratio):
    lines, value, d = table.shape[1] * table.itemsize // LINE, 0.0, first
    while d < last:
        end = block_of(begin, weight, d, last, word.shape[0], lines)
        if end > d:
            value += block(begin, word, count, weight, doc_topic, table, sums, d, end, work, ratio, lines)
        else:
            end = d + 1
            value += whole(begin, word, count, weight, doc_topic, table, sums, d, work, part, places)
        d = end
    return value


@inlined
def whole(begin, word, count, weight, doc_topic, table, sums, d, work, part, places):
    """One iteration of EM for a document of any length, with rows of any length."""
    smallest, tiny = limits(table)
    step, value = entries_in_work(table), 0.0
    read_topics(table, doc_topic, d, tiny, work, A)
    scaled(table, work, A, weight[d], HEAVY)
    scaled(table, work, A, 0.0, ACC)
    for e in range(begin[d], begin[d + 1], step):
        end = min(e + step, begin[d + 1])
        value += weight[d] * explain(word, count, table, sums, e, end, work, places, part, smallest)
        for i in range(0, end - e, 4):
            add_four(table, sums, places, i, work, HEAVY, ACC, part, N, OF)
    renew(table, work, A, ACC, tiny, doc_topic, d)
    return value


@inlined
def block_of(begin, weight, first, last, entries, lines):
    """Return the end of the documents that are done together: few entries, of one weight; none: ``first``."""
    d = first
    if lines <= SHORT:
        most = min(begin[first] + ROOM // lines, entries - SLACK)
        while d < last and d - first < BLOCK and begin[d + 1] <= most and weight[d] == weight[first]:
            d += 1
    return d


@inlined
def block(begin, word, count, weight, doc_topic, table, sums, first, last, work, ratio, lines):
    """One iteration of EM for documents ``first`` to ``last`` − 1 with short rows."""
    smallest, tiny = limits(table)
    start = begin[first]
    for d in range(first, last):
        read_topics(table, doc_topic, d, tiny, work, OF_BLOCK + d - first)
    for d in range(first, last):
        a = OF_BLOCK + d - first
        given = (begin[d], begin[d + 1], start, work, a, smallest, ratio)
        if lines == 1:
            one_dot(table, word, *given)
        elif lines == 2:
            two_dot(table, word, *given)
        elif lines == 3:
            three_dot(table, word, *given)
        else:
            four_dot(table, word, *given)
    value = ratios(table, count, start, begin[last], smallest, ratio)
    for d in range(first, last):
        a = OF_BLOCK + d - first
        also = (begin[d], begin[d + 1], start, weight[d], work, a, a + BLOCK, ratio)
        if lines == 1:
            one_sum(table, sums, word, *also)
        elif lines == 2:
            two_sum(table, sums, word, *also)
        elif lines == 3:
            three_sum(table, sums, word, *also)
        else:
            four_sum(table, sums, word, *also)
    for d in range(first, last):
        a = OF_BLOCK + d - first
        renew(table, work, a, a + BLOCK, tiny, doc_topic, d)
    return weight[first] * value


@inlined
def include(table, places, i, work, part, smallest):
    """Use the responsibilities with the token itself, a·b, of those of four entries that have none left."""
    for j in range(i, i + 4):
        if part[LEFT, j] <= smallest:
            part[LEFT, j] = part[OF, j]
            v = places[0, j] // (table.shape[1] * table.itemsize)
            for k in range(table.shape[1]):
                work[R + j, k] = work[A, k] * table[v, k]


@caller
def leave_one_out_pass(
    begin, word, count, weight, length, doc_topic, table, totals, alpha, floor, sums, first, last
):
    """One iteration for the documents ``first`` to ``last`` − 1, without the topics' M-step.

    Parameters
    ----------
    length : ndarray, shape (D,)
        Tokens of the documents, not weighted.
    totals : ndarray, shape (K,)
        B_k, the sums of counts and β over each topic's words.
    floor : padded ndarray, 1 or V rows
        β_kv / B_k.
    sums : padded ndarray, V rows
        Σ n·r'_k of the words is added to it.

    Returns
    -------
    float
        Σ n log p of the entries, weighted.
    """
    work, *memory = memory_of(table, R + MOST, alpha)
    work[INVERSE, : len(alpha)] = 1.0 / np.where(totals > 0.0, totals, np.inf)
    work[ONES, : len(alpha)] = 1.0
    given = (begin, word, count, weight, length, doc_topic, table, alpha, floor, sums)
    return _leave_one_out_pass(*given, first, last, work, *memory)


@lean
def _leave_one_out_pass(
    begin, word, count, weight, length, doc_topic, table, alpha, floor, sums, first, last, work, part, places
):
    smallest, tiny = limits(table)
    prior, step, value = 0.0, entries_in_work(table), 0.0
    for k in range(alpha.shape[0]):
        prior += alpha[k]
    for d in range(first, last):
        own = 1.0 / (length[d] + prior) if length[d] + prior > 0.0 else 0.0
        read_topics(table, doc_topic, d, tiny, work, A)
        scaled(table, work, ALPHA, own, LEAST)
        scaled(table, work, A, 0.0, ACC)
        for e in range(begin[d], begin[d + 1], step):
            end = min(e + step, begin[d + 1])
            value += weight[d] * explain(word, count, table, sums, e, end, work, places, part, smallest)
            # A fraction of a token has added no more than itself; a document of weight 2 counts twice.
            for i in range(0, end - e, 4):
                shares = (own, min(weight[d], 1.0), smallest)
                if four_left(table, floor, places, i, work, A, LEAST, INVERSE, R, part, N, OF, LEFT, *shares):
                    include(table, places, i, work, part, smallest)
            for i in range(0, end - e, 4):
                share_four(table, sums, places, i, work, ACC, R, part, N, LEFT, weight[d])
        renew(table, work, ONES, ACC, tiny, doc_topic, d)
    return value
