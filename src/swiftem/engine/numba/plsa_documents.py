r"""pLSA by documents: the folding in of documents, batches of them, and the topics' M-step.

Arrays and equations are those of ``plsa_document_passes.py``.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.engine.numba.compile import caller, inlined, lean
from swiftem.engine.numba.memory import (
    LINE,
    above,
    across,
    fma,
    larger,
    load,
    padded,
    plus,
    spread,
    store,
    times,
)
from swiftem.engine.numba.plsa_document_passes import SMALLEST, dots, limits, read_row, write_row

__all__ = ["add_at", "fold_in", "gather", "m_step_of", "topics_at"]

LEAST_LEAP = 1e-6
"""Topics that change by less in total are not extrapolated: the direction would be rounding errors."""
LONGEST_LEAP = 8.0
"""Approximate limit of an extrapolation, in rounds: errors grow with its square."""
COPIED = 512
"""Entries of a document whose words' topics are copied contiguously before they are read repeatedly."""
A, ACC, ALPHA, ONE, TWO, ROWS = range(6)
"""Rows of a kernel's memory: topics of a document, its sums, α, and two images of the topics."""


@inlined
def _round(table, place, count, start, stop, n_topics, work, before, after):
    """One iteration of EM of a document's topics, from a row of ``work`` to another; return the change.

    Entry e has the row place[e] of the table; a place of length 0 means that rows are in the entries' order.
    """
    lines, zero = table.shape[1] * table.itemsize // LINE, spread(table, 0.0)
    smallest, tiny = limits(table)
    for j in range(lines):
        store(work, ACC, j, zero)
    for e in range(start, stop, 2):
        f = min(e + 1, stop - 1)
        v, w = (e - start, f - start) if place.shape[0] == 0 else (np.int64(place[e]), np.int64(place[f]))
        of_e, of_f = dots(table, v, w, work, before, smallest)
        one, two = spread(table, count[e] / of_e), spread(table, count[f] / of_f if f > e else 0.0)
        for j in range(lines):
            acc = fma(one, load(table, v, j), load(work, ACC, j))
            store(work, ACC, j, fma(two, load(table, w, j), acc))
    sums = zero
    for j in range(lines):
        acc = fma(load(work, before, j), load(work, ACC, j), load(work, ALPHA, j))
        store(work, ACC, j, acc)
        sums = plus(sums, acc)
    return _normalised(table, n_topics, np.float64(across(sums)), tiny, work, before, after)


@inlined
def _normalised(table, n_topics, total, tiny, work, before, after):
    """Write ACC / total to a row of ``work``, uniform if that is zero; return Σ_k |after − before|."""
    lines, change = table.shape[1] * table.itemsize // LINE, spread(table, 0.0)
    if total <= 0.0:
        for k in range(n_topics):
            work[ACC, k] = 1.0
        total = np.float64(n_topics)
    inverse, least = spread(table, 1.0 / total), spread(table, tiny)
    minus = spread(table, -1.0)
    for j in range(lines):
        new, old = above(times(load(work, ACC, j), inverse), least), load(work, before, j)
        difference = fma(minus, old, new)
        change = plus(change, larger(difference, times(minus, difference)))
        store(work, after, j, new)
    return np.float64(across(change))


@inlined
def _log_likelihood(table, place, count, start, stop, work):
    """Return Σ n log p of a document."""
    lines, value = table.shape[1] * table.itemsize // LINE, 0.0
    smallest, _ = limits(table)
    for e in range(start, stop):
        v, total = e - start if place.shape[0] == 0 else np.int64(place[e]), spread(table, 0.0)
        for j in range(lines):
            total = fma(load(work, A, j), load(table, v, j), total)
        found = np.float64(across(total))
        value += count[e] * np.log(found if found > smallest else SMALLEST)
    return value


@inlined
def _leap(n_topics, work):
    """Extrapolate A, its image ONE and the image's image TWO, in place of A (SQUAREM, third scheme).

    The topics of a document maximise a concave function, so that an extrapolation can only cost time. No
    share falls below a tenth of that in TWO.
    """
    squares, bends = 0.0, 0.0
    for k in range(n_topics):
        step = work[ONE, k] - work[A, k]
        bend = work[TWO, k] - work[ONE, k] - step
        squares += step * step
        bends += bend * bend
    length = np.sqrt(squares / bends) if bends > 0.0 else 1.0
    length = min(max(length, 1.0), LONGEST_LEAP)
    total = 0.0
    for k in range(n_topics):
        step = work[ONE, k] - work[A, k]
        new = work[A, k] + 2.0 * length * step + length * length * (work[TWO, k] - work[ONE, k] - step)
        work[A, k] = max(new, 0.1 * work[TWO, k])
        total += work[A, k]
    for k in range(n_topics):
        work[A, k] /= total


@caller
def fold_in(
    begin, word, count, weight, table, alpha, max_iter, tol, doc_topic, log_likelihood, sums, first, last
):
    """Find the topics of documents for given words of topics, each until they change by less than ``tol``.

    Parameters
    ----------
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
    kind = (table.shape[1], table.dtype)
    work, copied = padded(ROWS, *kind), padded(COPIED, *kind, np.empty)
    work[ALPHA, : len(alpha)] = alpha
    given = (begin, word, count, weight, table, max_iter, tol, doc_topic, log_likelihood, sums)
    return _fold_in(*given, first, last, work, copied, word[:0])


@lean
def _fold_in(
    begin, word, count, weight, table, max_iter, tol, doc_topic, log_likelihood, sums, first, last,
    work, copied, everywhere
):  # fmt: skip
    """As :func:`fold_in`, with ``work`` (ROWS, K), memory for the rows of a document, and no places."""
    n_topics, lines = doc_topic.shape[1], table.shape[1] * table.itemsize // LINE
    smallest, tiny = limits(table)
    is_summed = sums.shape[0] > 0
    evaluations = 0
    for d in range(first, last):
        start, stop = begin[d], begin[d + 1]
        read_row(doc_topic, d, tiny, work, A)
        rows, place = table, word
        if stop - start <= COPIED:
            rows, place = copied, everywhere
            for e in range(start, stop):
                for j in range(lines):
                    store(copied, e - start, j, load(table, word[e], j))
        rounds, change = 0, np.inf
        while rounds < max_iter and change >= tol:
            before, after = (A, A) if is_summed else (ONE, TWO) if rounds % 2 else (A, ONE)
            change = _round(rows, place, count, start, stop, n_topics, work, before, after)
            rounds += 1
            if after == TWO and change >= tol and change > LEAST_LEAP and rounds < max_iter:
                _leap(n_topics, work)
            elif after != A and (after == TWO or change < tol or rounds == max_iter):
                for j in range(lines):
                    store(work, A, j, load(work, after, j))
        for e in range(start, stop if is_summed else start):
            v, total = word[e], spread(table, 0.0)
            for j in range(lines):
                total = fma(load(work, A, j), load(table, v, j), total)
            ratio = spread(table, weight[d] * count[e] / max(np.float64(across(total)), smallest))
            for j in range(lines):
                store(sums, v, j, fma(ratio, load(work, A, j), load(sums, v, j)))
        if log_likelihood.shape[0] > 0:
            log_likelihood[d] = _log_likelihood(rows, place, count, start, stop, work)
        write_row(work, A, tiny, doc_topic, d)
        evaluations += (rounds + 1) * (stop - start)
    return evaluations


@lean
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


@lean
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


@lean
def add_at(words, change, factor, u):
    """Add factor·change (U, K) to the rows ``words`` of u (V, K)."""
    for i in range(words.shape[0]):
        v = words[i]
        for k in range(u.shape[1]):
            u[v, k] += factor * change[i, k]


@caller
def m_step_of(counts, beta, smallest, out):
    """Write the result of :func:`swiftem.models.documents.words_of_topics` into ``out`` (V, K)."""
    _m_step_of(counts, beta, smallest, out, np.zeros(counts.shape[1]))


@lean
def _m_step_of(counts, beta, smallest, out, totals):
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
