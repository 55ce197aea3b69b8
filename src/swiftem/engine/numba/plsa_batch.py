"""pLSA with several tokens per iteration, or if the centre follows the drawn ones: O(b·K) each.

Arguments, statistics and results are those of :mod:`swiftem.engine.numba.plsa`, which does the same one token
at a time and faster. All E-steps of an iteration use the same θ: nothing that they read is written before the
last one.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import numpy as np

from swiftem.engine.numba.compile import helper, inlined, kernel
from swiftem.engine.numba.plsa import (
    FAR,
    LEAST_SCALE,
    SMALLEST,
    careful,
    entry,
    growth,
    joint,
    learn_from,
    norms,
    read_ahead,
    read_memory_ahead,
    shrink,
    statistic,
    uniform,
    weighted,
)
from swiftem.engine.numba.softmax import copy

__all__ = ["iterate", "lasting"]

NEAR = 1e-14
"""A p/c within this relative distance of the one that lasts is that one: rounding must not accumulate."""


@inlined
def _joint_at_anchor(documents, words, d, v, row):
    """As ``joint``, with the anchor's θ instead of θ̄(s)."""
    total = 0.0
    for k in range(row.shape[0]):
        row[k] = documents[d, 2, k] * words[v, 2, k]
        total += row[k]
    return uniform(row, total)


@helper
def _look_up(tokens, index, documents, words, scale, rates, alpha, beta, norm, rows):
    """Write the responsibilities of tokens ``index`` (b,) into ``rows`` (b, K)."""
    for p in range(index.shape[0]):
        i = index[p]
        d, v, row, total = tokens[i, 0], tokens[i, 1], rows[p], 0.0
        for k in range(row.shape[0]):
            value = entry(documents, d, k, scale, rates, alpha) * entry(words, v, k, scale, rates, beta)
            row[k] = value * norm[k]
            total += row[k]
        if not total > SMALLEST:
            total = careful(documents, words, d, v, scale, rates, alpha, beta, norm, row)
        factor = 1.0 / total
        for k in range(row.shape[0]):
            row[k] *= factor


@helper
def _write_out(table, scale, rates, into):
    """Write all statistics of a table into ``into`` (rows, K)."""
    for row in range(into.shape[0]):
        for k in range(into.shape[1]):
            into[row, k] = statistic(table, row, k, scale, rates)


def lasting(gamma: float, correction: float) -> float:
    """Return the p/c that iterations with this γ and λ preserve, or 1 if it were large.

    >>> round(lasting(0.1, 0.6), 12), lasting(0.1, 0.9), lasting(1.0, 0.6)
    (-0.2, 1.0, 1.0)
    """
    gap = correction - (1.0 - gamma)
    return gamma * correction / gap if abs(gap) > 0.1 * gamma else 1.0


_lasting = inlined(lasting)


@helper
def _rewrite(table, factor, shift):
    """Add ``shift`` times B to u, and multiply B by ``factor``."""
    for row in range(table.shape[0]):
        for k in range(table.shape[2]):
            table[row, 1, k] += shift * table[row, 0, k]
            table[row, 0, k] *= factor


@inlined
def _move(documents, words, d, v, rows, centre_factor, factor):
    """Add ``rows`` (K,), times the factors, to B and u of a token's document and word."""
    for k in range(rows.shape[0]):
        change = centre_factor * rows[k]
        documents[d, 0, k] += change
        words[v, 0, k] += change
        change = factor * rows[k]
        documents[d, 1, k] += change
        words[v, 1, k] += change


@kernel
def iterate(
    tokens, sample_weight, divided, mean_scale, share_scale, correction, steps, index, other,
    documents, words, totals, scale, memory, before, rates, moments, alpha, beta, work
):  # fmt: skip
    """Do iterations of any method.

    All Δ_i are computed before the first row of the memory is written. A token that is drawn twice for
    renewal finds its new row the second time: Δ is zero.
    """
    batch, n_topics = index.shape[1], totals.shape[1]
    prior = beta * words.shape[0]
    norm, candidate = work[2 * batch + 1], work[2 * batch]
    norms(totals, prior, norm)
    order, rejected, is_flat, lead = index.reshape(index.size), 0, False, 1.0
    own_weight = sample_weight[:0] if divided else sample_weight
    if other.ndim == 2:
        order_j = other.reshape(other.size)
    if len(before) > 0:
        old_documents, old_words, old_norm, old_prior = before
        _look_up(
            tokens, index[0], old_documents, old_words, 1.0, rates, old_prior[0], old_prior[1], old_norm,
            work[batch : 2 * batch],
        )  # fmt: skip
    for t in range(index.shape[0]):
        keep, gamma = 1.0 - steps[t], steps[t]
        if documents.ndim == 2 and memory.ndim == 2:
            keep = 1.0  # s = C
        if moments.ndim == 1:
            correction = lead = moments[2]
        for k in range(n_topics):
            if documents.ndim == 2:
                candidate[k] = keep * totals[0, k]
            else:
                candidate[k] = totals[0, k] + gamma * (lead * totals[1, k] - totals[0, k])
        for p in range(batch):
            read_ahead(t * batch + p, order, tokens, documents, words)
            if memory.ndim == 2:
                read_memory_ahead(t * batch + p, order, memory)
            i = index[t, p]
            d, v = tokens[i, 0], tokens[i, 1]
            row, total = work[p], 0.0
            for k in range(n_topics):  # as in ``joint``, which costs a quarter more here
                value = entry(documents, d, k, scale, rates, alpha) * entry(words, v, k, scale, rates, beta)
                row[k] = value * norm[k]
                total += row[k]
            if not total > SMALLEST:
                total = careful(documents, words, d, v, scale, rates, alpha, beta, norm, row)
            if memory.ndim == 2 and other.ndim == 0:
                share, factor = weighted(sample_weight, i, share_scale), 1.0 / total
                for k in range(n_topics):
                    old = np.float64(memory[i, k])
                    memory[i, k] = factor * work[p, k]
                    change = share * (memory[i, k] - old)
                    work[batch + p, k] = old
                    work[p, k] = change
                    candidate[k] += change if documents.ndim == 2 else gamma * change
            elif len(before) > 0:
                weight = weighted(own_weight, i, mean_scale)
                factor, taken = weight / total, correction * weight
                for k in range(n_topics):
                    change = factor * work[p, k] - taken * work[batch + p, k]
                    work[p, k] = change
                    candidate[k] += gamma * change
            elif memory.ndim == 2:
                weight, factor = gamma * weighted(own_weight, i, mean_scale), 1.0 / total
                if moments.ndim == 1 and p == 0:
                    learn_from(
                        documents, words, d, v, row, factor, memory[i],
                        batch * weighted(own_weight, i, mean_scale), rates, moments,
                    )  # fmt: skip
                for k in range(n_topics):
                    change = weight * (factor * work[p, k] - correction * memory[i, k])
                    work[p, k] = change
                    candidate[k] += change
            else:
                weight = gamma * weighted(own_weight, i, mean_scale)
                factor = weight / total
                if documents.ndim == 3:
                    taken = correction * weight / _joint_at_anchor(documents, words, d, v, work[batch + p])
                for k in range(n_topics):
                    change = factor * work[p, k]
                    if documents.ndim == 3:
                        change -= taken * work[batch + p, k]
                    work[p, k] = change
                    candidate[k] += change
        low = np.inf
        for k in range(n_topics):
            low = min(low, candidate[k])
        accepted = low + prior > 0.0
        if not accepted:
            if documents.ndim == 2 and memory.ndim == 2:
                for p in range(batch - 1, -1, -1):
                    for k in range(n_topics):
                        memory[index[t, p], k] = work[batch + p, k]
                return t, rejected, scale
            rejected += 1
            keep, gamma = 1.0, 0.0
            if memory.ndim == 0 and len(before) == 0:
                continue
        if other.ndim == 2:
            for p in range(batch):
                read_ahead(t * batch + p, order_j, tokens, documents, words)
                read_memory_ahead(t * batch + p, order_j, memory)
                j = other[t, p]
                d, v = tokens[j, 0], tokens[j, 1]
                total = joint(documents, words, d, v, scale, rates, alpha, beta, norm, work[batch + p])
                share, factor = weighted(sample_weight, j, share_scale), 1.0 / total
                for k in range(n_topics):
                    old = np.float64(memory[j, k])
                    memory[j, k] = factor * work[batch + p, k]
                    change = share * (memory[j, k] - old)
                    work[batch + p, k] = change
                    totals[1, k] += change if rates.ndim == 0 else rates[2] * change
        base, centre = 1.0, 1.0  # p and c after the iteration
        if len(before) > 0:
            if rates.ndim == 1:
                centre = rates[2] * rates[1]
                base = keep * rates[0] + gamma * centre
            if t + 1 == index.shape[0]:
                _write_out(documents, scale, rates, old_documents)
                _write_out(words, scale, rates, old_words)
                copy(norm, old_norm)
                old_prior[0], old_prior[1] = alpha, beta
            else:
                _look_up(
                    tokens, index[t + 1], documents, words, scale, rates, alpha, beta, norm,
                    work[batch : 2 * batch],
                )  # fmt: skip
        if moments.ndim == 1:
            rates[0] = keep * rates[0] + gamma * correction
        if len(before) == 0 or not is_flat or keep > 0.0:
            scale = shrink(documents, words, scale, keep)
        inverse = 1.0 / scale
        for p in range(batch):
            i = index[t, p]
            d, v = tokens[i, 0], tokens[i, 1]
            if documents.ndim == 3:
                if len(before) > 0 or (memory.ndim == 2 and other.ndim == 0):
                    _move(documents, words, d, v, work[p], 1.0 / centre, (gamma - base / centre) * inverse)
                    for k in range(n_topics):
                        totals[1, k] += work[p, k]
                elif accepted:
                    for k in range(n_topics):
                        change = inverse * work[p, k]
                        documents[d, 1, k] += change
                        words[v, 1, k] += change
            else:
                for k in range(n_topics):
                    change = inverse * work[p, k]
                    documents[d, k] += change
                    words[v, k] += change
        if len(before) > 0:
            is_flat = keep == 0.0  # u is zero, and the common part of S and C does not change it
            if rates.ndim == 1:
                rates[0], rates[1] = base, centre
                for k in range(n_topics):
                    totals[1, k] *= rates[2]
                wanted = _lasting(steps[t], rates[2])
                if abs(base) > FAR * centre or centre < LEAST_SCALE:
                    _rewrite(documents, centre, (base - wanted * centre) * inverse)
                    _rewrite(words, centre, (base - wanted * centre) * inverse)
                    rates[0], rates[1] = wanted, 1.0
                elif abs(base - wanted * centre) < NEAR * abs(base):
                    rates[0] = wanted * centre
        if accepted:
            for k in range(n_topics):
                totals[0, k] = candidate[k]
                norm[k] = 1.0 / (candidate[k] + prior)
        if other.ndim == 2:
            drift = inverse if rates.ndim == 0 else rates[0] * inverse
            for p in range(batch):
                j = other[t, p]
                if moments.ndim == 1:
                    for k in range(n_topics):
                        rates[3] += growth(
                            documents, words, tokens[j, 0], tokens[j, 1], k, work[batch + p, k]
                        )
                _move(documents, words, tokens[j, 0], tokens[j, 1], work[batch + p], 1.0, -drift)
    return index.shape[0], rejected, scale
