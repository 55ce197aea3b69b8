"""A kernel in Gluon for full covariances on GPUs of compute capability 9.0: ``white_logits``, faster.

A program keeps rows in registers, as operands of the tensor cores. One warp copies the matrices of components
by the copy engine, several ahead; two groups of four warps take turns as in ``hopper_kernels.py``.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from swiftem.engine.gpu.fast.hopper_kernels import barriers, copy

__all__ = ["white_logits"]


@gluon.jit
def copy_matrices(
    W_HI, W_LO, w, full, empty, begin, end,
    H: gl.constexpr, PRODUCTS: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """Copy the three blocks of the components' matrices that are not zero: hi, and for three products lo."""
    KINDS: gl.constexpr = 1 if PRODUCTS == 1 else 2
    i = 0
    for m in range(begin, end):
        stage = i % STAGES
        at, into = m * (2 * H), stage * (3 * KINDS)
        mbarrier.wait(empty.index(stage), ((i // STAGES) & 1) ^ 1)
        mbarrier.expect(full.index(stage), 3 * KINDS * W_HI.block_type.nbytes)
        copy(W_HI, [at, 0], full.index(stage), w.index(into))
        copy(W_HI, [at + H, 0], full.index(stage), w.index(into + 1))
        copy(W_HI, [at + H, H], full.index(stage), w.index(into + 2))
        if PRODUCTS == 3:
            copy(W_LO, [at, 0], full.index(stage), w.index(into + 3))
            copy(W_LO, [at + H, 0], full.index(stage), w.index(into + 4))
            copy(W_LO, [at + H, H], full.index(stage), w.index(into + 5))
        i += 1


@gluon.jit
def white(
    x_hi, x_lo, w, full, empty, turn, SHIFTS, SCALES, PLAIN, LOGITS, MAXIMA, start, n, width, begin, end,
    H: gl.constexpr, R: gl.constexpr, PRODUCTS: gl.constexpr, STAGES: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    """Do R rows."""
    KINDS: gl.constexpr = 1 if PRODUCTS == 1 else 2
    OF: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, H, 16])
    X: gl.constexpr = gl.DotOperandLayout(0, OF, 2)
    own = x_hi.slice(GROUP * R, R)
    one_hi, two_hi = own.slice(0, H, dim=1).load(X), own.slice(H, H, dim=1).load(X)
    one_lo, two_lo = one_hi, two_hi
    if PRODUCTS == 3:
        own = x_lo.slice(GROUP * R, R)
        one_lo, two_lo = own.slice(0, H, dim=1).load(X), own.slice(H, H, dim=1).load(X)
    row = start + GROUP * R + gl.arange(0, R, gl.SliceLayout(1, OF))
    column = gl.arange(0, H, gl.SliceLayout(0, OF))
    largest = gl.full([R], -3e38, gl.float32, gl.SliceLayout(1, OF))
    i = 0
    for m in range(begin, end):
        stage = i % STAGES
        shift = gl.load(SHIFTS + m * (2 * H) + column)
        other = gl.load(SHIFTS + m * (2 * H) + H + column)
        plain, scale = gl.load(PLAIN + m), gl.load(SCALES + m)
        none = gl.zeros([R, H], gl.float32, OF)
        at = stage * (3 * KINDS)
        mbarrier.wait(full.index(stage), (i // STAGES) & 1)
        mbarrier.wait(turn.index(GROUP), (i & 1) ^ (1 - GROUP))
        top, left = w.index(at).permute((1, 0)), w.index(at + 1).permute((1, 0))
        right = w.index(at + 2).permute((1, 0))
        if PRODUCTS == 3:
            top_lo, left_lo = w.index(at + 3).permute((1, 0)), w.index(at + 4).permute((1, 0))
            right_lo = w.index(at + 5).permute((1, 0))
            above = warpgroup_mma(one_lo, top, none, use_acc=False, is_async=True)
            above = warpgroup_mma(one_hi, top_lo, above, is_async=True)
            above = warpgroup_mma(one_hi, top, above, is_async=True)
            below = warpgroup_mma(one_lo, left, none, use_acc=False, is_async=True)
            below = warpgroup_mma(two_lo, right, below, is_async=True)
            below = warpgroup_mma(one_hi, left_lo, below, is_async=True)
            below = warpgroup_mma(two_hi, right_lo, below, is_async=True)
            below = warpgroup_mma(one_hi, left, below, is_async=True)
        else:
            above = warpgroup_mma(one_hi, top, none, use_acc=False, is_async=True)
            below = warpgroup_mma(one_hi, left, none, use_acc=False, is_async=True)
        below = warpgroup_mma(two_hi, right, below, is_async=True)
        mbarrier.arrive(turn.index(1 - GROUP), count=1)
        above, below = warpgroup_mma_wait(0, deps=(above, below))
        mbarrier.arrive(empty.index(stage), count=1)
        above -= shift[None, :]
        below -= other[None, :]
        logits = plain - scale * gl.sum(above * above + below * below, 1)
        largest = gl.maximum(largest, logits)
        gl.store(LOGITS + m * width + row, logits, mask=row < n)
        i += 1
    gl.store(MAXIMA + gl.program_id(1) * width + row, largest, mask=row < n)


@gluon.jit
def white_logits(
    X_HI, X_LO, W_HI, W_LO, SHIFTS, SCALES, PLAIN, LOGITS, MAXIMA, first, n, width, M, per,
    H: gl.constexpr, B: gl.constexpr, PRODUCTS: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """Write logits (M, width) of rows from ``first`` on, and the largest of ``per`` components each.

    X (n, 2·H) and W (M·2·H, 2·H), lower triangular, are tensor descriptors of blocks (B, 2·H) and (H, H).
    """
    R: gl.constexpr = B // 2
    KINDS: gl.constexpr = 1 if PRODUCTS == 1 else 2
    start = gl.program_id(0) * B
    begin = gl.program_id(1) * per
    end = gl.minimum(begin + per, M)
    x_hi = gl.allocate_shared_memory(gl.float16, [B, 2 * H], X_HI.layout)
    x_lo = x_hi
    w = gl.allocate_shared_memory(gl.float16, [3 * KINDS * STAGES, H, H], W_HI.layout)
    full, empty, turn, done = barriers(STAGES, 1), barriers(STAGES, 2), barriers(2, 1), barriers(1, 1)
    mbarrier.expect(done.index(0), KINDS * X_HI.block_type.nbytes)
    copy(X_HI, [first + start, 0], done.index(0), x_hi)
    if PRODUCTS == 3:
        x_lo = gl.allocate_shared_memory(gl.float16, [B, 2 * H], X_LO.layout)
        copy(X_LO, [first + start, 0], done.index(0), x_lo)
    mbarrier.wait(done.index(0), 0)
    gl.warp_specialize(
        [
            (white, (
                x_hi, x_lo, w, full, empty, turn, SHIFTS, SCALES, PLAIN, LOGITS, MAXIMA, start, n, width,
                begin, end, H, R, PRODUCTS, STAGES, 0,
            )),
            (white, (
                x_hi, x_lo, w, full, empty, turn, SHIFTS, SCALES, PLAIN, LOGITS, MAXIMA, start, n, width,
                begin, end, H, R, PRODUCTS, STAGES, 1,
            )),
            (copy_matrices, (W_HI, W_LO, w, full, empty, begin, end, H, PRODUCTS, STAGES)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
