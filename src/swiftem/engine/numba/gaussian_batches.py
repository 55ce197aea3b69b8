"""Gaussian mixtures with covariances: stretches of iterations on batches, for any method.

One loop implements all declarations :class:`swiftem.methods.Update`, and is compiled once: rows and memory
are passed as two arrays each, float64 and float32, of which one is empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np

from swiftem.engine.numba.coefficient import learn
from swiftem.engine.numba.compile import helper, lean
from swiftem.engine.numba.gaussian_blocks import (
    DIAG,
    SPHERICAL,
    TIED,
    Twin,
    add_statistics,
    add_up,
    e_step,
    far_component,
    spread,
)
from swiftem.engine.numba.gaussian_m_step import m_step
from swiftem.engine.numba.memory import matrix, vector
from swiftem.engine.numba.missing.completed_rows import complete_rows
from swiftem.engine.numba.pointer import types
from swiftem.engine.numba.softmax import add, copy, fill, weigh

__all__ = ["ANCHOR", "MEMORY", "NOTHING", "Tools", "loop_for"]

NOTHING, ANCHOR, MEMORY = 0, 1, 2
"""The reference that is subtracted from the statistics of a batch."""


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
def _responsibilities(kind: Any, samples: Any, theta: Any, far: Any, work: Any, rows: Any) -> Any:
    """Write the responsibilities of ``samples`` (d, b) into ``rows`` (b, M); return whether they are near."""
    near = far < 0
    if not near:
        spread(samples, work.extent)
        near = far_component(theta, work.extent, far) < 0
    e_step(kind, samples, theta, near, work, rows)
    return near


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
def _learn(
    kind: Any, p: Any, samples: Any, row: Any, old: Any, weight: Any, centre: Any, moments: Any
) -> None:
    """Learn λ from the first of ``samples`` (d, b): from its row and its memory, (M,), times ``weight``."""
    d, n_components = len(samples), len(row)
    square = 0.0
    for c in range(d):
        square += samples[c, 0] * samples[c, 0]
    covariance = variance = total = total_old = 0.0
    end = n_components * (1 + d)
    for m in range(n_components):
        new, kept = weight * row[m], weight * old[m]
        total += new
        total_old += kept
        i = j = 0
        for c in range(-1, p):  # as raise_powers
            power, place = 1.0, m
            if c >= d:
                power, place = square, end + m * (p - d) + c - d
                if kind == DIAG:
                    i = j = c - d
                if kind != SPHERICAL:
                    power = samples[i, 0] * samples[j, 0]
                j += 1
                if j > i:
                    i, j = i + 1, 0
            elif c >= 0:
                power, place = samples[c, 0], n_components + m * d + c
            deviation = kept * power - centre[place]
            covariance += (new * power - centre[place]) * deviation
            variance += deviation * deviation
    if kind == TIED:
        for i in range(d):
            for j in range(i + 1):
                power = samples[i, 0] * samples[j, 0]
                deviation = total_old * power - centre[end]
                covariance += (total * power - centre[end]) * deviation
                variance += deviation * deviation
                end += 1
    learn(moments, covariance, variance)


@helper
def _learn_row(row: Any, old: Any, weight: Any, centre: Any, moments: Any) -> None:
    """Learn λ from a sample whose rows are its statistics, (q,)."""
    covariance = variance = 0.0
    for place in range(len(row)):
        deviation = weight * old[place] - centre[place]
        covariance += (weight * row[place] - centre[place]) * deviation
        variance += deviation * deviation
    learn(moments, covariance, variance)


@helper
def _statistics(
    y: Any, sample_weight: Any, factor: Any, index: Any, theta: Any, reference: Any, correction: Any,
    moments: Any, centre: Any, anchor: Any, memory: Any, renew: Any, tools: Any, on: Any,
) -> None:  # fmt: skip
    """Write the statistics of samples ``index`` (b,), times ``factor``, into ``tools.change``.

    They are those at ``theta`` minus ``correction`` times those of the reference; if ``renew``, the change of
    the memory, which is written to.
    """
    kind, work = tools.kind, tools.work
    p, width = len(work.extent), len(theta.constant)
    if on is not None:
        width = len(tools.change)
    parts = -(-len(index) // len(work.largest))
    block = -(-len(index) // parts)  # blocks of equal size: a small one at the end would be inefficient
    far, far_there, near = -1, -1, True
    if on is None:
        far = _far(theta, tools.reach, work.extent)
        far_there = _far(anchor, tools.reach, work.extent) if reference == ANCHOR else -1
    fill(tools.change, 0.0)
    for first in range(0, len(index), block):
        here = index[first : first + block]
        b = len(here)
        samples, rows = matrix(work.samples, p, b), matrix(work.rows, b, width)
        if len(y.double):
            _take(y.double, here, tools.offset, samples)
        else:
            _take(y.single, here, tools.offset, samples)
        spare = matrix(tools.spare, b, width)
        if on is None:
            if reference == ANCHOR:
                _responsibilities(kind, samples, anchor, far_there, work, spare)
            near = _responsibilities(kind, samples, theta, far, work, rows)
        else:
            if reference == ANCHOR:
                complete_rows(samples, anchor, on, spare)
            complete_rows(samples, theta, on, rows)
        if reference == ANCHOR:
            for t in range(b):
                for m in range(width):
                    rows[t, m] -= correction * spare[t, m]
        if len(moments) and not renew and first == 0:
            weight = factor * len(index) * (sample_weight[here[0]] if len(sample_weight) else 1.0)
            old = tools.candidate[:width]  # not yet in use
            if len(memory.double):
                copy(memory.double[here[0]], old)
            else:
                copy(memory.single[here[0]], old)
            if on is not None:
                _learn_row(rows[0], old, weight, centre, moments)
            else:
                _learn(kind, len(work.sums2), samples, rows[0], old, weight, centre, moments)
        if renew and len(memory.double):
            _swap(rows, here, memory.double)
        elif renew:
            _swap(rows, here, memory.single)
        elif reference == MEMORY and len(memory.double):
            _take_off(rows, here, memory.double, correction)
        elif reference == MEMORY:
            _take_off(rows, here, memory.single, correction)
        weigh(rows, sample_weight, here, factor)
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


@lean
def batches(
    y: Any, sample_weight: Any, divided: Any, scale: Any, share: Any,
    reference: Any, correction: Any, moments: Any, reads: Any, renews: Any, follows: Any, restate: Any,
    restate_anchor: Any,
    steps: Any, index: Any, other: Any, memory: Any, centre: Any, before: Any, s: Any, theta: Any,
    anchor: Any, tools: Any, on: Any,
) -> Any:  # fmt: skip
    """Do iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    y : Twin, shape (n, d)
    sample_weight : ndarray, shape (n,), or (0,) for ones
        If data are on disk, these and the memory are only those of the samples of the stretch.
    divided : bool
        Whether the samples ``index`` are drawn in proportion to their weights: these are then left out.
    scale, share : float
        n / W, or 1 if ``divided``, and 1 / W, W the sum of weights.
    reference : int
        NOTHING, ANCHOR or MEMORY.
    correction : float
        λ, unless it is learned.
    moments : ndarray, shape (3,), or (0,)
        What λ is learned from, and λ, changed in place; empty if λ is fixed.
    reads, renews, follows : bool
        Whether S is computed from samples ``index`` (otherwise it is the renewed centre); whether the memory
        of samples ``other`` is renewed; whether centre and anchor follow S and θ.
    restate, restate_anchor : bool
        Whether θ is θ̄(s), or the anchor θ̄(before), and must be written as by the M-steps here.
    steps : ndarray, shape (iterations,)
        γ.
    index, other : ndarray, shape (iterations, b)
        Samples.
    memory : Twin, shape (n, R) or (0, M)
    centre, s : ndarray, shape (q,)
        Flat statistics, changed in place.
    before : ndarray, shape (q,)
        If the anchor follows: the ŝ of which it is θ̄.
    theta, anchor : Coefficients
        Changed in place.
    tools : Tools
    on : Completion or None
        For full and tied covariances of rows with missing cells: posterior rows are then their statistics.

    Returns
    -------
    rejected, moved : int
        Number of rejected steps, and of accepted ones before the last iteration.
    """
    rejected, moved, candidate = 0, 0, tools.candidate
    own_weight = sample_weight[:0] if divided else sample_weight
    if restate:
        m_step(tools.kind, s, tools.hyper, tools.scratch, theta)
    if restate_anchor:
        m_step(tools.kind, before, tools.hyper, tools.scratch, anchor)
    for k in range(len(steps)):
        moved = k - rejected
        if len(moments):
            correction = moments[2]
        for renew in (False, True):  # one call for both: it takes long to compile
            if not (renews if renew else reads):
                continue
            _statistics(
                y, sample_weight if renew else own_weight, share if renew else scale / index.shape[1],
                other[k] if renew else index[k], theta, NOTHING if renew else reference, correction,
                moments, centre, anchor, memory, renew, tools, on,
            )  # fmt: skip
            if renew:
                add(tools.change, centre)
            else:
                for q in range(len(s)):
                    candidate[q] = correction * centre[q] + tools.change[q]
        if not reads:
            copy(centre, candidate)
        if follows:
            copy(candidate, centre)
            copy(s, before)
            _copy(theta, anchor)
        if steps[k] < 1.0:
            for q in range(len(s)):
                candidate[q] = s[q] + steps[k] * (candidate[q] - s[q])  # (sestep)
        if m_step(tools.kind, candidate, tools.hyper, tools.scratch, theta):  # (mstep)
            copy(candidate, s)
        else:
            rejected += 1
    return rejected, moved


def loop_for(theta: Any, tools: Tools, on: Any) -> Callable[..., tuple[int, int]]:
    """Return :func:`batches`, compiled for ``theta``, ``tools`` and ``on`` like these.

    It trusts the types of its arguments: all arrays are in C order, and may be read-only if they are not
    changed.
    """
    if not hasattr(batches, "compile"):  # NUMBA_DISABLE_JIT
        return batches  # type: ignore[no-any-return]
    of: Any = numba.typeof
    return _compiled_loop(of(theta), of(tools), of(on))


@lru_cache(maxsize=32)
def _compiled_loop(theta: Any, tools: Any, on: Any) -> Callable[..., tuple[int, int]]:
    number, flag, vector = types.float64, types.boolean, types.Array(types.float64, 1, "C")
    read = types.Array(types.float64, 1, "C", readonly=True)
    drawn = types.Array(types.intp, 2, "C", readonly=True)
    pairs = [
        types.NamedTuple([types.Array(kind, 2, "C", readonly=only) for kind in (number, types.float32)], Twin)
        for only in (True, False)
    ]
    found: Callable[..., tuple[int, int]] = batches.compile((
        pairs[0], read, flag, number, number, types.int64, number, vector, flag, flag, flag, flag, flag,
        read, drawn, drawn, pairs[1], vector, vector, vector, theta, theta, tools, on,
    ))  # fmt: skip
    return found
