"""Kernels in Gluon for two passes on GPUs of compute capability 9.0: the sums of ``kernels.py``, faster.

A program keeps 128 components in shared memory. One warp copies tiles of 128 rows there by the copy engine, a
tile ahead; two groups of four warps compute, and take turns: while one uses the tensor cores, the other
computes exponentials. Products are split and added up as in ``kernels.py``, in the same order.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

__all__ = ["accumulate", "exp2", "halves", "normalisers"]

copy = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
"""Its name in Triton 3.9, and in Triton 3.6."""
TILE = gl.constexpr(128)
"""Rows of a tile, and components of a program."""
HALF = gl.constexpr(64)
"""Rows or components of one group of warps."""


@gluon.jit
def exp2(x):
    """Return 2^x; one instruction, as the result need not be exact for subnormal numbers."""
    return gl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=gl.float32, is_pure=True, pack=1
    )


@gluon.jit
def halves(x):
    """Return x as hi + lo."""
    hi = x.to(gl.float16)
    return hi, (x - hi.to(gl.float32)).to(gl.float16)


@gluon.jit
def copy_rows(X_HI, X_LO, x_hi, x_lo, full, empty, begin, step, end, STAGES: gl.constexpr):
    """Copy every so many-th tile of rows; a tile is overwritten when both groups have left it."""
    i = 0
    for block in range(begin, end, step):
        stage = i % STAGES
        mbarrier.wait(empty.index(stage), ((i // STAGES) & 1) ^ 1)
        mbarrier.expect(full.index(stage), 2 * X_HI.block_type.nbytes)
        copy(X_HI, [block * TILE, 0], full.index(stage), x_hi.index(stage))
        copy(X_LO, [block * TILE, 0], full.index(stage), x_lo.index(stage))
        i += 1


@gluon.jit
def barriers(STAGES: gl.constexpr, COUNT: gl.constexpr):
    """Return barriers that COUNT arrivals complete."""
    made = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(made.index(stage), count=COUNT)
    return made


@gluon.jit
def components_of(PHI_HI, PHI_LO, m, D: gl.constexpr):
    """Return the coefficients of the components from m on, hi and lo, in shared memory."""
    phi_hi = gl.allocate_shared_memory(gl.float16, [TILE, D], PHI_HI.layout)
    phi_lo = gl.allocate_shared_memory(gl.float16, [TILE, D], PHI_LO.layout)
    done = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(done, count=1)
    mbarrier.expect(done, 2 * PHI_HI.block_type.nbytes)
    copy(PHI_HI, [m, 0], done, phi_hi)
    copy(PHI_LO, [m, 0], done, phi_lo)
    mbarrier.wait(done, 0)
    return phi_hi, phi_lo


@gluon.jit
def normalise(
    x_hi, x_lo, phi_hi, phi_lo, full, empty, turn, NORM, SCALES, CONSTANT, SQUARE, MAXIMA, TOTALS, m, n,
    begin, step, end, first, width,
    D: gl.constexpr, STAGES: gl.constexpr, SPHERICAL_ROWS: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    """Do one half of the rows of each tile."""
    OF: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, TILE, 16])
    component = m + gl.arange(0, TILE, gl.SliceLayout(0, OF))
    scale, constant = gl.load(SCALES + component), gl.load(CONSTANT + component)
    square = constant
    if SPHERICAL_ROWS:
        square = gl.load(SQUARE + component)
    within = GROUP * HALF + gl.arange(0, HALF, gl.SliceLayout(1, OF))
    part = gl.program_id(0) * width
    i = 0
    for block in range(begin, end, step):
        stage = i % STAGES
        row = block * TILE + within
        norm = gl.zeros([HALF], gl.float32, gl.SliceLayout(1, OF))
        if SPHERICAL_ROWS:
            norm = gl.load(NORM + row, mask=row < n, other=0.0)
        none = gl.zeros([HALF, TILE], gl.float32, OF)
        mbarrier.wait(full.index(stage), (i // STAGES) & 1)
        mbarrier.wait(turn.index(GROUP), (i & 1) ^ (1 - GROUP))
        hi, lo = x_hi.index(stage).slice(GROUP * HALF, HALF), x_lo.index(stage).slice(GROUP * HALF, HALF)
        found = warpgroup_mma(lo, phi_hi.permute((1, 0)), none, use_acc=False, is_async=True)
        found = warpgroup_mma(hi, phi_lo.permute((1, 0)), found, is_async=True)
        found = warpgroup_mma(hi, phi_hi.permute((1, 0)), found, is_async=True)
        mbarrier.arrive(turn.index(1 - GROUP), count=1)
        found = warpgroup_mma_wait(0, deps=(found,))
        mbarrier.arrive(empty.index(stage), count=1)
        logits = gl.fma(found, scale[None, :], constant[None, :])
        if SPHERICAL_ROWS:
            logits = gl.fma(norm[:, None], square[None, :], logits)
        largest = gl.max(logits, 1)
        total = gl.sum(exp2(logits - largest[:, None]), 1)
        gl.store(MAXIMA + part + (row - first), largest)
        gl.store(TOTALS + part + (row - first), total)
        i += 1


@gluon.jit
def normalisers(
    X_HI, X_LO, PHI_HI, PHI_LO, NORM, SCALES, CONSTANT, SQUARE, MAXIMA, TOTALS, n, begin, end, width,
    D: gl.constexpr, STAGES: gl.constexpr, SPHERICAL_ROWS: gl.constexpr,
):  # fmt: skip
    """First of two passes over the tiles from ``begin`` to ``end``: the sums of 128 components each.

    It writes MAXIMA (M / 128, width), the largest logits, and TOTALS, the sums of 2^(logit − largest).
    """
    m = gl.program_id(0) * TILE
    first = begin * TILE
    begin += gl.program_id(1)
    step = gl.num_programs(1)
    phi_hi, phi_lo = components_of(PHI_HI, PHI_LO, m, D)
    x_hi = gl.allocate_shared_memory(gl.float16, [STAGES, TILE, D], X_HI.layout)
    x_lo = gl.allocate_shared_memory(gl.float16, [STAGES, TILE, D], X_LO.layout)
    full, empty, turn = barriers(STAGES, 1), barriers(STAGES, 2), barriers(2, 1)
    gl.warp_specialize(
        [
            (normalise, (
                x_hi, x_lo, phi_hi, phi_lo, full, empty, turn, NORM, SCALES, CONSTANT, SQUARE, MAXIMA, TOTALS,
                m, n, begin, step, end, first, width, D, STAGES, SPHERICAL_ROWS, 0,
            )),
            (normalise, (
                x_hi, x_lo, phi_hi, phi_lo, full, empty, turn, NORM, SCALES, CONSTANT, SQUARE, MAXIMA, TOTALS,
                m, n, begin, step, end, first, width, D, STAGES, SPHERICAL_ROWS, 1,
            )),
            (copy_rows, (X_HI, X_LO, x_hi, x_lo, full, empty, begin, step, end, STAGES)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip


@gluon.jit
def add(
    x_hi, x_lo, phi_hi, phi_lo, full, empty, turn, NORM, W, SCALES, CONSTANT, SQUARE, LARGEST, LOG, COUNTS,
    SUMS, SQUARES, m, n, split, step, blocks, M,
    D: gl.constexpr, STAGES: gl.constexpr, SPHERICAL_ROWS: gl.constexpr, WEIGHTED: gl.constexpr,
    GROUP: gl.constexpr,
):  # fmt: skip
    """Do one half of the components, over every so many-th tile."""
    OF: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, TILE, 16])
    OF_SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    ROWS: gl.constexpr = gl.DotOperandLayout(0, OF_SUMS, 2)
    component = m + GROUP * HALF + gl.arange(0, HALF, gl.SliceLayout(1, OF))
    scale, constant = gl.load(SCALES + component), gl.load(CONSTANT + component)
    square = constant
    if SPHERICAL_ROWS:
        square = gl.load(SQUARE + component)
    hi, lo = phi_hi.slice(GROUP * HALF, HALF), phi_lo.slice(GROUP * HALF, HALF)
    sums = gl.zeros([HALF, D], gl.float32, OF_SUMS)
    counts = gl.zeros([HALF], gl.float32, gl.SliceLayout(1, OF))
    squares = gl.zeros([HALF], gl.float32, gl.SliceLayout(1, OF))
    within = gl.arange(0, TILE, gl.BlockedLayout([1], [32], [4], [0]))
    i = 0
    for block in range(split, blocks, step):
        stage = i % STAGES
        row = block * TILE + within
        largest = gl.load(LARGEST + row, mask=row < n, other=1e30)
        log = gl.load(LOG + row, mask=row < n, other=0.0) - 14.0
        none = gl.zeros([HALF, TILE], gl.float32, OF)
        mbarrier.wait(full.index(stage), (i // STAGES) & 1)
        x_hi_t, x_lo_t = x_hi.index(stage).permute((1, 0)), x_lo.index(stage).permute((1, 0))
        mbarrier.wait(turn.index(GROUP), 1 - GROUP)
        found = warpgroup_mma(hi, x_lo_t, none, use_acc=False, is_async=True)
        found = warpgroup_mma(lo, x_hi_t, found, is_async=True)
        found = warpgroup_mma(hi, x_hi_t, found, is_async=True)
        mbarrier.arrive(turn.index(1 - GROUP), count=1)
        found = warpgroup_mma_wait(0, deps=(found,))
        logits = gl.fma(found, scale[:, None], constant[:, None])
        if SPHERICAL_ROWS:
            norm = gl.load(NORM + row, mask=row < n, other=0.0)
            norm = gl.convert_layout(norm, gl.SliceLayout(0, OF))
            logits = gl.fma(norm[None, :], square[:, None], logits)
        logits -= gl.convert_layout(largest, gl.SliceLayout(0, OF))[None, :]
        rows = exp2(logits - gl.convert_layout(log, gl.SliceLayout(0, OF))[None, :])
        if WEIGHTED:
            weight = gl.load(W + row, mask=row < n, other=0.0)
            rows *= gl.convert_layout(weight, gl.SliceLayout(0, OF))[None, :]
        counts += gl.sum(rows, 1)
        if SPHERICAL_ROWS:
            squares += gl.sum(rows * norm[None, :], 1)
        rows_hi, rows_lo = halves(rows)
        rows_hi, rows_lo = gl.convert_layout(rows_hi, ROWS), gl.convert_layout(rows_lo, ROWS)
        mbarrier.wait(turn.index(GROUP), GROUP)
        none = gl.zeros([HALF, D], gl.float32, OF_SUMS)
        found = warpgroup_mma(rows_lo, x_hi.index(stage), none, use_acc=False, is_async=True)
        found = warpgroup_mma(rows_hi, x_lo.index(stage), found, is_async=True)
        found = warpgroup_mma(rows_hi, x_hi.index(stage), found, is_async=True)
        mbarrier.arrive(turn.index(1 - GROUP), count=1)
        found = warpgroup_mma_wait(0, deps=(found,))
        mbarrier.arrive(empty.index(stage), count=1)
        sums += found
        i += 1
    gl.store(COUNTS + split * M + component, counts)
    if SPHERICAL_ROWS:
        gl.store(SQUARES + split * M + component, squares)
    component = m + GROUP * HALF + gl.arange(0, HALF, gl.SliceLayout(1, OF_SUMS))
    column = gl.arange(0, D, gl.SliceLayout(0, OF_SUMS))
    gl.store(SUMS + (split * M + component)[:, None] * D + column[None, :], sums)


@gluon.jit
def accumulate(
    X_HI, X_LO, PHI_HI, PHI_LO, NORM, W, SCALES, CONSTANT, SQUARE, LARGEST, LOG, COUNTS, SUMS, SQUARES,
    n, blocks, M,
    D: gl.constexpr, STAGES: gl.constexpr, SPHERICAL_ROWS: gl.constexpr, WEIGHTED: gl.constexpr,
):  # fmt: skip
    """Second of two passes: the sums of 128 components over every so many-th tile of rows."""
    m, split, step = gl.program_id(0) * TILE, gl.program_id(1), gl.num_programs(1)
    phi_hi, phi_lo = components_of(PHI_HI, PHI_LO, m, D)
    x_hi = gl.allocate_shared_memory(gl.float16, [STAGES, TILE, D], X_HI.layout)
    x_lo = gl.allocate_shared_memory(gl.float16, [STAGES, TILE, D], X_LO.layout)
    full, empty, turn = barriers(STAGES, 1), barriers(STAGES, 2), barriers(2, 1)
    gl.warp_specialize(
        [
            (add, (
                x_hi, x_lo, phi_hi, phi_lo, full, empty, turn, NORM, W, SCALES, CONSTANT, SQUARE, LARGEST,
                LOG, COUNTS, SUMS, SQUARES, m, n, split, step, blocks, M, D, STAGES, SPHERICAL_ROWS, WEIGHTED,
                0,
            )),
            (add, (
                x_hi, x_lo, phi_hi, phi_lo, full, empty, turn, NORM, W, SCALES, CONSTANT, SQUARE, LARGEST,
                LOG, COUNTS, SUMS, SQUARES, m, n, split, step, blocks, M, D, STAGES, SPHERICAL_ROWS, WEIGHTED,
                1,
            )),
            (copy_rows, (X_HI, X_LO, x_hi, x_lo, full, empty, split, step, blocks, STAGES)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
