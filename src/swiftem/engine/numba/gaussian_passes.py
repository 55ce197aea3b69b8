"""Gaussian mixtures with covariances: full passes, E-steps and statistics of many samples, block by block.

Arguments as in :mod:`swiftem.engine.numba.gaussian_blocks`. ``reach`` (d,) is the distance of all samples
from the centre, in each direction; if it is unknown (infinite) or too large, each block is checked.

All are one kernel, :func:`blocks`, which does what its arguments that are not empty are for: three would have
the same E-step and sums, and take twice as long to compile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from swiftem.engine.numba.compile import helper, lean
from swiftem.engine.numba.gaussian_blocks import (
    TIED,
    add_squares,
    add_statistics,
    add_up,
    e_step,
    far_component,
    remember,
    spread,
    take,
    twin,
)
from swiftem.engine.numba.memory import matrix, multiply, vector
from swiftem.engine.numba.softmax import add, copy

__all__ = ["blocks", "evaluate", "full_pass", "statistics"]

NONE, NO_LABELS = np.empty(0), np.empty(0, dtype=np.intp)
NO_ROWS, NO_SUMS = np.empty((0, 0)), (NONE, np.empty((0, 0)), np.empty((0, 0)))
NO_MEMORY, NO_WEIGHT, NOT_GIVEN = twin(NO_ROWS), NONE.view(), NO_ROWS.view()
NO_WEIGHT.flags.writeable = NOT_GIVEN.flags.writeable = False  # as those that are given


@helper
def _add_sums(with_products: Any, work: Any, total1: Any, total2: Any, total3: Any) -> None:
    """Add the sums of a block to the totals."""
    add(work.sums1, total1)
    add(vector(work.sums2), vector(total2))
    if with_products:
        add(vector(work.sums3), vector(total3))


@lean
def blocks(
    y: Any, sample_weight: Any, centre: Any, reach: Any, kind: Any, theta: Any, given: Any, memory: Any,
    with_products: Any, work: Any, found: Any, total1: Any, total2: Any, total3: Any,
    log_likelihood: Any, responsibilities: Any, labels: Any,
) -> Any:  # fmt: skip
    """E-step of samples ``y``, a twin (n, d), unless rows are ``given`` (n, M); then statistics, if wanted.

    The other arguments, and what is returned, as in :func:`full_pass` and :func:`evaluate`.
    """
    n, d, n_components = len(y.double) + len(y.single), len(centre), len(work.sums1)
    block = len(work.largest)
    total, all_near, far = 0.0, True, -1
    remembers = len(memory.double) + len(memory.single) > 0
    if not len(given):
        copy(reach, work.extent)
        far = far_component(theta, work.extent, -1)
    for first in range(0, n, block):
        b = min(block, n - first)
        samples, rows = matrix(work.samples, d, b), matrix(work.rows, b, n_components)
        take(y, first, centre, samples)
        near = far < 0 and not len(given)
        if len(given):
            for t in range(b):
                for m in range(n_components):
                    rows[t, m] = given[first + t, m]
        else:
            if not near:
                spread(samples, work.extent)
                for c in range(d):
                    found[c] = max(found[c], work.extent[c])
                near = far_component(theta, work.extent, far) < 0
            all_near &= near
            e_step(kind, samples, theta, near, work, rows)
            product = 1.0
            for t in range(b):
                if len(sample_weight):
                    weight = sample_weight[first + t]
                    total += weight * (work.largest[t] + math.log(work.totals[t]))
                else:
                    total += work.largest[t]
                    product *= work.totals[t]  # from 1 to M each
                    if product > 1e250:
                        total += math.log(product)
                        product = 1.0
            total += math.log(product)
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
            values = log_likelihood[first : first + b]
            for t in range(b):
                values[t] = work.largest[t] + math.log(work.totals[t])
            if kind == TIED and near:
                whitened = matrix(work.whitened, d, b)
                multiply(theta.whiten[0], samples, whitened)
                add_squares(whitened, values)
        if not len(total1):
            continue
        if len(memory.double):
            remember(rows, first, memory.double)
        if len(memory.single):
            remember(rows, first, memory.single)
        if len(sample_weight):
            for t in range(b):
                for m in range(n_components):
                    rows[t, m] *= sample_weight[first + t]
        if kind == TIED and (remembers or len(given)):
            add_up(rows, work.totals)
        elif (
            with_products
        ):  # not the rows' sums, which are one up to rounding: then it is the same for every θ
            for t in range(b):
                work.totals[t] = sample_weight[first + t] if len(sample_weight) else 1.0
        add_statistics(kind, samples, rows, near, with_products, work)
        _add_sums(with_products, work, total1, total2, total3)
    return total, all_near


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
    return blocks(
        y, sample_weight, centre, reach, kind, theta, NOT_GIVEN, memory, with_products, work, found,
        total1, total2, total3, NONE, NO_ROWS, NO_LABELS,
    )  # fmt: skip


def evaluate(
    y: Any, centre: Any, reach: Any, kind: Any, theta: Any, work: Any,
    log_likelihood: Any, responsibilities: Any, labels: Any,
) -> None:  # fmt: skip
    """E-step of samples ``y``, a twin (n, d): fill each of the last three that has n entries.

    ``log_likelihood`` (n,), ``responsibilities`` (n, M), and ``labels`` (n,), the most likely components.
    """
    blocks(
        y, NO_WEIGHT, centre, reach, kind, theta, NOT_GIVEN, NO_MEMORY, False, work, np.zeros(len(centre)),
        *NO_SUMS, log_likelihood, responsibilities, labels,
    )  # fmt: skip


def statistics(
    y: Any, weight: Any, centre: Any, kind: Any, theta: Any, given: Any, work: Any, total1: Any, total2: Any,
    total3: Any,
) -> None:  # fmt: skip
    """Add Σ_t weight_t given_t ⊗ T(y_t) to the totals; ``given`` (n, M): responsibilities or differences.

    ``y`` is a twin (n, d); ``theta`` is not read.
    """
    blocks(
        y, weight, centre, centre, kind, theta, given, NO_MEMORY, kind == TIED, work, centre,
        total1, total2, total3, NONE, NO_ROWS, NO_LABELS,
    )  # fmt: skip
