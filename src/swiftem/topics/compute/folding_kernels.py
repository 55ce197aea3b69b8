r"""pLSA by documents: the folding in of documents, batches of them, and the topics' M-step.

Arrays and equations are those of ``passes_kernels.py``.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.kernels.compile import inlined, kernel
from swiftem.kernels.vector import (
    START,
    above,
    across,
    fma,
    larger,
    load,
    padded,
    plus,
    spread,
    step,
    store,
    times,
)
from swiftem.topics.compute.passes_kernels import (
    ACC,
    ALPHA,
    SMALLEST,
    A,
    columns,
    limits,
    read_topics,
    scratch_for,
)

__all__ = ["add_at", "fold_in", "gather", "m_step", "topics_at"]

LEAST_LEAP = 1e-6
"""Topics that change by less in total are not extrapolated: the direction would be rounding errors."""
LONGEST_LEAP = 8.0
"""Approximate limit of an extrapolation, in rounds: errors grow with its square."""
COPIED = 512
"""Entries of a document whose words' topics are copied contiguously before they are read repeatedly."""
FIRST, SECOND = 3, 4
"""Rows of a kernel's memory: the images of the topics A, and of the first image."""


@inlined
def _row(word, e, start, is_copied):
    """Return the row of entry e in the table, or in the copied rows of a document."""
    return e - start if is_copied else np.int64(word[e])


@inlined
def _dot(rows, v, scratch, row):
    """Return Σ ab of row v of ``rows``, for topics a in a row of ``work``."""
    total, k = spread(rows, 0.0), START
    while k < columns(scratch):
        total = fma(load(scratch.work, row, k), load(rows, v, k), total)
        k += step(rows)
    return np.float64(across(total))


@inlined
def _sums(entries, d, rows, is_copied, scratch, before):
    """Write Σ n·b / Σ ab of the entries of document d, for topics a in the row ``before``, to ACC."""
    work, start, stop = scratch.work, entries.begin[d], entries.begin[d + 1]
    smallest, _ = limits(rows)
    k = START
    while k < columns(scratch):
        store(work, ACC, k, spread(rows, 0.0))
        k += step(rows)
    for e in range(start, stop, 2):
        f = min(e + 1, stop - 1)
        v, w = _row(entries.word, e, start, is_copied), _row(entries.word, f, start, is_copied)
        p = max(_dot(rows, v, scratch, before), smallest)
        q = max(_dot(rows, w, scratch, before), smallest)
        one = spread(rows, entries.count[0, e] / p)
        two = spread(rows, entries.count[0, f] / q if f > e else 0.0)
        k = START
        while k < columns(scratch):
            total = fma(one, load(rows, v, k), load(work, ACC, k))
            store(work, ACC, k, fma(two, load(rows, w, k), total))
            k += step(rows)


@inlined
def _m_step(n_topics, scratch, before, after, tiny):
    """Write the M-step of the document's counts to a row of ``work``; return Σ_k |after − before|."""
    work, k, sums = scratch.work, START, spread(scratch.work, 0.0)
    while k < columns(scratch):
        counts = fma(load(work, before, k), load(work, ACC, k), load(work, ALPHA, k))
        store(work, ACC, k, counts)
        sums = plus(sums, counts)
        k += step(work)
    total = np.float64(across(sums))
    if total <= 0.0:
        for j in range(n_topics):
            work[ACC, j] = 1.0
        total = np.float64(n_topics)
    inverse, least, minus = spread(work, 1.0 / total), spread(work, tiny), spread(work, -1.0)
    change, k = spread(work, 0.0), START
    while k < columns(scratch):
        topics = above(times(load(work, ACC, k), inverse), least)
        difference = fma(minus, load(work, before, k), topics)
        change = plus(change, larger(difference, times(minus, difference)))
        store(work, after, k, topics)
        k += step(work)
    return np.float64(across(change))


@inlined
def _leap(n_topics, work):
    """Extrapolate A, its image FIRST and the image's image SECOND, in place of A (SQUAREM, third scheme).

    The topics of a document maximise a concave function, so that an extrapolation can only cost time. No
    share falls below a tenth of that in SECOND.
    """
    squares, bends = 0.0, 0.0
    for k in range(n_topics):
        step = work[FIRST, k] - work[A, k]
        bend = work[SECOND, k] - work[FIRST, k] - step
        squares += step * step
        bends += bend * bend
    length = np.sqrt(squares / bends) if bends > 0.0 else 1.0
    length = min(max(length, 1.0), LONGEST_LEAP)
    total = 0.0
    for k in range(n_topics):
        step = work[FIRST, k] - work[A, k]
        new = work[A, k] + 2.0 * length * step + length * length * (work[SECOND, k] - work[FIRST, k] - step)
        work[A, k] = max(new, 0.1 * work[SECOND, k])
        total += work[A, k]
    for k in range(n_topics):
        work[A, k] /= total


@inlined
def _copy(rows, row, scratch, into, to_row):
    """Copy a row of an array to one of another."""
    k = START
    while k < columns(scratch):
        store(into, to_row, k, load(rows, row, k))
        k += step(rows)


@inlined
def _write_topics(work, tiny, doc_topic, d):
    """Write the row A, normalised, to the topics of document d: uniform if all are zero."""
    n_topics, total = doc_topic.shape[1], 0.0
    for k in range(n_topics):
        total += work[A, k]
    inverse = 1.0 / total if total > 0.0 else 0.0
    for k in range(n_topics):
        new = work[A, k] * inverse if total > 0.0 else 1.0 / n_topics
        doc_topic[d, k] = new if new > tiny else 0.0


def fold_in(entries, table, alpha, max_iter, tol, doc_topic, log_likelihood, sums, first, last):
    """Find the topics of documents for given words of topics, each until they change by less than ``tol``.

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
    scratch, copied = scratch_for(table, 5, alpha), padded(COPIED, table.shape[1], table.dtype, np.empty)
    stop = (max_iter, tol)
    return _fold_in(entries, table, stop, doc_topic, log_likelihood, sums, first, last, scratch, copied)


@kernel
def _fold_in(entries, table, stop, doc_topic, log_likelihood, sums, first, last, scratch, copied):
    _, tiny = limits(table)
    evaluations = 0
    for d in range(first, last):
        start, end = entries.begin[d], entries.begin[d + 1]
        read_topics(doc_topic, d, scratch, tiny)
        is_copied = end - start <= COPIED
        rows = copied if is_copied else table
        if is_copied:
            for e in range(start, end):
                _copy(table, np.int64(entries.word[e]), scratch, copied, e - start)
        rounds = _iterate(entries, d, rows, is_copied, stop, doc_topic.shape[1], scratch, sums.shape[0] == 0)
        if sums.shape[0] > 0:
            _add_to_words(entries, d, table, sums, scratch)
        if log_likelihood.shape[0] > 0:
            log_likelihood[d] = _log_likelihood(entries, d, rows, is_copied, scratch)
        _write_topics(scratch.work, tiny, doc_topic, d)
        evaluations += (rounds + 1) * (end - start)
    return evaluations


@inlined
def _iterate(entries, d, rows, is_copied, stop, n_topics, scratch, leaps):
    """Iterate the topics of document d in the row A, with extrapolations or without; return the rounds."""
    work, (max_iter, tol) = scratch.work, stop
    _, tiny = limits(rows)
    rounds, change = 0, np.inf
    while rounds < max_iter and change >= tol:
        before, after = (A, A) if not leaps else (FIRST, SECOND) if rounds % 2 else (A, FIRST)
        _sums(entries, d, rows, is_copied, scratch, before)
        change = _m_step(n_topics, scratch, before, after, tiny)
        rounds += 1
        if after == SECOND and change >= tol and change > LEAST_LEAP and rounds < max_iter:
            _leap(n_topics, work)
        elif after != A and (after == SECOND or change < tol or rounds == max_iter):
            _copy(work, after, scratch, work, A)
    return rounds


@inlined
def _add_to_words(entries, d, table, sums, scratch):
    """Add n·a / Σ ab of the entries of document d, weighted, to the sums of their words."""
    smallest, _ = limits(table)
    for e in range(entries.begin[d], entries.begin[d + 1]):
        v, k = np.int64(entries.word[e]), START
        n = entries.weight[d] * entries.count[0, e]
        ratio = spread(table, n / max(_dot(table, v, scratch, A), smallest))
        while k < columns(scratch):
            store(sums, v, k, fma(ratio, load(scratch.work, A, k), load(sums, v, k)))
            k += step(table)


@inlined
def _log_likelihood(entries, d, rows, is_copied, scratch):
    """Return Σ n log p of document d."""
    value, start = 0.0, entries.begin[d]
    smallest, _ = limits(rows)
    for e in range(start, entries.begin[d + 1]):
        p = _dot(rows, _row(entries.word, e, start, is_copied), scratch, A)
        value += entries.count[0, e] * np.log(p if p > smallest else SMALLEST)
    return value


@kernel
def gather(numbers, begin, word, count, place, to_begin, to_word, to_count, words):
    """Copy some documents, with their words renumbered in the order of occurrence.

    Parameters
    ----------
    numbers : ndarray of int, shape (b,)
        The documents.
    place : ndarray of int32, shape (V,)
        −1 everywhere, before and after the call.
    to_begin, to_word, to_count
        The entries of the copies, written.
    words : ndarray of int64
        The old number of each new one, written.

    Returns
    -------
    int
        Number of distinct words.
    """
    at, found = 0, 0
    for i in range(numbers.shape[0]):
        to_begin[i] = at
        for e in range(begin[numbers[i]], begin[numbers[i] + 1]):
            v = word[e]
            if place[v] < 0:
                place[v] = found
                words[found] = v
                found += 1
            to_word[at] = place[v]
            to_count[at] = count[e]
            at += 1
    to_begin[numbers.shape[0]] = at
    for i in range(found):
        place[words[i]] = -1
    return found


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
    """Write what :func:`swiftem.topics.documents.words_of_topics` returns into ``out`` (V, K).

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
