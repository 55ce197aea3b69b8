r"""pLSA by documents: passes that update documents and sum words, and the folding in of documents.

Common arrays of all loops:

- begin (D + 1,), word (m,), count (m,): the entries of the documents in CSR order; entries of document d are
  begin[d] to begin[d + 1] − 1. Counts are float64.
- weight (D,): of documents; their parts of sums over documents are multiplied by it.
- word_topic (V, K): θ, words of topics, contiguous in K, float64.
- alpha (K,): added to a document's counts of topics.

With :math:`a_k = \theta_{dk}` and :math:`b_k = \theta_{kv}`, an entry of count n has responsibilities
:math:`r_k = a_k b_k / \sum a b`, equation (condexp_plsa). It adds n·r_k to the counts of its document and of
its word. As a is the same for all entries of a document, its counts are a_k times a sum of n·b_k / Σ ab.
``engine/reference/plsa_documents.py`` has the same in plain NumPy.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.engine.numba.compile import inlined, kernel, reordered
from swiftem.engine.numba.memory import part, room

__all__ = ["add_at", "fold_in", "gather", "m_step_of", "pass_over", "sums_of", "topics_at"]

SMALLEST = 1e-150
"""Smaller probabilities are replaced by this: no division by zero, and no subnormal numbers."""
TINY = 1e-60
"""Smaller shares of a topic are read as zero, for the same reason."""
LEAST_LEAP = 1e-6
"""Topics that change by less in total are not extrapolated: the direction would be rounding errors."""
LONGEST_LEAP = 8.0
"""Approximate limit of an extrapolation, in rounds: errors grow with its square."""
COPIED = 512
"""Entries of a document whose words' topics are copied contiguously before they are read repeatedly."""


@inlined
def _normalised(a, acc, alpha, out):
    """Write a_k·acc_k + α_k, normalised, into out (K,); return Σ_k |out − a|. Uniform if all are zero."""
    total = 0.0
    for k in range(a.shape[0]):
        acc[k] = a[k] * acc[k] + alpha[k]
        total += acc[k]
    change = 0.0
    for k in range(a.shape[0]):
        new = acc[k] / total if total > 0.0 else 1.0 / a.shape[0]
        new = new if new > TINY else 0.0
        change += abs(new - a[k])
        out[k] = new
    return change


@reordered
def pass_over(begin, word, count, weight, doc_topic, word_topic, alpha, by_word, first, last):
    """One iteration of EM for the documents ``first`` to ``last`` − 1, without the topics' M-step.

    Parameters
    ----------
    doc_topic : ndarray, shape (D, K)
        Topics of documents: input of the E-step, replaced by the result of the M-step.
    by_word : ndarray, shape (V, K)
        Σ n·r_k of the words is added to it.

    Returns
    -------
    float
        Σ n log p of the entries, before the M-step.
    """
    n_topics = word_topic.shape[1]
    scratch = room(2, n_topics)
    acc, heavy = part(scratch, 0, n_topics), part(scratch, 1, n_topics)
    value = 0.0
    for d in range(first, last):
        a = doc_topic[d]
        for k in range(n_topics):
            acc[k] = 0.0
            heavy[k] = a[k] * weight[d]
        product, of_document = 1.0, 0.0
        for e in range(begin[d], begin[d + 1]):
            b, q = word_topic[word[e]], by_word[word[e]]
            total = 0.0
            for k in range(n_topics):
                total += a[k] * b[k]
            total = total if total > SMALLEST else SMALLEST
            ratio = count[e] / total
            for k in range(n_topics):
                change = b[k] * ratio
                acc[k] += change
                q[k] += heavy[k] * change
            # A logarithm costs as much as all of the above: one for many entries.
            if count[e] == 1.0:
                product *= total
                if product < SMALLEST:
                    of_document += np.log(product)
                    product = 1.0
            else:
                of_document += count[e] * np.log(total)
        value += weight[d] * (of_document + np.log(product))
        _normalised(a, acc, alpha, a)
    return value


@inlined
def _round(table, place, count, start, stop, alpha, a, acc, out):
    """One iteration of EM of a document's topics, from a (K,) to out (K,); return the change.

    Entry e has the row place[e] of the table; a place of length 0 means that rows are in the entries' order.
    """
    n_topics = a.shape[0]
    for k in range(n_topics):
        acc[k] = 0.0
    for e in range(start, stop):
        b = table[e - start if place.shape[0] == 0 else place[e]]
        total = 0.0
        for k in range(n_topics):
            total += a[k] * b[k]
        ratio = count[e] / (total if total > SMALLEST else SMALLEST)
        for k in range(n_topics):
            acc[k] += b[k] * ratio
    return _normalised(a, acc, alpha, out)


@inlined
def _log_likelihood(table, place, count, start, stop, a):
    """Return Σ n log p of a document."""
    value = 0.0
    for e in range(start, stop):
        b = table[e - start if place.shape[0] == 0 else place[e]]
        total = 0.0
        for k in range(a.shape[0]):
            total += a[k] * b[k]
        value += count[e] * np.log(total if total > SMALLEST else SMALLEST)
    return value


@inlined
def _leap(a, one, two):
    """Extrapolate a, its image ``one`` and the image's image ``two``, in place of a (SQUAREM, third scheme).

    The topics of a document maximise a concave function, so that an extrapolation can only cost time. No
    share falls below a tenth of that in ``two``.
    """
    squares, bends = 0.0, 0.0
    for k in range(a.shape[0]):
        step = one[k] - a[k]
        bend = two[k] - one[k] - step
        squares += step * step
        bends += bend * bend
    length = np.sqrt(squares / bends) if bends > 0.0 else 1.0
    length = min(max(length, 1.0), LONGEST_LEAP)
    total = 0.0
    for k in range(a.shape[0]):
        step = one[k] - a[k]
        new = a[k] + 2.0 * length * step + length * length * (two[k] - one[k] - step)
        a[k] = max(new, 0.1 * two[k])
        total += a[k]
    for k in range(a.shape[0]):
        a[k] /= total


@reordered
def fold_in(begin, word, count, word_topic, alpha, max_iter, tol, doc_topic, log_likelihood, first, last):
    """Find the topics of documents for given words of topics, each until they change by less than ``tol``.

    Parameters
    ----------
    doc_topic : ndarray, shape (D, K)
        Initial topics, and the result.
    log_likelihood : ndarray, shape (D,)
        Σ n log p of each document, written.

    Returns
    -------
    int
        E-steps of entries.
    """
    n_topics = word_topic.shape[1]
    scratch = room(3, n_topics)
    acc, one = part(scratch, 0, n_topics), part(scratch, 1, n_topics)
    two = part(scratch, 2, n_topics)
    copied = np.empty((COPIED, n_topics))
    everywhere = word[:0]
    evaluations = 0
    for d in range(first, last):
        a, start, stop = doc_topic[d], begin[d], begin[d + 1]
        table, place = word_topic, word
        if stop - start <= COPIED:
            table, place = copied, everywhere
            for e in range(start, stop):
                for k in range(n_topics):
                    copied[e - start, k] = word_topic[word[e], k]
        rounds = 0
        while rounds < max_iter:
            change = _round(table, place, count, start, stop, alpha, a, acc, one)
            rounds += 1
            if change >= tol and rounds < max_iter:
                change = _round(table, place, count, start, stop, alpha, one, acc, two)
                rounds += 1
                if change >= tol and change > LEAST_LEAP and rounds < max_iter:
                    _leap(a, one, two)
                else:
                    for k in range(n_topics):
                        a[k] = two[k]
            else:
                for k in range(n_topics):
                    a[k] = one[k]
            if change < tol:
                break
        log_likelihood[d] = _log_likelihood(table, place, count, start, stop, a)
        evaluations += (rounds + 1) * (stop - start)
    return evaluations


@reordered
def sums_of(begin, word, count, weight, word_topic, alpha, max_iter, tol, by_word, doc_topic, first, last):
    """Fold documents in, from ``doc_topic``, and sum their words: the E-step of a batch.

    Parameters
    ----------
    by_word : ndarray, shape (V, K)
        Σ n·r_k of the words is added to it.
    doc_topic : ndarray, shape (D, K)
        The initial topics, and the result.

    Returns
    -------
    int
        E-steps of entries.
    """
    n_topics = word_topic.shape[1]
    acc = part(room(1, n_topics), 0, n_topics)
    evaluations = 0
    for d in range(first, last):
        a, start, stop = doc_topic[d], begin[d], begin[d + 1]
        rounds = 0
        while rounds < max_iter:
            rounds += 1
            if _round(word_topic, word, count, start, stop, alpha, a, acc, a) < tol:
                break
        for e in range(start, stop):
            b, q = word_topic[word[e]], by_word[word[e]]
            total = 0.0
            for k in range(n_topics):
                total += a[k] * b[k]
            ratio = weight[d] * count[e] / (total if total > SMALLEST else SMALLEST)
            for k in range(n_topics):
                q[k] += a[k] * b[k] * ratio
        evaluations += (rounds + 1) * (stop - start)
    return evaluations


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
def m_step_of(counts, beta, smallest, out):
    """Write words of topics, equation (mstep_plsa): max(counts, 0) + β, divided by their sums.

    Parameters
    ----------
    counts : ndarray, shape (V, K)
        Expected counts.
    beta : ndarray, shape (1, K) or (V, K)
        Added to them.
    smallest : float
        Smaller values are written as zero.
    out : ndarray, shape (V, K)
        Written; uniform if the sum is zero.
    """
    n_words, n_topics = counts.shape
    totals = np.zeros(n_topics)
    for v in range(n_words):
        b = beta[v if beta.shape[0] > 1 else 0]
        for k in range(n_topics):
            out[v, k] = max(counts[v, k], 0.0) + b[k]
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
