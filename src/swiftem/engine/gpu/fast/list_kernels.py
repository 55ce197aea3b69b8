"""Kernels in Triton for clusters far apart: all pairs are screened, and candidates computed exactly.

Screened logits (M, n) of a chunk of rows come from products of float16 numbers. A pair is a candidate if its
logit is within a cut of the largest of its row; the cut is larger than the errors of screening. Lists have
the rows of each component's candidates, in order. Their logits are squares of differences, which are exact
whatever the offset and the spread, and replace the screened ones; all others are too small to count.
"""

import triton
import triton.language as tl

from swiftem.engine.gpu.fast.kernels import exp2

__all__ = ["count", "exact_logits", "list_rows", "list_sums", "logarithms", "row_maxima", "screen"]


@triton.jit
def screen(
    X, PHI, NORM, SCALES, CONSTANT, SQUARE, LOGITS, MAXIMA, first, n, width, blocks,
    B: tl.constexpr, C: tl.constexpr, SPHERICAL_ROWS: tl.constexpr,
):  # fmt: skip
    """Write screened logits (M, width) of rows from ``first`` on, and the largest of each C, (M / C, width).

    X and PHI are tensor descriptors.
    """
    m = tl.program_id(0) * C
    component = m + tl.arange(0, C)
    phi = PHI.load([m, 0])
    scale, constant = tl.load(SCALES + component), tl.load(CONSTANT + component)
    square = tl.load(SQUARE + component)
    for block in tl.range(tl.program_id(1), blocks, tl.num_programs(1)):
        row = block * B + tl.arange(0, B)
        logits = tl.dot(phi, tl.trans(X.load([first + block * B, 0])))
        logits = logits * scale[:, None] + constant[:, None]
        if SPHERICAL_ROWS:
            norm = tl.load(NORM + first + row, mask=row < n, other=0.0)
            logits += norm[None, :] * square[:, None]
        tl.store(LOGITS + component[:, None] * width + row[None, :], logits, mask=(row < n)[None, :])
        tl.store(MAXIMA + tl.program_id(0) * width + row, tl.max(logits, 0), mask=row < n)


@triton.jit
def row_maxima(MAXIMA, LARGEST, n, width, parts, B: tl.constexpr):
    """Write the largest logit of each row, of MAXIMA (parts, width)."""
    row = tl.program_id(0) * B + tl.arange(0, B)
    largest = tl.full((B,), -3e38, tl.float32)
    for part in range(parts):
        found = tl.load(MAXIMA + part * width + row, mask=row < n, other=-3e38)
        largest = tl.maximum(largest, found)
    tl.store(LARGEST + row, largest, mask=row < n)


@triton.jit
def is_candidate(LOGITS, LARGEST, CUT, m, segment, n, width, B: tl.constexpr):
    """Return the rows of a segment, and whether each is a candidate of component m."""
    row = segment * B + tl.arange(0, B)
    logits = tl.load(LOGITS + m * width + row, mask=row < n, other=-3e38)
    largest = tl.load(LARGEST + row, mask=row < n, other=3e38)
    return row, (logits > largest - tl.load(CUT)) & (row < n)


@triton.jit
def count(LOGITS, LARGEST, CUT, COUNTS, n, width, B: tl.constexpr):
    """Write the number of candidates of each component and segment of B rows."""
    m, segment = tl.program_id(0), tl.program_id(1)
    _, is_one = is_candidate(LOGITS, LARGEST, CUT, m, segment, n, width, B)
    tl.store(COUNTS + m * tl.num_programs(1) + segment, tl.sum(is_one.to(tl.int32), 0))


@triton.jit
def list_rows(LOGITS, LARGEST, CUT, ENDS, LIST, n, width, B: tl.constexpr):
    """Write the rows of candidates; ENDS has the cumulative counts, of component after component."""
    m, segment = tl.program_id(0), tl.program_id(1)
    at = m * tl.num_programs(1) + segment
    begin = tl.load(ENDS + at)
    if tl.load(ENDS + at + 1) > begin:
        row, is_one = is_candidate(LOGITS, LARGEST, CUT, m, segment, n, width, B)
        place = begin + tl.cumsum(is_one.to(tl.int32), 0) - 1
        tl.store(LIST + place, row, mask=is_one)


@triton.jit
def differences(Y, first, LIST, entry, end, mean, rest, D: tl.constexpr, COLUMNS: tl.constexpr):
    """Return rows of candidates, which of them are some, and their differences from the mean (b, D).

    The mean is the sum of two float32 numbers: differences then have the accuracy of float32.
    """
    column = tl.arange(0, D)
    row = tl.load(LIST + entry, mask=entry < end, other=0)
    at = (first + row).to(tl.int64)[:, None] * COLUMNS + column[None, :]
    is_there = (entry < end)[:, None] & (column < COLUMNS)[None, :]
    y = tl.load(Y + at, mask=is_there, other=0.0)
    return row, entry < end, tl.where(is_there, (y - mean[None, :]) - rest[None, :], 0.0)


@triton.jit
def exact_logits(
    Y, MEANS, WHITEN, PLAIN, ENDS, LIST, LOGITS, first, width, segments,
    D: tl.constexpr, COLUMNS: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Replace the logits of candidates; MEANS (M, 2, D) are those of Y, as sums; WHITEN (M, D)."""
    m, column = tl.program_id(0), tl.arange(0, D)
    begin, end = tl.load(ENDS + m * segments), tl.load(ENDS + (m + 1) * segments)
    mean, rest = tl.load(MEANS + 2 * m * D + column), tl.load(MEANS + (2 * m + 1) * D + column)
    whiten = tl.load(WHITEN + m * D + column)
    plain = tl.load(PLAIN + m)
    for start in range(begin + tl.program_id(1) * B, end, tl.num_programs(1) * B):
        entry = start + tl.arange(0, B)
        row, is_some, away = differences(Y, first, LIST, entry, end, mean, rest, D, COLUMNS)
        away *= whiten[None, :]
        tl.store(LOGITS + m * width + row, plain - tl.sum(away * away, 1), mask=is_some)


@triton.jit
def logarithms(LOGITS, LARGEST, LOG, n, width, M, B: tl.constexpr, C: tl.constexpr):
    """Write the largest logit of each row, and log2 of the sum of 2^(logit − largest)."""
    row = tl.program_id(0) * B + tl.arange(0, B)
    largest, total = tl.full((B,), -3e38, tl.float32), tl.zeros((B,), tl.float32)
    for m in range(0, M, C):
        component = m + tl.arange(0, C)
        is_there = (component < M)[:, None] & (row < n)[None, :]
        at = component[:, None] * width + row[None, :]
        logits = tl.load(LOGITS + at, mask=is_there, other=-3e38)
        higher = tl.maximum(largest, tl.max(logits, 0))
        total = total * exp2(largest - higher) + tl.sum(exp2(logits - higher[None, :]), 0)
        largest = higher
    tl.store(LARGEST + row, largest, mask=row < n)
    tl.store(LOG + row, tl.log2(total), mask=row < n)


@triton.jit
def responsibilities(LOGIT, LARGEST, LOG, W, is_some, WEIGHTED: tl.constexpr):
    """Return the weighted responsibilities of candidates, from pointers to what they need."""
    away = tl.load(LOGIT, mask=is_some, other=-3e38) - tl.load(LARGEST, mask=is_some, other=0.0)
    rows = tl.where(is_some, exp2(away - tl.load(LOG, mask=is_some, other=0.0)), 0.0)
    if WEIGHTED:
        rows *= tl.load(W, mask=is_some, other=0.0)
    return rows


@triton.jit
def list_sums(
    Y, W, MEANS, ENDS, LIST, LOGITS, LARGEST, LOG, SUMS, first, width, segments, M,
    D: tl.constexpr, COLUMNS: tl.constexpr, B: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Add candidates' sums to SUMS (splits, M, 3, D), float64: of r, of differences, and of their squares."""
    m, split, column = tl.program_id(0), tl.program_id(1), tl.arange(0, D)
    begin, end = tl.load(ENDS + m * segments), tl.load(ENDS + (m + 1) * segments)
    mean, rest = tl.load(MEANS + 2 * m * D + column), tl.load(MEANS + (2 * m + 1) * D + column)
    counts = tl.zeros((B,), tl.float32)
    sums, squares = tl.zeros((D,), tl.float32), tl.zeros((D,), tl.float32)
    for start in range(begin + split * B, end, tl.num_programs(1) * B):
        entry = start + tl.arange(0, B)
        row, is_some, away = differences(Y, first, LIST, entry, end, mean, rest, D, COLUMNS)
        logit = LOGITS + m * width + row
        rows = responsibilities(logit, LARGEST + row, LOG + row, W + first + row, is_some, WEIGHTED)
        counts += rows
        weighted = away * rows[:, None]
        sums += tl.sum(weighted, 0)
        squares += tl.sum(weighted * away, 0)
    at = SUMS + (split * M + m) * (3 * D) + column
    total = tl.sum(counts, 0).to(tl.float64)
    tl.store(at, tl.load(at) + total)
    tl.store(at + D, tl.load(at + D) + sums.to(tl.float64))
    tl.store(at + 2 * D, tl.load(at + 2 * D) + squares.to(tl.float64))
