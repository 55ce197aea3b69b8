"""What stands between and around the two matrix products of a mixture's E-step and statistics.

A block has b samples and M components, and stays in cache. The exponential itself is left to NumPy, which
does eight at a time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from swiftem.kernels.numba.compile import kernel

__all__ = [
    "advance",
    "begin",
    "log_joint",
    "log_likelihood",
    "normalise",
    "normalise_weighted",
    "shift",
    "swap",
    "weigh",
]

LOWEST = -100.0
"""Logits are cut off here: exponentials of infinities, and subnormal ones, take several times as long."""

NEGLIGIBLE = 1e-20
"""Smaller responsibilities are set to zero: subnormal numbers, in float32 too, slow matrix products down."""


@kernel
def log_joint(y: Any, means: Any, out: Any) -> None:
    """Write −‖y_t − μ_m‖² / 2 into ``out`` (b, M): exact where an expanded square would lose digits.

    ``y`` (b, d), ``means`` (M, d).
    """
    for t in range(len(y)):
        for m in range(len(means)):
            square = 0.0
            for c in range(y.shape[1]):
                difference = y[t, c] - means[m, c]
                square += difference * difference
            out[t, m] = -0.5 * square


@kernel
def shift(logits: Any, constant: Any, largest: Any) -> None:
    """Add ``constant`` (M,) to the rows of ``logits`` (b, M) and subtract each row's ``largest`` (b,)."""
    for t in range(len(logits)):
        top = logits[t, 0] + constant[0]
        for m in range(logits.shape[1]):
            value = logits[t, m] + constant[m]
            logits[t, m] = value
            top = max(top, value)
        largest[t] = top
        for m in range(logits.shape[1]):
            logits[t, m] = max(logits[t, m] - top, LOWEST)


@kernel
def normalise(rows: Any, totals: Any) -> None:
    """Divide the rows of ``rows`` (b, M) by their sums, which go to ``totals`` (b,)."""
    for t in range(len(rows)):
        total = 0.0
        for m in range(rows.shape[1]):
            total += rows[t, m]
        totals[t] = total
        inverse = 1.0 / total
        for m in range(rows.shape[1]):
            value = rows[t, m] * inverse
            rows[t, m] = value if value > NEGLIGIBLE else 0.0


@kernel
def normalise_weighted(rows: Any, totals: Any, weight: Any, factor: Any, sums: Any) -> None:
    """As ``normalise`` and then ``weigh``, in one go over the block."""
    for t in range(len(rows)):
        total = 0.0
        for m in range(rows.shape[1]):
            total += rows[t, m]
        totals[t] = total
        least = NEGLIGIBLE * total
        scale = factor / total
        if len(weight):
            scale *= weight[t]
        for m in range(rows.shape[1]):
            value = scale * rows[t, m] if rows[t, m] > least else 0.0
            rows[t, m] = value
            sums[m] += value


@kernel
def begin(
    weights: Any, means: Any, centre: Any, expanded: Any, shifted: Any, transposed: Any, constant: Any,
    y: Any, index: Any, samples: Any,
) -> None:  # fmt: skip
    """Write what an E-step needs of θ and of the data.

    Of θ: means minus the ``centre`` (d,) into ``shifted`` (M, d) and ``transposed`` (d, M); log ω_m, minus
    ‖μ_m‖² / 2 where squares are ``expanded``, into ``constant`` (M,). Of ``y`` (n, d): samples ``index`` (b,)
    minus the centre into ``samples`` (b, d).
    """
    n_components, d = means.shape
    for m in range(n_components):
        square = 0.0
        for c in range(d):
            value = means[m, c] - centre[c]
            shifted[m, c] = value
            transposed[c, m] = value
            square += value * value
        constant[m] = math.log(weights[m]) if weights[m] > 0.0 else -math.inf
        if expanded:
            constant[m] -= 0.5 * square
    for t in range(len(index)):
        i = index[t]
        for c in range(d):
            samples[t, c] = y[i, c] - centre[c]


@kernel
def weigh(rows: Any, weight: Any, factor: Any, sums: Any) -> None:
    """Multiply row t by factor · weight_t (``weight`` (b,), or (0,): ones); add the rows to ``sums`` (M,)."""
    for t in range(len(rows)):
        scale = factor * weight[t] if len(weight) else factor
        for m in range(rows.shape[1]):
            value = scale * rows[t, m]
            rows[t, m] = value
            sums[m] += value


@kernel
def log_likelihood(y: Any, largest: Any, totals: Any, weight: Any, expanded: Any) -> Any:
    """Return Σ_t weight_t log g(y_t) of a block, from what ``shift`` and ``normalise`` left.

    ``expanded`` tells whether the squares of the samples ``y`` (b, d) are still to be taken off.
    """
    d = y.shape[1]
    constant = 0.5 * d * math.log(2.0 * math.pi)
    result = 0.0
    for t in range(len(y)):
        value = largest[t] + math.log(totals[t]) - constant
        if expanded:
            for c in range(d):
                value -= 0.5 * y[t, c] * y[t, c]
        result += value * weight[t] if len(weight) else value
    return result


@kernel
def swap(rows: Any, index: Any, memory: Any, write: Any) -> None:
    """Replace ``rows`` (b, M) by their difference from the memory (n, M) of samples ``index`` (b,).

    With ``write``, the memory takes the rows as its type can hold them, that is what enters the difference,
    and a sample that is repeated has difference zero from the second time on, without a search.
    """
    for t in range(len(rows)):
        i = index[t]
        for m in range(rows.shape[1]):
            old = np.float64(memory[i, m])
            if write:
                memory[i, m] = rows[t, m]
                rows[t, m] = np.float64(memory[i, m]) - old
            else:
                rows[t, m] -= old


@kernel
def advance(
    centre1: Any, centre2: Any, change1: Any, change2: Any, offset: Any, gamma: Any, s1: Any, s2: Any,
    delta: Any, epsilon: Any, known: Any, weights: Any, means: Any,
) -> Any:  # fmt: skip
    """sE-step and M-step of a mixture with unit variances; return 1 where the step is rejected, else 0.

    S is centre + change, ``centre1`` (M,), ``centre2`` (M, d), ``change1`` (M,), ``change2`` (M, d); the
    last is of samples minus ``offset`` (d,). ``s1``, ``s2``, ``weights`` and ``means`` change in place.
    """
    n_components, d = means.shape
    lowest = math.inf
    for m in range(n_components):
        lowest = min(lowest, s1[m] + gamma * (centre1[m] + change1[m] - s1[m]))
    if not (lowest + epsilon > 0.0 and lowest + delta > 0.0):
        return 1
    for m in range(n_components):
        s = s1[m] + gamma * (centre1[m] + change1[m] - s1[m])  # (sestep)
        s1[m] = s
        if not known:
            weights[m] = s + epsilon  # (mstep_gmm0), up to the sum, which no E-step needs
        for c in range(d):
            moved = change2[m, c] + change1[m] * offset[c]
            t = s2[m, c] + gamma * (centre2[m, c] + moved - s2[m, c])
            s2[m, c] = t
            means[m, c] = t / (s + delta)
    return 0
