"""Gaussian mixtures: stretches of iterations on batches, for any method.

One loop implements all declarations :class:`swiftem.methods.Update`, and is compiled once: rows and memory
are passed as two arrays each, float64 and float32, of which one is empty.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swiftem.kernels.compile import helper, kernel
from swiftem.kernels.memory import matrix, vector
from swiftem.kernels.softmax import add, copy, fill, weigh
from swiftem.mixture.compute.blocks_kernel import add_statistics, add_up, e_step, far_component, spread
from swiftem.mixture.compute.covariance_kernel import m_step
from swiftem.mixture.compute.missing_kernel import complete_rows
from swiftem.mixture.covariance import TIED

__all__ = ["ANCHOR", "MEMORY", "NOTHING", "Draws", "Rule", "Statistics", "Tools", "batches"]

NOTHING, ANCHOR, MEMORY = 0, 1, 2
"""The reference that is subtracted from the statistics of a batch."""


class Draws(NamedTuple):
    """The samples of a stretch.

    Attributes
    ----------
    y : Twin, shape (n, d)
        Samples. If data are on disk, these, weights and memory are only of the samples of the stretch.
    weight : ndarray, shape (n,), or (0,) for ones
        Their weights.
    memory : Twin, shape (n, R) or (0, M)
        Their posterior rows when last renewed, changed in place.
    index, other : ndarray of int, shape (iterations, b)
        The samples I of each iteration, and J, whose memory is renewed.
    """

    y: Any
    weight: Any
    memory: Any
    index: Any
    other: Any


class Rule(NamedTuple):
    """The declared update, as numbers.

    Attributes
    ----------
    reference : int
        NOTHING, ANCHOR or MEMORY.
    correction : float
        λ.
    reads : bool
        Whether S is computed from the samples I; otherwise it is the renewed centre.
    renews : bool
        Whether the memory of the samples J is renewed.
    follows : bool
        Whether centre and anchor follow S and θ.
    is_divided : bool
        Whether I are drawn in proportion to their weights, which means over I then leave out.
    scale, share : float
        n / W, or 1 if ``is_divided``, and 1 / W, W the sum of weights.
    """

    reference: Any
    correction: Any
    reads: Any
    renews: Any
    follows: Any
    is_divided: Any
    scale: Any
    share: Any


class Statistics(NamedTuple):
    """Flat statistics (q,), changed in place: ŝ, the centre, and, if the anchor follows, the ŝ it is θ̄ of."""

    s: Any
    centre: Any
    before: Any


class Tools(NamedTuple):
    """Common arguments of all loops.

    Attributes
    ----------
    kind : int
        Code of the kind of covariance.
    offset, reach : ndarray, shape (d,)
        The centre of the data, and the distance of samples from it (infinite if unknown).
    hyper, scratch, work
        For M-steps and E-steps.
    spare : ndarray, size b·M of a block
        Responsibilities at an anchor.
    change, candidate : ndarray, shape (q,)
        Statistics of a batch, and of the candidate step.
    """

    kind: Any
    offset: Any
    reach: Any
    hyper: Any
    scratch: Any
    work: Any
    spare: Any
    change: Any
    candidate: Any


@helper
def _take(y: Any, index: Any, offset: Any, samples: Any) -> None:
    """Write samples ``index`` (b,) of ``y`` (n, d), minus the offset, as columns into ``samples`` (d, b).

    If these are (3d, b), cells may be missing: they get o·z, o·z² and o, with o = 1 for observed cells.
    """
    d, b = y.shape[1], len(index)
    for t in range(b):
        i = np.uintp(index[t])
        for c in range(d):
            samples[c, t] = y[i, c] - offset[c]
    if len(samples) > d:
        for c in range(d):
            for t in range(b):
                is_seen = not math.isnan(samples[c, t])
                value = samples[c, t] if is_seen else 0.0
                samples[c, t] = value
                samples[d + c, t] = value * value
                samples[2 * d + c, t] = 1.0 if is_seen else 0.0


@helper
def _far(theta: Any, reach: Any, extent: Any) -> Any:
    """Return a component for which expanded squares of some samples lose digits, or −1."""
    copy(reach, extent)
    return far_component(theta, extent, -1)


@helper
def _add_sums(kind: Any, samples: Any, rows: Any, near: Any, work: Any, change: Any) -> None:
    """Add the statistics of ``rows`` (b, M), weighted, to ``change`` (q,)."""
    if kind == TIED:
        add_up(rows, work.totals)
    add_statistics(kind, samples, rows, near, kind == TIED, work)
    (p, n_components), d = work.sums2.shape, len(work.extent)
    end = n_components * (1 + d)
    per_component = p - d
    for m in range(n_components):
        change[m] += work.sums1[m]
        for c in range(d):
            change[n_components + m * d + c] += work.sums2[c, m]
        for c in range(per_component):
            change[end + m * per_component + c] += work.sums2[d + c, m]
    if kind == TIED:
        for i in range(d):
            for j in range(i + 1):
                change[end] += work.sums3[i, j]
                end += 1


@helper
def _swap(rows: Any, index: Any, memory: Any) -> None:
    """Write ``rows`` (b, M) into the memory (n, M) and replace them by the change of the stored values."""
    for t in range(len(rows)):
        i = np.uintp(index[t])
        for m in range(rows.shape[1]):
            old = np.float64(memory[i, m])
            memory[i, m] = rows[t, m]
            rows[t, m] = np.float64(memory[i, m]) - old


@helper
def _take_off(rows: Any, index: Any, memory: Any, correction: Any) -> None:
    """Subtract ``correction`` times rows ``index`` (b,) of the memory (n, M) from ``rows`` (b, M)."""
    for t in range(len(rows)):
        i = np.uintp(index[t])
        for m in range(rows.shape[1]):
            rows[t, m] -= correction * memory[i, m]


@helper
def _rows(samples: Any, theta: Any, far: Any, tools: Any, on: Any, rows: Any) -> Any:
    """Write posterior rows (b, R) of ``samples`` (d, b); return whether they are near."""
    near = far < 0
    if on is not None:
        complete_rows(samples, theta, on, rows)
    else:
        if not near:
            spread(samples, tools.work.extent)
            near = far_component(theta, tools.work.extent, far) < 0
        e_step(tools.kind, samples, theta, near, tools.work, rows)
    return near


@helper
def _statistics(
    draws: Any, index: Any, rule: Any, renew: Any, theta: Any, anchor: Any, tools: Any, on: Any
) -> None:
    """Write the statistics of samples ``index`` (b,), times their factor, into ``tools.change``.

    They are at θ, minus λ times the reference; if ``renew``, they are the change of the memory, which is
    written to.
    """
    kind, work, memory = tools.kind, tools.work, draws.memory
    p, width = len(work.extent), len(theta.constant)
    if on is not None:
        width = len(tools.change)
    reference = NOTHING if renew else rule.reference
    parts = -(-len(index) // len(work.largest))
    block = -(-len(index) // parts)  # blocks of equal size: a small one at the end would be inefficient
    far, far_there = -1, -1
    if on is None:
        far = _far(theta, tools.reach, work.extent)
        far_there = _far(anchor, tools.reach, work.extent) if reference == ANCHOR else -1
    fill(tools.change, 0.0)
    for first in range(0, len(index), block):
        here = index[first : first + block]
        b = len(here)
        samples, rows = matrix(work.samples, p, b), matrix(work.rows, b, width)
        if len(draws.y.double):
            _take(draws.y.double, here, tools.offset, samples)
        else:
            _take(draws.y.single, here, tools.offset, samples)
        spare = matrix(tools.spare, b, width)
        if reference == ANCHOR:
            _rows(samples, anchor, far_there, tools, on, spare)
        near = _rows(samples, theta, far, tools, on, rows)
        if reference == ANCHOR:
            for t in range(b):
                for m in range(width):
                    rows[t, m] -= rule.correction * spare[t, m]
        if renew and len(memory.double):
            _swap(rows, here, memory.double)
        elif renew:
            _swap(rows, here, memory.single)
        elif reference == MEMORY and len(memory.double):
            _take_off(rows, here, memory.double, rule.correction)
        elif reference == MEMORY:
            _take_off(rows, here, memory.single, rule.correction)
        own_weight = draws.weight[:0] if rule.is_divided and not renew else draws.weight
        weigh(rows, own_weight, here, rule.share if renew else rule.scale / len(index))
        if on is None:
            _add_sums(kind, samples, rows, near, work, tools.change)
        else:
            for t in range(b):
                add(rows[t], tools.change)


@helper
def _copy(theta: Any, into: Any) -> None:
    """Copy all arrays of one set of coefficients into another."""
    copy(vector(theta.phi), vector(into.phi))
    copy(theta.constant, into.constant)
    copy(vector(theta.means), vector(into.means))
    copy(theta.plain, into.plain)
    copy(vector(theta.whiten), vector(into.whiten))
    copy(vector(theta.scales), vector(into.scales))


@kernel
def batches(
    draws: Any,
    rule: Any,
    steps: Any,
    statistics: Any,
    theta: Any,
    anchor: Any,
    restate: Any,
    restate_anchor: Any,
    tools: Any,
    on: Any,
) -> Any:
    """Do iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    draws : Draws
    rule : Rule
    steps : ndarray, shape (iterations,)
        γ.
    statistics : Statistics
    theta, anchor : Coefficients
        Changed in place.
    restate, restate_anchor : bool
        Whether θ is θ̄(s), or the anchor θ̄(before), and must be written as by the M-steps here.
    tools : Tools
    on : Completion or None
        For full and tied covariances of rows with missing cells: posterior rows are then their statistics.

    Returns
    -------
    rejected, moved : int
        Number of rejected steps, and of accepted ones before the last iteration.
    """
    s, centre, candidate = statistics.s, statistics.centre, tools.candidate
    rejected, moved = 0, 0
    if restate:
        m_step(tools.kind, s, tools.hyper, tools.scratch, theta)
    if restate_anchor:
        m_step(tools.kind, statistics.before, tools.hyper, tools.scratch, anchor)
    for k in range(len(steps)):
        moved = k - rejected
        for renew in (False, True):  # one call for both: it takes long to compile
            if not (rule.renews if renew else rule.reads):
                continue
            index = draws.other[k] if renew else draws.index[k]
            _statistics(draws, index, rule, renew, theta, anchor, tools, on)
            if renew:
                add(tools.change, centre)
            else:
                for q in range(len(s)):
                    candidate[q] = rule.correction * centre[q] + tools.change[q]
        if not rule.reads:
            copy(centre, candidate)
        if rule.follows:
            copy(candidate, centre)
            copy(s, statistics.before)
            _copy(theta, anchor)
        if steps[k] < 1.0:
            for q in range(len(s)):
                candidate[q] = s[q] + steps[k] * (candidate[q] - s[q])  # (sestep)
        if m_step(tools.kind, candidate, tools.hyper, tools.scratch, theta):  # (mstep)
            copy(candidate, s)
        else:
            rejected += 1
    return rejected, moved
