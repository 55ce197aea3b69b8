r"""pLSA by tokens: stretches of iterations, O(b·K) each, whatever D and V.

A method declares S = λC + Δ with Δ = mean_I(s̄_i(θ) − λ·ref_i), which changes only the rows of the drawn
tokens; s ← s + γ(S − s) changes all. Therefore statistics and centre are stored as

    s = p·B + scale·u,    C = c·B,

with tables B and u, and three numbers. An iteration is, with c' = ρc,

    p ← (1−γ)p + γλc,    scale ← (1−γ)·scale,    u ← u + γΔ / scale,

and if the centre changes by δ, B ← B + δ/c' and u ← u − p·δ / (c'·scale), so that s stays. It changes by:

- memory: δ = (1/n) Σ_J (s̄_j(θ) − ref_j) of the second stream's tokens, and ρ = 1. p = λ is constant, unless
  λ is learned, from the first token of each iteration: ⟨x − C, m − C⟩ is ⟨x, m⟩ − ⟨x, C⟩ − ⟨m, C⟩ + ‖C‖².
- renewed by the drawn: S = C + δ. That is Δ = δ, λ = 1, and the centre follows.
- anchor: nothing, between two full passes; ρ = 1 and p = λ.
- proxy: C ← S = λC + Δ, that is ρ = λ and δ = Δ. With λ = 1, p = c = 1 are constant. With λ < 1 the lane
  begins with the p/c that lasts, γλ / (λ − 1 + γ). If λ < 1 − γ, any deviation from it grows: rounding is
  therefore corrected at once, but a varying γ lets p/c grow, and with it the cancellation in p·B + scale·u.
  Beyond ``FAR``, or if c is nearly zero, the tables are rewritten: B ← cB and u ← u + (p − p'c)·B / scale,
  with the p' that lasts and c = 1.

With γ = 1 the scale vanishes, and u is set to zero, once for all consecutive steps of one.

Two forms need one table: without a centre s = scale·u, and if S = C and always γ = 1, s = C.

The reference of SPIDER-EM is θ of the previous iteration, which is lost once s has changed. But the next
iteration's tokens are known, and are evaluated before that. Only the second last θ of a stretch is written
out whole (``before``): it is the method's state, and the first tokens of the next stretch need it.

The M-step, equation (mstep_plsa), is evaluated only for the next tokens:
r_k ∝ (max(s_dk, 0) + α') · (max(s_kv, 0) + β') / (Σ_v s_kv + β'V).

Arguments of both loops, :func:`iterate` here and in :mod:`swiftem.engine.numba.plsa_batch`. An array that the
method does not have is an array without dimensions, or, for ``before``, an empty tuple: its code is then not
compiled.

- tokens (n, 2), uint32: document and word of each token.
- sample_weight (n,), or (0,) if all are equal; divided: whether tokens ``index`` are drawn in proportion to
  their weights, which are then left out; mean_scale = n / (W·b), or 1 / b if divided, and share_scale =
  1 / W, W the sum of weights.
- correction: λ, or 0 if there is no reference.
- steps (T,): γ of each iteration. index, other (T, b): token indices of each iteration, and of the second
  stream, if any.
- documents (D, K), words (V, K): the one table; or (D, C, K) and (V, C, K), so that a token needs one place
  in memory for each. C = 2: B, u. C = 3: B, u, and the anchor's θ (topics of documents, words of topics times
  topic_scale).
- totals (2, K): Σ_v s_kv, and λ Σ_v C_kv, without λ if it is learned.
- scale: as above.
- memory (n, K), if any: responsibilities when last drawn; float64 or float32, and the rounded values are
  used.
- before, if any: θ of the iteration before the first, as statistics (D, K), (V, K), 1 / (Σ_v s_kv + β'V), and
  α', β'. At the end that of the iteration before the next.
- rates (3,): p, c and λ, unless they are ones; (4,) if λ is learned: p, 1, 1 and ‖C‖².
- moments (3,), if λ is learned: what from, and λ, changed in place.
- alpha, beta: α', β'.
- work (2b + 2, K): temporary numbers of an iteration, and 1 / (Σ_v s_kv + β'V) in its last row.

They return how many iterations were done, how many of their steps were rejected, and the scale. They do fewer
than requested if s = C and the step would be rejected: the arrays are then unchanged by it.

A step whose Σ_v s_kv + β'V is not positive for every topic is rejected before anything is written. Most steps
are too small for that: ``low`` is a lower bound of the K numbers, from which each step subtracts the most
that its token can take away. The K numbers are checked only if nothing would be left.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.engine.numba.coefficient import learn
from swiftem.engine.numba.compile import helper, inlined, lean
from swiftem.engine.numba.memory import prefetch, prefetch_row, vector

__all__ = ["FAR", "iterate"]

SMALLEST = 1e-250
"""Below this sum of joint probabilities the document's row is rescaled first: it may be nearly zero."""

LEAST_SCALE = 1e-100
"""Below this the scale is folded into u, long before either of them underflows or overflows."""

AHEAD = 6
"""Number of iterations by which a token's rows are prefetched."""

FAR = 1e3
"""Larger p/c cost more digits than rounding."""

SLACK = 1e-6
"""Relative margin over what the token can take away: rounding is far less."""


@inlined
def read_ahead(place, order, tokens, documents, words):
    """Prefetch for tokens drawn after ``order[place]``: first their indices, later their rows.

    Without it a random token waits for memory three times as long as it computes, at 10^5 documents.
    """
    last = order.shape[0] - 1
    prefetch(tokens, order[min(place + 2 * AHEAD, last)], 0)
    i = order[min(place + AHEAD, last)]
    prefetch_row(documents, tokens[i, 0])
    prefetch_row(words, tokens[i, 1])


@inlined
def read_memory_ahead(place, order, memory):
    """Prefetch the memory of a token that is drawn some time after ``order[place]``."""
    prefetch_row(memory, order[min(place + AHEAD, order.shape[0] - 1)])


@inlined
def statistic(table: Any, row: int, k: int, scale: float, rates: Any) -> Any:
    """Return s of topic k: scale · u, or p · B + scale · u."""
    if table.ndim == 2:  # known at compile time, like the next one: no test is left
        return scale * table[row, k]
    if rates.ndim == 0:
        return table[row, 0, k] + scale * table[row, 1, k]
    return rates[0] * table[row, 0, k] + scale * table[row, 1, k]


@inlined
def entry(table: Any, row: int, k: int, scale: float, rates: Any, prior: float) -> Any:
    """Return the working entry max(s, 0) + prior of topic k."""
    s = statistic(table, row, k, scale, rates)
    return (s if s > 0.0 else 0.0) + prior


@inlined
def uniform(row, total):
    """Return ``total``, the sum of ``row`` (K,); if it is zero, after making the row uniform."""
    if not total > 0.0:
        for k in range(row.shape[0]):  # ``row[:] = 1.0`` takes half a second to compile
            row[k] = 1.0
        total = float(row.shape[0])
    return total


@helper
def careful(documents, words, d, v, scale, rates, alpha, beta, norm, row):
    """Write joint probabilities into ``row`` (K,) and return their sum; for tokens of probability near zero.

    As in θ̄: a document whose row is zero has uniform topics; if a token's probability is still zero, its
    responsibilities are uniform.
    """
    n_topics = norm.shape[0]
    largest = 0.0
    for k in range(n_topics):
        largest = max(largest, entry(documents, d, k, scale, rates, alpha))
    total = 0.0
    for k in range(n_topics):
        of_document = entry(documents, d, k, scale, rates, alpha) / largest if largest > 0.0 else 1.0
        row[k] = of_document * entry(words, v, k, scale, rates, beta) * norm[k]
        total += row[k]
    if not total > 0.0:
        row[:] = 1.0
        total = float(n_topics)
    return total


@inlined
def joint(documents, words, d, v, scale, rates, alpha, beta, norm, row):
    """Write the token's (condexp_plsa) into ``row`` (K,), not yet divided by the sum; return the sum."""
    total = 0.0
    for k in range(norm.shape[0]):
        value = entry(documents, d, k, scale, rates, alpha) * entry(words, v, k, scale, rates, beta) * norm[k]
        row[k] = value
        total += value
    if not total > SMALLEST:
        total = careful(documents, words, d, v, scale, rates, alpha, beta, norm, row)
    return total


@inlined
def norms(totals, prior, norm):
    """Write 1 / (Σ_v s_kv + β'V) into ``norm`` (K,), and return the minimum of Σ_v s_kv + β'V."""
    low = np.inf
    for k in range(norm.shape[0]):
        low = min(low, totals[0, k] + prior)
        norm[k] = 1.0 / (totals[0, k] + prior)
    return low


@inlined
def smallest_of(totals):
    """Return the smallest number of the second row."""
    low = np.inf
    for k in range(totals.shape[1]):
        low = min(low, totals[1, k])
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
    """Return the scale times ``keep``, 1 after it was folded into u."""
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


@inlined
def learn_from(documents, words, d, v, row, factor, old, weight, rates, moments):
    """Learn λ from a token: its ``row`` (K,) times ``factor`` and its memory (K,), both times ``weight``."""
    covariance, variance = rates[3], rates[3]
    for k in range(row.shape[0]):
        new, kept = weight * (factor * row[k]), weight * np.float64(old[k])
        centre = documents[d, 0, k] + words[v, 0, k]
        covariance += 2.0 * new * kept - (new + kept) * centre
        variance += 2.0 * kept * kept - 2.0 * kept * centre
    learn(moments, covariance, variance)


@inlined
def growth(documents, words, d, v, k, drift):
    """Return the change of ‖C‖² if C of a token and topic changes by ``drift``."""
    return drift * (2.0 * (documents[d, 0, k] + words[v, 0, k]) + 2.0 * drift)


@helper
def least(totals, lead, gamma, row, factor, other, other_factor, prior):
    """Return the minimum of Σ_v s_kv + β'V after a step to the proxy centre + (factor · row − ...) / γ."""
    low = np.inf
    for k in range(row.shape[0]):
        change = factor * row[k] - other_factor * other[k]
        low = min(low, totals[0, k] + (gamma * (lead * totals[1, k] - totals[0, k]) + change) + prior)
    return low


@lean
def iterate(
    tokens, sample_weight, divided, mean_scale, share_scale, correction, steps, index, other,
    documents, words, totals, scale, memory, before, rates, moments, alpha, beta, work
):  # fmt: skip
    """Do iterations of one token each: sem, sem-vr and fiem, and iem if γ = 1; there is no ``before``.

    Δ_i is computed before the row of the memory is written, also if i and j coincide.
    """
    n_topics, prior = totals.shape[1], beta * words.shape[0]
    row, row_other, norm = work[0], work[1], work[3]
    low, low_centre = norms(totals, prior, norm), smallest_of(totals) + prior
    order, rejected, lead = vector(index), 0, 1.0
    own_weight = sample_weight[:0] if divided else sample_weight
    if other.ndim == 2:
        order_j = vector(other)
    for t in range(order.shape[0]):
        read_ahead(t, order, tokens, documents, words)
        if memory.ndim == 2:
            read_memory_ahead(t, order, memory)
        if other.ndim == 2:
            read_ahead(t, order_j, tokens, documents, words)
            read_memory_ahead(t, order_j, memory)
        i, gamma = order[t], steps[t]
        keep = 1.0 - gamma
        d, v = tokens[i, 0], tokens[i, 1]
        total = total_other = 0.0
        if other.ndim == 2:
            j = order_j[t]
            d_j, v_j = tokens[j, 0], tokens[j, 1]
        for k in range(n_topics):  # one loop for both E-steps: neither waits for the other's sum
            value = entry(documents, d, k, scale, rates, alpha) * entry(words, v, k, scale, rates, beta)
            row[k] = value * norm[k]
            total += row[k]
            if other.ndim == 2:
                value = entry(documents, d_j, k, scale, rates, alpha) * entry(
                    words, v_j, k, scale, rates, beta
                )
                row_other[k] = value * norm[k]
                total_other += row_other[k]
            elif documents.ndim == 3:
                row_other[k] = documents[d, 2, k] * words[v, 2, k]
                total_other += row_other[k]
        if not total > SMALLEST:
            total = careful(documents, words, d, v, scale, rates, alpha, beta, norm, row)
        if memory.ndim == 2 and other.ndim == 0:
            share, factor = weighted(sample_weight, i, share_scale), 1.0 / total
            bound = low - share * (1.0 + SLACK)
            if not bound > SMALLEST:
                bound = least(totals, 1.0, 0.0, row, share * factor, memory[i], share, prior)
                if not bound > 0.0:
                    return t, rejected, scale
            low = bound
            for k in range(n_topics):
                old = np.float64(memory[i, k])
                memory[i, k] = factor * row[k]
                change = share * (memory[i, k] - old)
                s = totals[0, k] + change
                totals[0, k] = s
                norm[k] = 1.0 / (s + prior)
                documents[d, k] += change
                words[v, k] += change
            continue
        if moments.ndim == 1:
            correction = lead = moments[2]
        weight = gamma * weighted(own_weight, i, mean_scale)
        factor, taken = weight / total, correction * weight
        if documents.ndim == 2:
            # A token takes nothing away: only γ = 1, or an empty topic, brings a total to zero.
            bound = keep * low
        else:
            if moments.ndim == 0:
                bound = keep * low + gamma * low_centre - weight * (1.0 + SLACK)
            else:  # low_centre is the minimum of Σ_v C_kv + β'V
                floor = correction * (low_centre - prior) + prior
                bound = keep * low + gamma * floor - weight * max(1.0, correction) * (1.0 + SLACK)
        if other.ndim == 2:
            if not total_other > SMALLEST:
                total_other = careful(documents, words, d_j, v_j, scale, rates, alpha, beta, norm, row_other)
            share, factor_j = weighted(sample_weight, j, share_scale), 1.0 / total_other
            if moments.ndim == 1:
                learn_from(
                    documents, words, d, v, row, 1.0 / total, memory[i],
                    weighted(own_weight, i, mean_scale), rates, moments,
                )  # fmt: skip
        elif documents.ndim == 3:
            taken /= uniform(row_other, total_other)
        if not bound > SMALLEST:
            low_centre = smallest_of(totals) + prior
            if documents.ndim == 2:
                bound = least(totals, 1.0, gamma, row, factor, row, 0.0, prior)
            elif memory.ndim == 0:
                bound = least(totals, 1.0, gamma, row, factor, row_other, taken, prior)
            else:
                bound = least(totals, lead, gamma, row, factor, memory[i], taken, prior)
            if not bound > 0.0:
                rejected += 1
                bound = low
                keep, gamma, factor, taken = 1.0, 0.0, 0.0, 0.0  # s stays; the change by j is the same
        low = bound
        scale = shrink(documents, words, scale, keep)
        inverse = 1.0 / scale
        if moments.ndim == 1:
            rates[0] = keep * rates[0] + gamma * correction
        if other.ndim == 2:
            low_centre -= share * (1.0 + SLACK)
        for k in range(n_topics):
            change = factor * row[k]
            if documents.ndim == 2:
                s = keep * totals[0, k] + change
            else:
                if memory.ndim == 0:
                    change -= taken * row_other[k]
                else:
                    change -= taken * memory[i, k]
                s = totals[0, k] + (gamma * (lead * totals[1, k] - totals[0, k]) + change)
            totals[0, k] = s
            norm[k] = 1.0 / (s + prior)
            change *= inverse
            if documents.ndim == 2:
                documents[d, k] += change
                words[v, k] += change
            else:
                documents[d, 1, k] += change
                words[v, 1, k] += change
            if other.ndim == 2:
                old = np.float64(memory[j, k])
                memory[j, k] = factor_j * row_other[k]
                drift = share * (memory[j, k] - old)
                if moments.ndim == 1:
                    rates[3] += growth(documents, words, d_j, v_j, k, drift)
                documents[d_j, 0, k] += drift
                words[v_j, 0, k] += drift
                if rates.ndim == 0:
                    totals[1, k] += drift
                    drift *= inverse
                else:
                    totals[1, k] += rates[2] * drift
                    drift *= rates[0] * inverse
                documents[d_j, 1, k] -= drift
                words[v_j, 1, k] -= drift
    return order.shape[0], rejected, scale
