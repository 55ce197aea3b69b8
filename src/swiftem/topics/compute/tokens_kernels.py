r"""pLSA by tokens: stretches of iterations, O(b·K) each, whatever D and V, and full passes.

A method declares S = λC + Δ with Δ = mean_I(s̄_i(θ) − λ·ref_i), which changes only the rows of the drawn
tokens; s ← s + γ(S − s) changes all. Therefore statistics and centre are stored as

    s = p·B + scale·u,    C = c·B,

with tables B and u, and three numbers. An iteration is, with c' = ρc,

    p ← (1−γ)p + γλc,    scale ← (1−γ)·scale,    u ← u + γΔ / scale,

and if the centre changes by δ, B ← B + δ/c' and u ← u − p·δ / (c'·scale), so that s stays. It changes by:

- memory: δ = (1/n) Σ_J (s̄_j(θ) − ref_j) of the second stream's tokens, and ρ = 1. p = λ is constant.
- renewed by the drawn: S = C + δ. That is Δ = δ, λ = 1, and the centre follows.
- anchor: nothing, between two full passes; ρ = 1 and p = λ.
- previous: C ← S = λC + Δ, that is ρ = λ and δ = Δ. With λ = 1, p = c = 1 are constant. With λ < 1 a loop
  begins with the p/c that lasts, γλ / (λ − 1 + γ). If λ < 1 − γ, any deviation from it grows: rounding is
  therefore corrected at once, but a varying γ lets p/c grow, and with it the cancellation in p·B + scale·u.
  Beyond ``FAR``, or if c is nearly zero, the tables are rewritten: B ← cB and u ← u + (p − p'c)·B / scale,
  with the p' that lasts and c = 1.

With γ = 1 the scale vanishes, and u is set to zero, once for all consecutive steps of one.

Two forms need one table: without a centre s = scale·u, and if S = C and always γ = 1, s = C.

The M-step, equation (mstep_plsa), is evaluated only for the next tokens:
r_k ∝ (max(s_dk, 0) + α') · (max(s_kv, 0) + β') / (Σ_v s_kv + β'V).

A step whose Σ_v s_kv + β'V is not positive for every topic is rejected before anything is written. Most steps
of one token are too small for that: ``low`` is a lower bound of the K numbers, from which each step subtracts
the most that its token can take away. The K numbers are checked only if nothing would be left.

Loops get the samples (:class:`WeightedTokens`), γ of each iteration (T,), the drawn tokens' indices (T·b,),
:class:`Tables`, ``rates`` (:data:`SCALE` and the following), :class:`Prior`, and ``work`` (2b + 1, K),
temporary numbers. They return how many iterations were done, and how many of their steps were rejected.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from swiftem.kernels.compile import helper, inlined, kernel
from swiftem.kernels.vector import prefetch, prefetch_row

__all__ = [
    "Entries",
    "Prior",
    "Tables",
    "WeightedTokens",
    "batches",
    "batches_drawn",
    "batches_memory",
    "batches_previous",
    "full_pass",
    "lasting",
    "log_likelihood",
    "one_token",
    "one_token_anchor",
    "one_token_drawn",
    "one_token_memory",
]

U, B, ANCHOR = range(3)
"""Parts of a row of a table: u, B, and the anchor's θ (of words: times topic_scale)."""
SCALE, P, C, CORRECTION = range(4)
"""Numbers in ``rates``: scale, p, c and λ."""
SMALLEST = 1e-250
"""Below this sum of joint probabilities the document's row is rescaled first: it may be nearly zero."""
LEAST_SCALE = 1e-100
"""Below this the scale is folded into u, long before either of them underflows or overflows."""
AHEAD = 6
"""Number of iterations by which a token's rows are prefetched."""
FAR = 1e3
"""Larger p/c cost more digits than rounding."""
NEAR = 1e-14
"""A p/c within this relative distance of the one that lasts is that one: rounding must not accumulate."""
SLACK = 1e-6
"""Relative margin over what the token can take away: rounding is far less."""
FLUSH = 1e-100
"""Smaller responsibilities of full passes are zero: products with subnormal numbers are slow."""


class WeightedTokens(NamedTuple):
    """The samples.

    Attributes
    ----------
    place : ndarray of uint32, shape (n, 2)
        Document and word.
    weight, own : ndarray, shape (n,) or (0,)
        Their weights, empty if all are equal; those in a mean over drawn tokens, empty also if tokens are
        drawn in proportion to weights.
    mean, share : float
        Factors of ``own`` in such a mean and of ``weight`` in a mean over all: n / (W·b), or 1 / b if tokens
        are drawn in proportion to weights, and 1 / W.
    """

    place: Any
    weight: Any
    own: Any
    mean: float
    share: float


class Tables(NamedTuple):
    """The statistics.

    Attributes
    ----------
    documents, words : ndarray, shapes (D, parts, K) and (V, parts, K)
        u alone, or u and B, or these and the anchor's θ: a token needs one place in memory for each.
    totals : ndarray, shape (2, K)
        Σ_v s_kv and λ Σ_v C_kv.
    norm : ndarray, shape (K,)
        1 / (Σ_v s_kv + β'V).
    """

    documents: Any
    words: Any
    totals: Any
    norm: Any


class Prior(NamedTuple):
    """α', β', and β'V."""

    document: float
    word: float
    total: float


@inlined
def weighted(weight, i, factor):
    """Return ``factor`` times the weight of token i."""
    return factor * weight[i] if weight.shape[0] > 0 else factor


@inlined
def read_ahead(t, order, tokens, tables):
    """Prefetch for tokens drawn after ``order[t]``: first their indices, later their rows.

    Without it a random token waits for memory three times as long as it computes, at 10^5 documents.
    """
    last = order.shape[0] - 1
    prefetch(tokens.place, order[min(t + 2 * AHEAD, last)], 0)
    i = order[min(t + AHEAD, last)]
    prefetch_row(tables.documents, tokens.place[i, 0])
    prefetch_row(tables.words, tokens.place[i, 1])


@inlined
def read_memory_ahead(t, order, memory):
    """Prefetch the memory of a token that is drawn some time after ``order[t]``."""
    prefetch_row(memory, order[min(t + AHEAD, order.shape[0] - 1)])


@inlined
def statistic(table, row, k, scale, p):
    """Return s of topic k: scale · u, or p · B + scale · u."""
    if p is None:
        return scale * table[row, U, k]
    return p * table[row, B, k] + scale * table[row, U, k]


@inlined
def entry(table, row, k, scale, p, prior):
    """Return the working entry max(s, 0) + prior of topic k."""
    s = statistic(table, row, k, scale, p)
    return (s if s > 0.0 else 0.0) + prior


@inlined
def product(tables, d, v, k, scale, p, prior):
    """Return the token's joint probability with topic k, up to a factor (condexp_plsa)."""
    of_document = entry(tables.documents, d, k, scale, p, prior.document)
    return of_document * entry(tables.words, v, k, scale, p, prior.word) * tables.norm[k]


@helper
def careful(tables, d, v, scale, p, prior, work, row):
    """Do what :func:`joint` does for tokens of probability near zero.

    As in θ̄: a document whose row is zero has uniform topics; if a token's probability is still zero, its
    responsibilities are uniform.
    """
    largest, total = 0.0, 0.0
    for k in range(work.shape[1]):
        largest = max(largest, entry(tables.documents, d, k, scale, p, prior.document))
    for k in range(work.shape[1]):
        share = entry(tables.documents, d, k, scale, p, prior.document) / largest if largest > 0.0 else 1.0
        work[row, k] = share * entry(tables.words, v, k, scale, p, prior.word) * tables.norm[k]
        total += work[row, k]
    return uniform(work, row, total)


@inlined
def uniform(work, row, total):
    """Return ``total``, the sum of a row; if it is zero, after making the row uniform."""
    if not total > 0.0:
        for k in range(work.shape[1]):
            work[row, k] = 1.0
        total = float(work.shape[1])
    return total


@inlined
def joint(tables, d, v, scale, p, prior, work, row):
    """Write the token's joint probabilities into a row of ``work``; return their sum."""
    total = 0.0
    for k in range(work.shape[1]):
        work[row, k] = product(tables, d, v, k, scale, p, prior)
        total += work[row, k]
    if not total > SMALLEST:
        total = careful(tables, d, v, scale, p, prior, work, row)
    return total


@inlined
def norms(totals, prior, norm):
    """Write 1 / (Σ_v s_kv + β'V) into ``norm`` (K,), and return the minimum of Σ_v s_kv + β'V."""
    low = np.inf
    for k in range(norm.shape[0]):
        low = min(low, totals[0, k] + prior.total)
        norm[k] = 1.0 / (totals[0, k] + prior.total)
    return low


@inlined
def smallest_of(totals, prior):
    """Return the minimum of λ Σ_v C_kv + β'V."""
    low = np.inf
    for k in range(totals.shape[1]):
        low = min(low, totals[1, k])
    return low + prior.total


@helper
def fold(table, factor):
    """Multiply u by ``factor``."""
    for row in range(table.shape[0]):
        for k in range(table.shape[2]):
            table[row, U, k] *= factor


@inlined
def shrink(tables, scale, keep):
    """Return the scale times ``keep``, 1 after it was folded into u."""
    scale *= keep
    if scale < LEAST_SCALE:
        fold(tables.documents, scale)
        fold(tables.words, scale)
        scale = 1.0
    return scale


@inlined
def add(tables, d, v, part, k, change):
    """Add a change of topic k to a part of a token's rows."""
    tables.documents[d, part, k] += change
    tables.words[v, part, k] += change


@helper
def least(totals, gamma, work, factor, other, row, other_factor, prior):
    """Return the minimum of Σ_v s_kv + β'V after a step to centre + (factor·work[0] − ...·other[row]) / γ."""
    low = np.inf
    for k in range(work.shape[1]):
        change = factor * work[0, k] - other_factor * other[row, k]
        low = min(low, totals[0, k] + (gamma * (totals[1, k] - totals[0, k]) + change) + prior.total)
    return low


@kernel
def one_token(tokens, steps, order, tables, rates, prior, work):
    """Do iterations without a reference (sem), one token each."""
    totals, norm, scale, rejected = tables.totals, tables.norm, rates[SCALE], 0
    low = norms(totals, prior, norm)
    for t in range(order.shape[0]):
        read_ahead(t, order, tokens, tables)
        i, gamma = order[t], steps[t]
        keep, d, v = 1.0 - gamma, tokens.place[i, 0], tokens.place[i, 1]
        weight = gamma * weighted(tokens.own, i, tokens.mean)
        factor = weight / joint(tables, d, v, scale, None, prior, work, 0)
        # A token takes nothing away: only γ = 1, or an empty topic, brings a total to zero.
        bound = keep * low
        if not bound > SMALLEST:
            bound = least(totals, gamma, work, factor, work, 0, 0.0, prior)
            if not bound > 0.0:
                rejected += 1
                continue
        low, scale = bound, shrink(tables, scale, keep)
        inverse = 1.0 / scale
        for k in range(work.shape[1]):
            change = factor * work[0, k]
            totals[0, k] = keep * totals[0, k] + change
            norm[k] = 1.0 / (totals[0, k] + prior.total)
            add(tables, d, v, U, k, change * inverse)
    rates[SCALE] = scale
    return order.shape[0], rejected


@kernel
def one_token_anchor(tokens, steps, order, tables, rates, prior, work):
    """Do iterations whose reference is the anchor (sem-vr), one token each."""
    totals, norm, rejected = tables.totals, tables.norm, 0
    scale, p, correction = rates[SCALE], rates[P], rates[CORRECTION]
    low, low_centre = norms(totals, prior, norm), smallest_of(totals, prior)
    for t in range(order.shape[0]):
        read_ahead(t, order, tokens, tables)
        i, gamma = order[t], steps[t]
        keep, d, v = 1.0 - gamma, tokens.place[i, 0], tokens.place[i, 1]
        total = total_anchor = 0.0
        for k in range(work.shape[1]):  # one loop for both E-steps: neither waits for the other's sum
            work[0, k] = product(tables, d, v, k, scale, p, prior)
            total += work[0, k]
            work[1, k] = tables.documents[d, ANCHOR, k] * tables.words[v, ANCHOR, k]
            total_anchor += work[1, k]
        if not total > SMALLEST:
            total = careful(tables, d, v, scale, p, prior, work, 0)
        weight = gamma * weighted(tokens.own, i, tokens.mean)
        factor, taken = weight / total, correction * weight / uniform(work, 1, total_anchor)
        bound = keep * low + gamma * low_centre - weight * (1.0 + SLACK)
        if not bound > SMALLEST:
            low_centre = smallest_of(totals, prior)
            bound = least(totals, gamma, work, factor, work, 1, taken, prior)
            if not bound > 0.0:
                rejected += 1
                continue
        low, scale = bound, shrink(tables, scale, keep)
        inverse = 1.0 / scale
        for k in range(work.shape[1]):
            change = factor * work[0, k] - taken * work[1, k]
            totals[0, k] += gamma * (totals[1, k] - totals[0, k]) + change
            norm[k] = 1.0 / (totals[0, k] + prior.total)
            add(tables, d, v, U, k, change * inverse)
    rates[SCALE] = scale
    return order.shape[0], rejected


@kernel
def one_token_drawn(tokens, order, tables, rates, prior, work, memory):
    """Do iterations whose centre is renewed by the drawn tokens (iem) with γ = 1: s = C, in one table.

    They end before a step that would be rejected.
    """
    totals, norm, scale = tables.totals, tables.norm, rates[SCALE]
    low = norms(totals, prior, norm)
    for t in range(order.shape[0]):
        read_ahead(t, order, tokens, tables)
        read_memory_ahead(t, order, memory)
        i = order[t]
        d, v = tokens.place[i, 0], tokens.place[i, 1]
        factor = 1.0 / joint(tables, d, v, scale, None, prior, work, 0)
        share = weighted(tokens.weight, i, tokens.share)
        bound = low - share * (1.0 + SLACK)
        if not bound > SMALLEST:
            bound = least(totals, 0.0, work, share * factor, memory, i, share, prior)
            if not bound > 0.0:
                return t, 0
        low = bound
        for k in range(work.shape[1]):
            change = renewed(memory, i, k, factor * work[0, k], share)
            totals[0, k] += change
            norm[k] = 1.0 / (totals[0, k] + prior.total)
            add(tables, d, v, U, k, change)
    return order.shape[0], 0


@inlined
def renewed(memory, i, k, value, share):
    """Write a responsibility of token i to the memory; return its change there, which may round it."""
    old = np.float64(memory[i, k])
    memory[i, k] = value
    return share * (memory[i, k] - old)


@kernel
def one_token_memory(tokens, steps, order, tables, rates, prior, work, other, memory):
    """Do iterations whose reference is the memory, renewed by others (fiem), one token and one other each.

    Δ_i is computed before the row of the memory is written, also if i and j coincide.
    """
    totals, norm, rejected = tables.totals, tables.norm, 0
    scale, p, correction = rates[SCALE], rates[P], rates[CORRECTION]
    low, low_centre = norms(totals, prior, norm), smallest_of(totals, prior)
    for t in range(order.shape[0]):
        read_ahead(t, order, tokens, tables)
        read_memory_ahead(t, order, memory)
        read_ahead(t, other, tokens, tables)
        read_memory_ahead(t, other, memory)
        i, j, gamma = order[t], other[t], steps[t]
        keep, d, v = 1.0 - gamma, tokens.place[i, 0], tokens.place[i, 1]
        d_j, v_j = tokens.place[j, 0], tokens.place[j, 1]
        total = total_j = 0.0
        for k in range(work.shape[1]):  # one loop for both E-steps: neither waits for the other's sum
            work[0, k] = product(tables, d, v, k, scale, p, prior)
            total += work[0, k]
            work[1, k] = product(tables, d_j, v_j, k, scale, p, prior)
            total_j += work[1, k]
        if not total > SMALLEST:
            total = careful(tables, d, v, scale, p, prior, work, 0)
        if not total_j > SMALLEST:
            total_j = careful(tables, d_j, v_j, scale, p, prior, work, 1)
        weight = gamma * weighted(tokens.own, i, tokens.mean)
        factor, taken = weight / total, correction * weight
        share, factor_j = weighted(tokens.weight, j, tokens.share), 1.0 / total_j
        bound = keep * low + gamma * low_centre - weight * (1.0 + SLACK)
        if not bound > SMALLEST:
            low_centre = smallest_of(totals, prior)
            bound = least(totals, gamma, work, factor, memory, i, taken, prior)
            if not bound > 0.0:
                rejected += 1
                bound = low
                keep, gamma, factor, taken = 1.0, 0.0, 0.0, 0.0  # s stays; the change by j is the same
        low, scale = bound, shrink(tables, scale, keep)
        low_centre -= share * (1.0 + SLACK)
        inverse = 1.0 / scale
        for k in range(work.shape[1]):
            change = factor * work[0, k] - taken * memory[i, k]
            totals[0, k] += gamma * (totals[1, k] - totals[0, k]) + change
            norm[k] = 1.0 / (totals[0, k] + prior.total)
            add(tables, d, v, U, k, change * inverse)
            drift = renewed(memory, j, k, factor_j * work[1, k], share)
            totals[1, k] += correction * drift
            add(tables, d_j, v_j, B, k, drift)
            add(tables, d_j, v_j, U, k, -(p * inverse) * drift)
    rates[SCALE] = scale
    return order.shape[0], rejected


@inlined
def propose(totals, gamma, work):
    """Write Σ_v s_kv after a step to the centre into the last row of ``work``."""
    for k in range(work.shape[1]):
        work[-1, k] = totals[0, k] + gamma * (totals[1, k] - totals[0, k])


@inlined
def is_inside(work, prior):
    """Return whether the proposed totals are positive."""
    low = np.inf
    for k in range(work.shape[1]):
        low = min(low, work[-1, k])
    return low + prior.total > 0.0


@inlined
def accept(tables, prior, work):
    """Take the proposed totals."""
    for k in range(work.shape[1]):
        tables.totals[0, k] = work[-1, k]
        tables.norm[k] = 1.0 / (work[-1, k] + prior.total)


@inlined
def add_row(tables, tokens, i, part, factor, work, row):
    """Add ``factor`` times a row of ``work`` to a part of the rows of token i."""
    d, v = tokens.place[i, 0], tokens.place[i, 1]
    for k in range(work.shape[1]):
        add(tables, d, v, part, k, factor * work[row, k])


@kernel
def batches(tokens, steps, order, tables, rates, prior, work, p):
    """Do iterations without a reference (sem; ``p`` is None), or whose reference is the anchor (sem-vr).

    All E-steps of an iteration use the same θ: nothing that they read is written before the last one.
    """
    b, scale, correction, rejected = order.shape[0] // steps.shape[0], rates[SCALE], rates[CORRECTION], 0
    norms(tables.totals, prior, tables.norm)
    for t in range(steps.shape[0]):
        gamma, keep = steps[t], 1.0 - steps[t]
        if p is None:
            for k in range(work.shape[1]):
                work[-1, k] = keep * tables.totals[0, k]
        else:
            propose(tables.totals, gamma, work)
        for q in range(b):
            read_ahead(t * b + q, order, tokens, tables)
            i = order[t * b + q]
            d, v = tokens.place[i, 0], tokens.place[i, 1]
            weight = gamma * weighted(tokens.own, i, tokens.mean)
            factor, taken = weight / joint(tables, d, v, scale, p, prior, work, q), 0.0
            if p is not None:
                taken = correction * weight / joint_at_anchor(tables, d, v, work, b + q)
            for k in range(work.shape[1]):
                work[q, k] *= factor
                if p is not None:
                    work[q, k] -= taken * work[b + q, k]
                work[-1, k] += work[q, k]
        if not is_inside(work, prior):
            rejected += 1
            continue
        scale = shrink(tables, scale, keep)
        for q in range(b):
            add_row(tables, tokens, order[t * b + q], U, 1.0 / scale, work, q)
        accept(tables, prior, work)
    rates[SCALE] = scale
    return steps.shape[0], rejected


@inlined
def joint_at_anchor(tables, d, v, work, row):
    """Write the joint probabilities at the anchor into a row of ``work``; return their sum."""
    total = 0.0
    for k in range(work.shape[1]):
        work[row, k] = tables.documents[d, ANCHOR, k] * tables.words[v, ANCHOR, k]
        total += work[row, k]
    return uniform(work, row, total)


@kernel
def batches_drawn(tokens, steps, order, tables, rates, prior, work, memory, p):
    """Do iterations whose centre is renewed by the drawn tokens (iem); ``p`` is None if s = C and γ = 1.

    A token that is drawn twice finds its new row the second time: its change is zero. If s = C, they end
    before a step that would be rejected.
    """
    b, scale, rejected = order.shape[0] // steps.shape[0], rates[SCALE], 0
    norms(tables.totals, prior, tables.norm)
    for t in range(steps.shape[0]):
        gamma, keep = (1.0, 1.0) if p is None else (steps[t], 1.0 - steps[t])
        propose(tables.totals, 0.0 if p is None else gamma, work)
        for q in range(b):
            read_ahead(t * b + q, order, tokens, tables)
            read_memory_ahead(t * b + q, order, memory)
            i = order[t * b + q]
            factor = 1.0 / joint(tables, tokens.place[i, 0], tokens.place[i, 1], scale, p, prior, work, q)
            share = weighted(tokens.weight, i, tokens.share)
            for k in range(work.shape[1]):
                work[b + q, k] = memory[i, k]
                work[q, k] = renewed(memory, i, k, factor * work[q, k], share)
                work[-1, k] += gamma * work[q, k]
        accepted = is_inside(work, prior)
        if not accepted:
            if p is None:
                for q in range(b - 1, -1, -1):
                    for k in range(work.shape[1]):
                        memory[order[t * b + q], k] = work[b + q, k]
                return t, rejected
            rejected += 1
            keep, gamma = 1.0, 0.0
        scale = shrink(tables, scale, keep)
        inverse = 1.0 / scale
        for q in range(b):
            if p is None:
                add_row(tables, tokens, order[t * b + q], U, inverse, work, q)
            else:
                move_centre(tables, tokens, order[t * b + q], 1.0, (gamma - 1.0) * inverse, work, q)
        if accepted:
            accept(tables, prior, work)
    rates[SCALE] = scale
    return steps.shape[0], rejected


@inlined
def move_centre(tables, tokens, i, factor, factor_u, work, row):
    """Add a row of ``work``, times the factors, to B and u of token i, and to the centre's totals."""
    d, v = tokens.place[i, 0], tokens.place[i, 1]
    for k in range(work.shape[1]):
        add(tables, d, v, B, k, factor * work[row, k])
        add(tables, d, v, U, k, factor_u * work[row, k])
        tables.totals[1, k] += work[row, k]


@kernel
def batches_memory(tokens, steps, order, tables, rates, prior, work, other, memory):
    """Do iterations whose reference is the memory, renewed by others (fiem).

    All Δ_i are computed before the first row of the memory is written.
    """
    b, rejected = order.shape[0] // steps.shape[0], 0
    scale, p, correction = rates[SCALE], rates[P], rates[CORRECTION]
    norms(tables.totals, prior, tables.norm)
    for t in range(steps.shape[0]):
        gamma = steps[t]
        propose(tables.totals, gamma, work)
        for q in range(b):
            read_ahead(t * b + q, order, tokens, tables)
            read_memory_ahead(t * b + q, order, memory)
            i = order[t * b + q]
            factor = 1.0 / joint(tables, tokens.place[i, 0], tokens.place[i, 1], scale, p, prior, work, q)
            weight = gamma * weighted(tokens.own, i, tokens.mean)
            for k in range(work.shape[1]):
                work[q, k] = weight * (factor * work[q, k] - correction * memory[i, k])
                work[-1, k] += work[q, k]
        renew_others(tokens, t, b, tables, scale, p, correction, prior, work, other, memory)
        if is_inside(work, prior):
            scale = shrink(tables, scale, 1.0 - gamma)
            for q in range(b):
                add_row(tables, tokens, order[t * b + q], U, 1.0 / scale, work, q)
            accept(tables, prior, work)
        else:
            rejected += 1
        for q in range(b):
            add_row(tables, tokens, other[t * b + q], B, 1.0, work, b + q)
            add_row(tables, tokens, other[t * b + q], U, -(p * (1.0 / scale)), work, b + q)
    rates[SCALE] = scale
    return steps.shape[0], rejected


@inlined
def renew_others(tokens, t, b, tables, scale, p, correction, prior, work, other, memory):
    """Renew the memory of the second stream's tokens; write the centre's changes into ``work``."""
    for q in range(b):
        read_ahead(t * b + q, other, tokens, tables)
        read_memory_ahead(t * b + q, other, memory)
        j = other[t * b + q]
        factor = 1.0 / joint(tables, tokens.place[j, 0], tokens.place[j, 1], scale, p, prior, work, b + q)
        share = weighted(tokens.weight, j, tokens.share)
        for k in range(work.shape[1]):
            work[b + q, k] = renewed(memory, j, k, factor * work[b + q, k], share)
            tables.totals[1, k] += correction * work[b + q, k]


def lasting(gamma: float, correction: float) -> float:
    """Return the p/c that iterations with this γ and λ preserve, or 1 if it were large.

    >>> round(lasting(0.1, 0.6), 12), lasting(0.1, 0.9), lasting(1.0, 0.6)
    (-0.2, 1.0, 1.0)
    """
    gap = correction - (1.0 - gamma)
    return gamma * correction / gap if abs(gap) > 0.1 * gamma else 1.0


_lasting = inlined(lasting)


@kernel
def batches_previous(tokens, steps, order, tables, rates, prior, work, before):
    """Do iterations whose reference is θ of the previous iteration, and whose centre is their proxy (spider).

    That θ is lost once s has changed. But the next iteration's tokens are known, and are evaluated before.
    Only the second last θ of a stretch is written out whole, into ``before``: it is the method's state, and
    the first tokens of the next stretch need it.
    """
    b, rejected, is_flat = order.shape[0] // steps.shape[0], 0, False
    scale, p, c, correction = rates[SCALE], rates[P], rates[C], rates[CORRECTION]
    norms(tables.totals, prior, tables.norm)
    old = Tables(before.documents, before.words, tables.totals, before.norm)
    look_up(tokens, order, 0, old, 1.0, None, Prior(before.prior[0], before.prior[1], 0.0), work)
    for t in range(steps.shape[0]):
        gamma, keep = steps[t], 1.0 - steps[t]
        propose(tables.totals, gamma, work)
        for q in range(b):
            read_ahead(t * b + q, order, tokens, tables)
            i = order[t * b + q]
            weight = weighted(tokens.own, i, tokens.mean)
            total = joint(tables, tokens.place[i, 0], tokens.place[i, 1], scale, p, prior, work, q)
            factor, taken = weight / total, correction * weight
            for k in range(work.shape[1]):
                work[q, k] = factor * work[q, k] - taken * work[b + q, k]
                work[-1, k] += gamma * work[q, k]
        accepted = is_inside(work, prior)
        if not accepted:
            rejected += 1
            keep, gamma = 1.0, 0.0
        if t + 1 == steps.shape[0]:
            write_out(tables, scale, p, prior, before)
        else:
            look_up(tokens, order, (t + 1) * b, tables, scale, p, prior, work)
        if not is_flat or keep > 0.0:
            scale = shrink(tables, scale, keep)
        is_flat = keep == 0.0  # u is zero, and the common part of S and C does not change it
        next_c = correction * c
        next_p = 1.0 if correction == 1.0 else keep * p + gamma * next_c
        factor_u = (gamma - next_p / next_c) * (1.0 / scale)
        for q in range(b):
            move_centre(tables, tokens, order[t * b + q], 1.0 / next_c, factor_u, work, q)
        if accepted:
            accept(tables, prior, work)
        if correction != 1.0:
            p, c = damped(tables, scale, next_p, next_c, steps[t], correction)
    rates[SCALE], rates[P], rates[C] = scale, p, c
    return steps.shape[0], rejected


@helper
def look_up(tokens, order, first, tables, scale, p, prior, work):
    """Write the responsibilities of tokens from ``order[first]`` on into the second half of ``work``."""
    b = work.shape[0] // 2
    for q in range(b):
        i = order[first + q]
        total = joint(tables, tokens.place[i, 0], tokens.place[i, 1], scale, p, prior, work, b + q)
        for k in range(work.shape[1]):
            work[b + q, k] *= 1.0 / total


@helper
def write_out(tables, scale, p, prior, before):
    """Write θ into ``before``."""
    for d in range(before.documents.shape[0]):
        for k in range(before.norm.shape[0]):
            before.documents[d, U, k] = statistic(tables.documents, d, k, scale, p)
    for v in range(before.words.shape[0]):
        for k in range(before.norm.shape[0]):
            before.words[v, U, k] = statistic(tables.words, v, k, scale, p)
    for k in range(before.norm.shape[0]):
        before.norm[k] = tables.norm[k]
    before.prior[0], before.prior[1] = prior.document, prior.word


@helper
def damped(tables, scale, p, c, gamma, correction):
    """Return p and c after a step with λ < 1; rewrite the tables if p/c has become large, or c small."""
    for k in range(tables.totals.shape[1]):
        tables.totals[1, k] *= correction
    wanted = _lasting(gamma, correction)
    if abs(p) > FAR * c or c < LEAST_SCALE:
        shift = (p - wanted * c) * (1.0 / scale)
        rewrite(tables.documents, c, shift)
        rewrite(tables.words, c, shift)
        return wanted, 1.0
    return wanted * c if abs(p - wanted * c) < NEAR * abs(p) else p, c


@inlined
def rewrite(table, factor, shift):
    """Add ``shift`` times B to u, and multiply B by ``factor``."""
    for row in range(table.shape[0]):
        for k in range(table.shape[2]):
            table[row, U, k] += shift * table[row, B, k]
            table[row, B, k] *= factor


class Entries(NamedTuple):
    """The input of a pass: equal tokens of a document are one entry if the source has them so.

    Attributes
    ----------
    document, word : ndarray of uint32, shape (m,)
    factor : ndarray, shape (m,)
        Count times weight.
    begin : ndarray of int, shape (m + 1,) or (0,)
        Entry e is tokens ``begin[e]`` to ``begin[e + 1]`` − 1; empty if it is token e.
    """

    document: Any
    word: Any
    factor: Any
    begin: Any


@inlined
def posterior(entries, e, doc_topic, word_topic, row):
    """Write the responsibilities of entry e (condexp_plsa) into ``row`` (K,); uniform at probability zero."""
    d, v, total = entries.document[e], entries.word[e], 0.0
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
    doc_topic, word_topic : ndarray, shapes (D, K) and (V, K)
        θ; words are times topic_scale.
    memory : ndarray, shape (n, K), or None
        The responsibilities of the entries' tokens are written into it, and the statistics are those of its
        rounded values, also in float32.

    Returns
    -------
    first : int
        The first document that occurs.
    by_document : ndarray, shape (documents from the first to the last that occurs, K)
    by_word : ndarray, shape (V, K)
    """
    first = last = np.int64(entries.document[start])
    for e in range(start, stop):
        first = min(first, np.int64(entries.document[e]))
        last = max(last, np.int64(entries.document[e]))
    row = np.empty(doc_topic.shape[1])
    by_document, by_word = np.zeros((last + 1 - first, row.shape[0])), np.zeros(word_topic.shape)
    for e in range(start, stop):
        posterior(entries, e, doc_topic, word_topic, row)
        if memory is not None:
            head, end = (entries.begin[e], entries.begin[e + 1]) if entries.begin.shape[0] > 0 else (e, e + 1)
            for i in range(head, end):
                for k in range(row.shape[0]):
                    memory[i, k] = row[k]
            for k in range(row.shape[0]):
                row[k] = memory[head, k]
        for k in range(row.shape[0]):
            change = entries.factor[e] * row[k]
            by_document[entries.document[e] - first, k] += change
            by_word[entries.word[e], k] += change
    return first, by_document, by_word


@kernel
def log_likelihood(entries, doc_topic, word_topic, start, stop):
    """Return Σ_e factor_e log Σ_k doc_topic_dk word_topic_vk of the entries ``start`` to ``stop`` − 1."""
    value = 0.0
    for e in range(start, stop):
        total = 0.0
        for k in range(doc_topic.shape[1]):
            total += doc_topic[entries.document[e], k] * word_topic[entries.word[e], k]
        value += entries.factor[e] * np.log(total)
    return value
