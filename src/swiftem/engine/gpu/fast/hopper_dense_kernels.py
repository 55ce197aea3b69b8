"""A kernel in Gluon for few components on GPUs of compute capability 9.0: the sums of ``dense_pass``, faster.

Features are stored as hi and lo. One warp copies tiles of 64 rows by the copy engine, several ahead; groups
of four warps take tiles in turn.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from swiftem.engine.gpu.fast.hopper_kernels import barriers, copy, exp2, halves

__all__ = ["dense_pass"]

SCALE = gl.constexpr(16384.0)
ROWS = gl.constexpr(64)
"""Rows of a tile."""


@gluon.jit
def reciprocal(x):
    """Return 1 / x to 1e-7; one instruction."""
    return gl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=gl.float32, is_pure=True, pack=1
    )


@gluon.jit
def copy_features(Z, z, full, empty, begin, step, end, STAGES: gl.constexpr):
    """Copy every so many-th tile."""
    i = 0
    for block in range(begin, end, step):
        stage = i % STAGES
        mbarrier.wait(empty.index(stage), ((i // STAGES) & 1) ^ 1)
        mbarrier.expect(full.index(stage), Z.block_type.nbytes)
        copy(Z, [block * ROWS, 0], full.index(stage), z.index(stage))
        i += 1


@gluon.jit
def add(
    z, phi_hi, phi_lo, rows_hi, rows_lo, full, empty, W, CONSTANT, COUNTS, SUMS, LOG, n, program, step,
    blocks,
    P: gl.constexpr, M: gl.constexpr, STAGES: gl.constexpr, GROUPS: gl.constexpr, WEIGHTED: gl.constexpr,
    GROUP: gl.constexpr,
):  # fmt: skip
    """Do every so many-th tile of a program."""
    OF: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, M, 16])
    OF_SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 2 * P, 16])
    FEATURES: gl.constexpr = gl.DotOperandLayout(0, OF, 2)
    component = gl.arange(0, M, gl.SliceLayout(0, OF))
    within = gl.arange(0, ROWS, gl.SliceLayout(1, OF))
    constant = gl.load(CONSTANT + component)
    own_hi, own_lo = rows_hi.index(GROUP), rows_lo.index(GROUP)
    sums = gl.zeros([M, 2 * P], gl.float32, OF_SUMS)
    counts = gl.zeros([ROWS, M], gl.float32, OF)
    log = gl.zeros([ROWS], gl.float32, gl.SliceLayout(1, OF))
    i = GROUP
    for block in range(program + GROUP * step, blocks, step * GROUPS):
        stage = i % STAGES
        row = block * ROWS + within
        mbarrier.wait(full.index(stage), (i // STAGES) & 1)
        both = z.index(stage)
        none = gl.zeros([ROWS, M], gl.float32, OF)
        of_hi, of_both = both.slice(0, P, dim=1).load(FEATURES), both.load(FEATURES)
        found = warpgroup_mma(of_hi, phi_lo.permute((1, 0)), none, use_acc=False, is_async=True)
        found = warpgroup_mma(of_both, phi_hi.permute((1, 0)), found, is_async=True)
        found = warpgroup_mma_wait(0, deps=(found,))
        logits = found + constant[None, :]
        largest = gl.max(logits, 1)
        powers = exp2(logits - largest[:, None])
        total = gl.sum(powers, 1)
        factor = gl.where(row < n, SCALE * reciprocal(total), 0.0)
        of_rows = gl.where(row < n, largest + gl.log2(total), 0.0)
        if WEIGHTED:
            weight = gl.load(W + row, mask=row < n, other=0.0)
            factor *= weight
            of_rows *= weight
        log += of_rows
        rows = powers * factor[:, None]
        counts += rows
        hi, lo = halves(rows)
        own_hi.store(hi)
        own_lo.store(lo)
        fence_async_shared()
        none = gl.zeros([M, 2 * P], gl.float32, OF_SUMS)
        found = warpgroup_mma(own_lo.permute((1, 0)), both, none, use_acc=False, is_async=True)
        found = warpgroup_mma(own_hi.permute((1, 0)), both, found, is_async=True)
        found = warpgroup_mma_wait(0, deps=(found,))
        mbarrier.arrive(empty.index(stage), count=1)
        sums += found
        i += GROUPS
    place = program * GROUPS + GROUP
    gl.store(COUNTS + place * M + component, gl.sum(counts, 0))
    gl.store(LOG + place * ROWS + within, log)
    component = gl.arange(0, M, gl.SliceLayout(1, OF_SUMS))
    feature = gl.arange(0, 2 * P, gl.SliceLayout(0, OF_SUMS))
    gl.store(SUMS + (place * M + component)[:, None] * (2 * P) + feature[None, :], sums)


@gluon.jit
def dense_pass(
    Z, W, PHI_HI, PHI_LO, CONSTANT, COUNTS, SUMS, LOG, n, blocks,
    P: gl.constexpr, M: gl.constexpr, STAGES: gl.constexpr, GROUPS: gl.constexpr, WEIGHTED: gl.constexpr,
):  # fmt: skip
    """One pass with few components and features; a program does every so many-th tile of 64 rows.

    Z (n, 2·P): features, hi, then lo; PHI_HI (M, 2·P): hi twice; PHI_LO (M, P); all are tensor descriptors.
    Sums of each group: COUNTS (M,), SUMS (M, 2·P), of hi and lo, and LOG (64,), of log2 g.
    """
    program, step = gl.program_id(0), gl.num_programs(0)
    phi_hi = gl.allocate_shared_memory(gl.float16, [M, 2 * P], PHI_HI.layout)
    phi_lo = gl.allocate_shared_memory(gl.float16, [M, P], PHI_LO.layout)
    z = gl.allocate_shared_memory(gl.float16, [STAGES, ROWS, 2 * P], Z.layout)
    OF_ROWS: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, M], gl.float16)
    rows_hi = gl.allocate_shared_memory(gl.float16, [GROUPS, ROWS, M], OF_ROWS)
    rows_lo = gl.allocate_shared_memory(gl.float16, [GROUPS, ROWS, M], OF_ROWS)
    full, empty, done = barriers(STAGES, 1), barriers(STAGES, 1), barriers(1, 1)
    mbarrier.expect(done.index(0), PHI_HI.block_type.nbytes + PHI_LO.block_type.nbytes)
    copy(PHI_HI, [0, 0], done.index(0), phi_hi)
    copy(PHI_LO, [0, 0], done.index(0), phi_lo)
    mbarrier.wait(done.index(0), 0)
    if GROUPS == 3:
        gl.warp_specialize(
            [
                (add, (
                    z, phi_hi, phi_lo, rows_hi, rows_lo, full, empty, W, CONSTANT, COUNTS, SUMS, LOG, n,
                    program, step, blocks, P, M, STAGES, GROUPS, WEIGHTED, 0,
                )),
                (add, (
                    z, phi_hi, phi_lo, rows_hi, rows_lo, full, empty, W, CONSTANT, COUNTS, SUMS, LOG, n,
                    program, step, blocks, P, M, STAGES, GROUPS, WEIGHTED, 1,
                )),
                (add, (
                    z, phi_hi, phi_lo, rows_hi, rows_lo, full, empty, W, CONSTANT, COUNTS, SUMS, LOG, n,
                    program, step, blocks, P, M, STAGES, GROUPS, WEIGHTED, 2,
                )),
                (copy_features, (Z, z, full, empty, program, step, blocks, STAGES)),
            ],
            [4, 4, 1],
            [160, 160, 24],
        )  # fmt: skip
    else:
        gl.warp_specialize(
            [
                (add, (
                    z, phi_hi, phi_lo, rows_hi, rows_lo, full, empty, W, CONSTANT, COUNTS, SUMS, LOG, n,
                    program, step, blocks, P, M, STAGES, GROUPS, WEIGHTED, 0,
                )),
                (add, (
                    z, phi_hi, phi_lo, rows_hi, rows_lo, full, empty, W, CONSTANT, COUNTS, SUMS, LOG, n,
                    program, step, blocks, P, M, STAGES, GROUPS, WEIGHTED, 1,
                )),
                (copy_features, (Z, z, full, empty, program, step, blocks, STAGES)),
            ],
            [4, 1],
            [240, 24],
        )  # fmt: skip
