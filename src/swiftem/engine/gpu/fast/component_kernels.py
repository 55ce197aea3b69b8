"""Kernels in Triton for what a pass does once for each component: θ in the form of kernels, and the sums.

Everything is float64 here. One program for a component replaces dozens of operations of PyTorch, each of
which would take as long to start.
"""

import triton
import triton.language as tl

__all__ = ["add_parts", "add_white_parts", "give_coefficients", "give_matrices"]

LEAST = tl.constexpr(-1e30)
AT_ONCE = tl.constexpr(1024)


@triton.jit
def power_below(x):
    """Return the power of two of a positive number, float64: its exponent as a float32 number."""
    bits = tl.maximum(x, 1e-30).to(tl.float32).to(tl.int32, bitcast=True) & 0x7F800000
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def largest_of(VALUES, factor, count):
    """Return the largest of ``count`` numbers times a factor."""
    found = tl.full((AT_ONCE,), -1e30, tl.float64)
    for start in range(0, count, AT_ONCE):
        at = start + tl.arange(0, AT_ONCE)
        found = tl.maximum(found, tl.load(VALUES + at, mask=at < count, other=-1e30) * factor)
    return tl.max(found)


@triton.jit
def constant_of(VALUES, factor, m, count, largest):
    """Return a component's number times a factor minus the largest; −1e30 for one that only pads."""
    own = tl.load(VALUES + m, mask=m < count, other=-1e30) * factor
    return tl.where(m < count, tl.maximum(own - largest, LEAST), LEAST)


@triton.jit
def mean_of(VALUES, factor, count, step):
    """Return the mean of ``count`` numbers ``step`` apart times a factor."""
    found = tl.zeros((AT_ONCE,), tl.float64)
    for start in range(0, count, AT_ONCE):
        at = start + tl.arange(0, AT_ONCE)
        found += tl.load(VALUES + at * step, mask=at < count, other=0.0)
    return tl.sum(found) * factor / count


@triton.jit
def give_coefficients(
    PHI, CONSTANT, FACTORS, HI, LO, SCALES, CONSTANTS, SQUARE, FOUND, count, of_feature, of_component, d,
    middle,
    P: tl.constexpr, SQUARES: tl.constexpr, SPHERICAL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Write component m's coefficients: hi and lo of FACTORS·PHI, and its constant.

    PHI has d rows, or for SQUARES 2·d, the second ones at ``middle`` of P features, or for SPHERICAL d + 1.
    FACTORS has one number more, that of the constants. FOUND (2,): the largest constant, which is
    subtracted, and the mean of the coefficients of |x|², likewise. If WIDE, HI and LO (M, P) are divided by
    SCALES, and coefficients of |x|² are SQUARE; otherwise HI (M, 2·P) has hi twice, and feature d is |x|².
    """
    m, feature = tl.program_id(0), tl.arange(0, P)
    is_one = feature < d
    row = feature
    if SQUARES:
        is_one = is_one | ((feature >= middle) & (feature < middle + d))
        row = tl.where(feature < middle, feature, feature - middle + d)
    rows = 2 * d if SQUARES else d
    rows = d + 1 if SPHERICAL else rows
    is_there = is_one & (0 * feature + m < count)
    value = tl.load(PHI + row * of_feature + m * of_component, mask=is_there, other=0.0)
    value *= tl.load(FACTORS + row, mask=is_one, other=0.0)
    log2_e = tl.load(FACTORS + rows)
    largest = largest_of(CONSTANT, log2_e, count)
    tl.store(CONSTANTS + m, constant_of(CONSTANT, log2_e, m, count, largest).to(tl.float32))
    if m == 0:
        tl.store(FOUND, largest)
    if SPHERICAL:
        factor = tl.load(FACTORS + d)
        mean = mean_of(PHI + d * of_feature, factor, count, of_component)
        own = tl.load(PHI + d * of_feature + m * of_component, mask=m < count, other=0.0) * factor - mean
        own = tl.where(m < count, own, 0.0)
        if m == 0:
            tl.store(FOUND + 1, mean)
        if WIDE:
            tl.store(SQUARE + m, own.to(tl.float32))
        else:
            value = tl.where(feature == d, own, value)
    if WIDE:
        scale = power_below(tl.max(tl.abs(value)))
        tl.store(SCALES + m, scale)
        value /= scale.to(tl.float64)
    hi = value.to(tl.float16)
    lo = (value - hi.to(tl.float64)).to(tl.float16)
    if WIDE:
        tl.store(HI + m * P + feature, hi)
    else:
        tl.store(HI + m * (2 * P) + feature, hi)
        tl.store(HI + m * (2 * P) + P + feature, hi)
    tl.store(LO + m * P + feature, lo)


@triton.jit
def add_parts(
    COUNTS, SUMS, SQUARE_SUMS, FACTORS, OUT, parts, M, rows, d, middle,
    P: tl.constexpr, B: tl.constexpr, SQUARES: tl.constexpr, SPHERICAL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Add a component's sums over parts of the rows, times FACTORS (1 + rows,), into OUT (M, 1 + rows).

    SUMS (parts, M, P) or, if not WIDE, (parts, M, 2·P), of hi and lo; see :func:`give_coefficients`.
    """
    m, feature = tl.program_id(0), tl.arange(0, P)
    is_one = feature < (d if WIDE else d + SPHERICAL)
    row = feature
    if SQUARES:
        is_one = is_one | ((feature >= middle) & (feature < middle + d))
        row = tl.where(feature < middle, feature, feature - middle + d)
    sums, counts, squares = tl.zeros((P,), tl.float64), tl.zeros((B,), tl.float64), tl.zeros((B,), tl.float64)
    for start in range(0, parts, B):
        part = start + tl.arange(0, B)
        at = (part * M + m).to(tl.int64)
        is_there = (part < parts)[:, None] & is_one[None, :]
        if WIDE:
            found = tl.load(SUMS + at[:, None] * P + feature[None, :], mask=is_there, other=0.0).to(
                tl.float64
            )
        else:
            place = SUMS + at[:, None] * (2 * P) + feature[None, :]
            found = tl.load(place, mask=is_there, other=0.0).to(tl.float64)
            found += tl.load(place + P, mask=is_there, other=0.0).to(tl.float64)
        sums += tl.sum(found, 0)
        counts += tl.load(COUNTS + at, mask=part < parts, other=0.0).to(tl.float64)
        if SPHERICAL and WIDE:
            squares += tl.load(SQUARE_SUMS + at, mask=part < parts, other=0.0).to(tl.float64)
    to = OUT + m * (1 + rows)
    tl.store(to, tl.sum(counts) * tl.load(FACTORS))
    tl.store(to + 1 + row, sums * tl.load(FACTORS + 1 + row, mask=is_one, other=0.0), mask=is_one)
    if SPHERICAL and WIDE:
        tl.store(to + 1 + d, tl.sum(squares) * tl.load(FACTORS + 1 + d))


@triton.jit
def give_matrices(
    WHITEN, MEANS, PLAIN, CENTRE, UNITS, LOG2_E, W_HI, W_LO, SHIFTS, MEANS_IN_TWO, SCALES, CONSTANTS, FOUND,
    count, d, of_component, of_row, of_column,
    D: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Write component m's matrix WHITEN (d, d) in UNITS (d,), divided by a power of two, as hi and lo (D, D).

    SHIFTS (M, D): the matrices times the means; MEANS_IN_TWO (M, 2, D): the means plus CENTRE, as sums of
    two float32 numbers; SCALES: ½ log2 e times the square of the power; FOUND: the largest of PLAIN.
    """
    m, column = tl.program_id(0), tl.arange(0, D)
    is_column = column < d
    unit = tl.load(UNITS + column, mask=is_column, other=1.0)
    mean = tl.load(MEANS + m * d + column, mask=is_column, other=0.0)
    log2_e = tl.load(LOG2_E)
    largest = largest_of(PLAIN, log2_e, count)
    tl.store(CONSTANTS + m, constant_of(PLAIN, log2_e, m, count, largest).to(tl.float32))
    if m == 0:
        tl.store(FOUND, largest)
    there = mean + tl.load(CENTRE + column, mask=is_column, other=0.0)
    first = there.to(tl.float32)
    tl.store(MEANS_IN_TWO + 2 * m * D + column, first)
    tl.store(MEANS_IN_TWO + (2 * m + 1) * D + column, (there - first.to(tl.float64)).to(tl.float32))
    mean /= unit
    own = WHITEN + m.to(tl.int64) * of_component
    most = tl.zeros((B,), tl.float64)
    for start in range(0, d, B):
        row = start + tl.arange(0, B)
        at = row[:, None] * of_row + column[None, :] * of_column
        is_there = (row < d)[:, None] & is_column[None, :]
        found = tl.load(own + at, mask=is_there, other=0.0) * unit[None, :]
        most = tl.maximum(most, tl.max(tl.abs(found), 1))
    scale = power_below(tl.max(most)).to(tl.float64)
    tl.store(SCALES + m, (0.5 * log2_e * scale * scale).to(tl.float32))
    for start in range(0, D, B):
        row = start + tl.arange(0, B)
        at = row[:, None] * of_row + column[None, :] * of_column
        is_there = (row < d)[:, None] & is_column[None, :]
        found = tl.load(own + at, mask=is_there, other=0.0) * unit[None, :] / scale
        hi = found.to(tl.float16)
        to = m.to(tl.int64) * (D * D) + row[:, None] * D + column[None, :]
        tl.store(W_HI + to, hi)
        tl.store(W_LO + to, (found - hi.to(tl.float64)).to(tl.float16))
        tl.store(SHIFTS + m * D + row, tl.sum(found * mean[None, :], 1).to(tl.float32))


@triton.jit
def add_white_parts(
    LINEAR, PRODUCTS, MEANS, UNITS, FACTORS, OUT, parts, M, d, D: tl.constexpr, B: tl.constexpr
):
    """Write B rows of a component's sums about the centre of the data, OUT (M, 1 + d + d·(d + 1) / 2).

    LINEAR (parts, M, 2, D) and PRODUCTS (parts, M, D, D) are about its mean, in UNITS; FACTORS (2,): what
    the weights, and what the products are multiplied by.
    """
    m, row, column = tl.program_id(0), tl.program_id(1) * B + tl.arange(0, B), tl.arange(0, D)
    factor, of_products = tl.load(FACTORS), tl.load(FACTORS + 1)
    one, two = tl.zeros((B,), tl.float64), tl.zeros((D,), tl.float64)
    products, counts = tl.zeros((B, D), tl.float64), factor * 0.0
    for part in range(parts):
        at = (part * M + m).to(tl.int64)
        counts += tl.load(LINEAR + at * (2 * D))
        one += tl.load(LINEAR + at * (2 * D) + D + row)
        two += tl.load(LINEAR + at * (2 * D) + D + column)
        products += tl.load(PRODUCTS + at * (D * D) + row[:, None] * D + column[None, :])
    counts *= factor
    unit_one = tl.load(UNITS + row, mask=row < d, other=0.0)
    unit_two = tl.load(UNITS + column, mask=column < d, other=0.0)
    mean_one = tl.load(MEANS + m * d + row, mask=row < d, other=0.0)
    mean_two = tl.load(MEANS + m * d + column, mask=column < d, other=0.0)
    one, two = one * unit_one * factor, two * unit_two * factor
    found = products * (unit_one[:, None] * unit_two[None, :] * of_products)
    found += one[:, None] * mean_two[None, :] + mean_one[:, None] * (two + counts * mean_two)[None, :]
    to = OUT + m.to(tl.int64) * (1 + d + d * (d + 1) // 2)
    if tl.program_id(1) == 0:
        tl.store(to, counts)
    tl.store(to + 1 + row, one + counts * mean_one, mask=row < d)
    at = 1 + d + row[:, None] * (row[:, None] + 1) // 2 + column[None, :]
    tl.store(to + at, found, mask=(row < d)[:, None] & (column[None, :] <= row[:, None]))
