"""Kernels in Triton for sem and sem-vr by documents: E-steps in float32, running counts in float64.

An iteration is: the topics of the batch's words, the rounds of its documents, the sums of its words, a
decision about the step, and the step. Each writes its own rows: nothing is added atomically.
"""

import triton
import triton.language as tl

from swiftem.engine.gpu.topics.kernels import SMALLEST, TINY, rounds_of

__all__ = ["SCALE", "STATE", "add_to_words", "decide", "fold_batch", "sums_of_words", "topics_of_words"]

SCALE, FACTOR, SHRINK, MOVED, REJECTED, TOKENS, SHARE, STATE = map(tl.constexpr, range(8))
"""Numbers of the state, float64: scale of u; factor of a step's change; what u is multiplied by before it;
whether a step was accepted, and how many were not; tokens of the corpus; factor of the sums over a batch."""
LEAST_SINGLE = tl.constexpr(1e-25)
LEAST_SCALE = tl.constexpr(1e-80)


@triton.jit
def totals_of(of_counts, BETA_TOTAL, NUMBERS, topic, K: tl.constexpr):
    """Return the factor of β, and the topics' totals (P,) with it."""
    strength = tl.sum(of_counts) / tl.load(NUMBERS + TOKENS)
    return strength, of_counts + strength * tl.load(BETA_TOTAL + topic, mask=topic < K, other=0.0)


@triton.jit(do_not_specialize=["first"])
def topics_of_words(
    WORDS, U, CENTRE, BETA, GIVEN, TOTAL, CENTRE_TOTAL, BETA_TOTAL, NUMBERS, TABLE, first,
    K: tl.constexpr, S: tl.constexpr, P: tl.constexpr, CENTRED: tl.constexpr, BETAS: tl.constexpr,
    IS_GIVEN: tl.constexpr,
):  # fmt: skip
    """Write θ of a word of the batch into TABLE (V, S), from centre + scale·u and β.

    Until a step is accepted it is that in GIVEN (V, K), if IS_GIVEN.
    """
    word = tl.load(WORDS + first + tl.program_id(0))
    topic = tl.arange(0, P)
    is_topic = topic < K
    of_counts = tl.load(TOTAL + topic, mask=is_topic, other=0.0)
    of_counts += tl.load(CENTRE_TOTAL + topic, mask=is_topic, other=0.0)
    strength, totals = totals_of(of_counts, BETA_TOTAL, NUMBERS, topic, K)
    found = tl.load(NUMBERS + SCALE) * tl.load(U + word * K + topic, mask=is_topic, other=0.0)
    if CENTRED:
        found += tl.load(CENTRE + word * K + topic, mask=is_topic, other=0.0)
    row = word * K if BETAS else 0
    found = tl.maximum(found, 0.0) + strength * tl.load(BETA + row + topic, mask=is_topic, other=0.0)
    found = tl.where(totals > 0.0, found / tl.where(totals > 0.0, totals, 1.0), 0.0)
    if IS_GIVEN:
        given = tl.load(GIVEN + word * K + topic, mask=is_topic, other=0.0)
        found = tl.where(tl.load(NUMBERS + MOVED) > 0.0, found, given)
    found = tl.where(found < LEAST_SINGLE, 0.0, found).to(tl.float32)
    tl.store(TABLE + word * S + topic, found, mask=is_topic)


@triton.jit(do_not_specialize=["first"])
def fold_batch(
    ROW, BEGIN, WORD, COUNT, TABLE, ALPHA, PLACES, SHARES, ROUNDS, first, max_iter, tol,
    K: tl.constexpr, S: tl.constexpr, P: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Find the topics of a document of the batch, from those in PLACES (D, S) on, into SHARES (b, S).

    ``first`` is the number of the batch's first slot, of which ROW, BEGIN and ROUNDS have T·b.
    """
    program, topic = tl.program_id(0), tl.arange(0, P)
    slot = first + program
    row = tl.load(ROW + slot)
    alpha = tl.load(ALPHA + topic, mask=topic < S, other=0.0)
    a = tl.load(PLACES + row * S + topic, mask=topic < S, other=0.0)
    a = tl.where(a > TINY, a, 0.0)
    a, rounds = rounds_of(
        a, WORD, COUNT, TABLE, tl.load(BEGIN + slot), tl.load(BEGIN + slot + 1), alpha, topic, max_iter,
        tol, K, S, P, B, False,
    )  # fmt: skip
    tl.store(SHARES + program * S + topic, a, mask=topic < S)
    tl.store(ROUNDS + slot, rounds)


@triton.jit(do_not_specialize=["first"])
def sums_of_words(
    WORDS, FIRST, SLOT, HEAVY, TABLE, SHARES, NUMBERS, CHANGE, first,
    K: tl.constexpr, S: tl.constexpr, P: tl.constexpr, B: tl.constexpr, SUBTRACT: tl.constexpr,
):  # fmt: skip
    """Write the sums of a word of the batch to CHANGE (U, K), or subtract them from it."""
    program, topic = tl.program_id(0), tl.arange(0, P)
    word = tl.load(WORDS + first + program)
    begin, end = tl.load(FIRST + first + program), tl.load(FIRST + first + program + 1)
    own = tl.load(TABLE + word * S + topic, mask=topic < S, other=0.0)
    sums = tl.zeros((B, P), tl.float64)
    for start in range(begin, end, B):
        entry = start + tl.arange(0, B)
        is_entry = entry < end
        slot = tl.load(SLOT + entry, mask=is_entry, other=0)
        heavy = tl.load(HEAVY + entry, mask=is_entry, other=0.0)
        is_there = is_entry[:, None] & (topic < S)[None, :]
        other = tl.load(SHARES + slot[:, None] * S + topic[None, :], mask=is_there, other=0.0)
        p = tl.maximum(tl.sum(other * own[None, :], 1), SMALLEST)
        sums += ((heavy / p)[:, None] * other).to(tl.float64)
    found = tl.load(NUMBERS + SHARE) * own.to(tl.float64) * tl.sum(sums, 0)
    to = CHANGE + program.to(tl.int64) * K + topic
    if SUBTRACT:
        found = tl.load(to, mask=topic < K, other=0.0) - found
    tl.store(to, found, mask=topic < K)


@triton.jit(do_not_specialize=["t"])
def decide(CHANGE, STEPS, TOTAL, CENTRE_TOTAL, BETA_TOTAL, NUMBERS, t, K: tl.constexpr, P: tl.constexpr):
    """Decide about step t: its totals (K,) are TOTAL and CHANGE, and must stay in the domain.

    One program: TOTAL and NUMBERS are those of the next step after it.
    """
    topic = tl.arange(0, P)
    is_topic = topic < K
    gamma = tl.load(STEPS + t)
    total = tl.load(TOTAL + topic, mask=is_topic, other=0.0)
    after = (1.0 - gamma) * total + gamma * tl.load(CHANGE + topic, mask=is_topic, other=0.0)
    of_counts = after + tl.load(CENTRE_TOTAL + topic, mask=is_topic, other=0.0)
    strength, totals = totals_of(of_counts, BETA_TOTAL, NUMBERS, topic, K)
    is_in = (strength > 0.0) & (tl.min(totals) >= 0.0)
    before = tl.load(NUMBERS + SCALE)
    scale = before * (1.0 - gamma)
    is_small = scale < LEAST_SCALE
    new = tl.where(is_small, 1.0, scale)
    moved, rejected = tl.load(NUMBERS + MOVED), tl.load(NUMBERS + REJECTED)
    tl.store(TOTAL + topic, tl.where(is_in, after, total), mask=is_topic)
    tl.store(NUMBERS + SHRINK, tl.where(is_in & is_small, scale, 1.0))
    tl.store(NUMBERS + SCALE, tl.where(is_in, new, before))
    tl.store(NUMBERS + FACTOR, tl.where(is_in, gamma / new, 0.0))
    tl.store(NUMBERS + MOVED, tl.where(is_in, 1.0, moved))
    tl.store(NUMBERS + REJECTED, tl.where(is_in, rejected, rejected + 1.0))


@triton.jit(do_not_specialize=["first"])
def add_to_words(WORDS, CHANGE, NUMBERS, U, first, K: tl.constexpr, P: tl.constexpr):
    """Add factor·CHANGE (U, K) to the row of a word of the batch."""
    program, topic = tl.program_id(0), tl.arange(0, P)
    word, is_topic = tl.load(WORDS + first + program), topic < K
    change = tl.load(CHANGE + program.to(tl.int64) * K + topic, mask=is_topic, other=0.0)
    to = U + word * K + topic
    found = tl.load(to, mask=is_topic, other=0.0) + tl.load(NUMBERS + FACTOR) * change
    tl.store(to, found, mask=is_topic)
