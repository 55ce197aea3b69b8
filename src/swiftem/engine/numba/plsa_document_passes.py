r"""pLSA by documents: passes that update documents and sum words.

Common arrays of all loops:

- begin (D + 1,), word (m,), count (m,): the entries of the documents in CSR order; entries of document d are
  begin[d] to begin[d + 1] − 1. Counts are float64.
- weight (D,): of documents; their parts of sums over documents are multiplied by it.
- doc_topic (D, K): topics of documents, float64, whatever the tables are.
- table: θ, words of topics, V rows of K numbers in whole cache lines (``memory.padded``), float32 or float64.
  It says what all sums over topics are computed in; float32 has twice as many numbers in a line.
- alpha (K,): added to a document's counts of topics.
- p (m,), or of length 0: the probabilities of the entries, written.

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

from swiftem.engine.numba.compile import inlined, kernel
from swiftem.engine.numba.memory import (
    LINE,
    across,
    fma,
    larger,
    load,
    plus,
    prefetch,
    spread,
    store,
    times,
)  # fmt: skip

__all__ = ["leave_one_out_pass", "pass_over"]

SMALLEST, SMALLEST_SINGLE = 1e-150, 1e-30
"""Smaller probabilities are replaced by this: no division by zero, and no subnormal numbers."""
TINY, TINY_SINGLE = 1e-60, 1e-12
"""Smaller shares of a topic are read as zero, for the same reason."""
AHEAD = 4
"""Entries between the one in work and the one whose rows are prefetched."""
A, ACC, R, LEAST, INVERSE, ALPHA, ROWS = 0, 1, 2, 4, 5, 6, 7
"""Rows of a kernel's memory: topics of the document, its sums, responsibilities of two entries, the least
shares, 1 / B, and α."""


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
def next_rows(table, sums, word, e, lines):
    """Prefetch the rows of two later entries."""
    v, w = word[min(e + AHEAD, word.shape[0] - 1)], word[min(e + AHEAD + 1, word.shape[0] - 1)]
    for j in range(lines):
        prefetch(table, v, LINE * j)
        prefetch(sums, v, LINE * j)
        prefetch(table, w, LINE * j)
        prefetch(sums, w, LINE * j)


@inlined
def dots(table, v, w, work, row, smallest):
    """Return Σ ab of the words v and w, for topics a in a row of ``work``: at least ``smallest``."""
    one, two = spread(table, 0.0), spread(table, 0.0)
    for j in range(table.shape[1] * table.itemsize // LINE):
        a = load(work, row, j)
        one = fma(a, load(table, v, j), one)
        two = fma(a, load(table, w, j), two)
    return max(np.float64(across(one)), smallest), max(np.float64(across(two)), smallest)


@kernel
def pass_over(begin, word, count, weight, doc_topic, table, alpha, sums, p, first, last):
    """One iteration of EM for the documents ``first`` to ``last`` − 1, without the topics' M-step.

    Two entries at a time share the reading of a document's topics and the writing of its sums.

    Parameters
    ----------
    doc_topic : ndarray, shape (D, K)
        Topics of documents: input of the E-step, replaced by the result of the M-step.
    sums : padded ndarray, V rows
        Σ n·a_k / Σ ab of the words is added to it: times b it is their counts.
    """
    n_topics, lines = doc_topic.shape[1], table.shape[1] * table.itemsize // LINE
    smallest, tiny = limits(table)
    work, zero = np.zeros((ROWS, table.shape[1]), table.dtype), spread(table, 0.0)
    for d in range(first, last):
        read_row(doc_topic, d, tiny, work, A)
        for j in range(lines):
            store(work, ACC, j, zero)
        for e in range(begin[d], begin[d + 1], 2):
            f = min(e + 1, begin[d + 1] - 1)
            next_rows(table, sums, word, e, lines)
            v, w = word[e], word[f]
            of_e, of_f = dots(table, v, w, work, A, smallest)
            n, m = count[e] / of_e, count[f] / of_f if f > e else 0.0
            one, two = spread(table, n), spread(table, m)
            heavy_one, heavy_two = spread(table, weight[d] * n), spread(table, weight[d] * m)
            for j in range(lines):
                a, acc = load(work, A, j), load(work, ACC, j)
                acc = fma(one, load(table, v, j), acc)
                store(work, ACC, j, fma(two, load(table, w, j), acc))
                store(sums, v, j, fma(heavy_one, a, load(sums, v, j)))
                store(sums, w, j, fma(heavy_two, a, load(sums, w, j)))
            if p.shape[0] > 0:
                p[e], p[f] = of_e, of_f
        for k in range(n_topics):
            work[ACC, k] = work[A, k] * work[ACC, k] + alpha[k]
        write_row(work, ACC, tiny, doc_topic, d)


@inlined
def _included(table, v, work, row):
    """Write a·b, the responsibilities with the token itself."""
    for j in range(table.shape[1] * table.itemsize // LINE):
        store(work, row, j, times(load(work, A, j), load(table, v, j)))


@kernel
def leave_one_out_pass(
    begin, word, count, weight, length, doc_topic, table, totals, alpha, floor, sums, p, first, last
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
    """
    n_topics, lines = doc_topic.shape[1], table.shape[1] * table.itemsize // LINE
    smallest, tiny = limits(table)
    work, zero = np.zeros((ROWS, table.shape[1]), table.dtype), spread(table, 0.0)
    prior = 0.0
    for k in range(n_topics):
        work[INVERSE, k] = 1.0 / totals[k] if totals[k] > 0.0 else 0.0
        work[ALPHA, k] = alpha[k]
        prior += alpha[k]
    for d in range(first, last):
        own = 1.0 / (length[d] + prior) if length[d] + prior > 0.0 else 0.0
        read_row(doc_topic, d, tiny, work, A)
        least = spread(table, own)
        for j in range(lines):
            store(work, ACC, j, zero)
            store(work, LEAST, j, times(least, load(work, ALPHA, j)))
        for e in range(begin[d], begin[d + 1], 2):
            f = min(e + 1, begin[d + 1] - 1)
            next_rows(table, sums, word, e, lines)
            v, w = word[e], word[f]
            low_v, low_w = (v, w) if floor.shape[0] > 1 else (0, 0)
            of_e, of_f = dots(table, v, w, work, A, smallest)
            # A fraction of a token has added no more than itself; a document of weight 2 counts twice.
            part_e, part_f = -min(count[e], 1.0) / of_e, -min(count[f], 1.0) / of_f
            a_e, a_f = spread(table, own * part_e), spread(table, own * part_f)
            b_e, b_f = (
                spread(table, min(weight[d], 1.0) * part_e),
                spread(table, min(weight[d], 1.0) * part_f),
            )
            one, two = zero, zero
            for j in range(lines):
                a, b, c = load(work, A, j), load(table, v, j), load(table, w, j)
                bound, inverse = load(work, LEAST, j), load(work, INVERSE, j)
                r, s = times(a, b), times(a, c)
                r = times(
                    larger(fma(a_e, r, a), bound),
                    larger(fma(times(b_e, inverse), r, b), load(floor, low_v, j)),
                )
                s = times(
                    larger(fma(a_f, s, a), bound),
                    larger(fma(times(b_f, inverse), s, c), load(floor, low_w, j)),
                )
                store(work, R, j, r)
                store(work, R + 1, j, s)
                one, two = plus(one, r), plus(two, s)
            left_e, left_f = np.float64(across(one)), np.float64(across(two))
            # Nothing is left without the token: it is included.
            if left_e <= smallest:
                left_e = of_e
                _included(table, v, work, R)
            if left_f <= smallest:
                left_f = of_f
                _included(table, w, work, R + 1)
            n, m = count[e] / left_e, count[f] / left_f if f > e else 0.0
            one, two = spread(table, n), spread(table, m)
            heavy_one, heavy_two = spread(table, weight[d] * n), spread(table, weight[d] * m)
            for j in range(lines):
                r, s = load(work, R, j), load(work, R + 1, j)
                store(work, ACC, j, fma(two, s, fma(one, r, load(work, ACC, j))))
                store(sums, v, j, fma(heavy_one, r, load(sums, v, j)))
                store(sums, w, j, fma(heavy_two, s, load(sums, w, j)))
            if p.shape[0] > 0:
                p[e], p[f] = of_e, of_f
        for k in range(n_topics):
            work[ACC, k] += work[ALPHA, k]
        write_row(work, ACC, tiny, doc_topic, d)
