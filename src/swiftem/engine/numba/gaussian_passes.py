"""Gaussian mixtures with covariances: full passes, E-steps and statistics of many samples, block by block.

Arguments as in :mod:`swiftem.engine.numba.gaussian_blocks`. ``reach`` (d,) is the distance of all samples
from the centre, in each direction; if it is unknown (infinite) or too large, each block is checked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from swiftem.engine.numba.compile import helper, kernel
from swiftem.engine.numba.gaussian_blocks import (
    TIED,
    add_squares,
    add_statistics,
    add_up,
    e_step,
    is_near,
    remember,
    spread,
    take,
)
from swiftem.engine.numba.softmax import add, copy

__all__ = ["evaluate", "full_pass", "statistics"]


@helper
def _add_sums(with_products: Any, work: Any, total1: Any, total2: Any, total3: Any) -> None:
    """Add the sums of a block to the totals."""
    add(work.sums1, total1)
    add(work.sums2.reshape(work.sums2.size), total2.reshape(total2.size))
    if with_products:
        add(work.sums3.reshape(work.sums3.size), total3.reshape(total3.size))


@kernel
def full_pass(
    y: Any, sample_weight: Any, centre: Any, reach: Any, kind: Any, theta: Any, memory: Any,
    with_products: Any, work: Any, found: Any, total1: Any, total2: Any, total3: Any,
) -> Any:  # fmt: skip
    """Add the statistics of samples ``y`` (n, d) to ``total1`` (M,), ``total2`` (p, M) and ``total3`` (d, d).

    ``y`` and ``memory`` are twins. Responsibilities go to the memory (n, M) unless it is (0, M); its rounded
    values are used. The last is the sum of products, only for "tied" and if ``with_products``. Return the
    log-likelihood, for "tied" without −½ yᵀPy, and whether all blocks were near; ``found`` (d,) then is at
    least the distance of the samples of all blocks that were checked.
    """
    n, (n_components, d) = len(y.double) + len(y.single), theta.means.shape
    block = len(work.largest)
    log_likelihood, all_near = 0.0, True
    remembers = len(memory.double) + len(memory.single) > 0
    copy(reach, work.extent)
    is_known = is_near(theta, work.extent)
    for first in range(0, n, block):
        b = min(block, n - first)
        samples = work.samples[: d * b].reshape(d, b)
        rows = work.rows[: b * n_components].reshape(b, n_components)
        take(y, first, centre, samples)
        near = is_known
        if not is_known:
            spread(samples, work.extent)
            for c in range(d):
                found[c] = max(found[c], work.extent[c])
            near = is_near(theta, work.extent)
        all_near &= near
        e_step(kind, samples, theta, near, work, rows)
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
        if len(memory.double):
            remember(rows, first, memory.double)
        if len(memory.single):
            remember(rows, first, memory.single)
        if len(sample_weight):
            for t in range(b):
                for m in range(n_components):
                    rows[t, m] *= sample_weight[first + t]
        if kind == TIED and remembers:
            add_up(rows, work.totals)
        elif (
            with_products
        ):  # not the rows' sums, which are one up to rounding: then it is the same for every θ
            for t in range(b):
                work.totals[t] = sample_weight[first + t] if len(sample_weight) else 1.0
        add_statistics(kind, samples, rows, near, with_products, work)
        _add_sums(with_products, work, total1, total2, total3)
    return log_likelihood, all_near


@kernel
def evaluate(
    y: Any, centre: Any, reach: Any, kind: Any, theta: Any, work: Any,
    log_likelihood: Any, responsibilities: Any, labels: Any,
) -> None:  # fmt: skip
    """E-step of samples ``y``, a twin (n, d): fill each of the last three that has n entries.

    ``log_likelihood`` (n,), ``responsibilities`` (n, M), and ``labels`` (n,), the most likely components.
    """
    n, (n_components, d) = len(y.double) + len(y.single), theta.means.shape
    block = len(work.largest)
    copy(reach, work.extent)
    is_known = is_near(theta, work.extent)
    for first in range(0, n, block):
        b = min(block, n - first)
        samples = work.samples[: d * b].reshape(d, b)
        rows = work.rows[: b * n_components].reshape(b, n_components)
        take(y, first, centre, samples)
        near = is_known
        if not is_known:
            spread(samples, work.extent)
            near = is_near(theta, work.extent)
        e_step(kind, samples, theta, near, work, rows)
        if len(responsibilities):
            for t in range(b):
                copy(rows[t], responsibilities[first + t])
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
                np.dot(theta.whiten[0], samples, whitened)
                add_squares(whitened, found)


@kernel
def statistics(
    y: Any, centre: Any, kind: Any, given: Any, weight: Any, work: Any, total1: Any, total2: Any, total3: Any
) -> None:
    """Add Σ_t weight_t given_t ⊗ T(y_t) to the totals; ``given`` (n, M): responsibilities or differences.

    ``y`` is a twin (n, d).
    """
    n, d, n_components = len(y.double) + len(y.single), len(centre), len(total1)
    block = len(work.largest)
    for first in range(0, n, block):
        b = min(block, n - first)
        samples = work.samples[: d * b].reshape(d, b)
        rows = work.rows[: b * n_components].reshape(b, n_components)
        take(y, first, centre, samples)
        for t in range(b):
            for m in range(n_components):
                rows[t, m] = given[first + t, m] * weight[first + t]
        if kind == TIED:
            add_up(rows, work.totals)
        add_statistics(kind, samples, rows, bool(0), kind == TIED, work)  # literals: another version
        _add_sums(kind == TIED, work, total1, total2, total3)
