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

from swiftem.core.algorithm import Algorithm1, Current, Loop, Task
from swiftem.core.method import Update, declared
from swiftem.core.types import Array, Index, Theta
from swiftem.data.samples import Drawn, read_only
from swiftem.kernels.compile import helper, inlined, kernel
from swiftem.kernels.loop import CompiledLoop
from swiftem.kernels.memory import borrowed, matrix, vector
from swiftem.kernels.softmax import add, copy, fill, weigh
from swiftem.kernels.threads import one_thread_blas
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute import COMPLETED
from swiftem.mixture.compute import passes_kernel as dense
from swiftem.mixture.compute.covariance_kernel import Hyper, Scratch, m_step, make_scratch
from swiftem.mixture.compute.missing_kernel import BLOCK, Completion, complete_rows, make_completion
from swiftem.mixture.compute.numpy import MixtureCompute
from swiftem.mixture.compute.one_sample import OneSampleLoop
from swiftem.mixture.gaussians import BoundGaussians

__all__ = ["StepsLoop", "mixture_loop"]

NOTHING, ANCHOR, MEMORY = 0, 1, 2
"""The reference that is subtracted from the statistics of a batch."""
REFERENCES = {"none": NOTHING, "anchor": ANCHOR, "previous": ANCHOR, "memory": MEMORY}


class Stretch(NamedTuple):
    """The samples of a stretch of iterations, and the statistics that it changes.

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
    steps : ndarray, shape (iterations,)
        γ.
    s, centre, before : ndarray, shape (q,)
        ŝ, the centre, and, if the anchor follows, the ŝ it is θ̄ of; changed in place.
    """

    y: dense.Twin
    weight: Array
    memory: dense.Twin
    index: Index  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    other: Index
    steps: Array
    s: Array
    centre: Array
    before: Array


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

    reference: int
    correction: float
    reads: bool
    renews: bool
    follows: bool
    is_divided: bool
    scale: float
    share: float


class Tools(NamedTuple):
    """What does not change during a run.

    Attributes
    ----------
    code : int
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

    code: int
    offset: Array
    reach: Array
    hyper: Hyper
    scratch: Scratch
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
def _far(theta: Coefficients, reach: Array, extent: Array) -> int:
    """Return a component for which expanded squares of some samples lose digits, or −1."""
    copy(reach, extent)
    component: int = dense.far_component(theta, extent, -1)
    return component


@inlined
def _add_sums(tools: Tools, samples: Array, rows: Array, near: bool) -> None:
    """Add the statistics of ``rows`` (b, M), weighted, to ``tools.change``."""
    work, change = tools.work, tools.change
    with_products = len(work.sums3) > 0
    if with_products:
        dense.add_up(rows, work.totals)
    dense.add_statistics(tools.code, samples, rows, near, with_products, work)
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


@inlined
def _rows(
    samples: Array, theta: Coefficients, far: int, tools: Tools, completion: Completion | None, rows: Array
) -> bool:
    """Write posterior rows (b, R) of ``samples`` (d, b); return whether they are near."""
    near = False
    if completion is not None:
        complete_rows(samples, theta, completion, rows)
    else:
        work = tools.work
        near = dense.checked_e_step(tools.code, samples, theta, far, work.extent[:0], work, rows)
    return near


@inlined
def _statistics(
    stretch: Stretch,
    index: Index,
    rule: Rule,
    renew: bool,
    theta: Coefficients,
    anchor: Coefficients,
    tools: Tools,
    completion: Completion | None,
) -> None:
    """Write the statistics of samples ``index`` (b,), times their factor, into ``tools.change``.

    They are at θ, minus λ times the reference; if ``renew``, they are the change of the memory, which is
    written to.
    """
    work, memory = tools.work, stretch.memory
    p, width = len(work.extent), len(theta.constant)
    if completion is not None:
        width = len(tools.change)
    reference = NOTHING if renew else rule.reference
    parts = -(-len(index) // len(work.largest))
    block = -(-len(index) // parts)  # blocks of equal size: a small one at the end would be inefficient
    far, anchor_far = -1, -1
    if completion is None:
        far = _far(theta, tools.reach, work.extent)
        anchor_far = _far(anchor, tools.reach, work.extent) if reference == ANCHOR else -1
    fill(tools.change, 0.0)
    for first in range(0, len(index), block):
        here = index[first : first + block]
        b = len(here)
        samples, rows = matrix(work.samples, p, b), matrix(work.rows, b, width)
        if len(stretch.y.double):
            _take(stretch.y.double, here, tools.offset, samples)
        else:
            _take(stretch.y.single, here, tools.offset, samples)
        spare = matrix(tools.spare, b, width)
        if reference == ANCHOR:
            _rows(samples, anchor, anchor_far, tools, completion, spare)
        near = _rows(samples, theta, far, tools, completion, rows)
        if reference == ANCHOR:
            for t in range(b):
                for m in range(width):
                    rows[t, m] -= rule.correction * spare[t, m]
        if renew or reference == MEMORY:
            if len(memory.double):
                _use_memory(rows, here, memory.double, renew, rule.correction)
            else:
                _use_memory(rows, here, memory.single, renew, rule.correction)
        own_weight = stretch.weight[:0] if rule.is_divided and not renew else stretch.weight
        weigh(rows, own_weight, here, rule.share if renew else rule.scale / len(index))
        if completion is None:
            _add_sums(tools, samples, rows, near)
        else:
            for t in range(b):
                add(rows[t], tools.change)


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
    tools: Tools,
    completion: Completion | None,
) -> tuple[int, int]:
    """Do iterations of S = λC + mean_I(s_i(θ) − λ·ref_i), ŝ ← ŝ + γ(S − ŝ), θ ← θ̄(ŝ).

    Parameters
    ----------
    stretch, rule, tools : Stretch, Rule, Tools
        Samples and statistics, the declared update, and buffers.
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
    tools, completion = borrowed(tools), borrowed(completion)
    s, centre, steps, candidate = stretch.s, stretch.centre, stretch.steps, tools.candidate
    rejected, moved = 0, 0
    if restate:
        m_step(tools.code, s, tools.hyper, tools.scratch, theta)
    if restate_anchor:
        m_step(tools.code, stretch.before, tools.hyper, tools.scratch, anchor)
    for k in range(len(steps)):
        moved = k - rejected
        for renew in (False, True):  # one call for both: it takes long to compile
            if not (rule.renews if renew else rule.reads):
                continue
            index = stretch.other[k] if renew else stretch.index[k]
            _statistics(stretch, index, rule, renew, theta, anchor, tools, completion)
            if renew:
                add(tools.change, centre)
            else:
                for q in range(len(s)):
                    candidate[q] = rule.correction * centre[q] + tools.change[q]
        if not rule.reads:
            copy(centre, candidate)
        if rule.follows:
            copy(candidate, centre)
            copy(s, stretch.before)
            _copy(theta, anchor)
        if steps[k] < 1.0:
            for q in range(len(s)):
                candidate[q] = s[q] + steps[k] * (candidate[q] - s[q])  # (sestep)
        if m_step(tools.code, candidate, tools.hyper, tools.scratch, theta):  # (mstep)
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
        prior, n_components, p = bound.prior, bound.n_components, len(bound.origin)
        hyper = Hyper(
            *prior._replace(scale=np.atleast_2d(prior.scale)),
            float(bound.model.reg_covar),
            float(bound.epsilon),
            np.array(bound.model.known_weights or (), float),
            bound.kind.has_masses,
        )
        matrices = (1 if bound.kind.is_shared else n_components) if bound.kind.has_matrices else 0
        work = dense.make_work(bound.n_features, n_components, p, bound.shares_products)
        self._completion: Completion | None = None
        if bound.code == COMPLETED:
            self._completion = make_completion(matrices, n_components, bound.d)
            work = work._replace(rows=np.empty(BLOCK * bound.size), largest=np.empty(BLOCK))
        self._tools = Tools(
            bound.kind.code,
            read_only(bound.centre),
            np.full(p, np.inf),
            hyper,
            make_scratch(matrices, n_components, bound.d),
            work,
            np.empty_like(work.rows),
            *np.empty((2, bound.size)),
        )
        self._rule = Rule(
            REFERENCES[update.reference],
            update.correction,
            update.renewed_by != "drawn",
            update.renewed_by != "none",
            update.reference == "previous",
            self.is_divided,
            float(self.scale),
            float(self.share),
        )

    def load_theta(self, now: Current) -> None:
        """Copy φ(θ).

        If θ is θ̄(s), φ is loaded as the kernels write it: then the beginning of a stretch makes no
        difference, bit by bit.
        """
        self._theta = self.prepared(now.theta)
        assert isinstance(self.task.compute, MixtureCompute)
        self._tools = self._tools._replace(reach=self.task.compute.reach)
        self._restate = now.is_m_step

    def prepared(self, theta: Theta) -> Coefficients:
        """Return φ(θ) in new arrays."""
        return Coefficients(*(np.array(part, order="C") for part in self.bound.coefficients(theta)))

    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s)."""
        return self.bound.m_step(s)

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel."""
        memory = np.empty((0, self.bound.n_components)) if drawn.memory is None else drawn.memory
        restate, self._restate = self._restate, False
        restate_anchor, self.restates_anchor = self.restates_anchor, False
        stretch = Stretch(
            dense.twin(drawn.y),
            drawn.weight,
            dense.twin(memory),
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
                stretch,
                self._rule,
                self._theta,
                anchor,
                restate,
                restate_anchor,
                self._tools,
                self._completion,
            )
        return counts


def mixture_loop(task: Task) -> Loop:
    """Return compiled stretches for Gaussians and declared methods, else single iterations.

    These have one thread of BLAS: for batches, more threads cost more than they gain.
    """
    update, model, y = declared(task.method), task.model, getattr(task.source, "y", None)
    if update is None or not isinstance(model, BoundGaussians):
        return Algorithm1(task, one_thread_blas)
    if not model.kind.is_estimated and task.method.batch_size == 1:
        return OneSampleLoop(task, update)
    if y is not None and (not y.flags.c_contiguous or y.dtype not in (np.float32, np.float64)):
        # Each kind of array would be four more kernels to compile, and a copy would double the memory.
        return Algorithm1(task, one_thread_blas)
    return StepsLoop(task, update)
