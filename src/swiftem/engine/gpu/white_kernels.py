"""Kernels in Triton for full covariances with many columns: whitened rows, and sums on lists of candidates.

Logits are PLAIN_m − SCALES_m·|W_m x − t_m|², of rows x and matrices W in units of powers of two. Screening
takes one product of float16 numbers, then candidates are computed again, from differences; or all have
three products, see :mod:`swiftem.engine.gpu.kernels`. Lists are those of ``list_kernels.py``.
"""

import triton
import triton.language as tl

from swiftem.engine.gpu.kernels import exp2, halves, product
from swiftem.engine.gpu.list_kernels import differences

__all__ = ["white_again", "white_logits", "white_sums"]

SCALE = tl.constexpr(2048.0)


@triton.jit
def white_logits(
    X_HI, X_LO, W_HI, W_LO, SHIFTS, SCALES, PLAIN, LOGITS, MAXIMA, first, n, width, M, per,
    D: tl.constexpr, B: tl.constexpr, PRODUCTS: tl.constexpr,
):  # fmt: skip
    """Write logits (M, width) of rows from ``first`` on, and the largest of ``per`` components each.

    X (n, D) and W (M·D, D) are tensor descriptors.
    """
    block, part = tl.program_id(0), tl.program_id(1)
    row, column = block * B + tl.arange(0, B), tl.arange(0, D)
    x_hi = X_HI.load([first + block * B, 0])
    if PRODUCTS == 3:
        x_lo = X_LO.load([first + block * B, 0])
    largest = tl.full((B,), -3e38, tl.float32)
    for m in tl.range(part * per, tl.minimum(part * per + per, M)):
        w_hi = W_HI.load([m * D, 0])
        if PRODUCTS == 3:
            w_lo = W_LO.load([m * D, 0])
            away = product(x_hi, x_lo, tl.trans(w_hi), tl.trans(w_lo))
        else:
            away = tl.dot(x_hi, tl.trans(w_hi))
        away -= tl.load(SHIFTS + m * D + column)[None, :]
        logits = tl.load(PLAIN + m) - tl.load(SCALES + m) * tl.sum(away * away, 1)
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
    mean, unit = tl.load(MEANS + m * D + column), tl.load(INVERSE_UNITS + column)
    scale, plain = tl.load(SCALES + m), tl.load(PLAIN + m)
    at = m.to(tl.int64) * (D * D) + column[None, :] * D + column[:, None]
    w_hi, w_lo = tl.load(W_HI + at), tl.load(W_LO + at)
    error = tl.zeros((B,), tl.float32)
    for start in range(begin + split * B, end, tl.num_programs(1) * B):
        row, is_some, away = differences(Y, first, LIST, start + tl.arange(0, B), end, mean, D, COLUMNS)
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
    mean, unit = tl.load(MEANS + m * D + column), tl.load(INVERSE_UNITS + column)
    counts, linear = tl.zeros((B,), tl.float32), tl.zeros((D,), tl.float32)
    products = tl.zeros((D, D), tl.float32)
    for start in range(begin + split * B, end, tl.num_programs(1) * B):
        row, is_some, away = differences(Y, first, LIST, start + tl.arange(0, B), end, mean, D, COLUMNS)
        away *= unit[None, :]
        logit = tl.load(LOGITS + m * width + row, mask=is_some, other=-3e38)
        largest = tl.load(LARGEST + row, mask=is_some, other=0.0)
        rows = exp2((logit - largest) - tl.load(LOG + row, mask=is_some, other=0.0))
        rows = tl.where(is_some, rows, 0.0)
        if WEIGHTED:
            rows *= tl.load(W + first + row, mask=is_some, other=0.0)
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
