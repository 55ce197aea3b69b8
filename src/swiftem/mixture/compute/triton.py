"""Full passes over float32 rows of Gaussians by kernels in Triton.

Their twin is :func:`swiftem.mixture.compute.torch.sums`, which defines what they compute and is used for rows
of float64, without a GPU, and where float32 is not enough. :func:`kinds_for` chooses among the kernels.

A float32 number is split into two of float16, hi + lo, and a product into hi·hi + hi·lo + lo·hi. Tensor cores
truncate when they accumulate, so the product of one tile is added to float32 registers. Responsibilities are
multiplied by 2^14 before they are split, so that small ones keep their digits. Logits are to base 2. Nothing
is added atomically: every program writes its own sums, and results have the same bits in every run.

Columns are divided by powers of two, so that the largest difference from the centre is between 4 and 8:
float16 then has room for squares on one side, and digits of small numbers on the other. Rows beyond n count
for nothing, and components that only pad have a constant of −1e30.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr
from triton.tools.tensor_descriptor import TensorDescriptor

from swiftem.kernels.cache import keep_private
from swiftem.mixture.compute.torch import (
    EXACT,
    MOST_PARTS,
    PRODUCTS,
    SPLITS,
    DeviceTheta,
    Rows,
    SingleRows,
    Sums,
    WhitenedRows,
    about_centre,
    extents,
    is_beyond,
    most_beyond,
)
from swiftem.mixture.covariance import DIAG, FULL, SPHERICAL, TIED

keep_private()

MOST_COMPONENTS, MOST_FEATURES, MOST_WHITENED = 128, 128, 256
"""Largest sizes of one pass: components, features, and numbers of all whitened differences of a row."""
MOST_COLUMNS = 128
"""Most features, without |x|² of "spherical", for which logits are computed twice instead of stored."""
LEAST_REACH = 1e-30
"""Reach of columns that are constant."""
ERROR = 2.0**-19
"""Bound on the error of a logit by products, relative to its largest term."""
LOG2_E = 1.4426950408889634
PADDING = -1e30
NEGLIGIBLE = 40.0
"""Logits to base 2 that are less than the largest one by this count for nothing."""
NUMBERS, LOGITS = 1 << 23, 1 << 24
"""Numbers prepared, and logits in memory, at a time."""
INTERPRETED = constexpr(os.environ.get("TRITON_INTERPRET") == "1")
SCALE = constexpr(16384.0)
PRODUCT_SCALE = constexpr(2048.0)
CUT = constexpr(NEGLIGIBLE)
LOWEST, HALF_LOG2_E = constexpr(PADDING), constexpr(0.5 * LOG2_E)


@triton.jit
def exp2(x):
    """Return 2^x; one instruction, as the result need not be exact for subnormal numbers."""
    if INTERPRETED:
        return tl.exp2(x)
    return tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def halves(x):
    """Return x as hi + lo."""
    hi = x.to(tl.float16)
    return hi, (x - hi.to(tl.float32)).to(tl.float16)


@triton.jit
def product(a_hi, a_lo, b_hi, b_lo):
    """Return a·b; the small terms first, in the order of :func:`transposed_product`."""
    found = tl.dot(a_lo, b_hi)
    found = tl.dot(a_hi, b_lo, found)
    return tl.dot(a_hi, b_hi, found)


@triton.jit
def transposed_product(a_hi, a_lo, b_hi, b_lo):
    """Return b·aᵀ, rounded as ``product(a, bᵀ)`` is."""
    found = tl.dot(b_hi, tl.trans(a_lo))
    found = tl.dot(b_lo, tl.trans(a_hi), found)
    return tl.dot(b_hi, tl.trans(a_hi), found)


@triton.jit(do_not_specialize=["n"])
def one_pass(
    X,
    W,
    PHI,
    CONSTANT,
    COUNTS,
    SUMS,
    PRODUCTS,
    LOG,
    n,
    C: constexpr,
    K: constexpr,
    M: constexpr,
    B: constexpr,
    SQUARES: constexpr,
    WEIGHTED: constexpr,
):
    """Compute a whole pass; chosen if components and features are few.

    A program does every so many-th block of B rows.
    X (n, C) float32, whose features are its P = C columns, or for SQUARES x_0, x_0², x_1, ... (P = 2·C). PHI
    (2, P, M·K): hi, then lo. With K = 1, logits are X·PHI + CONSTANT. With K > 1, for full covariances, they
    are CONSTANT − Σ over K of (X·PHI)², squares of whitened rows, so that no digits cancel. Sums of each
    program: COUNTS (M,), SUMS (M, P), PRODUCTS (K·K, M) of the first K columns if K > 1, and LOG, of log2 g.
    """
    P: constexpr = 2 * C if SQUARES else C
    program = tl.program_id(0)
    column, feature, component = tl.arange(0, C), tl.arange(0, P), tl.arange(0, M)
    whitened, pair = tl.arange(0, M * K), tl.arange(0, K * K)
    place = feature[:, None] * (M * K) + whitened[None, :]
    phi_hi, phi_lo = tl.load(PHI + place), tl.load(PHI + P * M * K + place)
    constant = tl.load(CONSTANT + component)
    sums, counts = tl.zeros((M, P), tl.float32), tl.zeros((M,), tl.float32)
    products = tl.zeros((K * K, M), tl.float32)
    log = tl.zeros((B,), tl.float32)
    for block in range(program, tl.cdiv(n, B), tl.num_programs(0)):
        row = block * B + tl.arange(0, B)
        is_row = row < n
        at = row[:, None].to(tl.int64) * C
        x = tl.load(X + at + column[None, :], mask=is_row[:, None], other=0.0)
        z = tl.reshape(tl.join(x, x * x), (B, P)) if SQUARES else x
        z_hi, z_lo = halves(z)
        logits = product(z_hi, z_lo, phi_hi, phi_lo)
        if K > 1:
            logits = -tl.sum(tl.reshape(logits * logits, (B, M, K)), 2)
        logits += constant[None, :]
        largest = tl.max(logits, 1)
        powers = exp2(logits - largest[:, None])
        total = tl.sum(powers, 1)
        rows = powers * tl.where(is_row, SCALE / total, 0.0)[:, None]
        logs = tl.where(is_row, largest + tl.log2(total), 0.0)
        if WEIGHTED:
            weight = tl.load(W + row, mask=is_row, other=0.0)
            rows *= weight[:, None]
            logs *= weight
        log += logs
        counts += tl.sum(rows, 0)
        rows_hi, rows_lo = halves(rows)
        sums += product(tl.trans(rows_hi), tl.trans(rows_lo), z_hi, z_lo)
        if K > 1:
            one = tl.load(X + at + (pair // K)[None, :], mask=is_row[:, None], other=0.0)
            other = tl.load(X + at + (pair % K)[None, :], mask=is_row[:, None], other=0.0)
            pairs_hi, pairs_lo = halves(one * other)
            products += product(tl.trans(pairs_hi), tl.trans(pairs_lo), rows_hi, rows_lo)
    tl.store(SUMS + (program * M + component)[:, None] * P + feature[None, :], sums)
    tl.store(COUNTS + program * M + component, counts)
    if K > 1:
        tl.store(PRODUCTS + (program * K * K + pair)[:, None] * M + component[None, :], products)
    tl.store(LOG + program, tl.sum(log))


@triton.jit(do_not_specialize=["n"])
def normalisers(
    X, PHI, NORM, COMPONENTS, LOGS, n, padded, M, B: constexpr, C: constexpr, HAS_NORMS: constexpr
):
    """Compute the first of two passes; chosen if components are many. B rows, C components at a time.

    X (2·padded, D) and PHI (2·M, D) are tensor descriptors of hi, then lo. COMPONENTS (3, M): the factors of
    PHI, constants, and coefficients of NORM (n,), |x|². LOGS (2, n): the largest logits, and log2 of the sums
    of 2^(logit − largest).
    """
    first = tl.program_id(0) * B
    row = first + tl.arange(0, B)
    x_hi, x_lo = X.load([first, 0]), X.load([padded + first, 0])
    if HAS_NORMS:
        norm = tl.load(NORM + row, mask=row < n, other=0.0)
    largest = tl.full((B,), -1e30, tl.float32)
    total = tl.zeros((B,), tl.float32)
    for m in tl.range(0, M, C):
        component = COMPONENTS + m + tl.arange(0, C)
        phi_hi, phi_lo = PHI.load([m, 0]), PHI.load([M + m, 0])
        logits = product(x_hi, x_lo, tl.trans(phi_hi), tl.trans(phi_lo))
        logits = logits * tl.load(component)[None, :] + tl.load(component + M)[None, :]
        if HAS_NORMS:
            logits += norm[:, None] * tl.load(component + 2 * M)[None, :]
        higher = tl.maximum(largest, tl.max(logits, 1))
        total = total * exp2(largest - higher) + tl.sum(exp2(logits - higher[:, None]), 1)
        largest = higher
    tl.store(LOGS + row, largest, mask=row < n)
    tl.store(LOGS + n + row, tl.log2(total), mask=row < n)


@triton.jit(do_not_specialize=["n"])
def accumulate(
    X,
    PHI,
    NORM,
    W,
    COMPONENTS,
    LOGS,
    COUNTS,
    SUMS,
    n,
    padded,
    M,
    D: constexpr,
    B: constexpr,
    C: constexpr,
    HAS_NORMS: constexpr,
    WEIGHTED: constexpr,
):
    """Compute the second of two passes: sums of C components over every so many-th block of B rows.

    The largest logit is subtracted as the first pass has rounded it: a row that one component owns then has
    a responsibility of one, not of one plus the rounding of a large logit. COUNTS (2, splits, M): the counts,
    and the sums of |x|²; SUMS (splits, M, D).
    """
    m, split, splits = tl.program_id(0) * C, tl.program_id(1), tl.num_programs(1)
    component = m + tl.arange(0, C)
    phi_hi, phi_lo = PHI.load([m, 0]), PHI.load([M + m, 0])
    scale, constant = tl.load(COMPONENTS + component), tl.load(COMPONENTS + M + component)
    square = tl.load(COMPONENTS + 2 * M + component)
    sums = tl.zeros((C, D), tl.float32)
    counts, squares = tl.zeros((C,), tl.float32), tl.zeros((C,), tl.float32)
    for block in tl.range(split, tl.cdiv(n, B), splits):
        row = block * B + tl.arange(0, B)
        is_row = row < n
        x_hi, x_lo = X.load([block * B, 0]), X.load([padded + block * B, 0])
        largest = tl.load(LOGS + row, mask=is_row, other=1e30)
        log = tl.load(LOGS + n + row, mask=is_row, other=0.0) - 14.0
        logits = transposed_product(x_hi, x_lo, phi_hi, phi_lo)
        logits = logits * scale[:, None] + constant[:, None]
        if HAS_NORMS:
            norm = tl.load(NORM + row, mask=is_row, other=0.0)
            logits += norm[None, :] * square[:, None]
        rows = exp2((logits - largest[None, :]) - log[None, :])
        if WEIGHTED:
            rows *= tl.load(W + row, mask=is_row, other=0.0)[None, :]
        counts += tl.sum(rows, 1)
        if HAS_NORMS:
            squares += tl.sum(rows * norm[None, :], 1)
        rows_hi, rows_lo = halves(rows)
        sums += product(rows_hi, rows_lo, x_hi, x_lo)
    at = split * M + component
    tl.store(COUNTS + at, counts)
    tl.store(COUNTS + splits * M + at, squares)
    tl.store(SUMS + at[:, None] * D + tl.arange(0, D)[None, :], sums)


@triton.jit(do_not_specialize=["first", "n", "blocks"])
def store_logits(
    X,
    PHI,
    NORM,
    COMPONENTS,
    LOGITS,
    lo,
    first,
    n,
    blocks,
    M,
    B: constexpr,
    C: constexpr,
    K: constexpr,
    HAS_NORMS: constexpr,
):
    """Write logits (M, n·B) of n blocks of rows from block ``first`` on; chosen for more than 128 features.

    It is also chosen if components are beyond the bounds of products, which :func:`normalise` then mends. X
    (2, ., blocks·K), with ``lo`` numbers in each half, and PHI (2, M, blocks·K): hi, then lo. COMPONENTS as
    in :func:`normalisers`.
    """
    block, component = tl.program_id(0), tl.program_id(1) * C + tl.arange(0, C)
    row, column, width = tl.arange(0, B), tl.arange(0, K), blocks * K
    here = ((first + block) * B).to(tl.int64) + row
    x = X + here[None, :] * width + column[:, None]
    phi = PHI + component.to(tl.int64)[:, None] * width + column[None, :]
    phi_lo = phi + M.to(tl.int64) * width
    logits = tl.zeros((C, B), tl.float32)
    for start in range(0, width, K):
        x_hi, x_lo = tl.load(x + start), tl.load(x + lo + start)
        logits += product(tl.load(phi + start), tl.load(phi_lo + start), x_hi, x_lo)
    logits = logits * tl.load(COMPONENTS + component)[:, None] + tl.load(COMPONENTS + M + component)[:, None]
    if HAS_NORMS:
        logits += tl.load(COMPONENTS + 2 * M + component)[:, None] * tl.load(NORM + here)[None, :]
    tl.store(LOGITS + component.to(tl.int64)[:, None] * (n * B) + (block * B + row)[None, :], logits)


@triton.jit(do_not_specialize=["n", "M", "d", "end"])
def normalise(
    Y,
    MEANS,
    SCALES,
    CONSTANTS,
    SHIFTS,
    MARGINS,
    COUNT,
    LOGITS,
    LOGS,
    n,
    M,
    d,
    end,
    B: constexpr,
    C: constexpr,
    K: constexpr,
):
    """Compute normalisers of stored logits (M, n·B), after mending components beyond the bounds of products.

    These have positive MARGINS (M,), bounds on their errors. If there are some, by COUNT, all logits become
    differences from a bound below the largest. Those that are not negligible are computed by differences, in
    float64: CONSTANTS − ½ log2 e·|(y − MEANS)·SCALES|² + SHIFTS (n·B,), with MEANS and SCALES (M, d), and
    rows Y up to ``end`` − 1. LOGS (3, n·B): the bound or 0, the largest logits, and log2 of the sums of
    2^(logit − largest).
    """
    row = tl.program_id(0) * B + tl.arange(0, B)
    column, stride = tl.arange(0, K), n * B
    largest, total = tl.full((B,), LOWEST, tl.float32), tl.zeros((B,), tl.float32)
    for m in range(0, M, C):
        component = m + tl.arange(0, C)
        logits = tl.load(LOGITS + component.to(tl.int64)[:, None] * stride + row[None, :])
        logits -= tl.load(MARGINS + component)[:, None]
        higher = tl.maximum(largest, tl.max(logits, 0))
        total = total * exp2(largest - higher) + tl.sum(exp2(logits - higher[None, :]), 0)
        largest = higher
    base = tl.zeros((B,), tl.float32)
    if tl.load(COUNT) > 0:
        base, is_row = largest, row < end
        shift, y = tl.load(SHIFTS + row) - base.to(tl.float64), Y + row.to(tl.int64)[:, None] * d
        largest, total = tl.full((B,), LOWEST, tl.float32), tl.zeros((B,), tl.float32)
        for m in range(0, M, C):
            component = m + tl.arange(0, C)
            place = LOGITS + component.to(tl.int64)[:, None] * stride + row[None, :]
            logits, margin = tl.load(place), tl.load(MARGINS + component)[:, None]
            is_left = (margin > 0.0) & (logits + margin > base[None, :] - CUT) & is_row[None, :]
            logits = tl.where(margin > 0.0, LOWEST, logits - base[None, :])
            while tl.max(tl.max(is_left.to(tl.int32), 0), 0) > 0:  # one component of each row at a time
                which = tl.min(tl.where(is_left, component[:, None], M), 0)
                is_some = which < M
                of, squares = (
                    tl.where(is_some, which, 0).to(tl.int64)[:, None] * d,
                    tl.zeros((B,), tl.float64),
                )
                for start in range(0, d, K):
                    at = (start + column)[None, :]
                    is_there = is_some[:, None] & (at < d)
                    away = tl.load(y + at, mask=is_there, other=0.0).to(tl.float64)
                    away -= tl.load(MEANS + of + at, mask=is_there, other=0.0)
                    away *= tl.load(SCALES + of + at, mask=is_there, other=0.0)
                    squares += tl.sum(away * away, 1)
                exact = tl.load(CONSTANTS + which, mask=is_some, other=0.0) - HALF_LOG2_E * squares + shift
                is_this = component[:, None] == which[None, :]
                logits = tl.where(is_this, exact.to(tl.float32)[None, :], logits)
                is_left = is_left & (component[:, None] != which[None, :])
            tl.store(place, logits)
            higher = tl.maximum(largest, tl.max(logits, 0))
            total = total * exp2(largest - higher) + tl.sum(exp2(logits - higher[None, :]), 0)
            largest = higher
    tl.store(LOGS + row, base)
    tl.store(LOGS + stride + row, largest)
    tl.store(LOGS + 2 * stride + row, tl.log2(total))


@triton.jit(do_not_specialize=["first", "start", "n", "blocks", "stride", "group", "end"])
def add_rows(
    X,
    NORM,
    W,
    LOGITS,
    LOGS,
    COUNTS,
    SUMS,
    lo,
    first,
    start,
    n,
    blocks,
    group,
    end,
    B: constexpr,
    C: constexpr,
    K: constexpr,
    HAS_NORMS: constexpr,
    WEIGHTED: constexpr,
):
    """Compute sums of components from ``start`` on, from stored logits: used after :func:`normalise`.

    A program does C components, K columns and every so many-th of n blocks, from block ``first`` on. COUNTS
    (2, splits, group): the counts, and the sums of |x|²; SUMS (splits, group, blocks·K). X and ``lo`` as in
    :func:`store_logits`. Rows from ``end`` on count for nothing.
    """
    tiled, part, splits = (
        tl.program_id(0) * C + tl.arange(0, C),
        tl.program_id(1),
        tl.num_programs(1) // blocks,
    )
    component, column = (start + tiled).to(tl.int64), (part % blocks) * K + tl.arange(0, K)
    split, width, stride = part // blocks, blocks * K, n * B
    sums = tl.zeros((C, K), tl.float32)
    counts, squares = tl.zeros((C,), tl.float32), tl.zeros((C,), tl.float32)
    for block in range(split, n, splits):
        row = block * B + tl.arange(0, B)
        here = (first * B).to(tl.int64) + row
        x, is_row = X + here[:, None] * width + column[None, :], here < end
        logits = tl.load(LOGITS + component[:, None] * stride + row[None, :])
        log = tl.load(LOGS + 2 * stride + row) - 14.0
        r = exp2((logits - tl.load(LOGS + stride + row)[None, :]) - log[None, :])
        r = tl.where(is_row[None, :], r, 0.0)
        if WEIGHTED:
            r *= tl.load(W + here, mask=is_row, other=0.0)[None, :]
        counts += tl.sum(r, 1)
        if HAS_NORMS:
            squares += tl.sum(r * tl.load(NORM + here)[None, :], 1)
        r_hi, r_lo = halves(r)
        sums += product(r_hi, r_lo, tl.load(x), tl.load(x + lo))
    at = split * group + tiled
    tl.store(SUMS + at.to(tl.int64)[:, None] * width + column[None, :], sums)
    if part % blocks == 0:
        tl.store(COUNTS + at, counts)
        tl.store(COUNTS + splits * group + at, squares)


@triton.jit(do_not_specialize=["first", "n", "slots", "d", "end"])
def add_differences(
    Y,
    W,
    MEANS,
    LIST,
    COUNT,
    LOGITS,
    LOGS,
    SUMS,
    first,
    n,
    slots,
    d,
    end,
    B: constexpr,
    K: constexpr,
    WEIGHTED: constexpr,
):
    """Add sums in float64 of differences from the mean, of components beyond the bounds of products.

    Their numbers are the first COUNT of LIST. A program does every so many-th of them, K columns and every so
    many-th block of B rows, of which it skips those that the component has no share of. SUMS (splits, slots,
    3, d): of r·(y − mean), of r·(y − mean)², and of r.
    """
    column = tl.program_id(1) * K + tl.arange(0, K)
    is_column, stride, splits = column < d, n * B, tl.num_programs(2)
    for slot in range(tl.program_id(0), tl.load(COUNT).to(tl.int32), tl.num_programs(0)):
        m = tl.load(LIST + slot)
        mean = tl.load(MEANS + m * d + column, mask=is_column, other=0.0)
        sums, squares = tl.zeros((K,), tl.float64), tl.zeros((K,), tl.float64)
        counts = tl.zeros((B,), tl.float64)
        for block in range(tl.program_id(2), n, splits):
            row = block * B + tl.arange(0, B)
            here = first.to(tl.int64) + row
            is_row = here < end
            logit = tl.load(LOGITS + m * stride + row) - tl.load(LOGS + stride + row)
            r = tl.where(is_row, exp2(logit - tl.load(LOGS + 2 * stride + row)), 0.0)
            if tl.max(r, 0) > 0.0:
                if WEIGHTED:
                    r *= tl.load(W + here, mask=is_row, other=0.0)
                share, is_there = r.to(tl.float64), is_row[:, None] & is_column[None, :]
                y = tl.load(Y + here[:, None] * d + column[None, :], mask=is_there, other=0.0)
                away = tl.where(is_there, y.to(tl.float64) - mean[None, :], 0.0)
                weighted = away * share[:, None]
                counts += share
                sums += tl.sum(weighted, 0)
                squares += tl.sum(weighted * away, 0)
        at = SUMS + (tl.program_id(2) * slots + slot).to(tl.int64) * (3 * d) + column
        tl.store(at, tl.load(at, mask=is_column) + sums, mask=is_column)
        tl.store(at + d, tl.load(at + d, mask=is_column) + squares, mask=is_column)
        tl.store(at + 2 * d, tl.load(at + 2 * d, mask=is_column) + tl.sum(counts, 0), mask=is_column)


@triton.jit(do_not_specialize=["first", "M", "per"])
def white_logits(
    X, MATRICES, SHIFTS, SCALES, CONSTANT, LOGITS, first, n, padded, M, per, H: constexpr, B: constexpr
):
    """Write logits (M, n) of n rows from ``first`` on; chosen for full covariances with many columns.

    They are CONSTANT_m − SCALES_m·|W_m x − SHIFTS_m|², with X (2·padded, 2·H) and the lower triangular W in
    MATRICES (2·M·2·H, 2·H) tensor descriptors of hi, then lo, in blocks (B, H) and (H, H). A program does
    ``per`` components.
    """
    row, column = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, H)
    start, part = first + tl.program_id(0) * B, tl.program_id(1)
    one_hi, two_hi = X.load([start, 0]), X.load([start, H])
    one_lo, two_lo = X.load([padded + start, 0]), X.load([padded + start, H])
    for m in tl.range(part * per, tl.minimum(part * per + per, M), num_stages=3):
        at = m * (2 * H)
        lo = (M + m) * (2 * H)
        w_top, w_left = MATRICES.load([at, 0]), MATRICES.load([at + H, 0])
        v_top, v_left = MATRICES.load([lo, 0]), MATRICES.load([lo + H, 0])
        w_right, v_right = MATRICES.load([at + H, H]), MATRICES.load([lo + H, H])
        above = product(one_hi, one_lo, tl.trans(w_top), tl.trans(v_top))
        below = tl.dot(one_lo, tl.trans(w_left))
        below = tl.dot(two_lo, tl.trans(w_right), below)
        below = tl.dot(one_hi, tl.trans(v_left), below)
        below = tl.dot(two_hi, tl.trans(v_right), below)
        below = tl.dot(one_hi, tl.trans(w_left), below)
        below = tl.dot(two_hi, tl.trans(w_right), below)
        above -= tl.load(SHIFTS + at + column)[None, :]
        below -= tl.load(SHIFTS + at + H + column)[None, :]
        squares = tl.sum(above * above + below * below, 1)
        logits = tl.load(CONSTANT + m) - tl.load(SCALES + m) * squares
        tl.store(LOGITS + m * n + row, logits, mask=row < n)


@triton.jit(do_not_specialize=["first", "M"])
def white_sums(
    Y,
    W,
    MEANS,
    FACTORS,
    ENDS,
    LIST,
    LOGITS,
    LOGS,
    LINEAR,
    PRODUCTS,
    first,
    n,
    M,
    COLUMNS: constexpr,
    D: constexpr,
    B: constexpr,
    WEIGHTED: constexpr,
):
    """Add the sums of the pairs in LIST, component by component; used after :func:`white_logits`.

    LIST has places in LOGITS (M, n) of a chunk of rows.
    Component m has entries ENDS[m] to ENDS[m + 1] − 1. LOGS (2, n): the largest logits, and log2 of the sums.
    Sums are of differences from the component's mean, times FACTORS (D,), which keeps their digits at
    any offset: MEANS (M, 2, D) are sums of two float32 numbers. LINEAR (splits, M, 2, D): of r and of r·x;
    PRODUCTS (splits, M, D, D), times 2^11.
    """
    m, split, column = tl.program_id(0), tl.program_id(1), tl.arange(0, D)
    begin, end = tl.load(ENDS + m), tl.load(ENDS + m + 1)
    mean, rest = tl.load(MEANS + 2 * m * D + column), tl.load(MEANS + (2 * m + 1) * D + column)
    factor = tl.load(FACTORS + column)
    counts, linear = tl.zeros((B,), tl.float32), tl.zeros((D,), tl.float32)
    products = tl.zeros((D, D), tl.float32)
    for start in range(begin + split * B, end, tl.num_programs(1) * B):
        entry = start + tl.arange(0, B)
        is_some = entry < end
        place = tl.load(LIST + entry, mask=is_some, other=0)
        row = tl.where(is_some, place - m * n, 0)
        is_there = is_some[:, None] & (column < COLUMNS)[None, :]
        y = tl.load(Y + (first + row)[:, None] * COLUMNS + column[None, :], mask=is_there, other=0.0)
        away = tl.where(is_there, (y - mean[None, :]) - rest[None, :], 0.0) * factor[None, :]
        logit = tl.load(LOGITS + place, mask=is_some, other=-3e38)
        logit = (logit - tl.load(LOGS + row)) - tl.load(LOGS + n + row)
        rows = tl.where(is_some, exp2(logit), 0.0)
        if WEIGHTED:
            rows *= tl.load(W + first + row, mask=is_some, other=0.0)
        counts += rows
        weighted = away * rows[:, None]
        linear += tl.sum(weighted, 0)
        hi, lo = halves(away)
        weighted_hi, weighted_lo = halves(weighted * PRODUCT_SCALE)
        products += product(tl.trans(weighted_hi), tl.trans(weighted_lo), hi, lo)
    if end > begin:
        here = split * M + m
        at = LINEAR + here * (2 * D) + column
        tl.store(at, tl.load(at) + tl.sum(counts, 0).to(tl.float64))
        tl.store(at + D, tl.load(at + D) + linear.to(tl.float64))
        at = PRODUCTS + here.to(tl.int64) * (D * D) + column[:, None] * D + column[None, :]
        tl.store(at, tl.load(at) + products.to(tl.float64))


def kinds_for(
    d: int, code: int, n_components: int, device: torch.device
) -> dict[int, Callable[[Rows, int], SingleRows]]:
    """Return what makes the forms of passes in float32 that there are for rows of this kind and size."""
    kinds: dict[int, Callable[[Rows, int], SingleRows]] = {}
    if code == FULL:
        kinds[EXACT] = WhitenedRows
    if device.type != "cuda" and not INTERPRETED.value:
        return kinds
    p, is_few = n_features(d, code), n_components <= MOST_COMPONENTS
    if code == FULL:
        is_few = d <= 16 and power(d, 2) * power(n_components, 16) <= MOST_WHITENED
        if d <= MOST_COLUMNS:
            kinds[PRODUCTS] = OnePass if is_few else ManyColumns
        return kinds
    kinds[EXACT] = StoredLogits
    if p - (code == SPHERICAL) <= MOST_COLUMNS:
        kinds[PRODUCTS] = OnePass if is_few and p <= MOST_FEATURES else TwoPasses
    return kinds


def n_features(d: int, code: int) -> int:
    """Return p, the number of features but for "full"."""
    return {DIAG: 2 * d, SPHERICAL: d + 1}.get(code, d)


def power(number: int, least: int) -> int:
    """Return the least power of two that is at least ``number`` and ``least``."""
    return max(least, 1 << (number - 1).bit_length())


def halves_of(values: Tensor) -> Tensor:
    """Return float64 numbers as hi, then lo of float16, (2, ...)."""
    hi = values.to(torch.float16)
    return torch.stack([hi, (values - hi).to(torch.float16)])


def power_below(values: Tensor) -> Tensor:
    """Return the largest powers of two that are at most these positive numbers."""
    values = values.clamp(min=1e-30)
    return 0.5 * values / torch.frexp(values).mantissa


class KernelRows(ABC):
    """Rows in the form of kernels.

    Parameters
    ----------
    rows : Rows
        float32, on a GPU.
    n_components : int
        M.
    """

    can_be_captured = True
    """Whether a CUDA graph can replay :meth:`sums`."""

    def __init__(self, rows: Rows, n_components: int) -> None:
        code, self._n_components, self._d = rows.code, n_components, rows.y.shape[1]
        self._code = code
        exponents = np.ceil(np.log2(np.maximum(rows.reach.cpu().numpy(), LEAST_REACH))) - 3.0
        if code == SPHERICAL:
            exponents[:] = exponents.max()
        device = rows.y.device
        #: Powers of two that the columns are divided by, and that all features are.
        self._units = units = torch.from_numpy(np.exp2(exponents)).to(device)
        squares = {DIAG: units, SPHERICAL: units[:1]}.get(code, units[:0]).square()
        self._factors = torch.cat([units, squares])
        self._processors = 4
        if device.type == "cuda":
            self._processors = torch.cuda.get_device_properties(device).multi_processor_count
        self._norm = rows.y.new_zeros(triton.cdiv(len(rows), 128) * 128 if code == SPHERICAL else 1)
        self._total_norm = units.new_zeros(())
        self._x = self._room(len(rows))
        self.fill(rows)

    @abstractmethod
    def _room(self, n: int) -> Tensor:
        """Return memory for n rows in the form of the kernels."""

    def fill(self, rows: Rows) -> None:
        """Use these rows: at most as many as the first ones, with the same reach."""
        self._rows, self._total_weight, self._largest_weight = rows, float(len(rows)), 1.0
        self._weight = rows.y.new_zeros(1)
        if rows.weight is not None:
            self._largest_weight = float(rows.weight.max())
            self._weight = (rows.weight / self._largest_weight).float()
            self._total_weight = float(rows.weight.sum())
        self._total_norm.zero_()
        for here in rows.slices(self._d, NUMBERS):
            x = rows.centred(here).div_(self._units)
            if self._code == SPHERICAL:
                squares = x.square().sum(dim=1)
                self._norm[here] = squares.float()
                self._total_norm += squares.sum() if rows.weight is None else squares @ rows.weight[here]
            self._write(here, x)

    @abstractmethod
    def _write(self, here: slice, x: Tensor) -> None:
        """Write scaled rows (b, d) in the form of the kernels."""

    @abstractmethod
    def sums(self, theta: DeviceTheta) -> Sums:
        """Return the sums of a full pass at θ, tensors.

        Log-likelihoods of "tied" lack −½ yᵀPy, which is common to all components.
        """

    def _phi(self, theta: DeviceTheta) -> tuple[Tensor, Tensor]:
        """Return coefficients (p, M) of scaled features in base 2, and what |x|² of "spherical" lacks.

        That is the mean of its coefficients, which is subtracted from all.
        """
        phi = theta.phi * (self._factors * LOG2_E)[:, None]
        mean = phi[-1].mean() if self._code == SPHERICAL else phi.new_zeros(())
        if self._code == SPHERICAL:
            phi[-1] -= mean
        return phi, mean

    def _constants(self, values: Tensor, padded: int) -> tuple[Tensor, Tensor]:
        """Return constants (padded,) in base 2 minus their largest, float32, and the largest."""
        values = torch.nan_to_num(values * LOG2_E, neginf=PADDING)
        largest = values.max()
        constants = torch.full((padded,), PADDING, dtype=torch.float32, device=values.device)
        constants[: len(values)] = (values - largest).clamp(min=PADDING).float()
        return constants, largest

    def _added(self, parts: Tensor) -> Tensor:
        """Return the sum over programs, of parts (programs, ...), without the factor of responsibilities."""
        return parts.sum(dim=0, dtype=torch.float64) * (self._largest_weight / SCALE.value)

    def _log_likelihood(self, log: Tensor, largest: Tensor, mean: Tensor | float = 0.0) -> Tensor:
        """Return Σ w log g, from Σ w log2 g over the largest weight without ``largest`` and ``mean``·|x|²."""
        return (log * self._largest_weight + largest * self._total_weight + mean * self._total_norm) / LOG2_E

    def _total_log(self, logs: Tensor, part: slice = slice(None)) -> Tensor:
        """Return Σ w log2 g of some rows over the largest weight, from logs (., b) that are to be added."""
        if self._rows.weight is None:
            return logs.sum(dtype=torch.float64)
        return logs.sum(dim=0, dtype=torch.float64) @ (self._rows.weight[part] / self._largest_weight)


class OnePass(KernelRows):
    """For few components: |x|² of "spherical", and 1 of "full", are one more column."""

    SMALL = 96
    """Most components and features for which blocks of 128 rows stay in registers."""

    def _room(self, n: int) -> Tensor:
        d, device = self._d, self._units.device
        self._whitened = power(d, 2) if self._code == FULL else 1
        #: Where the features are in the order of the kernel: squares of "diag" are beside their columns.
        self._place = torch.arange(n_features(d, self._code), device=device)
        if self._code == DIAG:
            self._place = self._place.view(d, 2).T.reshape(-1)
            return torch.zeros((n, power(d, 8)), dtype=torch.float32, device=device)
        columns = self._whitened + 1 if self._code == FULL else len(self._place)
        x = torch.zeros((n, power(columns, 16)), dtype=torch.float32, device=device)
        if self._code == FULL:
            x[:, self._whitened] = 1.0
        return x

    def _write(self, here: slice, x: Tensor) -> None:
        self._x[here, : self._d] = x.float()
        if self._code == SPHERICAL:
            self._x[here, self._d] = self._norm[here]

    def sums(self, theta: DeviceTheta) -> Sums:
        """Return the sums of a full pass."""
        n, m, columns, whitened = len(self._rows), self._n_components, self._x.shape[1], self._whitened
        mean: Tensor | float = 0.0
        padded, p = power(m, 16), columns * (1 + (self._code == DIAG))
        phi = theta.phi.new_zeros((p, padded, whitened))
        block, per_processor, warps = (128, 2, 4) if padded + p <= self.SMALL else (64, 3, 4)
        constants, largest = self._constants(theta.plain if self._code == FULL else theta.constant, padded)
        if self._code == FULL:
            block, per_processor, warps = 16, 8, 1
            self._whiten(theta, phi)
        else:
            phi[self._place, :m, 0], mean = self._phi(theta)
        programs = min(per_processor * self._processors, triton.cdiv(n, block))
        counts, sums, products, log = written = [
            torch.empty((programs, size), dtype=torch.float32, device=phi.device)
            for size in (padded, padded * p, whitened**2 * padded, 1)
        ]
        given = self._x, self._weight, halves_of(phi), constants
        sizes = {"C": columns, "K": whitened, "M": padded, "B": block}
        flags = {"SQUARES": self._code == DIAG, "WEIGHTED": self._rows.weight is not None}
        one_pass[(programs,)](*given, *written, n, **sizes, **flags, num_warps=warps, num_stages=1)
        total = self._added(sums).view(padded, p)[:m, self._place]
        if self._code == FULL:
            d, units = self._d, self._units
            row, column = torch.tril_indices(d, d, device=phi.device)
            pairs = self._added(products).view(whitened, whitened, padded)[row, column, :m].T
            parts = [total[:, :d] * units, pairs * (units[row] * units[column])]
        else:
            parts = [total * self._factors]
        value = self._log_likelihood(log.sum(dtype=torch.float64), largest, mean)
        return torch.cat([self._added(counts)[:m, None], *parts], dim=1), value

    def _whiten(self, theta: DeviceTheta, phi: Tensor) -> None:
        """Write what whitens rows and subtracts the means into φ (P, M, K)."""
        d, m, half = self._d, self._n_components, (0.5 * LOG2_E) ** 0.5
        phi[:d, :m, :d] = (theta.whiten * (half * self._units)).permute(2, 0, 1)
        phi[self._whitened, :m, :d] = -half * (theta.whiten @ theta.means[:, :, None])[:, :, 0]


class SplitRows(KernelRows):
    """Rows as hi + lo, as many bytes as float32; of "diag" with their squares, twice as many."""

    @property
    def _tile(self) -> int:
        """Components of a tile."""
        return 64

    def _room(self, n: int) -> Tensor:
        #: Features but |x|² of "spherical", which stays float32.
        self._p = n_features(self._d, self._code) - (self._code == SPHERICAL)
        columns = power(self._p, 16) if self._p <= MOST_COLUMNS else triton.cdiv(self._p, 128) * 128
        shape = 2, triton.cdiv(n, 128) * 128, columns
        return torch.zeros(shape, dtype=torch.float16, device=self._units.device)

    def _write(self, here: slice, x: Tensor) -> None:
        self._x[:, here, : self._p] = halves_of(
            torch.cat([x, x.square()], dim=1) if self._code == DIAG else x
        )

    def _given(self, theta: DeviceTheta) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return φ as hi, then lo, (2, M, columns); its factors, constants and coefficients of |x|², (3, M).

        M is padded to whole tiles. Also what log-likelihoods lack: the largest constant, and the mean
        coefficient of |x|².
        """
        m, columns = self._n_components, self._x.shape[2]
        padded = triton.cdiv(m, self._tile) * self._tile
        given, mean = self._phi(theta)
        phi = given.new_zeros((padded, columns))
        phi[:m, : self._p] = given[: self._p].T
        scale = power_below(phi.abs().amax(dim=1))
        components = torch.zeros((3, padded), dtype=torch.float32, device=phi.device)
        components[0] = scale.float()
        components[1], largest = self._constants(theta.constant, padded)
        if self._code == SPHERICAL:
            components[2, :m] = given[-1]
        return halves_of(phi / scale[:, None]), components, largest, mean

    def _of_components(self, counts: Tensor, sums: Tensor) -> Tensor:
        """Return sums (M, 1 + p), from scaled ones: counts and sums of |x|² (2, M), and of features."""
        m = self._n_components
        total = sums[:m, : self._p]
        if self._code == SPHERICAL:
            total = torch.cat([total, counts[1, :m, None]], dim=1)
        return torch.cat([counts[0, :m, None], total * self._factors], dim=1)


class TwoPasses(SplitRows):
    """For many components: normalisers of rows, then sums of components."""

    SPLITS = 33
    """Programs that divide the rows."""

    def sums(self, theta: DeviceTheta) -> Sums:
        """Return the sums of a full pass."""
        n, (_, rows, columns), tile = len(self._rows), self._x.shape, self._tile
        phi, components, largest, mean = self._given(theta)
        padded = phi.shape[1]
        logs = components.new_empty((2, n))
        counts = components.new_empty((2, self.SPLITS, padded))
        sums = components.new_empty((self.SPLITS, padded, columns))
        x, halves = self._x.view(-1, columns), phi.view(-1, columns)
        tiles, sizes = TensorDescriptor.from_tensor(halves, [tile, columns]), (n, rows, padded)
        flags = {"C": tile, "HAS_NORMS": self._code == SPHERICAL}
        blocks = TensorDescriptor.from_tensor(x, [128, columns])
        normalisers[(triton.cdiv(n, 128),)](
            blocks, tiles, self._norm, components, logs, *sizes, B=128, **flags, num_warps=8, num_stages=3
        )
        blocks = TensorDescriptor.from_tensor(x, [64, columns])
        written = self._norm, self._weight, components, logs, counts, sums
        flags |= {"D": columns, "B": 64, "WEIGHTED": self._rows.weight is not None}
        accumulate[(padded // tile, self.SPLITS)](
            blocks, tiles, *written, *sizes, **flags, num_warps=4, num_stages=2
        )
        value = self._log_likelihood(self._total_log(logs), largest, mean)
        return self._of_components(self._added(counts.transpose(0, 1)), self._added(sums)), value


class StoredLogits(SplitRows):
    """For any number of columns and components, and any θ: logits are stored, chunk by chunk of rows.

    Components beyond the bounds of products have logits and sums by differences, in float64, where they are
    not negligible. The rest are products of matrices.
    """

    BLOCK, HALF, NEAR = 128, 64, 32
    """Rows of tiles: whose logits are computed, that are summed, and whose logits are normalised."""
    PROGRAMS = 512
    """Programs that divide the components beyond the bounds."""

    @property
    def _tile(self) -> int:
        return 64 if self._n_components <= 64 else 128

    def sums(self, theta: DeviceTheta) -> Sums:
        """Return the sums of a full pass."""
        rows, d, (_, n, columns) = self._rows, self._d, self._x.shape
        phi, components, largest, mean = self._given(theta)
        padded, block, width = phi.shape[1], self.BLOCK, min(64, columns)
        squared, logit = extents(rows, theta)
        beyond, margins = is_beyond(squared, logit, d), components.new_zeros(padded)
        margins[: len(beyond)] = torch.where(beyond, ERROR * LOG2_E * torch.maximum(squared, logit), 0.0)
        chosen = torch.argsort(beyond.int(), descending=True, stable=True)[: most_beyond(d)]
        count, slots = beyond.sum(), len(chosen)
        plain = torch.nan_to_num(theta.plain * LOG2_E, neginf=PADDING) - largest
        exact = theta.means + rows.centre
        differences = exact, theta.scales.contiguous()
        if self._code == TIED:
            differences = theta.means @ theta.whiten[0].T, torch.ones_like(exact)
        about = exact.new_zeros((SPLITS, slots, 3, d))
        total, counts, log = exact.new_zeros((padded, columns)), exact.new_zeros((2, padded)), 0.0 * largest
        size = max(1, min(n, LOGITS // padded) // block)
        logits = components.new_empty((padded, size * block))
        for first in range(0, n // block, size):
            here = min(size, n // block - first)
            part = slice(first * block, min(len(rows), (first + here) * block))
            sizes = self._x[0].numel(), first, here, columns // width, padded
            tiles = {"B": block, "C": self._tile, "K": width, "HAS_NORMS": self._code == SPHERICAL}
            products = self._x, phi, self._norm, components, logits
            store_logits[(here, padded // self._tile)](*products, *sizes, **tiles, num_warps=8, num_stages=2)
            samples, shifts = self._samples(theta, part, mean, here * block)
            of_rows, near = components.new_empty((3, here * block)), here * block // self.NEAR
            exactly = samples, *differences, plain, shifts, margins, count, logits, of_rows
            tiles = {"B": self.NEAR, "C": 64, "K": 64, "num_warps": 8}
            normalise[(near,)](*exactly, near, padded, d, part.stop - part.start, **tiles)
            log = log + self._total_log(of_rows[:, : part.stop - part.start], part)
            self._add(logits, of_rows, part, total, counts)
            added = rows.y, self._weight, exact, chosen, count, logits, of_rows, about
            tiles = {"B": self.NEAR, "K": 64, "WEIGHTED": rows.weight is not None}
            grid = min(slots, self.PROGRAMS), triton.cdiv(d, 64), SPLITS
            add_differences[grid](*added, part.start, near, slots, d, part.stop, **tiles)
        value = self._log_likelihood(log, largest, mean)
        unit = self._largest_weight / SCALE.value
        found = self._of_components(counts * unit, total * unit)
        return self._with_differences(found, chosen, beyond, about.sum(dim=0), theta.means), value

    def _samples(self, theta: DeviceTheta, part: slice, mean: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """Return the rows of a part whose differences give logits, "tied" whitened, and shifts (size,).

        Shifts are what the logits of products lack, as it is common to all components.
        """
        rows, shifts = self._rows, theta.means.new_zeros(size)
        if self._code == TIED:
            white = rows.centred(part) @ theta.whiten[0].T
            shifts[: len(white)] = 0.5 * LOG2_E * white.square().sum(dim=1)
            return white, shifts
        if self._code == SPHERICAL:
            shifts[: part.stop - part.start] = -mean * self._norm[part].double()
        return rows.y[part], shifts

    def _add(self, logits: Tensor, logs: Tensor, part: slice, total: Tensor, counts: Tensor) -> None:
        """Add the scaled sums of a part, group by group of components."""
        (padded, columns), tile, width = total.shape, self._tile, min(128, total.shape[1])
        blocks, here = columns // width, logs.shape[1] // self.HALF
        group = min(padded, max(1, MOST_PARTS // (4 * columns * tile)) * tile)
        splits = min(
            here, 2 * self._processors * tile // (group * blocks), MOST_PARTS // (4 * columns * group)
        )
        tiles = {"B": self.HALF, "C": tile, "K": width, "HAS_NORMS": self._code == SPHERICAL}
        flags = {"WEIGHTED": self._rows.weight is not None, "num_warps": 8, "num_stages": 2}
        for start in range(0, padded, group):
            size = min(group, padded - start)
            sums = logits.new_empty((max(1, splits), size, columns))
            of_rows = logits.new_empty((2, max(1, splits), size))
            given = self._x, self._norm, self._weight, logits, logs, of_rows, sums
            sizes = self._x[0].numel(), part.start // self.HALF, start, here, blocks, size, part.stop
            add_rows[(size // tile, blocks * len(sums))](*given, *sizes, **tiles, **flags)
            total[start : start + size] += sums.sum(dim=0, dtype=torch.float64)
            counts[:, start : start + size] += of_rows.sum(dim=1, dtype=torch.float64)

    def _with_differences(
        self, found: Tensor, chosen: Tensor, beyond: Tensor, about: Tensor, means: Tensor
    ) -> Tensor:
        """Return sums (M, 1 + p), those of components beyond the bounds by sums about their means."""
        sums, squares, counts = (about * self._largest_weight).unbind(dim=1)
        counts, mean = counts[:, :1], means[chosen]
        squares = squares + (2.0 * sums + counts * mean) * mean
        parts = [counts, sums + counts * mean]
        if self._code != TIED:
            parts.append(squares if self._code == DIAG else squares.sum(dim=1, keepdim=True))
        mended = torch.where(beyond[chosen][:, None], torch.cat(parts, dim=1), found[chosen])
        return found.index_copy(0, chosen, mended)


class ManyColumns(KernelRows):
    """For full covariances with many columns.

    Logits come from whitened rows. Sums are over the pairs of rows and components that are not
    negligible: few, unless clusters overlap.
    """

    can_be_captured = False

    def _room(self, n: int) -> Tensor:
        shape = 2, triton.cdiv(n, 128) * 128, power(self._d, 32)
        return torch.zeros(shape, dtype=torch.float16, device=self._units.device)

    def _write(self, here: slice, x: Tensor) -> None:
        self._x[:, here, : self._d] = halves_of(x)

    def sums(self, theta: DeviceTheta) -> Sums:
        """Return the sums of a full pass."""
        n, d, m, columns = len(self._rows), self._d, self._n_components, self._x.shape[2]
        splits = min(64, max(1, 2 * self._processors // m))
        matrices, shifts, scales = self._matrices(theta)
        constants, largest = self._constants(theta.plain, m)
        means = shifts.new_zeros((m, 2, columns))
        exact = theta.means + self._rows.centre
        means[:, 0, :d] = exact.float()
        means[:, 1, :d] = (exact - means[:, 0, :d]).float()
        factors = means.new_zeros(columns)
        factors[:d] = 1.0 / self._units
        linear = torch.zeros((splits, m, 2, columns), dtype=torch.float64, device=means.device)
        products = linear.new_zeros((splits, m, columns, columns))
        logs = means.new_empty((2, n))
        size = min(n, max(128, NUMBERS // m // 128 * 128))
        given = self._rows.y, self._weight, means, factors
        sizes = {"COLUMNS": d, "D": columns, "B": 64, "WEIGHTED": self._rows.weight is not None}
        for first in range(0, n, size):
            here = min(size, n - first)
            logits = self._logits((matrices, shifts, scales, constants), first, here)
            highest = logits.amax(dim=0)
            chosen = (logits > highest - NEGLIGIBLE).view(-1).nonzero()[:, 0]
            ends = torch.searchsorted(chosen, torch.arange(m + 1, device=chosen.device) * here).int()
            log = torch.stack([highest, torch.exp2(logits - highest).sum(dim=0).log2()])
            logs[:, first : first + here] = log
            pairs = ends, chosen, logits, log
            white_sums[(m, splits)](
                *given, *pairs, linear, products, first, here, m, **sizes, num_warps=8, num_stages=1
            )
        value = self._log_likelihood(self._total_log(logs), largest)
        return self._about_centre(linear.sum(dim=0), products.sum(dim=0), theta.means), value

    def _matrices(self, theta: DeviceTheta) -> tuple[Tensor, Tensor, Tensor]:
        """Return whitening matrices of scaled rows over powers of two (2·M·D, D), hi, then lo.

        Also the whitened means (M, D), and ½ log2 e times the squares of the powers (M,).
        """
        d, m, columns = self._d, self._n_components, self._x.shape[2]
        values = theta.whiten.new_zeros((m, columns, columns))
        values[:, :d, :d] = theta.whiten * self._units
        scale = power_below(values.abs().amax(dim=(1, 2)))
        values /= scale[:, None, None]
        shifts = values.new_zeros((m, columns), dtype=torch.float32)
        shifts[:, :d] = (values[:, :d, :d] @ (theta.means / self._units)[:, :, None])[:, :, 0].float()
        return halves_of(values).view(-1, columns), shifts, (0.5 * LOG2_E * scale**2).float()

    def _logits(self, given: tuple[Tensor, Tensor, Tensor, Tensor], first: int, n: int) -> Tensor:
        """Return the logits (M, n) of n rows from ``first`` on, for matrices, shifts, scales, constants."""
        matrices, *vectors = given
        m, (_, rows, columns) = self._n_components, self._x.shape
        half, blocks = columns // 2, triton.cdiv(n, 128)
        logits = vectors[0].new_empty((m, n))
        parts = min(m, 16, triton.cdiv(8 * self._processors, blocks))
        sizes = rows, m, triton.cdiv(m, parts)
        x = TensorDescriptor.from_tensor(self._x.view(-1, columns), [128, half])
        tiles = TensorDescriptor.from_tensor(matrices, [half, half])
        white_logits[(blocks, parts)](
            x, tiles, *vectors, logits, first, n, *sizes, H=half, B=128, num_warps=8, num_stages=1
        )
        return logits

    def _about_centre(self, linear: Tensor, products: Tensor, means: Tensor) -> Tensor:
        """Return sums (M, 1 + p) about the centre of the data, from scaled ones about the means."""
        d, units, weight = self._d, self._units, self._largest_weight
        sums, factor = linear[:, 1, :d] * units * weight, weight / PRODUCT_SCALE.value
        pairs = products[:, :d, :d] * (units[:, None] * units * factor)
        return about_centre(linear[:, 0, :1] * weight, sums, pairs, means)
