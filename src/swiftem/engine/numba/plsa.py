"""pLSA one token an iteration: whole stretches of iterations, O(K) each, whatever D and V.

The statistics are s = centre + scale · u with one number ``scale``, so that an iteration touches the rows of
the drawn tokens alone. The M-step, equation (mstep_plsa), is evaluated where the next tokens need it:
r_k ∝ (max(s_dk, 0) + α') · (max(s_kv, 0) + β') / (Σ_v s_kv + β'V).

Arrays that all loops share, here and in :mod:`swiftem.engine.numba.plsa_batch`:

- tokens (n, 2), uint32: document and word of each token.
- sample_weight (n,), or (0,) when all tokens count alike; mean_scale = n / (W·b) and share_scale = 1 / W,
  W the sum of weights.
- steps (T,): γ of each iteration. index, or index_i and index_j (T, b): token numbers of each iteration.
- documents (D, K), words (V, K): u, or the statistics; where there is a centre (D, C, K) and (V, C, K), so
  that a token costs one place in memory for each. C = 2: centre, u. C = 3: centre, u, and the anchor's θ
  (topics of documents, words of topics times topic_scale).
- totals (2, K): Σ_v s_kv, Σ_v centre_kv.
- memory (n, K): responsibilities when last drawn; float64 or float32, and what it holds is what counts.
- work (2b + 2, K): numbers that live for an iteration, and 1 / (Σ_v s_kv + β'V) in its last row.

A step whose Σ_v s_kv + β'V is not positive for every topic is rejected before anything of it is written. Most
steps are too small for that: ``low`` is a lower bound of the K numbers, from which each step takes the most
that its token can take away, and only where nothing would be left the K numbers are looked at.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.engine.numba.compile import helper, inlined, kernel
from swiftem.engine.numba.prefetch import prefetch, prefetch_row

__all__ = ["fast_incremental_em", "incremental_em", "online_em", "variance_reduced_em"]

SMALLEST = 1e-250
"""Below this sum of joint probabilities the document's row is scaled up first: it may be all but zero."""

LEAST_SCALE = 1e-100
"""Below this the scale goes into u, long before either of them leaves the range of a float."""

AHEAD = 6
"""Iterations by which a token's rows are asked for before they are needed."""

SLACK = 1e-6
"""Part by which that is more than the token can take away: rounding is far less."""


@inlined
def read_ahead(place, order, tokens, documents, words):
    """Ask for what tokens drawn after ``order[place]`` will need: first their numbers, later their rows.

    Without it a random token waits for memory three times as long as it computes, at 10^5 documents.
    """
    last = order.shape[0] - 1
    prefetch(tokens, order[min(place + 2 * AHEAD, last)], 0)  # type: ignore[call-arg]
    i = order[min(place + AHEAD, last)]
    prefetch_row(documents, tokens[i, 0])
    prefetch_row(words, tokens[i, 1])


@inlined
def read_memory_ahead(place, order, memory):
    """Ask for the memory of the token that is drawn some time after ``order[place]``."""
    prefetch_row(memory, order[min(place + AHEAD, order.shape[0] - 1)])


@inlined
def entry(table: Any, row: int, k: int, scale: float, prior: float) -> float:
    """Return the working entry max(s, 0) + prior of topic k, with s = scale · u or centre + scale · u."""
    if table.ndim == 2:  # known when it compiles: no test is left
        s = scale * table[row, k]
    else:
        s = table[row, 0, k] + scale * table[row, 1, k]
    return (s if s > 0.0 else 0.0) + prior


@helper
def careful(documents, words, d, v, scale, alpha, beta, norm, row):
    """Write joint probabilities into ``row`` (K,) and return their sum; for tokens of probability near zero.

    As θ̄ has it: a document whose row is zero has uniform topics; if a token's probability is zero even so,
    its responsibilities are uniform.
    """
    n_topics = norm.shape[0]
    largest = 0.0
    for k in range(n_topics):
        largest = max(largest, entry(documents, d, k, scale, alpha))
    total = 0.0
    for k in range(n_topics):
        of_document = entry(documents, d, k, scale, alpha) / largest if largest > 0.0 else 1.0
        row[k] = of_document * entry(words, v, k, scale, beta) * norm[k]
        total += row[k]
    if not total > 0.0:
        row[:] = 1.0
        total = float(n_topics)
    return total


@inlined
def joint(documents, words, d, v, scale, alpha, beta, norm, row):
    """Write the token's (condexp_plsa) into ``row`` (K,), not yet divided by the sum; return the sum."""
    total = 0.0
    for k in range(norm.shape[0]):
        value = entry(documents, d, k, scale, alpha) * entry(words, v, k, scale, beta) * norm[k]
        row[k] = value
        total += value
    if not total > SMALLEST:
        total = careful(documents, words, d, v, scale, alpha, beta, norm, row)
    return total


@inlined
def uniform(row, total):
    """Return ``total``, the sum of ``row`` (K,); where it is zero, after making the row uniform."""
    if not total > 0.0:
        row[:] = 1.0
        total = float(row.shape[0])
    return total


@inlined
def norms(totals, prior, norm):
    """Write 1 / (Σ_v s_kv + β'V) into ``norm`` (K,), and return the least of Σ_v s_kv + β'V."""
    low = np.inf
    for k in range(norm.shape[0]):
        low = min(low, totals[0, k] + prior)
        norm[k] = 1.0 / (totals[0, k] + prior)
    return low


@helper
def fold(table, factor):
    """Multiply u by ``factor``."""
    for row in range(table.shape[0]):
        for k in range(table.shape[-1]):
            if table.ndim == 2:
                table[row, k] *= factor
            else:
                table[row, 1, k] *= factor


@inlined
def shrink(documents, words, scale, keep):
    """Return the scale times ``keep``, 1 after it went into u."""
    scale *= keep
    if scale < LEAST_SCALE:
        fold(documents, scale)
        fold(words, scale)
        scale = 1.0
    return scale


@inlined
def weighted(sample_weight, i, scale):
    """Return ``scale`` times the weight of token i."""
    return scale * sample_weight[i] if sample_weight.shape[0] > 0 else scale


@helper
def least(totals, gamma, row, factor, other, other_factor, prior):
    """Return the least Σ_v s_kv + β'V after a step to the proxy centre + (factor · row − ...) / γ."""
    low = np.inf
    for k in range(row.shape[0]):
        change = factor * row[k] - other_factor * other[k]
        low = min(low, totals[0, k] + (gamma * (totals[1, k] - totals[0, k]) + change) + prior)
    return low


@kernel
def online_em(
    tokens, sample_weight, mean_scale, steps, index, documents, words, totals, scale, alpha, beta, work
):  # fmt: skip
    """sem, equation (oem): s ← (1−γ) s + γ · s̄_i(θ). There is no centre.

    Returns
    -------
    done, rejected : int
        Iterations, and how many of their steps were rejected.
    scale : float
        As it is after them.
    """
    n_topics, prior = totals.shape[1], beta * words.shape[0]
    row, norm = work[0], work[3]
    low = norms(totals, prior, norm)
    order, rejected = index.reshape(index.size), 0
    for t in range(index.shape[0]):
        read_ahead(t, order, tokens, documents, words)
        i, gamma = order[t], steps[t]
        keep = 1.0 - gamma
        d, v = tokens[i, 0], tokens[i, 1]
        total = joint(documents, words, d, v, scale, alpha, beta, norm, row)
        factor = gamma * weighted(sample_weight, i, mean_scale) / total
        # A token takes nothing away: only γ = 1, or a topic that has died out, brings a total to zero.
        bound = keep * low
        if not bound > SMALLEST:
            bound = least(totals, gamma, row, factor, row, 0.0, prior)
            if not bound > 0.0:
                rejected += 1
                continue
        low = bound
        scale = shrink(documents, words, scale, keep)
        inverse = 1.0 / scale
        for k in range(n_topics):
            change = factor * row[k]
            s = keep * totals[0, k] + change
            totals[0, k] = s
            norm[k] = 1.0 / (s + prior)
            change *= inverse
            documents[d, k] += change
            words[v, k] += change
    return index.shape[0], rejected, scale


@kernel
def incremental_em(
    tokens, sample_weight, share_scale, index, documents, words, totals, memory, alpha, beta, work
):  # fmt: skip
    """iem, equation (iem): s = centre ← centre + (1/n) Δ_i. There is no deviation.

    Returns
    -------
    done : int
        Iterations; fewer than asked for when the step of the next would be rejected, of which nothing is
        left in any array.
    """
    n_topics, prior = totals.shape[1], beta * words.shape[0]
    row, norm = work[0], work[3]
    low = norms(totals, prior, norm)
    order = index.reshape(index.size)
    for t in range(index.shape[0]):
        read_ahead(t, order, tokens, documents, words)
        read_memory_ahead(t, order, memory)
        i = order[t]
        d, v = tokens[i, 0], tokens[i, 1]
        total = joint(documents, words, d, v, 1.0, alpha, beta, norm, row)
        share, factor = weighted(sample_weight, i, share_scale), 1.0 / total
        bound = low - share * (1.0 + SLACK)
        if not bound > SMALLEST:
            bound = least(totals, 0.0, row, share * factor, memory[i], share, prior)
            if not bound > 0.0:
                return t
        low = bound
        for k in range(n_topics):
            before = np.float64(memory[i, k])
            memory[i, k] = factor * row[k]
            change = share * (memory[i, k] - before)
            s = totals[0, k] + change
            totals[0, k] = s
            norm[k] = 1.0 / (s + prior)
            documents[d, k] += change
            words[v, k] += change
    return index.shape[0]


@kernel
def variance_reduced_em(
    tokens, sample_weight, mean_scale, steps, index, documents, words, totals, scale, alpha, beta, work
):  # fmt: skip
    """sem-vr, equation (svrgem), between two renewals: deviation ← (1−γ) deviation + γ Δ_i. C = 3.

    Returns
    -------
    done, rejected : int
        Iterations, and how many of their steps were rejected.
    scale : float
        As it is after them.
    """
    n_topics, prior = totals.shape[1], beta * words.shape[0]
    row, row_anchor, norm = work[0], work[1], work[3]
    low, low_centre = norms(totals, prior, norm), totals[1].min() + prior
    order, rejected = index.reshape(index.size), 0
    for t in range(index.shape[0]):
        read_ahead(t, order, tokens, documents, words)
        i, gamma = order[t], steps[t]
        keep = 1.0 - gamma
        d, v = tokens[i, 0], tokens[i, 1]
        total = total_anchor = 0.0
        for k in range(n_topics):
            value = entry(documents, d, k, scale, alpha) * entry(words, v, k, scale, beta) * norm[k]
            at_anchor = documents[d, 2, k] * words[v, 2, k]
            row[k], row_anchor[k] = value, at_anchor
            total += value
            total_anchor += at_anchor
        if not total > SMALLEST:
            total = careful(documents, words, d, v, scale, alpha, beta, norm, row)
        total_anchor = uniform(row_anchor, total_anchor)
        weight = gamma * weighted(sample_weight, i, mean_scale)
        factor, factor_anchor = weight / total, weight / total_anchor
        bound = keep * low + gamma * low_centre - weight * (1.0 + SLACK)
        if not bound > SMALLEST:
            bound = least(totals, gamma, row, factor, row_anchor, factor_anchor, prior)
            if not bound > 0.0:
                rejected += 1
                continue
        low = bound
        scale = shrink(documents, words, scale, keep)
        inverse = 1.0 / scale
        for k in range(n_topics):
            change = factor * row[k] - factor_anchor * row_anchor[k]
            s = totals[0, k] + (gamma * (totals[1, k] - totals[0, k]) + change)
            totals[0, k] = s
            norm[k] = 1.0 / (s + prior)
            change *= inverse
            documents[d, 1, k] += change
            words[v, 1, k] += change
    return index.shape[0], rejected, scale


@kernel
def fast_incremental_em(
    tokens, sample_weight, mean_scale, share_scale, steps, index_i, index_j,
    documents, words, totals, scale, memory, alpha, beta, work
):  # fmt: skip
    """fiem, equation (sagaem): deviation ← (1−γ) deviation + γ Δ_i − δ, centre ← centre + δ. C = 2.

    δ = (1/n) Δ_j. Δ_i is taken before the row of the memory is written, also where i and j coincide.

    Returns
    -------
    done, rejected : int
        Iterations, and how many of their steps were rejected.
    scale : float
        As it is after them.
    """
    n_topics, prior = totals.shape[1], beta * words.shape[0]
    row_i, row_j, norm = work[0], work[1], work[3]
    low, low_centre = norms(totals, prior, norm), totals[1].min() + prior
    order_i, order_j, rejected = index_i.reshape(index_i.size), index_j.reshape(index_j.size), 0
    for t in range(index_i.shape[0]):
        read_ahead(t, order_i, tokens, documents, words)
        read_ahead(t, order_j, tokens, documents, words)
        read_memory_ahead(t, order_i, memory)
        read_memory_ahead(t, order_j, memory)
        i, j, gamma = order_i[t], order_j[t], steps[t]
        d, v, d_j, v_j = tokens[i, 0], tokens[i, 1], tokens[j, 0], tokens[j, 1]
        total_i = total_j = 0.0
        for k in range(n_topics):
            value = entry(documents, d, k, scale, alpha) * entry(words, v, k, scale, beta) * norm[k]
            value_j = entry(documents, d_j, k, scale, alpha) * entry(words, v_j, k, scale, beta) * norm[k]
            row_i[k], row_j[k] = value, value_j
            total_i += value
            total_j += value_j
        if not total_i > SMALLEST:
            total_i = careful(documents, words, d, v, scale, alpha, beta, norm, row_i)
        if not total_j > SMALLEST:
            total_j = careful(documents, words, d_j, v_j, scale, alpha, beta, norm, row_j)
        weight = gamma * weighted(sample_weight, i, mean_scale)
        share = weighted(sample_weight, j, share_scale)
        factor, factor_j, keep = weight / total_i, 1.0 / total_j, 1.0 - gamma
        bound = keep * low + gamma * low_centre - weight * (1.0 + SLACK)
        if not bound > SMALLEST:
            low_centre = totals[1].min() + prior
            bound = least(totals, gamma, row_i, factor, memory[i], weight, prior)
            if not bound > 0.0:
                rejected += 1
                bound = low
                keep, gamma, factor, weight = 1.0, 0.0, 0.0, 0.0  # s stays; what j changes is the same
        low = bound
        low_centre -= share * (1.0 + SLACK)
        scale = shrink(documents, words, scale, keep)
        inverse = 1.0 / scale
        for k in range(n_topics):
            change = factor * row_i[k] - weight * memory[i, k]
            s = totals[0, k] + (gamma * (totals[1, k] - totals[0, k]) + change)
            totals[0, k] = s
            norm[k] = 1.0 / (s + prior)
            before = np.float64(memory[j, k])
            memory[j, k] = factor_j * row_j[k]
            drift = share * (memory[j, k] - before)
            totals[1, k] += drift
            change *= inverse
            documents[d, 1, k] += change
            words[v, 1, k] += change
            documents[d_j, 0, k] += drift
            words[v_j, 0, k] += drift
            drift *= inverse
            documents[d_j, 1, k] -= drift
            words[v_j, 1, k] -= drift
    return index_i.shape[0], rejected, scale
