"""Gaussian mixtures with covariances on blocks of samples: two matrix products with a softmax between.

Samples are columns, so that every loop but those of the products runs over the samples of a block, in
vector instructions. T(y) without its first entry, 1, is a (p, b) array: the centred samples, then their
squares. ``theta`` is a :class:`swiftem.models.covariance.Coefficients`, ``kind`` the code of a kind of
covariance. Buffers are flat, so that blocks of every size are contiguous.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swiftem.kernels.numba.compile import helper, kernel
from swiftem.kernels.numba.softmax import CHUNK, LOWEST, NEGLIGIBLE, add_rows, exponentiate

__all__ = ["Work", "columns", "evaluate", "full_pass", "make_work", "statistics"]

FULL, TIED, DIAG, SPHERICAL = 0, 1, 2, 3

FARTHEST = 2.5e5
"""Squared distance, in standard deviations, up to which expanded squares keep ten digits of a logit."""

NUMBERS = 49_152
"""Numbers of a block that go through the second-level cache."""


class Work(NamedTuple):
    """Buffers for blocks of up to b samples, flat where their shape depends on the block.

    Attributes
    ----------
    powers : ndarray, size p·b
        T(y), (p, b).
    logits : ndarray, size M·b
        Logits (M, b), then exponentials.
    rows : ndarray, size b·M
        Responsibilities (b, M).
    differences, whitened : ndarray, size d·b
        For squares of differences, (d, b).
    largest, totals : ndarray, shape (b,)
        What the likelihood needs: largest logit, and sum of exponentials relative to it.
    extent : ndarray, shape (d,)
        How far a block's samples, and the means, are from the centre.
    bits, exponents : ndarray of int64 and float64, shape (CHUNK,)
        The same memory, for powers of two.
    sums1, sums2, sums3 : ndarray, shapes (M,), (p, M), (d, d)
        A block's sums of r, r·T(y) and, for "tied", yyᵀ.
    """

    powers: Any
    logits: Any
    rows: Any
    differences: Any
    whitened: Any
    largest: Any
    totals: Any
    extent: Any
    bits: Any
    exponents: Any
    sums1: Any
    sums2: Any
    sums3: Any


def columns(kind: int, d: int) -> int:
    """Return p, how many entries T(y) has besides 1 ("tied": and besides squares).

    >>> columns(FULL, 16), columns(TIED, 16), columns(DIAG, 16), columns(SPHERICAL, 16)
    (152, 16, 32, 17)
    """
    return {FULL: d + d * (d + 1) // 2, TIED: d, DIAG: 2 * d, SPHERICAL: d + 1}[kind]


def make_work(kind: int, n_components: int, d: int) -> Work:
    """Return buffers for blocks of the size that suits these numbers.

    >>> len(make_work(FULL, n_components=20, d=16).largest)
    256
    """
    p = columns(kind, d)
    b = min(max(NUMBERS // (p + 2 * n_components) // 64 * 64, 128), 512)
    bits = np.empty(CHUNK, dtype=np.int64)
    return Work(
        np.empty(p * b), np.empty(n_components * b), np.empty(n_components * b), np.empty(d * b),
        np.empty(d * b), np.empty(b), np.empty(b), np.empty(d), bits, bits.view(np.float64),
        np.empty(n_components), np.empty((p, n_components)), np.empty((d, d)),
    )  # fmt: skip


@helper
def _take(y: Any, first: Any, centre: Any, samples: Any) -> None:
    """Write rows ``first`` and on of ``y`` (n, d), minus the centre, as columns into ``samples`` (d, b)."""
    d, b = samples.shape
    for c in range(d):
        middle, line = centre[c], samples[c]
        for t in range(b):
            line[t] = y[first + t, c] - middle


@helper
def _raise(kind: Any, d: Any, powers: Any) -> None:
    """Complete T(y) in ``powers`` (p, b), of which the first d rows are the samples."""
    b = powers.shape[1]
    if kind == FULL:
        k = d
        for i in range(d):
            for j in range(i + 1):
                one, other, product = powers[i], powers[j], powers[k]
                for t in range(b):
                    product[t] = one[t] * other[t]
                k += 1
    elif kind == DIAG:
        for i in range(d):
            one, product = powers[i], powers[d + i]
            for t in range(b):
                product[t] = one[t] * one[t]
    elif kind == SPHERICAL:
        square = powers[d]
        square[:] = 0.0
        for i in range(d):
            one = powers[i]
            for t in range(b):
                square[t] += one[t] * one[t]


@helper
def _is_near(samples: Any, theta: Any, extent: Any) -> Any:
    """Tell whether the expanded squares of these samples (d, b) keep enough digits.

    Bounds ‖U_mᵀ y‖² for all y that are as far from the centre, in each direction, as a sample or mean is.
    """
    d, b = samples.shape
    n_components = len(theta.means)
    for c in range(d):
        largest, line = 0.0, samples[c]
        for t in range(b):
            size = abs(line[t])
            largest = size if size > largest else largest
        for m in range(n_components):
            largest = max(largest, abs(theta.means[m, c]))
        extent[c] = largest
    for m in range(max(len(theta.whiten), len(theta.scales))):
        square = 0.0
        for i in range(d):
            reach = 0.0
            if len(theta.whiten):
                for j in range(i + 1):
                    reach += abs(theta.whiten[m, i, j]) * extent[j]
            else:
                reach = theta.scales[m, i] * extent[i]
            square += reach * reach
        if not square <= FARTHEST:
            return False
    return True


@helper
def _add_squares(lines: Any, sums: Any) -> None:
    """Subtract half the squares of ``lines`` (d, b), summed over d, from ``sums`` (b,)."""
    for c in range(len(lines)):
        line = lines[c]
        for t in range(len(sums)):
            sums[t] -= 0.5 * line[t] * line[t]


@helper
def _differences(samples: Any, theta: Any, logits: Any, work: Any) -> None:
    """Write minus half the squares of the whitened differences y − μ_m into ``logits`` (M, b)."""
    d, b = samples.shape
    differences = work.differences[: d * b].reshape(d, b)
    whitened = work.whitened[: d * b].reshape(d, b)
    logits[:] = 0.0
    for m in range(len(logits)):
        for c in range(d):
            scale = theta.scales[m, c] if len(theta.scales) else 1.0
            for t in range(b):
                differences[c, t] = (samples[c, t] - theta.means[m, c]) * scale
        if len(theta.whiten):
            np.dot(theta.whiten[min(m, len(theta.whiten) - 1)], differences, whitened)
            _add_squares(whitened, logits[m])
        else:
            _add_squares(differences, logits[m])


@helper
def _softmax(logits: Any, constant: Any, work: Any, rows: Any) -> None:
    """Write the softmax over m of ``logits`` (M, b) + ``constant`` (M,) into ``rows`` (b, M).

    The largest logits and the sums of exponentials are left in ``work``.
    """
    n_components, b = logits.shape
    largest, totals = work.largest[:b], work.totals[:b]
    largest[:] = -math.inf
    for m in range(n_components):
        line, shift = logits[m], constant[m]
        for t in range(b):
            value = line[t] + shift
            line[t] = value
            largest[t] = value if value > largest[t] else largest[t]
    for m in range(n_components):
        line = logits[m]
        for t in range(b):
            value = line[t] - largest[t]
            line[t] = value if value > LOWEST else LOWEST
    exponentiate(logits.reshape(logits.size), work.bits, work.exponents)
    totals[:] = 0.0
    for m in range(n_components):
        line = logits[m]
        for t in range(b):
            totals[t] += line[t]
    for t in range(b):
        inverse = 1.0 / totals[t]
        for m in range(n_components):
            value = logits[m, t] * inverse
            rows[t, m] = value if value > NEGLIGIBLE else 0.0


@helper
def _e_step(kind: Any, powers: Any, theta: Any, work: Any, rows: Any) -> Any:
    """Write the responsibilities into ``rows`` (b, M); return whether squares were expanded.

    The logits of "tied" then lack −½ yᵀPy.
    """
    d, b = theta.means.shape[1], powers.shape[1]
    n_components = len(theta.means)
    logits = work.logits[: n_components * b].reshape(n_components, b)
    near = _is_near(powers[:d], theta, work.extent)
    if near:
        np.dot(theta.phi, powers, logits)
        _softmax(logits, theta.constant, work, rows)
    else:
        _differences(powers[:d], theta, logits, work)
        _softmax(logits, theta.plain, work, rows)
    return near


@helper
def _add_statistics(kind: Any, d: Any, powers: Any, rows: Any, with_products: Any, work: Any) -> None:
    """Write Σ_t rows_t, T(y_t)·rows_t and, for "tied", yyᵀ times the sum of the row into ``work.sums``."""
    add_rows(rows, work.sums1)
    np.dot(powers, rows, work.sums2)
    if kind == TIED and with_products:
        b = powers.shape[1]
        weighted = work.differences[: d * b].reshape(d, b)
        for t in range(b):
            total = 0.0
            for m in range(rows.shape[1]):
                total += rows[t, m]
            work.totals[t] = total
        for c in range(d):
            for t in range(b):
                weighted[c, t] = powers[c, t] * work.totals[t]
        np.dot(weighted, powers.T, work.sums3)


@kernel
def full_pass(
    y: Any, sample_weight: Any, centre: Any, kind: Any, theta: Any, memory: Any, with_products: Any,
    work: Any, total1: Any, total2: Any, total3: Any,
) -> Any:  # fmt: skip
    """Add the statistics of samples ``y`` (n, d) to ``total1`` (M,), ``total2`` (p, M) and ``total3`` (d, d).

    Responsibilities go to ``memory`` (n, M) unless it is (0, M); what it can hold is what counts. The last
    is the sum of products, for "tied" alone and where ``with_products``. Return the log-likelihood, for
    "tied" without −½ yᵀPy, and whether all blocks were near.
    """
    (n, d), n_components = y.shape, len(theta.means)
    p, block = len(total2), len(work.largest)
    log_likelihood, all_near = 0.0, True
    for first in range(0, n, block):
        b = min(block, n - first)
        powers = work.powers[: p * b].reshape(p, b)
        rows = work.rows[: b * n_components].reshape(b, n_components)
        _take(y, first, centre, powers[:d])
        _raise(kind, d, powers)
        all_near &= _e_step(kind, powers, theta, work, rows)
        product = 1.0
        for t in range(b):
            if len(sample_weight):
                weight = sample_weight[first + t]
                log_likelihood += weight * (work.largest[t] + math.log(work.totals[t]))
            else:
                log_likelihood += work.largest[t]
                product *= work.totals[t]  # from 1 to M each
                if product > 1e250:
                    log_likelihood += math.log(product)
                    product = 1.0
        log_likelihood += math.log(product)
        if len(memory):
            for t in range(b):
                for m in range(n_components):
                    memory[first + t, m] = rows[t, m]
                    rows[t, m] = memory[first + t, m]
        if len(sample_weight):
            for t in range(b):
                for m in range(n_components):
                    rows[t, m] *= sample_weight[first + t]
        _add_statistics(kind, d, powers, rows, with_products, work)
        total1 += work.sums1
        total2 += work.sums2
        if with_products:
            total3 += work.sums3
    return log_likelihood, all_near


@kernel
def evaluate(
    y: Any, centre: Any, kind: Any, theta: Any, work: Any, log_likelihood: Any, responsibilities: Any,
    labels: Any,
) -> None:  # fmt: skip
    """E-step of samples ``y`` (n, d): fill each of the last three that has n entries.

    ``log_likelihood`` (n,), ``responsibilities`` (n, M), and ``labels`` (n,), the likeliest components.
    """
    (n, d), n_components = y.shape, len(theta.means)
    p, block = theta.phi.shape[1], len(work.largest)
    for first in range(0, n, block):
        b = min(block, n - first)
        powers = work.powers[: p * b].reshape(p, b)
        rows = work.rows[: b * n_components].reshape(b, n_components)
        _take(y, first, centre, powers[:d])
        _raise(kind, d, powers)
        near = _e_step(kind, powers, theta, work, rows)
        if len(responsibilities):
            responsibilities[first : first + b] = rows
        if len(labels):
            for t in range(b):
                best = 0
                for m in range(n_components):
                    if rows[t, m] > rows[t, best]:
                        best = m
                labels[first + t] = best
        if len(log_likelihood):
            found = log_likelihood[first : first + b]
            for t in range(b):
                found[t] = work.largest[t] + math.log(work.totals[t])
            if kind == TIED and near:
                whitened = work.whitened[: d * b].reshape(d, b)
                np.dot(theta.whiten[0], powers, whitened)
                _add_squares(whitened, found)


@kernel
def statistics(
    y: Any, centre: Any, kind: Any, given: Any, weight: Any, work: Any, total1: Any, total2: Any, total3: Any
) -> None:
    """Add Σ_t weight_t given_t ⊗ T(y_t) to the totals; ``given`` (n, M): responsibilities or differences."""
    (n, d), n_components = y.shape, len(total1)
    p, block = len(total2), len(work.largest)
    for first in range(0, n, block):
        b = min(block, n - first)
        powers = work.powers[: p * b].reshape(p, b)
        rows = work.rows[: b * n_components].reshape(b, n_components)
        _take(y, first, centre, powers[:d])
        _raise(kind, d, powers)
        for t in range(b):
            for m in range(n_components):
                rows[t, m] = given[first + t, m] * weight[first + t]
        _add_statistics(kind, d, powers, rows, True, work)
        total1 += work.sums1
        total2 += work.sums2
        if kind == TIED:
            total3 += work.sums3
