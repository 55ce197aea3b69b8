"""Kernels in Triton for iterations with few full covariances: a batch, then the M-step, and so on.

Statistics, coefficients and decisions stay on the device. θ is in slots: 0 to 2 are θ, θ of the previous
iteration and the next θ, in turn; 3 is an anchor. An M-step writes the next θ, and for each component whether
it is in the domain: the batch after it accepts all of them or none. Products are those of
:mod:`swiftem.engine.gpu.fast.kernels`; the M-step is float64.

``NOW`` and ``THEN`` are [iteration, slot of θ, of the previous θ, of the next θ, rejected steps, go on]:
batches read ``NOW`` and write ``THEN``, M-steps read ``THEN`` and write ``NOW``, so that no kernel reads what
it writes. Flags of components are 0: outside the domain; 1: inside; 3: inside, but float32 is not enough.
"""

import triton
import triton.language as tl

from swiftem.engine.gpu.fast.kernels import halves, product, softmax, sums_of_pairs

__all__ = ["ANCHOR", "MEMORY", "NOTHING", "add_parts", "batch_m_step", "batch_pass"]

NOTHING, ANCHOR, MEMORY = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
SCALE, PER_SCALE = tl.constexpr(16384.0), tl.constexpr(1.0 / 16384.0)


@triton.jit
def responsibilities(
    z_hi, z_lo, is_row, U_HI, U_LO, CONSTANT, slot,
    D: tl.constexpr, P: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Return responsibilities (B, M) times 2^14 at the θ of a slot."""
    feature, component, whitened = tl.arange(0, P), tl.arange(0, M), tl.arange(0, M * D)
    at = slot * (P * M * D) + feature[:, None] * (M * D) + whitened[None, :]
    constant = tl.load(CONSTANT + slot * M + component)
    constant = (constant - tl.max(constant, 0)).to(tl.float32)
    away = product(z_hi, z_lo, tl.load(U_HI + at), tl.load(U_LO + at))
    rows, _ = softmax(constant[None, :] - tl.sum(tl.reshape(away * away, (B, M, D)), 2), is_row)
    return rows


@triton.jit
def batch_pass(
    Z, W, INDEX, OTHER, FIRST, U_HI, U_LO, CONSTANT, MEMORY_ROWS, STAGE, PARTS, FLAGS, NOW, THEN, NUMBERS,
    b, blocks, readers,
    COUNT: tl.constexpr, D: tl.constexpr, P: tl.constexpr, M: tl.constexpr, B: tl.constexpr,
    REFERENCE: tl.constexpr, FOLLOWS: tl.constexpr, RENEWS: tl.constexpr, WEIGHTED: tl.constexpr,
    DIVIDED: tl.constexpr, ALL: tl.constexpr,
):  # fmt: skip
    """Sums of a batch, or of ALL rows.

    The first ``readers`` programs read samples INDEX, the others renew those of OTHER. Z (n, P), the rows as
    in :func:`swiftem.engine.gpu.fast.kernels.full_pass`; INDEX and OTHER (iterations, b); PARTS
    (programs, D·D + P, M): sums of products, then of Z. The rows of OTHER go to STAGE (b, M).
    """
    program = tl.program_id(0)
    feature, component, pair = tl.arange(0, P), tl.arange(0, M), tl.arange(0, D * D)
    k = tl.load(NOW)
    before, following = tl.load(NOW + 1), tl.load(NOW + 3)
    flags = tl.load(FLAGS + component, mask=component < COUNT, other=1)
    accepted = tl.min(flags & 1, 0)
    now = tl.where(accepted == 1, following, before)
    is_served = accepted * tl.max(flags >> 1, 0) == 0
    if program == 0:
        tl.store(THEN, k)
        tl.store(THEN + 1, now)
        tl.store(THEN + 2, before)
        tl.store(THEN + 3, tl.where(now == before, (now + 1) % 3, 3 - now - before))
        tl.store(THEN + 4, tl.load(NOW + 4) + 1 - accepted)
        tl.store(THEN + 5, is_served.to(tl.int32))
    renews = program >= readers
    groups = tl.where(renews, tl.num_programs(0) - readers, readers)
    first = tl.where(renews, program - readers, program)
    correction = tl.where(renews, 1.0, tl.load(NUMBERS).to(tl.float32))
    linear = tl.zeros((P, M), tl.float32)
    products = tl.zeros((D * D, M), tl.float32)
    for block in range(first, tl.where(is_served, blocks, 0), groups):
        row = block * B + tl.arange(0, B)
        is_row = row < b
        if ALL:
            index = row.to(tl.int64)
        elif RENEWS:
            index = tl.load(tl.where(renews, OTHER, INDEX) + k * b + row, mask=is_row, other=0).to(tl.int64)
        else:
            index = tl.load(INDEX + k * b + row, mask=is_row, other=0).to(tl.int64)
        at = index[:, None] * P
        z_hi, z_lo = halves(tl.load(Z + at + feature[None, :], mask=is_row[:, None], other=0.0))
        rows = responsibilities(z_hi, z_lo, is_row, U_HI, U_LO, CONSTANT, now, D, P, M, B)
        if REFERENCE == ANCHOR:
            anchor = before if FOLLOWS else 3
            rows -= correction * responsibilities(
                z_hi, z_lo, is_row, U_HI, U_LO, CONSTANT, anchor, D, P, M, B
            )  # fmt: skip
        if REFERENCE == MEMORY:
            is_held = is_row[:, None] & (component < COUNT)[None, :]
            old = tl.load(MEMORY_ROWS + index[:, None] * COUNT + component[None, :], mask=is_held, other=0.0)
            staged = STAGE + row[:, None] * M + component[None, :]
            if renews:
                tl.store(staged, rows * PER_SCALE, mask=is_held)
            rows -= correction * (old.to(tl.float32) * SCALE)
            if RENEWS:
                is_new = tl.load(FIRST + k * b + row, mask=is_row, other=1).to(tl.int32)
                rows *= tl.where(renews, tl.minimum(is_new, 1), 1).to(tl.float32)[:, None]
        if WEIGHTED:
            weight = tl.load(W + index, mask=is_row, other=0.0)
            if DIVIDED:
                weight = tl.where(renews, weight, 1.0)
            rows *= weight[:, None]
        rows_hi, rows_lo = halves(rows)
        linear += product(tl.trans(z_hi), tl.trans(z_lo), rows_hi, rows_lo)
        products += sums_of_pairs(Z, at, pair, is_row, rows_hi, rows_lo, D)
    parts = PARTS + program * ((D * D + P) * M) + component[None, :]
    tl.store(parts + pair[:, None] * M, products)
    tl.store(parts + (D * D + feature)[:, None] * M, linear)


@triton.jit
def add_parts(PARTS, ADDED, programs, per, WIDTH: tl.constexpr, G: tl.constexpr, N: tl.constexpr):
    """Write sums of ``per`` programs' parts each, (programs, WIDTH), into ADDED (programs / per, WIDTH)."""
    column, first = tl.program_id(0) * N + tl.arange(0, N), tl.program_id(1) * per
    found = tl.zeros((G, N), tl.float32)
    for start in range(first, first + per, G):
        program = start + tl.arange(0, G)
        is_own = (program < programs) & (program < first + per)
        found += tl.load(PARTS + program[:, None] * WIDTH + column[None, :], mask=is_own[:, None], other=0.0)
    tl.store(ADDED + tl.program_id(1) * WIDTH + column, tl.sum(found, 0))


@triton.jit
def added(PARTS, first, last, place, G: tl.constexpr, WIDTH: tl.constexpr, N: tl.constexpr):
    """Return sums (N,), float64, of ``place`` (N,) in the parts of programs ``first`` to ``last`` − 1."""
    found = tl.zeros((N,), tl.float64)
    for start in range(first, last, G):
        program = start + tl.arange(0, G)
        at = program[:, None] * WIDTH + place[None, :]
        parts = tl.load(PARTS + at, mask=(program < last)[:, None], other=0.0)
        found += tl.sum(parts.to(tl.float64), 0)
    return found


@triton.jit
def batch_m_step(
    PARTS, S, CENTRE, U_HI, U_LO, CONSTANT, FLAGS, NOW, THEN, NUMBERS, STEPS, PRIOR_MEAN, PRIOR_SCALE, REG,
    KNOWN, REACH, OTHER, FIRST, STAGE, MEMORY_ROWS, b, programs, readers,
    COUNT: tl.constexpr, COLUMNS: tl.constexpr, D: tl.constexpr, P: tl.constexpr, M: tl.constexpr,
    G: tl.constexpr, B: tl.constexpr, CENTRED: tl.constexpr, READS: tl.constexpr, FOLLOWS: tl.constexpr,
    RENEWS: tl.constexpr, HAS_KNOWN: tl.constexpr, RESTATES: tl.constexpr,
):  # fmt: skip
    """The sE-step and the M-step of one component; programs beyond COUNT write STAGE into the memory.

    If RESTATES, θ̄ of the statistics of a slot is written into that slot, and nothing else happens.

    S (3, COUNT, D·D + P), CENTRE (COUNT, D·D + P); NUMBERS: λ, the factors of means and shares, κ, degrees,
    ε, and the largest squared distance; STEPS (iterations,): γ. All are float64.
    """
    m = tl.program_id(0)
    k, now, following = tl.load(THEN), tl.load(THEN + 1), tl.load(THEN + 3)
    goes_on = tl.load(THEN + 5)
    if goes_on == 1:
        if m < COUNT:
            i, feature, pair = tl.arange(0, D), tl.arange(0, P), tl.arange(0, D * D)
            below = tl.maximum(pair // D, pair % D) * D + tl.minimum(pair // D, pair % D)
            q, linear = below * M + m, (D * D + feature) * M + m  # sums above the diagonal are those below
            WIDTH: tl.constexpr = (D * D + P) * M
            of_component = m * (D * D + P)
            if RESTATES:
                step = tl.zeros((), tl.float64)
                proxy_q, proxy_l = tl.zeros((D * D,), tl.float64), tl.zeros((P,), tl.float64)
            else:
                step = tl.load(STEPS + k)
            if CENTRED:
                centre_q = tl.load(CENTRE + of_component + pair)
                centre_l = tl.load(CENTRE + of_component + D * D + feature)
            if READS and not RESTATES:
                factor = tl.load(NUMBERS + 1)
                proxy_q = added(PARTS, 0, readers, q, G, WIDTH, D * D) * factor
                proxy_l = added(PARTS, 0, readers, linear, G, WIDTH, P) * factor
                if CENTRED:
                    correction = tl.load(NUMBERS)
                    proxy_q += correction * centre_q
                    proxy_l += correction * centre_l
            if RENEWS and not RESTATES:
                share = tl.load(NUMBERS + 2)
                centre_q += added(PARTS, readers, programs, q, G, WIDTH, D * D) * share
                centre_l += added(PARTS, readers, programs, linear, G, WIDTH, P) * share
            if (not READS) and (not RESTATES):
                proxy_q, proxy_l = centre_q, centre_l
            if FOLLOWS and not RESTATES:
                centre_q, centre_l = proxy_q, proxy_l
            if (RENEWS or FOLLOWS) and not RESTATES:
                tl.store(CENTRE + of_component + pair, centre_q)
                tl.store(CENTRE + of_component + D * D + feature, centre_l)
            old = S + (now * COUNT + m) * (D * D + P)
            if step < 1.0:
                old_q, old_l = tl.load(old + pair), tl.load(old + D * D + feature)
                proxy_q = old_q + step * (proxy_q - old_q)
                proxy_l = old_l + step * (proxy_l - old_l)
            new = S + (following * COUNT + m) * (D * D + P)
            tl.store(new + pair, proxy_q)
            tl.store(new + D * D + feature, proxy_l)

            kappa, degrees, epsilon = tl.load(NUMBERS + 3), tl.load(NUMBERS + 4), tl.load(NUMBERS + 5)
            count = tl.sum(tl.where(feature == D, proxy_l, 0.0), 0)
            is_in = (count + epsilon > 0.0) & (count + kappa > 0.0) & (count + degrees > 0.0)
            is_eye = i[:, None] == i[None, :]
            sums = tl.sum(tl.where(feature[None, :] == i[:, None], proxy_l[None, :], 0.0), 1)
            mean = (sums + kappa * tl.load(PRIOR_MEAN + i)) / (count + kappa)
            across = tl.sum(tl.where(is_eye, mean[:, None], 0.0), 0)
            inverse = 1.0 / (count + degrees)
            prior = tl.load(PRIOR_SCALE + i[:, None] * D + i[None, :])
            moments = tl.reshape(proxy_q, (D, D))
            matrix = (moments + prior - (count + kappa) * (mean[:, None] * across[None, :])) * inverse
            reg = tl.load(REG + i)
            is_padded = is_eye & (i >= COLUMNS)[:, None]
            matrix = tl.where(is_padded, 1.0, matrix + tl.where(is_eye, reg[:, None], 0.0))
            diagonal = tl.sum(tl.where(is_eye, moments, 0.0), 1)
            floor = (1.0 + 4.0 * i.to(tl.float64)) * 1.7763568394002505e-15 * tl.abs(diagonal) * inverse
            lower = tl.where(is_eye, 1.0, 0.0).to(tl.float64)
            for j in tl.static_range(D):
                of_matrix = tl.sum(tl.where(i[:, None] == j, matrix, 0.0), 0)
                of_lower = tl.sum(tl.where(i[:, None] == j, lower, 0.0), 0)
                factors = tl.sum(tl.where(i[None, :] == j, matrix, 0.0), 1)
                pivot = tl.sum(tl.where(i == j, of_matrix, 0.0), 0)
                factors = tl.where(i > j, factors / pivot, 0.0)
                matrix -= factors[:, None] * of_matrix[None, :]
                lower -= factors[:, None] * of_lower[None, :]
            pivots = tl.sum(tl.where(is_eye, matrix, 0.0), 1)
            is_fine = (pivots > floor) & (pivots > 0.0) & (pivots < 1e300)
            is_in = is_in & (tl.min(is_fine.to(tl.int32), 0) == 1)
            whiten = lower * (0.8493218002880191 / tl.sqrt(pivots))[:, None]  # √(½ log2 e)
            weight = count + epsilon
            if HAS_KNOWN:
                weight = tl.load(KNOWN + m)
            tl.store(CONSTANT + following * M + m, tl.log2(weight) - 0.5 * tl.sum(tl.log2(pivots), 0))
            extent = tl.maximum(tl.load(REACH + i), tl.abs(across))
            extent = tl.where(i < COLUMNS, extent, 0.0)
            far = tl.sum(tl.abs(whiten) * extent[None, :], 1)
            is_far = tl.sum(far * far, 0) > tl.load(NUMBERS + 6)
            tl.store(FLAGS + m, is_in.to(tl.int32) * (1 + 2 * is_far.to(tl.int32)))
            at = following * (P * M * D) + m * D + i
            shifted = -tl.sum(whiten * across[None, :], 1)
            hi = whiten.to(tl.float32).to(tl.float16)
            places = at[:, None] + i[None, :] * (M * D)
            tl.store(U_HI + places, hi)
            tl.store(U_LO + places, (whiten - hi.to(tl.float64)).to(tl.float32).to(tl.float16))
            hi = shifted.to(tl.float32).to(tl.float16)
            tl.store(U_HI + at + D * (M * D), hi)
            tl.store(U_LO + at + D * (M * D), (shifted - hi.to(tl.float64)).to(tl.float32).to(tl.float16))
            if (m == 0) and (not RESTATES):
                tl.store(NOW, k + 1)
                tl.store(NOW + 1, now)
                tl.store(NOW + 2, tl.load(THEN + 2))
                tl.store(NOW + 3, following)
                tl.store(NOW + 4, tl.load(THEN + 4))
        else:
            if RENEWS:
                row, component = (m - COUNT) * B + tl.arange(0, B), tl.arange(0, M)
                index = tl.load(OTHER + k * b + row, mask=row < b, other=0).to(tl.int64)
                is_new = tl.load(FIRST + k * b + row, mask=row < b, other=0)
                is_held = (is_new != 0)[:, None] & (component < COUNT)[None, :]
                rows = tl.load(STAGE + row[:, None] * M + component[None, :], mask=is_held, other=0.0)
                tl.store(MEMORY_ROWS + index[:, None] * COUNT + component[None, :], rows, mask=is_held)
