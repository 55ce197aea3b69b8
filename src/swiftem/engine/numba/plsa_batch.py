"""pLSA with several tokens an iteration: whole stretches of iterations, O(b·K) each, whatever D and V.

Arrays and statistics are those of :mod:`swiftem.engine.numba.plsa`, which does the same one token at a time
and faster. All E-steps of an iteration use the same θ: nothing that they read is written before the last one.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.engine.numba.compile import inlined, kernel
from swiftem.engine.numba.plsa import (
    joint,
    norms,
    read_ahead,
    read_memory_ahead,
    shrink,
    uniform,
    weighted,
)

__all__ = ["fast_incremental_em", "incremental_em", "online_em", "variance_reduced_em"]


@inlined
def _joint_at_anchor(documents, words, d, v, row):
    """As ``_joint``, with the anchor's θ in place of θ̄(s)."""
    total = 0.0
    for k in range(row.shape[0]):
        row[k] = documents[d, 2, k] * words[v, 2, k]
        total += row[k]
    return uniform(row, total)


@kernel
def online_em(
    tokens, sample_weight, mean_scale, steps, index, documents, words, totals, scale, alpha, beta, work
):  # fmt: skip
    """sem, equation (oem): s ← (1−γ) s + γ · mean_I s̄_i(θ). There is no centre.

    Returns
    -------
    done, rejected : int
        Iterations, and how many of their steps were rejected.
    scale : float
        As it is after them.
    """
    batch, n_topics = index.shape[1], totals.shape[1]
    prior = beta * words.shape[0]
    norm, candidate = work[2 * batch + 1], work[2 * batch]
    norms(totals, prior, norm)
    order, rejected = index.reshape(index.size), 0
    for t in range(index.shape[0]):
        keep, gamma = 1.0 - steps[t], steps[t]
        for k in range(n_topics):
            candidate[k] = keep * totals[0, k]
        for p in range(batch):
            read_ahead(t * batch + p, order, tokens, documents, words)
            i = index[t, p]
            total = joint(documents, words, tokens[i, 0], tokens[i, 1], scale, alpha, beta, norm, work[p])
            factor = gamma * weighted(sample_weight, i, mean_scale) / total
            for k in range(n_topics):
                change = factor * work[p, k]
                work[p, k] = change
                candidate[k] += change
        low = np.inf
        for k in range(n_topics):
            low = min(low, candidate[k])
        if not low + prior > 0.0:
            rejected += 1
            continue
        scale = shrink(documents, words, scale, keep)
        inverse = 1.0 / scale
        for p in range(batch):
            i = index[t, p]
            d, v = tokens[i, 0], tokens[i, 1]
            for k in range(n_topics):
                change = inverse * work[p, k]
                documents[d, k] += change
                words[v, k] += change
        for k in range(n_topics):
            totals[0, k] = candidate[k]
            norm[k] = 1.0 / (candidate[k] + prior)
    return index.shape[0], rejected, scale


@kernel
def incremental_em(
    tokens, sample_weight, share_scale, index, documents, words, totals, memory, alpha, beta, work
):  # fmt: skip
    """iem, equation (iem): s = centre ← centre + (1/n) Σ_I Δ_i. There is no deviation.

    A token drawn twice in an iteration finds its new row in the memory the second time: Δ is zero.

    Returns
    -------
    done : int
        Iterations; fewer than asked for when the step of the next would be rejected, of which nothing is
        left in any array.
    """
    batch, n_topics = index.shape[1], totals.shape[1]
    prior = beta * words.shape[0]
    norm, candidate = work[2 * batch + 1], work[2 * batch]
    norms(totals, prior, norm)
    order = index.reshape(index.size)
    for t in range(index.shape[0]):
        for k in range(n_topics):
            candidate[k] = totals[0, k]
        for p in range(batch):
            read_ahead(t * batch + p, order, tokens, documents, words)
            read_memory_ahead(t * batch + p, order, memory)
            i = index[t, p]
            total = joint(documents, words, tokens[i, 0], tokens[i, 1], 1.0, alpha, beta, norm, work[p])
            share, factor = weighted(sample_weight, i, share_scale), 1.0 / total
            for k in range(n_topics):
                before = np.float64(memory[i, k])
                memory[i, k] = factor * work[p, k]
                change = share * (memory[i, k] - before)
                work[batch + p, k] = before
                work[p, k] = change
                candidate[k] += change
        low = np.inf
        for k in range(n_topics):
            low = min(low, candidate[k])
        if not low + prior > 0.0:
            for p in range(batch - 1, -1, -1):
                for k in range(n_topics):
                    memory[index[t, p], k] = work[batch + p, k]
            return t
        for p in range(batch):
            i = index[t, p]
            d, v = tokens[i, 0], tokens[i, 1]
            for k in range(n_topics):
                documents[d, k] += work[p, k]
                words[v, k] += work[p, k]
        for k in range(n_topics):
            totals[0, k] = candidate[k]
            norm[k] = 1.0 / (candidate[k] + prior)
    return index.shape[0]


@kernel
def variance_reduced_em(
    tokens, sample_weight, mean_scale, steps, index, documents, words, totals, scale, alpha, beta, work
):  # fmt: skip
    """sem-vr, equation (svrgem), between two renewals: deviation ← (1−γ) deviation + γ · mean_I Δ_i. C = 3.

    Returns
    -------
    done, rejected : int
        Iterations, and how many of their steps were rejected.
    scale : float
        As it is after them.
    """
    batch, n_topics = index.shape[1], totals.shape[1]
    prior = beta * words.shape[0]
    norm, candidate = work[2 * batch + 1], work[2 * batch]
    norms(totals, prior, norm)
    order, rejected = index.reshape(index.size), 0
    for t in range(index.shape[0]):
        keep, gamma = 1.0 - steps[t], steps[t]
        for k in range(n_topics):
            candidate[k] = totals[0, k] + gamma * (totals[1, k] - totals[0, k])
        for p in range(batch):
            read_ahead(t * batch + p, order, tokens, documents, words)
            i = index[t, p]
            d, v = tokens[i, 0], tokens[i, 1]
            total = joint(documents, words, d, v, scale, alpha, beta, norm, work[p])
            at_anchor = _joint_at_anchor(documents, words, d, v, work[batch + p])
            weight = gamma * weighted(sample_weight, i, mean_scale)
            factor, factor_at_anchor = weight / total, weight / at_anchor
            for k in range(n_topics):
                change = factor * work[p, k] - factor_at_anchor * work[batch + p, k]
                work[p, k] = change
                candidate[k] += change
        low = np.inf
        for k in range(n_topics):
            low = min(low, candidate[k])
        if not low + prior > 0.0:
            rejected += 1
            continue
        scale = shrink(documents, words, scale, keep)
        inverse = 1.0 / scale
        for p in range(batch):
            i = index[t, p]
            d, v = tokens[i, 0], tokens[i, 1]
            for k in range(n_topics):
                change = inverse * work[p, k]
                documents[d, 1, k] += change
                words[v, 1, k] += change
        for k in range(n_topics):
            totals[0, k] = candidate[k]
            norm[k] = 1.0 / (candidate[k] + prior)
    return index.shape[0], rejected, scale


@kernel
def fast_incremental_em(
    tokens, sample_weight, mean_scale, share_scale, steps, index_i, index_j,
    documents, words, totals, scale, memory, alpha, beta, work
):  # fmt: skip
    """fiem, equation (sagaem): deviation ← (1−γ) deviation + γ · mean_I Δ_i − δ, centre ← centre + δ. C = 2.

    δ = (1/n) Σ_J Δ_j. All Δ_i are taken before the first row of the memory is written. A j drawn twice in an
    iteration finds its new row the second time: Δ is zero.

    Returns
    -------
    done, rejected : int
        Iterations, and how many of their steps were rejected.
    scale : float
        As it is after them.
    """
    batch, n_topics = index_i.shape[1], totals.shape[1]
    prior = beta * words.shape[0]
    norm, candidate = work[2 * batch + 1], work[2 * batch]
    norms(totals, prior, norm)
    order_i, order_j, rejected = index_i.reshape(index_i.size), index_j.reshape(index_j.size), 0
    for t in range(index_i.shape[0]):
        keep, gamma = 1.0 - steps[t], steps[t]
        for k in range(n_topics):
            candidate[k] = totals[0, k] + gamma * (totals[1, k] - totals[0, k])
        for p in range(batch):
            read_ahead(t * batch + p, order_i, tokens, documents, words)
            read_memory_ahead(t * batch + p, order_i, memory)
            i = index_i[t, p]
            total = joint(documents, words, tokens[i, 0], tokens[i, 1], scale, alpha, beta, norm, work[p])
            weight, factor = gamma * weighted(sample_weight, i, mean_scale), 1.0 / total
            for k in range(n_topics):
                change = weight * (factor * work[p, k] - memory[i, k])
                work[p, k] = change
                candidate[k] += change
        for p in range(batch):
            read_ahead(t * batch + p, order_j, tokens, documents, words)
            read_memory_ahead(t * batch + p, order_j, memory)
            j = index_j[t, p]
            total = joint(
                documents, words, tokens[j, 0], tokens[j, 1], scale, alpha, beta, norm, work[batch + p]
            )
            share, factor = weighted(sample_weight, j, share_scale), 1.0 / total
            for k in range(n_topics):
                before = np.float64(memory[j, k])
                memory[j, k] = factor * work[batch + p, k]
                change = share * (memory[j, k] - before)
                work[batch + p, k] = change
                totals[1, k] += change
        low = np.inf
        for k in range(n_topics):
            low = min(low, candidate[k])
        if low + prior > 0.0:
            scale = shrink(documents, words, scale, keep)
            inverse = 1.0 / scale
            for p in range(batch):
                i = index_i[t, p]
                d, v = tokens[i, 0], tokens[i, 1]
                for k in range(n_topics):
                    change = inverse * work[p, k]
                    documents[d, 1, k] += change
                    words[v, 1, k] += change
            for k in range(n_topics):
                totals[0, k] = candidate[k]
                norm[k] = 1.0 / (candidate[k] + prior)
        else:
            rejected += 1
        inverse = 1.0 / scale
        for p in range(batch):
            j = index_j[t, p]
            d, v = tokens[j, 0], tokens[j, 1]
            for k in range(n_topics):
                change = work[batch + p, k]
                documents[d, 0, k] += change
                words[v, 0, k] += change
                documents[d, 1, k] -= inverse * change
                words[v, 1, k] -= inverse * change
    return index_i.shape[0], rejected, scale
