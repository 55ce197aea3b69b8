"""E-steps and statistics of many samples of a mixture, block by block.

All are one kernel, :func:`blocks`, which does what its arguments that are not empty are for: a kernel each
for full passes, evaluations and statistics would have the same parts, and take twice as long to compile.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swiftem.kernels.compile import helper, kernel
from swiftem.kernels.memory import matrix, multiply, vector
from swiftem.kernels.softmax import add, copy
from swiftem.mixture.compute.blocks_kernel import (
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
from swiftem.mixture.covariance import TIED

__all__ = ["Results", "Samples", "Space", "Totals", "evaluate", "full_pass", "statistics", "write_results"]


class Samples(NamedTuple):
    """``y``, a twin (n, d), and ``weight`` (n,), or (0,) for ones."""

    y: Any
    weight: Any


class Space(NamedTuple):
    """Where T(y) is computed.

    Attributes
    ----------
    kind : int
        Code of the kind of covariance, or −1.
    centre : ndarray, shape (d,)
        Subtracted from the samples.
    reach : ndarray, shape (d,)
        Distance of all samples from the centre, in each direction. If it is unknown (infinite) or too large,
        each block is checked.
    """

    kind: Any
    centre: Any
    reach: Any


class Totals(NamedTuple):
    """Sums over samples, added to in place; a first array of no entries if no statistics are wanted.

    Attributes
    ----------
    weights : ndarray, shape (M,)
        Σ w·r.
    features : ndarray, shape (p, M)
        Σ w·r·T(y).
    products : ndarray, shape (d, d) or (0, 0)
        Σ w·yyᵀ, for "tied".
    reach : ndarray, shape (d,)
        At least the distance of the samples of all blocks that were checked.
    """

    weights: Any
    features: Any
    products: Any
    reach: Any


class Results(NamedTuple):
    """Results of each sample: each array has n entries, or none if it is not wanted.

    ``log_likelihood`` (n,), ``responsibilities`` (n, M), and ``labels`` (n,), the most likely components.
    """

    log_likelihood: Any
    responsibilities: Any
    labels: Any


NO_ROWS, NO_LABELS = np.empty((0, 0)), np.empty(0, dtype=np.intp)
NO_MEMORY, NO_WEIGHT, NOT_GIVEN = twin(NO_ROWS), np.empty(0), np.empty((0, 0))
NO_WEIGHT.flags.writeable = NOT_GIVEN.flags.writeable = False  # as those that are given
NO_RESULTS = Results(np.empty(0), NO_ROWS, NO_LABELS)


@helper
def _plus_logs(total: Any, weight: Any, first: Any, largest: Any, totals: Any) -> Any:
    """Return total + Σ_t weight_t (largest_t + log totals_t), of a block that begins at sample ``first``."""
    product = 1.0
    for t in range(len(largest)):
        if len(weight):
            total += weight[first + t] * (largest[t] + math.log(totals[t]))
        else:
            total += largest[t]
            product *= totals[t]  # from 1 to M each
            if product > 1e250:
                total += math.log(product)
                product = 1.0
    return total + math.log(product)


@helper
def write_results(first: Any, rows: Any, work: Any, results: Any) -> None:
    """Write the results of a block that begins at sample ``first``."""
    b = len(rows)
    if len(results.responsibilities):
        for t in range(b):
            copy(rows[t], results.responsibilities[first + t])
    if len(results.labels):
        for t in range(b):
            best = 0
            for m in range(rows.shape[1]):
                if rows[t, m] > rows[t, best]:
                    best = m
            results.labels[first + t] = best
    if len(results.log_likelihood):
        values = results.log_likelihood[first : first + b]
        for t in range(b):
            values[t] = work.largest[t] + math.log(work.totals[t])


@helper
def _weigh(rows: Any, weight: Any, first: Any) -> None:
    """Multiply each row by its sample's weight, if there are weights."""
    if len(weight):
        for t in range(len(rows)):
            for m in range(rows.shape[1]):
                rows[t, m] *= weight[first + t]


@kernel
def blocks(
    data: Any,
    space: Any,
    theta: Any,
    given: Any,
    memory: Any,
    with_products: Any,
    work: Any,
    totals: Any,
    results: Any,
) -> Any:
    """E-step of samples unless rows are ``given`` (n, M); then statistics, if wanted.

    Return the log-likelihood, for "tied" without −½ yᵀPy, and whether all blocks were near.
    """
    kind, d, n_components = space.kind, len(space.centre), len(work.sums1)
    n, block = len(data.y.double) + len(data.y.single), len(work.largest)
    log_likelihood, all_near, far = 0.0, True, -1
    remembers = len(memory.double) + len(memory.single) > 0
    if not len(given):
        copy(space.reach, work.extent)
        far = far_component(theta, work.extent, -1)
    for first in range(0, n, block):
        b = min(block, n - first)
        samples, rows = matrix(work.samples, d, b), matrix(work.rows, b, n_components)
        take(data.y, first, space.centre, samples)
        near = far < 0 and not len(given)
        if len(given):
            for t in range(b):
                copy(given[first + t], rows[t])
        else:
            if not near:
                spread(samples, work.extent)
                for c in range(d):
                    totals.reach[c] = max(totals.reach[c], work.extent[c])
                near = far_component(theta, work.extent, far) < 0
            all_near &= near
            e_step(kind, samples, theta, near, work, rows)
            log_likelihood = _plus_logs(log_likelihood, data.weight, first, work.largest[:b], work.totals[:b])
        write_results(first, rows, work, results)
        if kind == TIED and near and len(results.log_likelihood):
            whitened = matrix(work.whitened, d, b)
            multiply(theta.whiten[0], samples, whitened)
            add_squares(whitened, results.log_likelihood[first : first + b])
        if not len(totals.weights):
            continue
        if len(memory.double):
            remember(rows, first, memory.double)
        if len(memory.single):
            remember(rows, first, memory.single)
        _weigh(rows, data.weight, first)
        if kind == TIED and (remembers or len(given)):
            add_up(rows, work.totals)
        elif with_products:
            # Not the sums of the rows, which are one up to rounding: so it is the same for every θ.
            for t in range(b):
                work.totals[t] = data.weight[first + t] if len(data.weight) else 1.0
        add_statistics(kind, samples, rows, near, with_products, work)
        add(work.sums1, totals.weights)
        add(vector(work.sums2), vector(totals.features))
        if with_products:
            add(vector(work.sums3), vector(totals.products))
    return log_likelihood, all_near


def full_pass(
    data: Samples, space: Space, theta: Any, memory: Any, with_products: bool, work: Any, totals: Totals
) -> tuple[float, bool]:
    """Add the statistics of samples to the totals.

    Responsibilities go to the memory, a twin (n, M), unless it is (0, M); its rounded values are used. The
    sum of products is computed only for "tied" and ``with_products``. Return the log-likelihood, for "tied"
    without −½ yᵀPy, and whether all blocks were near.
    """
    found: tuple[float, bool] = blocks(
        data, space, theta, NOT_GIVEN, memory, with_products, work, totals, NO_RESULTS
    )
    return found


def evaluate(y: Any, space: Space, theta: Any, work: Any, results: Results) -> None:
    """E-step of samples ``y``, a twin (n, d): fill the results."""
    totals = Totals(np.empty(0), NO_ROWS, NO_ROWS, np.zeros(len(space.centre)))
    blocks(Samples(y, NO_WEIGHT), space, theta, NOT_GIVEN, NO_MEMORY, False, work, totals, results)


def statistics(data: Samples, space: Space, theta: Any, given: Any, work: Any, totals: Totals) -> None:
    """Add Σ_t weight_t given_t ⊗ T(y_t) to the totals; ``given`` (n, M): responsibilities or differences.

    ``theta`` is not read.
    """
    blocks(data, space, theta, given, NO_MEMORY, space.kind == TIED, work, totals, NO_RESULTS)
