"""Kernels in Triton for full covariances with many columns: whitened rows, and sums on lists of candidates.

Logits are PLAIN_m − SCALES_m·|W_m x − t_m|², of rows x and matrices W in units of powers of two. Screening
takes one product of float16 numbers, then candidates are computed again, from differences; or all have
three products, see :mod:`swiftem.engine.gpu.fast.kernels`. Lists are those of ``list_kernels.py``. If many
pairs are candidates, sums are a matrix product of responsibilities and features, the halves one after
another.
"""

import triton
import triton.language as tl

from swiftem.engine.gpu.fast.kernels import exp2, halves, product
from swiftem.engine.gpu.fast.list_kernels import differences, responsibilities

__all__ = ["all_features", "all_rows", "white_again", "white_logits", "white_sums"]

SCALE = tl.constexpr(2048.0)


@triton.jit
def white_logits(
    X_HI, X_LO, W_HI, W_LO, SHIFTS, SCALES, PLAIN, LOGITS, MAXIMA, first, n, width, M, per,
    H: tl.constexpr, B: tl.constexpr, PRODUCTS: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """Write logits (M, width) of rows from ``first`` on, and the largest of ``per`` components each.

    X (n, 2·H) and W (M·2·H, 2·H), lower triangular, are tensor descriptors of blocks (B, H) and (H, H).
    """
    block, part = tl.program_id(0), tl.program_id(1)
    row, column, start = block * B + tl.arange(0, B), tl.arange(0, H), first + block * B
    one_hi, two_hi = X_HI.load([start, 0]), X_HI.load([start, H])
    if PRODUCTS == 3:
        one_lo, two_lo = X_LO.load([start, 0]), X_LO.load([start, H])
    largest = tl.full((B,), -3e38, tl.float32)
    for m in tl.range(part * per, tl.minimum(part * per + per, M), num_stages=S):
        at = m * (2 * H)
        w_top, w_left, w_right = W_HI.load([at, 0]), W_HI.load([at + H, 0]), W_HI.load([at + H, H])
        if PRODUCTS == 3:
            v_top, v_left, v_right = W_LO.load([at, 0]), W_LO.load([at + H, 0]), W_LO.load([at + H, H])
            above = product(one_hi, one_lo, tl.trans(w_top), tl.trans(v_top))
            below = tl.dot(one_lo, tl.trans(w_left))
            below = tl.dot(two_lo, tl.trans(w_right), below)
            below = tl.dot(one_hi, tl.trans(v_left), below)
            below = tl.dot(two_hi, tl.trans(v_right), below)
            below = tl.dot(one_hi, tl.trans(w_left), below)
            below = tl.dot(two_hi, tl.trans(w_right), below)
        else:
            above = tl.dot(one_hi, tl.trans(w_top))
            below = tl.dot(one_hi, tl.trans(w_left))
            below = tl.dot(two_hi, tl.trans(w_right), below)
        above -= tl.load(SHIFTS + at + column)[None, :]
        below -= tl.load(SHIFTS + at + H + column)[None, :]
        squares = tl.sum(above * above + below * below, 1)
        logits = tl.load(PLAIN + m) - tl.load(SCALES + m) * squares
        largest = tl.maximum(largest, logits)
        tl.store(LOGITS + m * width + row, logits, mask=row < n)
    tl.store(MAXIMA + part * width + row, largest, mask=row < n)


@triton.jit
def white_again(
    Y, MEANS, INVERSE_UNITS, W_HI, W_LO, SCALES, PLAIN, ENDS, LIST, LOGITS, ERRORS, first, width, segments,
    D: tl.constexpr, COLUMNS: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Replace the logits of candidates by those of differences; note the largest change of each program."""
    m, split, column = tl.program_id(0), tl.program_id(1), tl.arange(0, D)
    begin, end = tl.load(ENDS + m * segments), tl.load(ENDS + (m + 1) * segments)
    mean, rest = tl.load(MEANS + 2 * m * D + column), tl.load(MEANS + (2 * m + 1) * D + column)
    unit = tl.load(INVERSE_UNITS + column)
    scale, plain = tl.load(SCALES + m), tl.load(PLAIN + m)
    at = m.to(tl.int64) * (D * D) + column[None, :] * D + column[:, None]
    w_hi, w_lo = tl.load(W_HI + at), tl.load(W_LO + at)
    error = tl.zeros((B,), tl.float32)
    for start in range(begin + split * B, end, tl.num_programs(1) * B):
        entry = start + tl.arange(0, B)
        row, is_some, away = differences(Y, first, LIST, entry, end, mean, rest, D, COLUMNS)
        hi, lo = halves(away * unit[None, :])
        away = product(hi, lo, w_hi, w_lo)
        logits = plain - scale * tl.sum(away * away, 1)
        old = tl.load(LOGITS + m * width + row, mask=is_some, other=0.0)
        error = tl.maximum(error, tl.where(is_some, tl.abs(logits - old), 0.0))
        tl.store(LOGITS + m * width + row, logits, mask=is_some)
    here = ERRORS + m * tl.num_programs(1) + split
    tl.store(here, tl.maximum(tl.load(here), tl.max(error, 0)))


@triton.jit
def white_sums(
    Y, W, MEANS, INVERSE_UNITS, ENDS, LIST, LOGITS, LARGEST, LOG, LINEAR, PRODUCTS, first, width, segments, M,
    D: tl.constexpr, COLUMNS: tl.constexpr, B: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Add candidates' sums, of scaled differences: LINEAR (splits, M, 2, D), PRODUCTS (splits, M, D, D)."""
    m, split, column = tl.program_id(0), tl.program_id(1), tl.arange(0, D)
    begin, end = tl.load(ENDS + m * segments), tl.load(ENDS + (m + 1) * segments)
    mean, rest = tl.load(MEANS + 2 * m * D + column), tl.load(MEANS + (2 * m + 1) * D + column)
    unit = tl.load(INVERSE_UNITS + column)
    counts, linear = tl.zeros((B,), tl.float32), tl.zeros((D,), tl.float32)
    products = tl.zeros((D, D), tl.float32)
    for start in range(begin + split * B, end, tl.num_programs(1) * B):
        entry = start + tl.arange(0, B)
        row, is_some, away = differences(Y, first, LIST, entry, end, mean, rest, D, COLUMNS)
        away *= unit[None, :]
        logit = LOGITS + m * width + row
        rows = responsibilities(logit, LARGEST + row, LOG + row, W + first + row, is_some, WEIGHTED)
        counts += rows
        weighted = away * rows[:, None]
        linear += tl.sum(weighted, 0)
        hi, lo = halves(away)
        weighted_hi, weighted_lo = halves(weighted * SCALE)
        products += product(tl.trans(weighted_hi), tl.trans(weighted_lo), hi, lo)
    if end > begin:
        here = split * M + m
        at = LINEAR + here * (2 * D) + column
        tl.store(at, tl.load(at) + tl.sum(counts, 0).to(tl.float64))
        tl.store(at + D, tl.load(at + D) + linear.to(tl.float64))
        at = PRODUCTS + here.to(tl.int64) * (D * D) + column[:, None] * D + column[None, :]
        tl.store(at, tl.load(at) + products.to(tl.float64))


@triton.jit
def all_features(
    X_HI, X_LO, LEFT, RIGHT, FEATURES, first, n, D: tl.constexpr, B: tl.constexpr, C: tl.constexpr
):
    """Write products of the columns LEFT and RIGHT (P,) of n rows, (2·n, P): hi, then lo.

    A column of −1 is 1.
    """
    row, feature = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * C + tl.arange(0, C)
    width = tl.num_programs(1) * C
    at = (first + row).to(tl.int64)[:, None] * D
    left, right = tl.load(LEFT + feature)[None, :], tl.load(RIGHT + feature)[None, :]
    is_row = (row < n)[:, None]
    one = tl.load(X_HI + at + left, mask=is_row & (left >= 0), other=1.0).to(tl.float32)
    one += tl.load(X_LO + at + left, mask=is_row & (left >= 0), other=0.0).to(tl.float32)
    two = tl.load(X_HI + at + right, mask=is_row & (right >= 0), other=1.0).to(tl.float32)
    two += tl.load(X_LO + at + right, mask=is_row & (right >= 0), other=0.0).to(tl.float32)
    hi, lo = halves(one * two)
    into = FEATURES + row.to(tl.int64)[:, None] * width + feature[None, :]
    step = tl.cast(n, tl.int64) * width
    tl.store(into, hi, mask=is_row)
    tl.store(into + step, lo, mask=is_row)


@triton.jit
def all_rows(
    LOGITS, LARGEST, LOG, W, ROWS, first, start, n, width, M,
    B: tl.constexpr, C: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Write responsibilities times 2^14 of n rows, (M, 3·n): hi, hi again, and lo."""
    row, component = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * C + tl.arange(0, C)
    is_there = (component < M)[:, None] & (row < n)[None, :]
    logits = tl.load(LOGITS + component[:, None] * width + start + row[None, :], mask=is_there, other=-3e38)
    largest = tl.load(LARGEST + start + row, mask=row < n, other=0.0)
    log = tl.load(LOG + start + row, mask=row < n, other=0.0)
    rows = exp2((logits - largest[None, :]) - log[None, :]) * 16384.0
    if WEIGHTED:
        rows *= tl.load(W + first + start + row, mask=row < n, other=0.0)[None, :]
    hi, lo = halves(rows)
    into = ROWS + component[:, None] * (3 * n) + row[None, :]
    tl.store(into, hi, mask=is_there)
    tl.store(into + n, hi, mask=is_there)
    tl.store(into + 2 * n, lo, mask=is_there)
