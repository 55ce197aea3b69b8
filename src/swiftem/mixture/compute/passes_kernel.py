"""E-steps and statistics of many samples of a mixture, block by block.

An E-step on a block is two matrix products with a softmax in between. Samples are columns, so that every loop
except in the products runs over the samples of a block, in vector instructions. T(y) without its first
entry, 1, is a (p, b) array: the centred samples, then their squares. Buffers are flat, so that blocks of
every size are contiguous.

Indicators of codes are never formed. With codes k_1, k_2, ... of a sample, its logits are
T(y)·φ + table[k_1] + table[k_2] + ... + c, and its responsibilities are added to rows k_1, k_2, ... of the
sums: the cost does not depend on the number of levels. A block is processed column by column, so that a
column's part of the table stays in a cache.

All passes are one kernel, :func:`blocks`, which does what its arguments that are not empty are for: a kernel
each for full passes, evaluations and statistics would have the same parts, and take twice as long to compile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from swiftem.core.types import Array, Index
from swiftem.kernels.compile import REORDERED, helper, inlined, kernel
from swiftem.kernels.vector import LINE, borrowed, fma, load, matrix, plus, spread, store, times, vector
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute.covariance_kernel import raise_powers
from swiftem.mixture.compute.loops import add, add_rows, copy, fill, multiply, softmax_columns, softmax_rows
from swiftem.mixture.compute.numpy import FARTHEST
from swiftem.mixture.model import CodeCoefficients

HALF = LINE // 8
TILE = 2 * HALF
"""Samples that are whitened at a time: two vectors."""


class Work(NamedTuple):
    """Buffers for blocks of up to b samples, flat if their shape depends on the block.

    Attributes
    ----------
    samples : ndarray, size d·b
        Samples minus the centre, (d, b).
    powers : ndarray, size k·b
        T(y), (p, b), or a part of it, (k, b).
    logits, addends : ndarray, size M·b
        Logits (M, b), then exponentials; and the part of the logits from a part of T(y).
    rows : ndarray, size b·M
        Responsibilities (b, M).
    differences, whitened : ndarray, size d·b
        For squares of differences, (d, b) or (d, 16).
    largest, totals : ndarray, shape (b,)
        For the likelihood: largest logit, and sum of exponentials relative to it.
    extent : ndarray, shape (d,)
        Distance of a block's samples, and of the means, from the centre.
    sums1, sums2, sums3 : ndarray, shapes (M,), (p, M), (d, d) or (0, 0)
        A block's sums of r, r·T(y) and, if components share a covariance, yyᵀ.
    """

    samples: Array
    powers: Array
    logits: Array
    addends: Array
    rows: Array
    differences: Array
    whitened: Array
    largest: Array
    totals: Array
    extent: Array
    sums1: Array
    sums2: Array
    sums3: Array


Twin = tuple[Array, Array]
"""An array as float64 and as float32: one of the two has no rows. Kernels are compiled once for both."""

NO_ROWS = np.empty((0, 0))
NO_MEMORY: Twin = (NO_ROWS, np.empty((0, 0), np.float32))


class Samples(NamedTuple):
    """Samples, and where T(y) is computed.

    Attributes
    ----------
    y : Twin, shape (n, d)
        Samples, or features that are used as they are.
    weight : ndarray, shape (n,), or (0,) for ones
        Their weights.
    code : int
        Code of the kind of covariance, or −1.
    centre : ndarray, shape (d,)
        Subtracted from the samples.
    reach : ndarray, shape (d,)
        Distance of all samples from the centre, in each direction. If it is unknown (infinite) or too large,
        each block is checked.
    """

    y: Twin
    weight: Array
    code: int
    centre: Array
    reach: Array


class Outputs(NamedTuple):
    """Arrays that a pass over n samples fills; without entries, and by default, it computes nothing for them.

    Attributes
    ----------
    logs : ndarray, shape (3,)
        Σ w·log g without log h(y), and without −½ yᵀPy if components share P and all blocks were near; the
        number of blocks that were not; and room for Σ w·log h(y). Sums are added to.
    weights : ndarray, shape (M,)
        Σ w·r. Without entries there are no sums at all.
    features : ndarray, shape (p, M)
        Σ w·r·T(y).
    further : ndarray, shape (d, d), (L, M) or (0, 0)
        Σ w·yyᵀ if components share a covariance, or Σ w·r of each of L levels if there are codes.
    reach : ndarray, shape (d,) or (0,)
        At least the distance of the samples of all blocks that were checked.
    memory : Twin, shape (n, M)
        Responsibilities; their rounded values are used.
    log_likelihood : ndarray, shape (n,)
        log g without log h(y).
    responsibilities : ndarray, shape (n, M)
        Responsibilities.
    labels : ndarray of int, shape (n,)
        The most likely components.
    """

    logs: Array
    weights: Array = np.empty(0)
    features: Array = NO_ROWS
    further: Array = NO_ROWS
    reach: Array = np.empty(0)
    memory: Twin = NO_MEMORY
    log_likelihood: Array = np.empty(0)
    responsibilities: Array = NO_ROWS
    labels: Index = np.empty(0, dtype=np.intp)


@helper
def _take(y: Array, first: int, centre: Array, samples: Array) -> None:
    """Write rows of ``y`` (n, d) from ``first`` on, minus the centre, as columns into (d, b)."""
    d, b = samples.shape
    for t in range(b):
        for c in range(d):
            samples[c, t] = y[first + t, c] - centre[c]


@helper
def _largest(samples: Array, extent: Array) -> None:
    """Write the largest absolute values of the rows of ``samples`` (d, b) into ``extent`` (d,)."""
    for c in range(len(samples)):
        largest, line = 0.0, samples[c]
        for t in range(len(line)):
            size = abs(line[t])
            largest = size if size > largest else largest
        extent[c] = largest


@helper(fastmath=REORDERED)
def _square(factor: Array, extent: Array) -> float:
    """Return the squared length of ``factor`` (d, d) times ``extent`` (d,), all in absolute values."""
    square = 0.0
    for i in range(len(extent)):
        reach = 0.0
        for j in range(len(extent)):
            reach += abs(factor[i, j]) * extent[j]
        square += reach * reach
    return square


@helper
def far_component(theta: Coefficients, reach: Array, guess: int, extent: Array) -> int:
    """Return a component for which expanded squares of samples or means lose digits, or −1 if there is none.

    Bounds ‖U_mᵀ y‖² for all y within ``reach`` (d,) of the centre, in each direction, or as far as a mean,
    which is written to ``extent`` (d,). ``guess``, if it is not −1, is looked at first.
    """
    n_components, d = theta.means.shape
    copy(reach, extent)
    for m in range(n_components):
        for c in range(d):
            extent[c] = max(extent[c], abs(theta.means[m, c]))
    count = max(len(theta.whiten), len(theta.scales))
    for place in range(-1, count):
        m = guess if place < 0 else place
        if m < 0:
            continue
        square = 0.0
        if len(theta.whiten):
            square = _square(theta.whiten[m], extent)
        else:
            for c in range(d):
                length = theta.scales[m, c] * extent[c]
                square += length * length
        if not square <= FARTHEST:
            return m
    return -1


@helper
def _add_squares(lines: Array, sums: Array) -> None:
    """Subtract half the squares of ``lines`` (d, b), summed over d, from ``sums`` (b,)."""
    for c in range(len(lines)):
        line = lines[c]
        for t in range(len(sums)):
            sums[t] -= 0.5 * line[t] * line[t]


@helper
def _whiten(tile: Array, theta: Coefficients, differences: Array, squares: Array) -> None:
    """Write the squared lengths of the whitened differences of ``tile`` (d, 16) into ``squares`` (M, 16).

    Two rows of U_mᵀ, which is lower triangular, at a time: four sums, which stay in registers. The products
    of matrices as small as these take 1.7 times as long. ``differences`` is a buffer (d, 16).
    """
    d, zero = len(tile), spread(tile, 0.0)
    for m in range(len(squares)):
        left, right = zero, zero
        for c in range(d):
            mean = spread(tile, -theta.means[m, c])
            x, y = plus(load(tile, c, 0), mean), plus(load(tile, c, HALF), mean)
            if len(theta.scales):
                scale = spread(tile, theta.scales[m, c])
                x, y = times(scale, x), times(scale, y)
                left, right = fma(x, x, left), fma(y, y, right)
            store(differences, c, 0, x)
            store(differences, c, HALF, y)
        if len(theta.whiten):
            factor = theta.whiten[min(m, len(theta.whiten) - 1)]
            if d % 2:
                u = spread(tile, factor[0, 0])
                x, y = times(u, load(differences, 0, 0)), times(u, load(differences, 0, HALF))
                left, right = times(x, x), times(y, y)
            for i in range(d % 2, d, 2):
                a, b, e, f = zero, zero, zero, zero
                for j in range(i + 2):
                    x, y = load(differences, j, 0), load(differences, j, HALF)
                    u, v = spread(tile, factor[i, j]), spread(tile, factor[i + 1, j])
                    a, b, e, f = fma(u, x, a), fma(u, y, b), fma(v, x, e), fma(v, y, f)
                left, right = fma(e, e, fma(a, a, left)), fma(f, f, fma(b, b, right))
        store(squares, m, 0, left)
        store(squares, m, HALF, right)


@helper
def _differences(samples: Array, theta: Coefficients, work: Work, logits: Array) -> None:
    """Write minus half the squares of the whitened differences y − μ_m into ``logits`` (M, b)."""
    d, b = samples.shape
    tile, differences = matrix(work.differences, d, TILE), matrix(work.whitened, d, TILE)
    squares = matrix(work.addends, len(logits), TILE)
    for first in range(0, b, TILE):
        size = min(TILE, b - first)
        for c in range(d):
            for t in range(TILE):
                tile[c, t] = samples[c, first + t] if t < size else 0.0
        _whiten(tile, theta, differences, squares)
        for m in range(len(logits)):
            for t in range(size):
                logits[m, first + t] = -0.5 * squares[m, t]


@inlined
def _powers(code: int, samples: Array, p: int, first: int, is_raised: bool, work: Work) -> Array:
    """Return some of the p entries of T(y), from ``first`` on, of ``samples`` (d, b).

    ``is_raised``: ``work.powers`` has T(y) if it has room for all of it.
    """
    (d, b), size = samples.shape, len(work.powers) // len(work.largest)
    if d == p <= size:
        return samples
    powers: Array = matrix(work.powers, min(size, p - first), b)
    if not (is_raised and size >= p):
        raise_powers(code, samples, first, powers)
    return powers


@helper
def e_step(code: int, samples: Array, theta: Coefficients, near: bool, work: Work, rows: Array) -> None:
    """Write the responsibilities of ``samples`` (d, b) into ``rows`` (b, M).

    If they are ``near``, squares are expanded: ``work.powers`` then has T(y) if it has room for all of it,
    and the largest logits lack −½ yᵀPy if components share P.
    """
    (p, n_components), b = theta.phi.shape, samples.shape[1]
    logits = matrix(work.logits, n_components, b)
    constant = theta.constant
    if near:
        addends = matrix(work.addends, n_components, b)
        for first in range(0, p, len(work.powers) // len(work.largest)):
            powers = _powers(code, samples, p, first, False, work)
            multiply(theta.phi[first : first + len(powers)].T, powers, addends if first else logits)
            if first:
                add(vector(addends), vector(logits))
    else:
        _differences(samples, theta, work, logits)
        constant = theta.plain
    softmax_columns(logits, constant, work.largest[:b], work.totals[:b], rows)


@helper
def add_up(rows: Array, totals: Array) -> None:
    """Write the sum of each row of ``rows`` (b, M) into ``totals`` (b,)."""
    for t in range(len(rows)):
        total = 0.0
        for m in range(rows.shape[1]):
            total += rows[t, m]
        totals[t] = total


@helper
def add_statistics(
    code: int, samples: Array, rows: Array, is_raised: bool, with_products: bool, work: Work
) -> None:
    """Write Σ_t rows_t, T(y_t)·rows_t and, ``with_products``, yyᵀ times ``work.totals`` into ``work.sums``.

    ``is_raised``: ``work.powers`` has T(y) if it has room for all of it.
    """
    add_rows(rows, work.sums1)
    (d, b), p = samples.shape, len(work.sums2)
    for first in range(0, p, len(work.powers) // len(work.largest)):
        powers = _powers(code, samples, p, first, is_raised, work)
        multiply(powers, rows, work.sums2[first : first + len(powers)])
    if with_products:
        weighted = matrix(work.differences, d, b)
        for c in range(d):
            for t in range(b):
                weighted[c, t] = samples[c, t] * work.totals[t]
        multiply(weighted, samples.T, work.sums3)


@helper
def _remember(rows: Array, first: int, memory: Array) -> None:
    """Write ``rows`` (b, M) into the memory, from ``first`` on, and replace them by its rounded values."""
    for t in range(len(rows)):
        for m in range(rows.shape[1]):
            memory[first + t, m] = rows[t, m]
            rows[t, m] = memory[first + t, m]


@helper
def _plus_logs(total: float, weight: Array, first: int, largest: Array, totals: Array) -> float:
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
def _write_results(first: int, rows: Array, work: Work, out: Outputs) -> None:
    """Write the results of a block that begins at sample ``first``."""
    b = len(rows)
    for t in range(b):
        if len(out.responsibilities):
            copy(rows[t], out.responsibilities[first + t])
        if len(out.labels):
            best = 0
            for m in range(rows.shape[1]):
                if rows[t, m] > rows[t, best]:
                    best = m
            out.labels[first + t] = best
        if len(out.log_likelihood):
            out.log_likelihood[first + t] = work.largest[t] + math.log(work.totals[t])


@helper
def _add_common(samples: Array, theta: Coefficients, work: Work, values: Array) -> None:
    """Add −½ yᵀPy of ``samples`` (d, b), which φ omits if components share P, to ``values`` (b,)."""
    d, b = samples.shape
    if len(theta.phi) == d and len(theta.whiten):
        whitened = matrix(work.whitened, d, b)
        multiply(theta.whiten[0], samples, whitened)
        _add_squares(whitened, values)


@helper
def checked_e_step(
    code: int, samples: Array, theta: Coefficients, far: int, reach: Array, work: Work, rows: Array
) -> bool:
    """Write the responsibilities of ``samples`` (d, b) into ``rows`` (b, M); return whether they are near.

    ``far`` is a component that some samples are far from, or −1 if there is none: then nothing is checked.
    ``reach`` (d,), or (0,), is enlarged to include the samples that are checked.
    """
    near = far < 0
    if not near:
        _largest(samples, work.extent)
        for c in range(len(reach)):
            reach[c] = max(reach[c], work.extent[c])
        near = far_component(theta, work.extent, far, work.extent) < 0
    e_step(code, samples, theta, near, work, rows)
    return near


@helper
def _gather(table: Array, codes: Index, first: int, rows: Array) -> None:
    """Add rows ``codes[:, first + t]`` (k,) of ``table`` (L, M) to ``rows[t]``, for each of b samples."""
    fours = len(codes) // 4 * 4
    for j in range(0, fours, 4):  # four at a time: rows are read and written once for them
        for t in range(len(rows)):
            i = first + t
            k0, k1 = np.uintp(codes[j, i]), np.uintp(codes[j + 1, i])
            k2, k3 = np.uintp(codes[j + 2, i]), np.uintp(codes[j + 3, i])
            for m in range(rows.shape[1]):
                rows[t, m] += (table[k0, m] + table[k1, m]) + (table[k2, m] + table[k3, m])
    for j in range(fours, len(codes)):
        for t in range(len(rows)):
            code = np.uintp(codes[j, first + t])
            for m in range(rows.shape[1]):
                rows[t, m] += table[code, m]


@helper
def _scatter(rows: Array, codes: Index, first: int, table: Array) -> None:
    """Add ``rows[t]`` (M,) to rows ``codes[:, first + t]`` (k,) of ``table`` (L, M), for all of b samples."""
    for j in range(len(codes)):
        for t in range(len(rows)):
            code = np.uintp(codes[j, first + t])
            for m in range(rows.shape[1]):
                table[code, m] += rows[t, m]


@helper
def _coded_e_step(
    y: Array, codes: Index, theta: CodeCoefficients, first: int, work: Work, rows: Array
) -> None:
    """Write responsibilities of samples from ``first`` on into ``rows`` (b, M); ``y`` (n, p): features."""
    if y.shape[1]:
        multiply(y[first : first + len(rows)], theta.phi, rows)
    else:
        fill(vector(rows), 0.0)
    _gather(theta.table, codes, first, rows)
    softmax_rows(rows, theta.constant, work.largest, work.totals)


@helper
def _add_coded(y: Array, codes: Index, first: int, rows: Array, work: Work, table: Array) -> None:
    """Write Σ_t rows_t and T(y_t)·rows_t of ``rows`` (b, M) into ``work.sums``; add the sums of codes."""
    add_rows(rows, work.sums1)
    if y.shape[1]:
        multiply(y[first : first + len(rows)].T, rows, work.sums2)
    _scatter(rows, codes, first, table)


@helper
def _blocks(
    data: Samples,
    theta: Coefficients | None,
    coded: tuple[Index, CodeCoefficients] | None,
    given: Array,
    work: Work,
    out: Outputs,
) -> None:
    d, n_components, weight = len(data.centre), len(work.sums1), data.weight
    double, single = data.y
    n, block = len(double) + len(single), len(work.largest)
    is_given = len(given) > 0
    remembers, with_products = len(out.memory[0]) + len(out.memory[1]) > 0, len(out.further) > 0
    near, far = False, -1
    if theta is not None and not is_given:
        far = far_component(theta, data.reach, -1, work.extent)
    for first in range(0, n, block):
        b = min(block, n - first)
        samples, rows = matrix(work.samples, d, b), matrix(work.rows, b, n_components)
        if theta is not None and len(double):
            _take(double, first, data.centre, samples)
        elif theta is not None:
            _take(single, first, data.centre, samples)
        if is_given:
            for t in range(b):
                copy(given[first + t], rows[t])
        else:
            if theta is not None:
                near = checked_e_step(data.code, samples, theta, far, out.reach, work, rows)
                if near and len(theta.phi) == d and len(theta.scales):
                    _add_squares(samples, work.largest[:b])  # which φ omits, as all components have it
            if coded is not None:
                _coded_e_step(double, coded[0], coded[1], first, work, rows)
            out.logs[0] = _plus_logs(out.logs[0], weight, first, work.largest[:b], work.totals[:b])
            out.logs[1] += 0.0 if near else 1.0
        _write_results(first, rows, work, out)
        if theta is not None and near and len(out.log_likelihood):
            _add_common(samples, theta, work, out.log_likelihood[first : first + b])
        if not len(out.weights):
            continue
        if len(out.memory[0]):
            _remember(rows, first, out.memory[0])
        if len(out.memory[1]):
            _remember(rows, first, out.memory[1])
        if len(weight):
            for t in range(b):
                for m in range(n_components):
                    rows[t, m] *= weight[first + t]
        if coded is not None:
            _add_coded(double, coded[0], first, rows, work, out.further)
        if theta is not None:
            if with_products and (remembers or is_given):
                add_up(rows, work.totals)
            elif with_products:
                # Not the sums of the rows, which are one up to rounding: so it is the same for every θ.
                for t in range(b):
                    work.totals[t] = weight[first + t] if len(weight) else 1.0
            add_statistics(data.code, samples, rows, near, with_products, work)
            if with_products:
                add(vector(work.sums3), vector(out.further))
        add(work.sums1, out.weights)
        add(vector(work.sums2), vector(out.features))


@kernel
def blocks(
    data: Samples,
    theta: Coefficients | None,
    coded: tuple[Index, CodeCoefficients] | None,
    given: Array,
    work: Work,
    out: Outputs,
) -> None:
    """E-step of samples unless rows are ``given`` (n, M); then statistics, if wanted.

    Samples with codes have ``coded``, their codes (k, n) and φ, instead of ``theta``.
    """
    _blocks(borrowed(data), borrowed(theta), borrowed(coded), borrowed(given), borrowed(work), borrowed(out))
