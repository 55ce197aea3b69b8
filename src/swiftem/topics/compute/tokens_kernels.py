r"""pLSA by tokens: stretches of iterations, O(b·K) each, whatever D and V, and full passes.

A method declares S = λC + Δ with Δ = mean_I(s̄_i(θ) − λ·ref_i), which changes only the rows of the drawn
tokens; s ← s + γ(S − s) changes all. Therefore statistics and centre are stored as

    s = λ·C + scale·u,

with tables C and u, or u alone if there is no centre. An iteration is

    scale ← (1−γ)·scale,    u ← u + γΔ / scale,

and if the centre changes by δ, C ← C + δ and u ← u − λδ / scale, so that s stays. It changes by:

- memory: δ = (1/n) Σ_J (s̄_j(θ) − ref_j) of the second stream's tokens.
- renewed by the drawn: S = C + δ. That is Δ = δ, λ = 1, and the centre follows.
- anchor: nothing, between two full passes.
- previous: C ← S = C + Δ, with λ = 1, and the centre follows.

With γ = 1 the scale vanishes, and u is set to zero. Where the centre follows it then stays zero, which saves
writing it in consecutive steps of one.

The M-step, equation (mstep_plsa), is evaluated only for the next tokens:
r_k ∝ (max(s_dk, 0) + α') · (max(s_kv, 0) + β') / (Σ_v s_kv + β'V).
A step whose Σ_v s_kv + β'V is not positive for every topic is rejected.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.kernels.compile import helper, inlined, kernel
from swiftem.kernels.vector import borrowed, prefetch, prefetch_row

U, CENTRE, ANCHOR = range(3)
"""Parts of a row of a table: u, C, and the anchor's θ (of words: times topic_scale)."""
SMALLEST = 1e-250
"""Below this sum of joint probabilities the document's row is rescaled first: it may be nearly zero."""
LEAST_SCALE = 1e-100
"""Below this the scale is folded into u, long before either of them underflows or overflows."""
AHEAD = 6
"""Number of tokens by which rows are prefetched."""
FLUSH = 1e-100
"""Smaller responsibilities of full passes are zero: products with subnormal numbers are slow."""


@inlined
def weighted(weight, i, factor):
    """Return ``factor`` times the weight of token i."""
    return factor * weight[i] if weight.shape[0] > 0 else factor


@inlined
def read_ahead(t, order, place, documents, words, memory):
    """Prefetch for tokens drawn after ``order[t]``: first their indices, later their rows.

    Without it a random token waits for memory three times as long as it computes, at 10^5 documents.
    """
    last = order.shape[0] - 1
    prefetch(place, order[min(t + 2 * AHEAD, last)], 0)
    i = order[min(t + AHEAD, last)]
    prefetch_row(documents, place[i, 0])
    prefetch_row(words, place[i, 1])
    if memory is not None:
        prefetch_row(memory, i)


@inlined
def statistic(table, row, k, scale, correction):
    """Return s of topic k."""
    if correction is None:
        return scale * table[row, U, k]
    return correction * table[row, CENTRE, k] + scale * table[row, U, k]


@inlined
def entry(table, row, k, scale, correction, prior):
    """Return the working entry max(s, 0) + prior of topic k."""
    s = statistic(table, row, k, scale, correction)
    return (s if s > 0.0 else 0.0) + prior


@inlined
def uniform(work, row, total):
    """Return ``total``, the sum of a row; if it is zero, after making the row uniform."""
    if not total > 0.0:
        for k in range(work.shape[1]):
            work[row, k] = 1.0
        total = float(work.shape[1])
    return total


@helper
def careful(documents, d, words, v, norm, prior, scale, correction, work, row):
    """Do what :func:`joint` does for tokens of probability near zero.

    As in θ̄: a document whose row is zero has uniform topics; if a token's probability is still zero, its
    responsibilities are uniform.
    """
    largest, total = 0.0, 0.0
    for k in range(work.shape[1]):
        largest = max(largest, entry(documents, d, k, scale, correction, prior[0]))
    for k in range(work.shape[1]):
        share = entry(documents, d, k, scale, correction, prior[0]) / largest if largest > 0.0 else 1.0
        work[row, k] = share * entry(words, v, k, scale, correction, prior[1]) * norm[k]
        total += work[row, k]
    return uniform(work, row, total)


@inlined
def joint(documents, d, words, v, norm, prior, scale, correction, work, row):
    """Write a token's joint probabilities (condexp_plsa) into a row of ``work``; return their sum."""
    total = 0.0
    for k in range(work.shape[1]):
        of_document = entry(documents, d, k, scale, correction, prior[0])
        work[row, k] = of_document * entry(words, v, k, scale, correction, prior[1]) * norm[k]
        total += work[row, k]
    if not total > SMALLEST:
        total = careful(documents, d, words, v, norm, prior, scale, correction, work, row)
    return total


@inlined
def joint_at_anchor(documents, d, words, v, work, row):
    """Write the joint probabilities at the anchor into a row of ``work``; return their sum."""
    total = 0.0
    for k in range(work.shape[1]):
        work[row, k] = documents[d, ANCHOR, k] * words[v, ANCHOR, k]
        total += work[row, k]
    return uniform(work, row, total)


@helper
def fold(table, factor):
    """Multiply u by ``factor``."""
    for row in range(table.shape[0]):
        for k in range(table.shape[2]):
            table[row, U, k] *= factor


@inlined
def renewed(memory, i, k, value, share):
    """Write a responsibility of token i to the memory; return its change there, which may round it."""
    old = np.float64(memory[i, k])
    memory[i, k] = value
    return share * (memory[i, k] - old)


@helper
def look_up(place, order, first, tables, prior, scale, correction, work):
    """Write the responsibilities of tokens from ``order[first]`` on into the second half of ``work``."""
    documents, words, _, norm, _ = tables
    b = work.shape[0] // 2
    for q in range(b):
        i = order[first + q]
        d, v = place[i, 0], place[i, 1]
        total = joint(documents, d, words, v, norm, prior, scale, correction, work, b + q)
        for k in range(work.shape[1]):
            work[b + q, k] *= 1.0 / total


@helper
def write_out(tables, scale, correction, before):
    """Write θ into ``before``."""
    for table, into in ((tables.documents, before.documents), (tables.words, before.words)):
        for row in range(into.shape[0]):
            for k in range(into.shape[2]):
                into[row, U, k] = statistic(table, row, k, scale, correction)
    before.norm[:], before.prior[:] = tables.norm, tables.prior


@kernel
def iterate(tokens, steps, order, tables, scale, correction, work, memory, before):
    """Do a stretch of iterations, of the update that the arguments given declare.

    All E-steps of an iteration use the same θ: what they read is written after the last one. The θ of the
    previous iteration is lost then, but the tokens of the next one are known, and are evaluated before.

    Parameters
    ----------
    tokens : tuple
        The samples: document and word (n, 2); their weights (n,), empty if all are equal; their weights in a
        mean over drawn tokens, empty also if tokens are drawn in proportion to weights; the factor of these
        in such a mean, n / (W·b) or 1 / b; and 1 / W, the factor of weights in a mean over all.
    steps : ndarray, shape (T,)
        γ of each iteration.
    order : ndarray of int, shape (T·b,) or (T·2b,)
        The drawn tokens of each iteration, then the tokens of the second stream (fiem).
    tables : Tables
        The statistics, changed.
    scale : float
        Factor of u.
    correction : float or None
        λ; None: there is no centre (sem).
    work : ndarray, shape (2·b + 1, K)
        Temporary numbers: changes by the drawn tokens; by the second stream, or what they are compared with;
        and the totals that are proposed.
    memory : ndarray, shape (n, K), or None
        Renewed by the second stream (fiem), or if there is none by the drawn tokens (iem).
    before : Tables or None
        θ of the previous iteration (spider), the reference of the first one; θ before the last iteration is
        written there. Without it and a memory, the reference is the anchor (sem-vr).

    Returns
    -------
    scale : float
        Factor of u.
    rejected : int
        Number of steps that were rejected.
    """
    tokens, tables, order, work = borrowed(tokens), borrowed(tables), borrowed(order), borrowed(work)
    documents, words, totals, norm, priors = tables
    prior = priors[0], priors[1], priors[2]
    place, weights, own, mean, share = tokens
    n_topics = work.shape[1]
    b, rows, rejected, is_zero = work.shape[0] // 2, order.shape[0] // steps.shape[0], 0, False
    follows = before is not None or (memory is not None and rows == b)
    for k in range(n_topics):
        norm[k] = 1.0 / (totals[0, k] + prior[2])
    if before is not None:
        old = before.prior[0], before.prior[1], before.prior[2]
        look_up(place, order, 0, before, old, 1.0, None, work)
    for t in range(steps.shape[0]):
        gamma, keep = steps[t], 1.0 - steps[t]
        for k in range(n_topics):
            work[-1, k] = totals[0, k] + gamma * (totals[1, k] - totals[0, k])
        for q in range(rows):
            read_ahead(t * rows + q, order, place, documents, words, memory)
            i = order[t * rows + q]
            d, v = place[i, 0], place[i, 1]
            total = joint(documents, d, words, v, norm, prior, scale, correction, work, q)
            factor = 1.0 / total
            weight = weighted(own, i, mean)
            if correction is None:
                for k in range(n_topics):
                    work[q, k] *= weight * factor
            elif memory is None:
                taken = correction
                if before is None:
                    taken /= joint_at_anchor(documents, d, words, v, work, b + q)
                for k in range(n_topics):
                    work[q, k] = weight * (factor * work[q, k] - taken * work[b + q, k])
            elif follows or q >= b:
                weight = weighted(weights, i, share)
                for k in range(n_topics):
                    work[q, k] = renewed(memory, i, k, factor * work[q, k], weight)
            else:
                for k in range(n_topics):
                    work[q, k] = weight * (factor * work[q, k] - correction * memory[i, k])
            if q < b:
                for k in range(n_topics):
                    work[-1, k] += gamma * work[q, k]
        if before is not None:
            if t + 1 < steps.shape[0]:
                look_up(place, order, (t + 1) * b, tables, prior, scale, correction, work)
            else:
                write_out(tables, scale, correction, before)
        is_positive = True
        for k in range(n_topics):
            is_positive &= work[-1, k] + prior[2] > 0.0
        if is_positive:
            for k in range(n_topics):
                totals[0, k] = work[-1, k]
                norm[k] = 1.0 / (work[-1, k] + prior[2])
        else:
            rejected, gamma, keep = rejected + 1, 0.0, 1.0
        if keep > 0.0 or not is_zero:
            scale *= keep
            if scale < LEAST_SCALE:
                fold(documents, scale)
                fold(words, scale)
                scale = 1.0
        is_zero = follows and keep == 0.0
        for q in range(rows):
            i = order[t * rows + q]
            d, v = place[i, 0], place[i, 1]
            factor = gamma if q < b else 0.0
            if correction is not None and (follows or q >= b):
                factor -= correction
                for k in range(n_topics):
                    documents[d, CENTRE, k] += work[q, k]
                    words[v, CENTRE, k] += work[q, k]
                    totals[1, k] += correction * work[q, k]
            if factor != 0.0:
                factor *= 1.0 / scale
                for k in range(n_topics):
                    documents[d, U, k] += factor * work[q, k]
                    words[v, U, k] += factor * work[q, k]
    return scale, rejected


@inlined
def posterior(doc_topic, d, word_topic, v, row):
    """Write the responsibilities of a token (condexp_plsa) into ``row`` (K,); uniform at probability zero."""
    total = 0.0
    for k in range(row.shape[0]):
        row[k] = doc_topic[d, k] * word_topic[v, k]
        total += row[k]
    if not total > 0.0:
        row[:] = 1.0
        total = float(row.shape[0])
    smallest = FLUSH * total
    for k in range(row.shape[0]):
        row[k] = row[k] / total if row[k] > smallest else 0.0


@kernel
def full_pass(entries, doc_topic, word_topic, memory, start, stop):
    """Return Σ_e factor_e r_ek of the entries ``start`` to ``stop`` − 1, by document and by word.

    Parameters
    ----------
    entries : tuple
        Document, word and factor of m entries, equal tokens of a document if the source has them so: the
        factor is count times weight. Then where they begin (m + 1,): entry e is tokens ``begin[e]`` to
        ``begin[e + 1]`` − 1; empty if it is token e.
    doc_topic, word_topic : ndarray, shapes (D, K) and (V, K)
        θ; words are times topic_scale.
    memory : ndarray, shape (n, K), or None
        The responsibilities of the entries' tokens are written into it, and the statistics are sums of its
        values, which float32 rounds.

    Returns
    -------
    first : int
        The first document that occurs.
    by_document : ndarray, shape (documents from the first to the last that occurs, K)
    by_word : ndarray, shape (V, K)
    """
    document, word, factor, begin = borrowed(entries)
    doc_topic, word_topic = borrowed(doc_topic), borrowed(word_topic)
    first = last = np.int64(document[start])
    for e in range(start, stop):
        first, last = min(first, np.int64(document[e])), max(last, np.int64(document[e]))
    row = np.empty(doc_topic.shape[1])
    by_document, by_word = np.zeros((last + 1 - first, row.shape[0])), np.zeros(word_topic.shape)
    for e in range(start, stop):
        d, v = document[e], word[e]
        posterior(doc_topic, d, word_topic, v, row)
        if memory is not None:
            head, end = (begin[e], begin[e + 1]) if begin.shape[0] > 0 else (e, e + 1)
            for i in range(head, end):
                for k in range(row.shape[0]):
                    memory[i, k] = row[k]
            for k in range(row.shape[0]):
                row[k] = memory[head, k]
        for k in range(row.shape[0]):
            by_document[d - first, k] += factor[e] * row[k]
            by_word[v, k] += factor[e] * row[k]
    return first, by_document, by_word


@kernel
def log_likelihood(entries, doc_topic, word_topic, start, stop):
    """Return Σ_e factor_e log Σ_k doc_topic_dk word_topic_vk of the entries ``start`` to ``stop`` − 1."""
    document, word, factor, _ = entries
    value = 0.0
    for e in range(start, stop):
        total = 0.0
        for k in range(doc_topic.shape[1]):
            total += doc_topic[document[e], k] * word_topic[word[e], k]
        value += factor[e] * np.log(total)
    return value
