"""Kernels in Triton for mixtures in float32: products on tensor cores, with the accuracy of float32.

A float32 number is split into two of float16, hi + lo, and a product into hi·hi + hi·lo + lo·hi. Tensor cores
truncate when they accumulate, so the product of one tile is added to float32 registers. Responsibilities are
multiplied by 2^14 before they are split, so that small ones keep their digits. Logits are to base 2. Nothing
is added atomically: every program writes its own sums, and results have the same bits in every run.

Rows beyond ``n`` count for nothing. Components that only pad have a constant of −1e30.
"""

import os

import triton
import triton.language as tl

__all__ = ["accumulate", "dense_pass", "full_pass", "merge", "normalisers", "scaled_rows"]

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
SCALE = tl.constexpr(16384.0)


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
    """Return b·aᵀ transposed, (a·bᵀ)ᵀ: rounded as ``product(a, bᵀ)`` is."""
    found = tl.dot(b_hi, tl.trans(a_lo))
    found = tl.dot(b_lo, tl.trans(a_hi), found)
    return tl.dot(b_hi, tl.trans(a_hi), found)


@triton.jit
def softmax(logits, is_row):
    """Return responsibilities (b, M) times 2^14, and log2 of the sums of 2^logits (b,); 0 for no row."""
    largest = tl.max(logits, 1)
    powers = exp2(logits - largest[:, None])
    total = tl.sum(powers, 1)
    rows = powers * tl.where(is_row, SCALE / total, 0.0)[:, None]
    return rows, tl.where(is_row, largest + tl.log2(total), 0.0)


@triton.jit
def weighted_softmax(logits, row, is_row, W, WEIGHTED: tl.constexpr):
    """Return the results of :func:`softmax` times the weights W of the rows."""
    rows, of_rows = softmax(logits, is_row)
    if WEIGHTED:
        weight = tl.load(W + row, mask=is_row, other=0.0)
        rows *= weight[:, None]
        of_rows *= weight
    return rows, of_rows


@triton.jit
def sums_of_pairs(Z, at, pair, is_row, rows_hi, rows_lo, D: tl.constexpr):
    """Return the sums (D·D, M) of rows times the products of each pair of the D columns of Z."""
    one = tl.load(Z + at + (pair // D)[None, :], mask=is_row[:, None], other=0.0)
    other = tl.load(Z + at + (pair % D)[None, :], mask=is_row[:, None], other=0.0)
    pairs_hi, pairs_lo = halves(one * other)
    return product(tl.trans(pairs_hi), tl.trans(pairs_lo), rows_hi, rows_lo)


@triton.jit
def scaled_rows(
    Y, CENTRE, FACTORS, HI, LO, n, width, middle,
    COLUMNS: tl.constexpr, D: tl.constexpr, B: tl.constexpr, SQUARES: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """Write B rows of Y (n, COLUMNS) minus CENTRE, times FACTORS, both (COLUMNS,) float64; D columns.

    With SPLIT these are HI and LO, float16, of rows with ``width`` columns; otherwise HI is float32. With
    SQUARES their squares are there too, from column ``middle`` on.
    """
    row, column = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    is_there = (row < n)[:, None] & (column < COLUMNS)[None, :]
    at = row[:, None].to(tl.int64)
    y = tl.load(Y + at * COLUMNS + column[None, :], mask=is_there, other=0.0).to(tl.float64)
    centre = tl.load(CENTRE + column, mask=column < COLUMNS, other=0.0)
    factor = tl.load(FACTORS + column, mask=column < COLUMNS, other=0.0)
    x = (y - centre[None, :]) * factor[None, :]
    at = at * width + column[None, :]
    for power in tl.static_range(2 if SQUARES else 1):
        if SPLIT:
            hi = x.to(tl.float16)
            tl.store(HI + at + power * middle, hi, mask=is_there)
            tl.store(LO + at + power * middle, (x - hi.to(tl.float64)).to(tl.float16), mask=is_there)
        else:
            tl.store(HI + at + power * middle, x.to(tl.float32), mask=is_there)
        x *= x


@triton.jit
def dense_pass(
    X, W, PHI_HI, PHI_LO, CONSTANT, COUNTS, SUMS, LOG, n, blocks,
    D: tl.constexpr, M: tl.constexpr, B: tl.constexpr, SQUARES: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """One pass with few components and features; a program does every so many-th block of B rows.

    X (n, D) float32; W (n,); PHI (P, M); CONSTANT (M,). P = D, or 2·D if SQUARES: x_0, x_0², x_1, ...
    Sums of each program: COUNTS (M,), SUMS (M, P), and LOG, of log2 g.
    """
    P: tl.constexpr = 2 * D if SQUARES else D
    program = tl.program_id(0)
    column, component, feature = tl.arange(0, D), tl.arange(0, M), tl.arange(0, P)
    phi_hi = tl.load(PHI_HI + feature[:, None] * M + component[None, :])
    phi_lo = tl.load(PHI_LO + feature[:, None] * M + component[None, :])
    constant = tl.load(CONSTANT + component)
    sums = tl.zeros((M, P), tl.float32)
    counts = tl.zeros((M,), tl.float32)
    log = tl.zeros((B,), tl.float32)
    for block in range(program, blocks, tl.num_programs(0)):
        row = block * B + tl.arange(0, B)
        is_row = row < n
        at = row[:, None].to(tl.int64) * D + column[None, :]
        x = tl.load(X + at, mask=is_row[:, None], other=0.0)
        z = tl.reshape(tl.join(x, x * x), (B, P)) if SQUARES else x
        z_hi, z_lo = halves(z)
        logits = product(z_hi, z_lo, phi_hi, phi_lo) + constant[None, :]
        rows, of_rows = weighted_softmax(logits, row, is_row, W, WEIGHTED)
        log += of_rows
        counts += tl.sum(rows, 0)
        rows_hi, rows_lo = halves(rows)
        sums += product(tl.trans(rows_hi), tl.trans(rows_lo), z_hi, z_lo)
    tl.store(SUMS + (program * M + component)[:, None] * P + feature[None, :], sums)
    tl.store(COUNTS + program * M + component, counts)
    tl.store(LOG + program, tl.sum(log))


@triton.jit
def full_pass(
    Z, W, U_HI, U_LO, CONSTANT, LINEAR_SUMS, PRODUCTS, LOG, n, blocks,
    D: tl.constexpr, P: tl.constexpr, M: tl.constexpr, B: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """One pass with few full covariances: squares of whitened rows, so that no digits cancel.

    Z (n, P) float32, P ≥ 16: the rows, D columns, then 1, then zeros. U (P, M·D): all components' whitening,
    its row D the whitened means, so that log2 r_m + ... = CONSTANT_m − Σ_i (Z·U)²_mi. Sums of each program:
    LINEAR_SUMS (P, M), those of 1 in row D; PRODUCTS (D·D, M).
    """
    program = tl.program_id(0)
    feature, component = tl.arange(0, P), tl.arange(0, M)
    whitened, pair = tl.arange(0, M * D), tl.arange(0, D * D)
    u_hi = tl.load(U_HI + feature[:, None] * (M * D) + whitened[None, :])
    u_lo = tl.load(U_LO + feature[:, None] * (M * D) + whitened[None, :])
    constant = tl.load(CONSTANT + component)
    linear = tl.zeros((P, M), tl.float32)
    products = tl.zeros((D * D, M), tl.float32)
    log = tl.zeros((B,), tl.float32)
    for block in range(program, blocks, tl.num_programs(0)):
        row = block * B + tl.arange(0, B)
        is_row = row < n
        at = row[:, None].to(tl.int64) * P
        z = tl.load(Z + at + feature[None, :], mask=is_row[:, None], other=0.0)
        z_hi, z_lo = halves(z)
        away = product(z_hi, z_lo, u_hi, u_lo)
        logits = constant[None, :] - tl.sum(tl.reshape(away * away, (B, M, D)), 2)
        rows, of_rows = weighted_softmax(logits, row, is_row, W, WEIGHTED)
        log += of_rows
        rows_hi, rows_lo = halves(rows)
        linear += product(tl.trans(z_hi), tl.trans(z_lo), rows_hi, rows_lo)
        products += sums_of_pairs(Z, at, pair, is_row, rows_hi, rows_lo, D)
    tl.store(LINEAR_SUMS + (program * P + feature)[:, None] * M + component[None, :], linear)
    tl.store(PRODUCTS + (program * D * D + pair)[:, None] * M + component[None, :], products)
    tl.store(LOG + program, tl.sum(log))


@triton.jit
def normalisers(
    X_HI, X_LO, PHI_HI, PHI_LO, NORM, SCALES, CONSTANT, SQUARE, LARGEST, LOG, n, M,
    D: tl.constexpr, B: tl.constexpr, C: tl.constexpr, SPHERICAL_ROWS: tl.constexpr,
):  # fmt: skip
    """First of two passes, for many components; B rows, C components at a time.

    It writes LARGEST (n,), the largest logits, and LOG (n,), log2 of the sums of 2^(logit − largest). X and
    PHI are tensor descriptors of (n, D) and (M, D); component m's coefficients are SCALES_m·PHI_m.
    """
    first = tl.program_id(0) * B
    row = first + tl.arange(0, B)
    x_hi, x_lo = X_HI.load([first, 0]), X_LO.load([first, 0])
    if SPHERICAL_ROWS:
        norm = tl.load(NORM + row, mask=row < n, other=0.0)
    largest = tl.full((B,), -1e30, tl.float32)
    total = tl.zeros((B,), tl.float32)
    for m in tl.range(0, M, C):
        component = m + tl.arange(0, C)
        phi_hi, phi_lo = PHI_HI.load([m, 0]), PHI_LO.load([m, 0])
        logits = product(x_hi, x_lo, tl.trans(phi_hi), tl.trans(phi_lo))
        logits = logits * tl.load(SCALES + component)[None, :] + tl.load(CONSTANT + component)[None, :]
        if SPHERICAL_ROWS:
            logits += norm[:, None] * tl.load(SQUARE + component)[None, :]
        higher = tl.maximum(largest, tl.max(logits, 1))
        total = total * exp2(largest - higher) + tl.sum(exp2(logits - higher[:, None]), 1)
        largest = higher
    tl.store(LARGEST + row, largest, mask=row < n)
    tl.store(LOG + row, tl.log2(total), mask=row < n)


@triton.jit
def merge(
    MAXIMA, TOTALS, W, LARGEST, LOG, SUMS, first, n, width, parts, B: tl.constexpr, WEIGHTED: tl.constexpr
):
    """Write the results of :func:`normalisers` for rows from ``first`` on, of those of parts of components.

    MAXIMA and TOTALS (parts, width) are the largest logits, and the sums of 2^(logit − largest). SUMS has
    one number of each program: the sum of log2 g, weighted.
    """
    place = tl.program_id(0) * B + tl.arange(0, B)
    is_row = (first + place < n) & (place < width)
    largest, total = tl.full((B,), -3e38, tl.float32), tl.zeros((B,), tl.float32)
    for part in range(parts):
        found = tl.load(MAXIMA + part * width + place, mask=is_row, other=-3e38)
        some = tl.load(TOTALS + part * width + place, mask=is_row, other=1.0)
        higher = tl.maximum(largest, found)
        total = total * exp2(largest - higher) + some * exp2(found - higher)
        largest = higher
    log = tl.log2(total)
    tl.store(LARGEST + first + place, largest, mask=is_row)
    tl.store(LOG + first + place, log, mask=is_row)
    of_rows = largest.to(tl.float64) + log.to(tl.float64)
    if WEIGHTED:
        of_rows *= tl.load(W + first + place, mask=is_row, other=0.0)
    tl.store(SUMS + tl.program_id(0), tl.sum(tl.where(is_row, of_rows, 0.0)))


@triton.jit
def accumulate(
    X_HI, X_LO, PHI_HI, PHI_LO, NORM, W, SCALES, CONSTANT, SQUARE, LARGEST, LOG, COUNTS, SUMS, SQUARES,
    n, blocks, M,
    D: tl.constexpr, B: tl.constexpr, C: tl.constexpr, SPHERICAL_ROWS: tl.constexpr, WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Second of two passes: the sums of C components over every so many-th block of B rows.

    The largest logit is subtracted as the first pass has rounded it: a row that one component owns then has
    a responsibility of one, not of one plus the rounding of a large logit.
    """
    m, split = tl.program_id(0) * C, tl.program_id(1)
    component = m + tl.arange(0, C)
    phi_hi, phi_lo = PHI_HI.load([m, 0]), PHI_LO.load([m, 0])
    scale, constant = tl.load(SCALES + component), tl.load(CONSTANT + component)
    square = tl.load(SQUARE + component)
    sums = tl.zeros((C, D), tl.float32)
    counts = tl.zeros((C,), tl.float32)
    squares = tl.zeros((C,), tl.float32)
    for block in tl.range(split, blocks, tl.num_programs(1)):
        row = block * B + tl.arange(0, B)
        is_row = row < n
        x_hi, x_lo = X_HI.load([block * B, 0]), X_LO.load([block * B, 0])
        largest = tl.load(LARGEST + row, mask=is_row, other=1e30)
        log = tl.load(LOG + row, mask=is_row, other=0.0) - 14.0
        logits = transposed_product(x_hi, x_lo, phi_hi, phi_lo)
        logits = logits * scale[:, None] + constant[:, None]
        if SPHERICAL_ROWS:
            norm = tl.load(NORM + row, mask=is_row, other=0.0)
            logits += norm[None, :] * square[:, None]
        rows = exp2((logits - largest[None, :]) - log[None, :])
        if WEIGHTED:
            rows *= tl.load(W + row, mask=is_row, other=0.0)[None, :]
        counts += tl.sum(rows, 1)
        if SPHERICAL_ROWS:
            squares += tl.sum(rows * norm[None, :], 1)
        rows_hi, rows_lo = halves(rows)
        sums += product(rows_hi, rows_lo, x_hi, x_lo)
    at = split * M + component
    tl.store(COUNTS + at, counts)
    tl.store(SUMS + at[:, None] * D + tl.arange(0, D)[None, :], sums)
    if SPHERICAL_ROWS:
        tl.store(SQUARES + at, squares)
