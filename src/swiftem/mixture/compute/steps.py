"""Iterations of Gaussian mixtures on batches of all sizes, in compiled stretches.

One loop implements all declarations :class:`swiftem.methods.Update`, and is compiled once: rows and memory
are passed as two arrays each, float64 and float32, of which one is empty. It takes 10 s to compile; one for
each case would be 18 loops. E-steps and M-steps are compiled into it: calls by address would compile faster
still, but cost 40 % at one sample per iteration. θ is reported as θ̄(s) by the model's own M-step in NumPy,
not by the loop's, so that the end of a stretch leaves no trace in it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from swiftem.core.algorithm import Current, Task
from swiftem.core.method import Update
from swiftem.core.types import Array, Index, Theta
from swiftem.kernels.compile import helper, inlined, kernel
from swiftem.kernels.loop import CompiledLoop, Drawn
from swiftem.kernels.threads import one_thread_blas, read_only
from swiftem.kernels.vector import borrowed, matrix, vector
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute import passes_kernel as dense
from swiftem.mixture.compute.covariance_kernel import Hyper, m_step, make_hyper
from swiftem.mixture.compute.loops import add, copy, fill
from swiftem.mixture.compute.missing_kernel import BLOCK, Completion, complete_rows, make_completion
from swiftem.mixture.compute.numpy import COMPLETED, MixtureCompute
from swiftem.mixture.compute.passes import make_work, twin
from swiftem.mixture.gaussians import BoundGaussians

NOTHING, ANCHOR, MEMORY = 0, 1, 2
"""The reference that is subtracted from the statistics of a batch."""
REFERENCES = {"none": NOTHING, "anchor": ANCHOR, "previous": ANCHOR, "memory": MEMORY}


class Stretch(NamedTuple):
    """The samples of a stretch of iterations, and the statistics that it changes.

    Attributes
    ----------
    data : Samples
        Samples (n, d). If data are on disk, these, weights and memory are only of the samples of the stretch.
    memory : Twin, shape (n, R) or (0, M)
        Their posterior rows when last renewed, changed in place.
    index, other : ndarray of int, shape (iterations, b)
        The samples I of each iteration, and J, whose memory is renewed.
    steps : ndarray, shape (iterations,)
        γ.
    s, centre, before : ndarray, shape (q,)
        ŝ, the centre, and, if the anchor follows, the ŝ it is θ̄ of; changed in place.
    """

    data: dense.Samples
    memory: dense.Twin
    index: Index  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    other: Index
    steps: Array
    s: Array
    centre: Array
    before: Array


class Rule(NamedTuple):
    """What does not change during a run: the declared update, and buffers.

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
    hyper, work
        For M-steps and E-steps.
    spare : ndarray, size b·M of a block
        Responsibilities at an anchor.
    change, candidate : ndarray, shape (q,)
        Statistics of a batch, and of the candidate step.
    """

    reference: int
    correction: float
    reads: bool
    renews: bool
    follows: bool
    is_divided: bool
    scale: float
    share: float
    hyper: Hyper
    work: dense.Work
    spare: Array
    change: Array
    candidate: Array


@inlined
def _take(y: Array, index: Index, offset: Array, samples: Array) -> None:
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


@inlined
def _add_sums(rule: Rule, samples: Array, rows: Array, near: bool) -> None:
    """Add the statistics of ``rows`` (b, M), weighted, to ``rule.change``."""
    work, change = rule.work, rule.change
    with_products = len(work.sums3) > 0
    if with_products:
        dense.add_up(rows, work.totals)
    dense.add_statistics(rule.hyper.code, samples, rows, near, with_products, work)
    (p, n_components), d = work.sums2.shape, len(work.extent)
    end, squares = n_components * (1 + d), p - d
    for m in range(n_components):
        change[m] += work.sums1[m]
        for c in range(d):
            change[n_components + m * d + c] += work.sums2[c, m]
        for c in range(squares):
            change[end + m * squares + c] += work.sums2[d + c, m]
    for i in range(len(work.sums3)):
        for j in range(i + 1):
            change[end] += work.sums3[i, j]
            end += 1


@helper
def _use_memory(rows: Array, index: Index, memory: Array, renew: bool, correction: float) -> None:
    """Subtract ``correction`` times rows ``index`` (b,) of the memory (n, R) from ``rows`` (b, R).

    If ``renew``, write ``rows`` into the memory instead, and replace them by the change of the stored values.
    """
    for t in range(len(rows)):
        i = np.uintp(index[t])
        for m in range(rows.shape[1]):
            old = np.float64(memory[i, m])
            if renew:
                memory[i, m] = rows[t, m]
                rows[t, m] = np.float64(memory[i, m]) - old
            else:
                rows[t, m] -= correction * old


@helper
def _weigh(rows: Array, sample_weight: Array, index: Index, factor: float) -> None:
    """Multiply row t by factor times the weight of sample ``index[t]``; ``sample_weight`` (0,): ones."""
    for t in range(len(rows)):
        scale = factor * sample_weight[index[t]] if len(sample_weight) else factor
        for m in range(rows.shape[1]):
            rows[t, m] *= scale


@inlined
def _rows(
    samples: Array, theta: Coefficients, far: int, rule: Rule, completion: Completion | None, rows: Array
) -> bool:
    """Write posterior rows (b, R) of ``samples`` (d, b); return whether they are near."""
    near = False
    if completion is not None:
        complete_rows(samples, theta, completion, rows)
    else:
        near = dense.checked_e_step(
            rule.hyper.code, samples, theta, far, rule.work.extent[:0], rule.work, rows
        )
    return near


@inlined
def _statistics(
    stretch: Stretch,
    index: Index,
    renew: bool,
    theta: Coefficients,
    anchor: Coefficients,
    rule: Rule,
    completion: Completion | None,
) -> None:
    """Write the statistics of samples ``index`` (b,), times their factor, into ``rule.change``.

    They are at θ, minus λ times the reference; if ``renew``, they are the change of the memory, which is
    written to.
    """
    work, data = rule.work, stretch.data
    (double, single), (memory, short_memory) = data.y, stretch.memory
    p, width = len(work.extent), len(theta.constant)
    if completion is not None:
        width = len(rule.change)
    reference = NOTHING if renew else rule.reference
    parts = -(-len(index) // len(work.largest))
    block = -(-len(index) // parts)  # blocks of equal size: a small one at the end would be inefficient
    far, anchor_far = -1, -1
    if completion is None:
        far = dense.far_component(theta, data.reach, -1, work.extent)
        if reference == ANCHOR:
            anchor_far = dense.far_component(anchor, data.reach, -1, work.extent)
    fill(rule.change, 0.0)
    for first in range(0, len(index), block):
        here = index[first : first + block]
        b = len(here)
        samples, rows = matrix(work.samples, p, b), matrix(work.rows, b, width)
        if len(double):
            _take(double, here, data.centre, samples)
        else:
            _take(single, here, data.centre, samples)
        spare = matrix(rule.spare, b, width)
        if reference == ANCHOR:
            _rows(samples, anchor, anchor_far, rule, completion, spare)
        near = _rows(samples, theta, far, rule, completion, rows)
        if reference == ANCHOR:
            for t in range(b):
                for m in range(width):
                    rows[t, m] -= rule.correction * spare[t, m]
        if renew or reference == MEMORY:
            if len(memory):
                _use_memory(rows, here, memory, renew, rule.correction)
            else:
                _use_memory(rows, here, short_memory, renew, rule.correction)
        own_weight = data.weight[:0] if rule.is_divided and not renew else data.weight
        _weigh(rows, own_weight, here, rule.share if renew else rule.scale / len(index))
        if completion is None:
            _add_sums(rule, samples, rows, near)
        else:
            for t in range(b):
                add(rows[t], rule.change)


@helper
def _copy(theta: Coefficients, into: Coefficients) -> None:
    """Copy all arrays of one set of coefficients into another."""
    copy(vector(theta.phi), vector(into.phi))
    copy(theta.constant, into.constant)
    copy(vector(theta.means), vector(into.means))
    copy(theta.plain, into.plain)
    copy(vector(theta.whiten), vector(into.whiten))
    copy(vector(theta.scales), vector(into.scales))


@kernel
def batches(
    stretch: Stretch,
    rule: Rule,
    theta: Coefficients,
    anchor: Coefficients,
    restate: bool,
    restate_anchor: bool,
    completion: Completion | None,
) -> tuple[int, int]:
    """Do iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    stretch, rule : Stretch, Rule
        Samples and statistics, the declared update and buffers.
    theta, anchor : Coefficients
        Changed in place.
    restate, restate_anchor : bool
        Whether θ is θ̄(s), or the anchor θ̄(before), and must be written as by the M-steps here.
    completion : Completion or None
        For covariance matrices of rows with missing cells: posterior rows are then their statistics.

    Returns
    -------
    rejected, moved : int
        Number of rejected steps, and of accepted ones before the last iteration.
    """
    stretch, theta, anchor = borrowed(stretch), borrowed(theta), borrowed(anchor)
    rule, completion = borrowed(rule), borrowed(completion)
    s, centre, steps, candidate = stretch.s, stretch.centre, stretch.steps, rule.candidate
    rejected, moved = 0, 0
    if restate:
        m_step(s, rule.hyper, theta)
    if restate_anchor:
        m_step(stretch.before, rule.hyper, anchor)
    for k in range(len(steps)):
        moved = k - rejected
        for renew in (False, True):  # one call for both: it takes long to compile
            if not (rule.renews if renew else rule.reads):
                continue
            index = stretch.other[k] if renew else stretch.index[k]
            _statistics(stretch, index, renew, theta, anchor, rule, completion)
            if renew:
                add(rule.change, centre)
            else:
                for q in range(len(s)):
                    candidate[q] = rule.correction * centre[q] + rule.change[q]
        if not rule.reads:
            copy(centre, candidate)
        if rule.follows:
            copy(candidate, centre)
            copy(s, stretch.before)
            _copy(theta, anchor)
        if steps[k] < 1.0:
            for q in range(len(s)):
                candidate[q] = s[q] + steps[k] * (candidate[q] - s[q])  # (sestep)
        if m_step(candidate, rule.hyper, theta):  # (mstep)
            copy(candidate, s)
        else:
            rejected += 1
    return rejected, moved


class StepsLoop(CompiledLoop):
    """Samples, statistics and φ(θ) as plain arrays."""

    FIRST = 16

    def __init__(self, task: Task, update: Update) -> None:
        super().__init__(task, update)
        assert isinstance(task.model, BoundGaussians)
        self.bound = bound = task.model
        hyper = make_hyper(bound)
        work = make_work(bound.n_features, bound.n_components, len(bound.origin), bound.shares_products)
        self._completion: Completion | None = None
        if bound.code == COMPLETED:
            self._completion = make_completion(len(hyper.matrices), bound.n_components, bound.d)
            work = work._replace(rows=np.empty(BLOCK * bound.size), largest=np.empty(BLOCK))
        self._rule = Rule(
            REFERENCES[update.reference],
            update.correction,
            update.renewed_by != "drawn",
            update.renewed_by != "none",
            update.reference == "previous",
            self.is_divided,
            float(self.scale),
            float(self.share),
            hyper,
            work,
            np.empty_like(work.rows),
            *np.empty((2, bound.size)),
        )

    def load_theta(self, now: Current) -> None:
        """Copy φ(θ).

        If θ is θ̄(s), φ is loaded as the kernels write it: then the beginning of a stretch makes no
        difference, bit by bit.
        """
        self._theta = self.prepared(now.theta)
        self._restate = now.is_m_step

    def prepared(self, theta: Theta) -> Coefficients:
        """Return φ(θ) in new arrays."""
        return Coefficients(*(np.array(part, order="C") for part in self.bound.coefficients(theta)))

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel."""
        memory = np.empty((0, self.bound.n_components)) if drawn.memory is None else drawn.memory
        restate, self._restate = self._restate, False
        restate_anchor, self.restates_anchor = self.restates_anchor, False
        bound, compute = self.bound, self.task.compute
        assert isinstance(compute, MixtureCompute)
        centre = read_only(bound.centre)
        stretch = Stretch(
            dense.Samples(twin(drawn.y), drawn.weight, bound.kind.code, centre, compute.reach),
            twin(memory),
            read_only(drawn.index[0]),
            read_only(drawn.index[-1]),
            read_only(steps),
            self.s,
            self.centre,
            self.before,
        )
        anchor = self._theta if self.anchor is None else self.anchor
        with one_thread_blas():
            counts: tuple[int, int] = batches(
                stretch, self._rule, self._theta, anchor, restate, restate_anchor, self._completion
            )
        return counts
