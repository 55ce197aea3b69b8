r"""pLSA by documents: passes that update documents and sum words, and the folding in of documents.

Common arrays of all loops:

- entries: the documents, see :class:`swiftem.topics.compute.numpy.Entries`.
- doc_topic (D, K): topics of documents, float64, whatever the tables are.
- table: θ, words of topics, V rows of K numbers, padded to whole vectors (``vector.padded``), in float32 or
  float64. All sums over topics have its precision.
- sums: as the table; what a pass adds to the words.

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

``topics/compute/numpy.py`` has the same in NumPy.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swiftem.core.types import Array
from swiftem.kernels.compile import inlined, kernel
from swiftem.kernels.vector import (
    LINE,
    START,
    above,
    across,
    fma,
    larger,
    load,
    load_wide,
    log,
    narrow,
    over,
    padded,
    plus,
    prefetch,
    smaller,
    spread,
    step,
    store,
    store_sums,
    store_wide,
    times,
    wide,
)
from swiftem.topics.compute.numpy import LEAST_LEAP, LONGEST_LEAP, SMALLEST, TINY

SMALLEST_SINGLE, TINY_SINGLE = 1e-30, 1e-12
"""The least probability and the least share of a topic in float32."""
ROOM = 256
"""Entries processed at a time, times the vectors of their rows: these stay in the nearest cache."""
FEW_VECTORS = 4
"""Rows of up to this many vectors have kernels of their own, whose loops over vectors are unrolled."""
AHEAD, WORDS_AHEAD = 16, 8
"""Entries by which rows of the table and of the sums are prefetched."""
A, ACC, ALPHA = range(3)
"""Rows of ``Scratch.work``: topics of the document, its sums, and α."""
ONES, LEAST, INVERSE = 3, 4, 5
"""Rows for leaving one out: ones, α / A and 1 / B."""
ZEROTH, FIRST = 3, 4
"""Rows for folding in: the topics before the last two rounds."""
P, RATIO, TOKEN = range(3)
"""Rows of ``Scratch.part``: probabilities, counts over probabilities, −min(n, 1) / p."""
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)


class Scratch(NamedTuple):
    """Memory of a kernel.

    Attributes
    ----------
    vectors : tuple of None
        As long as a row has vectors, if these are few: compiled code knows the length of a tuple.
    work : padded ndarray
        Rows of the document in work.
    part : padded ndarray
        Rows with a number for each entry in work.
    """

    vectors: tuple[None, ...]
    work: Array
    part: Array


def scratch_for(table: Array, rows: int, alpha: Array) -> Scratch:
    """Return memory for a table's kernels, with this many rows, of which one has α."""
    work, part = padded(rows, table.shape[1], table.dtype), padded(3, ROOM, table.dtype)
    work[ALPHA, : len(alpha)], part[:] = alpha, 1.0
    vectors = table.shape[1] * table.itemsize // LINE
    return Scratch((None,) * vectors if vectors <= FEW_VECTORS else (), work, part)


@inlined
def columns(scratch):
    """Return the number of columns of a row, known at compile time if it is small."""
    if len(scratch.vectors) > 0:
        return np.uint64(len(scratch.vectors)) * step(scratch.work)
    return np.uint64(scratch.work.shape[1])


@inlined
def limits(table):
    """Return the least probability, and the least share of a topic."""
    return (SMALLEST, TINY) if step(table) == 8 else (SMALLEST_SINGLE, TINY_SINGLE)


@inlined
def entries_at_once(scratch):
    """Return how many entries are processed at a time, a multiple of four."""
    return max(4, ROOM // np.int64(columns(scratch) // step(scratch.work)) // 4 * 4)


@inlined
def place(word, e, scratch):
    """Return where the row of entry e begins in an array of the table's shape."""
    return np.uint64(word[e]) * columns(scratch)


@inlined
def four_places(word, e, end, scratch):
    """Return the places of four entries from e on; the last one's from ``end`` on."""
    first, last = np.uint64(e), np.uint64(end - 1)
    if e + 4 <= end:
        last = first + THREE
    second, third = min(first + ONE, last), min(first + TWO, last)
    return (
        place(word, first, scratch),
        place(word, second, scratch),
        place(word, third, scratch),
        place(word, last, scratch),
    )


@inlined
def read_topics(doc_topic, d, scratch, tiny):
    """Copy the topics of document d to the row A."""
    work, k = scratch.work, START
    least = spread(work, tiny)
    while k < columns(scratch):
        topics = narrow(load_wide(doc_topic, d, k, doc_topic.shape[1], work), work)
        store(work, A, k, above(topics, least))
        k += step(work)


@inlined
def scale_row(scratch, row, factor, to_row):
    """Write ``factor`` times a row of ``work`` to another one."""
    work, k = scratch.work, START
    factors = spread(work, factor)
    while k < columns(scratch):
        store(work, to_row, k, times(factors, load(work, row, k)))
        k += step(work)


@inlined
def add_prior(scratch, factors):
    """Write the counts of the document, ACC times the row ``factors`` and α, to ACC; return their sum."""
    work, k = scratch.work, START
    sums = wide(spread(work, 0.0))
    while k < columns(scratch):
        counts = fma(load(work, factors, k), load(work, ACC, k), load(work, ALPHA, k))
        store(work, ACC, k, counts)
        sums = plus(sums, wide(counts))
        k += step(work)
    return across(sums)


@inlined
def write_topics(scratch, row, total, tiny, doc_topic, d):
    """Write a row of ``work`` over ``total`` to the topics of document d: uniform for a total of zero."""
    work, n_topics, k = scratch.work, doc_topic.shape[1], START
    if total > 0.0:
        zeros = wide(spread(work, 0.0))
        factor, least = spread(zeros, 1.0 / total), spread(zeros, tiny)
        while k < columns(scratch):
            topics = times(factor, wide(load(work, row, k)))
            store_wide(doc_topic, d, k, n_topics, above(topics, least))
            k += step(work)
    else:
        for j in range(n_topics):
            doc_topic[d, j] = 1.0 / n_topics


@inlined
def probabilities(entries, e, end, table, scratch):
    """Write Σ ab of the entries e to ``end`` − 1 to the row P; prefetch the rows of later ones."""
    word, work, n_entries = entries.word, scratch.work, entries.word.shape[0]
    for i in range(e, end, 4):
        v0, v1, v2, v3 = four_places(word, min(i + AHEAD, n_entries - 1), n_entries, scratch)
        k = START
        while k < columns(scratch):
            prefetch(table, 0, v0 + k)
            prefetch(table, 0, v1 + k)
            prefetch(table, 0, v2 + k)
            prefetch(table, 0, v3 + k)
            k += step(table)
        v0, v1, v2, v3 = four_places(word, i, end, scratch)
        p0 = p1 = p2 = p3 = spread(table, 0.0)
        k = START
        while k < columns(scratch):
            a = load(work, A, k)
            p0 = fma(a, load(table, 0, v0 + k), p0)
            p1 = fma(a, load(table, 0, v1 + k), p1)
            p2 = fma(a, load(table, 0, v2 + k), p2)
            p3 = fma(a, load(table, 0, v3 + k), p3)
            k += step(table)
        store_sums(scratch.part, P, i - e, p0, p1, p2, p3)


@inlined
def divide(entries, e, end, table, part):
    """Write n / p of the entries, p at least the smallest one, to the row RATIO."""
    smallest, _ = limits(table)
    least, j = spread(table, smallest), START
    while j < np.uint64(end - e):
        n = narrow(load_wide(entries.count, 0, e + np.int64(j), end, table), table)
        p = larger(load(part, P, j), least)
        store(part, P, j, p)
        store(part, RATIO, j, over(n, p))
        j += step(table)


@inlined
def log_likelihood_of(entries, e, end, table, part):
    """Return Σ n log p of the entries."""
    smallest, _ = limits(table)
    least, total, j = spread(table, smallest), wide(spread(table, 0.0)), START
    while j < np.uint64(end - e):
        n = narrow(load_wide(entries.count, 0, e + np.int64(j), end, table), table)
        total = plus(total, wide(times(n, log(load(part, P, j), least))))
        j += step(table)
    return across(total)


@inlined
def add_to_document(word, e, end, rows, scratch):
    """Add the rows of the entries times RATIO to the document's sums."""
    work, part = scratch.work, scratch.part
    for i in range(e, end, 4):
        v0, v1, v2, v3 = four_places(word, i, end, scratch)
        j, k = np.uint64(i - e), START
        r0, r1 = spread(rows, part[RATIO, j]), spread(rows, part[RATIO, j + ONE])
        r2, r3 = spread(rows, part[RATIO, j + TWO]), spread(rows, part[RATIO, j + THREE])
        while k < columns(scratch):
            one = fma(r1, load(rows, 0, v1 + k), times(r0, load(rows, 0, v0 + k)))
            two = fma(r3, load(rows, 0, v3 + k), times(r2, load(rows, 0, v2 + k)))
            store(work, ACC, k, plus(load(work, ACC, k), plus(one, two)))
            k += step(rows)


@inlined
def add_to_words(word, e, end, sums, scratch, rows, row, each, weight):
    """Add RATIO times the weight times rows from ``row`` on, by steps of ``each``, to the entries' words."""
    for i in range(e, end):
        later, k = place(word, np.uint64(min(i + WORDS_AHEAD, word.shape[0] - 1)), scratch), START
        while k < columns(scratch):
            prefetch(sums, 0, later + k)
            k += step(sums)
        v, k = place(word, np.uint64(i), scratch), START
        ratio = times(spread(sums, weight), spread(sums, scratch.part[RATIO, np.uint64(i - e)]))
        while k < columns(scratch):
            store(sums, 0, v + k, fma(ratio, load(rows, row, k), load(sums, 0, v + k)))
            k += step(sums)
        row += each


def pass_over(entries, doc_topic, table, alpha, left_out, sums, first, last):
    """One iteration of EM for the documents ``first`` to ``last`` − 1, without the topics' M-step.

    Parameters
    ----------
    doc_topic : ndarray, shape (D, K)
        Topics of documents: input of the E-step, replaced by the result of the M-step.
    alpha : ndarray, shape (K,)
        Added to a document's counts of topics.
    left_out : tuple or None
        To leave each token out of the counts that explain it: 1 / A (D,), what a token has added to its
        document's topics; B (K,), the sums of counts and β over each topic's words; and β / B, padded, 1 or V
        rows.
    sums : padded ndarray, V rows
        Σ n·a_k / Σ ab of the words is added to it: times b it is their counts. If tokens are left out it is
        Σ n·r'_k.

    Returns
    -------
    float
        Σ n log p of the entries, weighted.
    """
    scratch = scratch_for(table, 6, alpha)
    if left_out is not None:
        own, totals, floor = left_out
        scratch.work[INVERSE, : len(alpha)] = 1.0 / np.where(totals > 0.0, totals, np.inf)
        scratch.work[ONES, : len(alpha)] = 1.0
        rows = padded(max(4, ROOM * LINE // table.strides[0]), table.shape[1], table.dtype)
        left_out = (own, floor, rows, np.arange(len(rows), dtype=np.int32))
    return _pass_over(entries, doc_topic, table, sums, first, last, scratch, left_out)


@kernel
def _pass_over(entries, doc_topic, table, sums, first, last, scratch, left_out):
    _, tiny = limits(table)
    each, value = entries_at_once(scratch), 0.0
    for d in range(first, last):
        weight, stop = entries.weight[d], entries.begin[d + 1]
        read_topics(doc_topic, d, scratch, tiny)
        scale_row(scratch, A, 0.0, ACC)
        if left_out is not None:
            own, floor, rows, order = left_out
            scale_row(scratch, ALPHA, own[d], LEAST)
        for e in range(entries.begin[d], stop, each):
            end = min(e + each, stop)
            probabilities(entries, e, end, table, scratch)
            divide(entries, e, end, table, scratch.part)
            value += weight * log_likelihood_of(entries, e, end, table, scratch.part)
            if left_out is None:
                add_to_document(entries.word, e, end, table, scratch)
                add_to_words(entries.word, e, end, sums, scratch, scratch.work, A, 0, weight)
            else:
                # A document of weight 2 counts twice: one of its tokens has added no more than one.
                leave_out(entries, e, end, table, floor, scratch, rows, own[d], min(weight, 1.0))
                add_to_document(order, 0, end - e, rows, scratch)
                add_to_words(entries.word, e, end, sums, scratch, rows, 0, 1, weight)
        total = add_prior(scratch, A if left_out is None else ONES)
        write_topics(scratch, ACC, total, tiny, doc_topic, d)
    return value


@inlined
def leave_out(entries, e, end, table, floor, scratch, rows, own, share):
    """Write a'b' of the entries to ``rows``, and their counts over Σ a'b' to the row RATIO.

    An entry of which nothing is left without its token is explained with it, by ab.
    """
    work, part = scratch.work, scratch.part
    smallest, _ = limits(table)
    own_tokens(entries, e, end, table, part)
    for i in range(e, end):
        row, v, k = i - e, place(entries.word, np.uint64(i), scratch), START
        low = v if floor.shape[0] > 1 else START
        token, left = spread(table, part[TOKEN, np.uint64(row)]), spread(table, 0.0)
        of_document, of_word = times(spread(table, own), token), times(spread(table, share), token)
        while k < columns(scratch):
            a, b = load(work, A, k), load(table, 0, v + k)
            joint = times(a, b)
            a = larger(fma(of_document, joint, a), load(work, LEAST, k))
            b = fma(times(of_word, load(work, INVERSE, k)), joint, b)
            joint = times(a, larger(b, load(floor, 0, low + k)))
            store(rows, row, k, joint)
            left = plus(left, joint)
            k += step(table)
        total = across(left)
        if total > smallest:
            part[P, row] = total
        else:
            k = START
            while k < columns(scratch):
                store(rows, row, k, times(load(work, A, k), load(table, 0, v + k)))
                k += step(table)
    divide(entries, e, end, table, part)


@inlined
def own_tokens(entries, e, end, table, part):
    """Write −min(n, 1) / p to the row TOKEN: a fraction of a token has added no more than itself."""
    one, minus, j = spread(table, 1.0), spread(table, -1.0), START
    while j < np.uint64(end - e):
        n = narrow(load_wide(entries.count, 0, e + np.int64(j), end, table), table)
        store(part, TOKEN, j, times(minus, over(smaller(n, one), load(part, P, j))))
        j += step(table)


@kernel
def write_table(values, least, table, first, last):
    """Write the rows ``first`` to ``last`` − 1 of ``values`` (V, K) to the table: zero up to ``least``."""
    smallest, n_topics = spread(table, least), values.shape[1]
    for v in range(first, last):
        k = START
        while k < np.uint64(table.shape[1]):
            store(table, v, k, above(narrow(load_wide(values, v, k, n_topics, table), table), smallest))
            k += step(table)


@kernel
def add_parts(parts, number, before, factor, out, first, last):
    """Add the sums of pieces, for the words ``first`` to ``last`` − 1.

    Parameters
    ----------
    parts : padded ndarray
        The first ``number`` times V rows are sums of pieces, V for each.
    before, factor : ndarray, shape (V, K) or (0, K)
        The result is (before + sums)·factor; an array of no rows has no part in it.
    out : ndarray, shape (V, K)
        Written; may be ``before``.
    """
    n_words, n_topics = out.shape
    for v in range(first, last):
        k = START
        while k < np.uint64(parts.shape[1]):
            total = load(parts, v, k)
            for i in range(1, number):
                total = plus(total, load(parts, i * n_words + v, k))
            found = wide(total)
            if before.shape[0] > 0:
                found = plus(load_wide(before, v, k, n_topics, parts), found)
            if factor.shape[0] > 0:
                found = times(found, load_wide(factor, v, k, n_topics, parts))
            store_wide(out, v, k, n_topics, found)
            k += step(parts)


def fold_in(entries, table, alpha, stop, doc_topic, log_likelihood, sums, first, last):
    """Find the topics of documents for given words of topics, each until ``stop``.

    Parameters
    ----------
    alpha : ndarray, shape (K,)
        Added to a document's counts of topics.
    doc_topic : ndarray, shape (D, K)
        Initial topics, and the result.
    log_likelihood : ndarray, shape (D,) or (0,)
        Σ n log p of each document, written.
    sums : padded ndarray, V rows or none
        Σ n·a_k / Σ ab of the words is added to it: times b it is their counts. With sums, iterations are
        plain ones: the E-step of a batch.

    Returns
    -------
    int
        E-steps of entries.
    """
    scratch = scratch_for(table, 5, alpha)
    return _fold_in(entries, table, stop, doc_topic, log_likelihood, sums, first, last, scratch)


@kernel
def _fold_in(entries, table, stop, doc_topic, log_likelihood, sums, first, last, scratch):
    (max_iter, tol), (_, tiny), n_topics = stop, limits(table), doc_topic.shape[1]
    each, evaluations = entries_at_once(scratch), 0
    for d in range(first, last):
        start, rounds, change, value = entries.begin[d], 0, np.inf, 0.0
        size = entries.begin[d + 1] - start
        read_topics(doc_topic, d, scratch, tiny)
        is_over = False
        while not is_over:
            # The last E-step is at the topics that were found.
            is_over = rounds == max_iter or not change >= tol
            scale_row(scratch, A, 1.0, ZEROTH + rounds % 2)
            scale_row(scratch, A, 0.0, ACC)
            for e in range(start, start + size, each):
                end = min(e + each, start + size)
                probabilities(entries, e, end, table, scratch)
                divide(entries, e, end, table, scratch.part)
                if not is_over:
                    add_to_document(entries.word, e, end, table, scratch)
                elif sums.shape[0] > 0:
                    weight = entries.weight[d]
                    add_to_words(entries.word, e, end, sums, scratch, scratch.work, A, 0, weight)
                if is_over and log_likelihood.shape[0] > 0:
                    value += log_likelihood_of(entries, e, end, table, scratch.part)
            if not is_over:
                rounds, change = rounds + 1, m_step_of_document(n_topics, scratch, tiny)
                goes_on = rounds < max_iter and change >= tol
                if sums.shape[0] == 0 and rounds % 2 == 0 and goes_on and change > LEAST_LEAP:
                    leap(n_topics, scratch.work)
        if log_likelihood.shape[0] > 0:
            log_likelihood[d] = value
        total = 0.0
        for k in range(n_topics):
            total += scratch.work[A, k]
        write_topics(scratch, A, total, tiny, doc_topic, d)
        evaluations += (rounds + 1) * size
    return evaluations


@inlined
def m_step_of_document(n_topics, scratch, tiny):
    """Write the M-step of the document's counts to the row A; return the total change of its topics."""
    work, total, k = scratch.work, add_prior(scratch, A), START
    if not total > 0.0:
        for j in range(n_topics):
            work[ACC, j] = 1.0
        total = np.float64(n_topics)
    inverse, least, minus = spread(work, 1.0 / total), spread(work, tiny), spread(work, -1.0)
    change = spread(work, 0.0)
    while k < columns(scratch):
        topics = above(times(load(work, ACC, k), inverse), least)
        difference = fma(minus, load(work, A, k), topics)
        change = plus(change, larger(difference, times(minus, difference)))
        store(work, A, k, topics)
        k += step(work)
    return np.float64(across(change))


@inlined
def leap(n_topics, work):
    """Extrapolate the topics ZEROTH, their image FIRST and its image A, in place of A.

    It is the third scheme of SQUAREM. The topics of a document maximise a concave function, so that an
    extrapolation can only cost time. No share falls below a tenth of that in A.
    """
    squares, bends = 0.0, 0.0
    for k in range(n_topics):
        step = work[FIRST, k] - work[ZEROTH, k]
        bend = work[A, k] - work[FIRST, k] - step
        squares += step * step
        bends += bend * bend
    length = np.sqrt(squares / bends) if bends > 0.0 else 1.0
    length = min(max(length, 1.0), LONGEST_LEAP)
    total = 0.0
    for k in range(n_topics):
        step = work[FIRST, k] - work[ZEROTH, k]
        bend = work[A, k] - work[FIRST, k] - step
        new = work[ZEROTH, k] + 2.0 * length * step + length * length * bend
        work[A, k] = max(new, 0.1 * work[A, k])
        total += work[A, k]
    for k in range(n_topics):
        work[A, k] /= total


@kernel
def topics_at(words, centre, u, scale, beta, strength, totals, smallest, out):
    """Write θ of some words: max(centre + scale·u, 0) + strength·β, divided by the topics' totals.

    Parameters
    ----------
    words : ndarray of int64, shape (U,)
        Their numbers.
    centre, u : ndarray, shapes (V, K) or (0, K), and (V, K)
        The running counts; a centre of no rows is zero.
    beta : ndarray, shape (V, K)
        Added to the counts.
    strength : float
        Factor of β.
    totals : ndarray, shape (K,)
        Σ_v of counts and strength·β.
    smallest : float
        Smaller values are written as zero.
    out : ndarray, shape (U, K)
        Written.
    """
    for i in range(words.shape[0]):
        v = words[i]
        for k in range(out.shape[1]):
            n = scale * u[v, k]
            if centre.shape[0] > 0:
                n += centre[v, k]
            p = (max(n, 0.0) + strength * beta[v, k]) / totals[k]
            out[i, k] = p if p > smallest else 0.0


@kernel
def add_at(words, change, factor, u):
    """Add factor·change (U, K) to the rows ``words`` of u (V, K)."""
    for i in range(words.shape[0]):
        v = words[i]
        for k in range(u.shape[1]):
            u[v, k] += factor * change[i, k]


@kernel
def m_step(counts, beta, smallest, out, totals):
    """Write what :func:`swiftem.topics.documents.m_step` returns into ``out`` (V, K).

    ``totals`` (K,) are zeros.
    """
    n_words, n_topics = counts.shape
    for v in range(n_words):
        b = v if beta.shape[0] > 1 else 0
        for k in range(n_topics):
            out[v, k] = max(counts[v, k], 0.0) + beta[b, k]
            totals[k] += out[v, k]
    for k in range(n_topics):
        if not (totals[k] > 0.0 and totals[k] < np.inf):
            totals[k] = 0.0
    for v in range(n_words):
        for k in range(n_topics):
            p = out[v, k] / totals[k]
            out[v, k] = p if p >= smallest else 0.0
    for k in range(n_topics):
        if totals[k] == 0.0:
            for v in range(n_words):
                out[v, k] = 1.0 / n_words
