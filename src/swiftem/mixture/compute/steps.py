"""Iterations of Gaussian mixtures: batches of all sizes, in compiled stretches.

One loop for all methods and both precisions takes 10 s to compile; one for each case would be 18 loops.
E-steps and M-steps are compiled into it: calls by address would compile faster still, but cost 40 % at one
sample per iteration. θ is reported as θ̄(s) by the model's own M-step in NumPy, not by the loop's, so that
the end of a stretch leaves no trace in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.core.algorithm import Algorithm1, Current, Loop, Task
from swiftem.core.method import Update, declared
from swiftem.core.types import Array, Theta
from swiftem.data.parts import read_only
from swiftem.data.samples import Drawn
from swiftem.kernels.loop import CompiledLoop
from swiftem.kernels.threads import one_thread_blas
from swiftem.mixture.components import Coefficients
from swiftem.mixture.compute import COMPLETED
from swiftem.mixture.compute.blocks_kernel import make_work, twin
from swiftem.mixture.compute.covariance_kernel import Hyper, make_scratch
from swiftem.mixture.compute.missing_kernel import BLOCK, make_completion
from swiftem.mixture.compute.one_sample import OneSampleLoop
from swiftem.mixture.compute.steps_kernel import (
    ANCHOR,
    MEMORY,
    NOTHING,
    Draws,
    Rule,
    Statistics,
    Tools,
    batches,
)
from swiftem.mixture.gaussians import BoundGaussians

__all__ = ["StepsLoop", "mixture_loop"]

REFERENCES = {"none": NOTHING, "anchor": ANCHOR, "previous": ANCHOR, "memory": MEMORY}


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
        scratch, self._completion = make_scratch(bound.kind.code, n_components, bound.d), None
        work = make_work(bound.n_features, n_components, p, bound.shares_products)
        if bound.code == COMPLETED:
            self._completion = make_completion(len(scratch.matrices), n_components, bound.d)
            work = work._replace(rows=np.empty(BLOCK * bound.size), largest=np.empty(BLOCK))
        self._tools = Tools(
            bound.kind.code,
            read_only(bound.centre),
            np.full(p, np.inf),
            hyper,
            scratch,
            work,
            np.empty_like(work.rows),
            np.empty(bound.size),
            np.empty(bound.size),
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
        self._no_memory = np.empty((0, n_components))

    def load_theta(self, now: Current) -> None:
        """Copy φ(θ).

        If θ is θ̄(s), φ is loaded as the kernels write it: then the beginning of a stretch makes no
        difference, bit by bit.
        """
        self._theta = self.prepared(now.theta)
        compute: Any = self.task.compute
        if self.bound.code != COMPLETED:
            self._tools = self._tools._replace(reach=compute.reach)
        self._restate = now.is_m_step

    def prepared(self, theta: Theta) -> Coefficients:
        """Return φ(θ) in new arrays."""
        return Coefficients(*(np.array(part, order="C") for part in self.bound.coefficients(theta)))

    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s)."""
        return self.bound.m_step(s)

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel."""
        memory = self._no_memory if drawn.memory is None else drawn.memory
        index = read_only(drawn.index[0]), read_only(drawn.index[-1])
        restate, self._restate = self._restate, False
        restates_anchor, self.restates_anchor = self.restates_anchor, False
        with one_thread_blas():
            found: tuple[int, int] = batches(
                Draws(twin(drawn.y), drawn.weight, twin(memory), *index),
                self._rule,
                read_only(steps),
                Statistics(self.s, self.centre, self.before),
                self._theta,
                self._theta if self.anchor is None else self.anchor,
                restate,
                restates_anchor,
                self._tools,
                self._completion,
            )
        return found
