"""The lane of Gaussian mixtures with covariances: batches of all sizes, in compiled stretches.

One loop for all methods and both precisions takes 10 s to compile; one for each case would be 18 loops.
E-steps and M-steps are compiled into it: calls by address would compile faster still, but cost 40 % at one
sample per iteration. θ is reported as θ̄(s) by the model's own M-step in NumPy, not by the loop's, so that
the end of a stretch leaves no trace in it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.engine.block_expectation import BlockExpectation
from swiftem.engine.compiled_lane import CompiledLane, Drawn
from swiftem.engine.lane import Current, Task
from swiftem.engine.numba.gaussian_batches import ANCHOR, MEMORY, NOTHING, Tools, loop_for
from swiftem.engine.numba.gaussian_blocks import LINEAR, make_work, twin
from swiftem.engine.numba.gaussian_m_step import Hyper, make_scratch
from swiftem.engine.numba.missing.completed_rows import BLOCK, make_completion
from swiftem.engine.threads import one_thread_blas
from swiftem.methods.method import Update
from swiftem.models.completed_gaussians import CompletedGaussians
from swiftem.models.components import Coefficients
from swiftem.models.gaussian_components import BoundGaussians
from swiftem.models.observed_gaussians import ObservedGaussians

__all__ = ["GaussianLane"]

REFERENCES = {"none": NOTHING, "anchor": ANCHOR, "previous": ANCHOR, "memory": MEMORY}


class GaussianLane(CompiledLane):
    """Samples, statistics and φ(θ) as plain arrays."""

    FIRST = 16

    def __init__(self, task: Task, update: Update) -> None:
        super().__init__(task, update)
        assert isinstance(task.model, BoundGaussians)
        self.bound = task.model
        model, prior, d = self.bound.model, self.bound.prior, self.bound.d
        sizes = self.bound.kind.code, model.n_components, d
        q, p = self.bound.size, len(self.bound.origin)
        has_masses = isinstance(self.bound, ObservedGaussians)
        hyper = Hyper(
            *prior._replace(scale=np.atleast_2d(prior.scale)),
            float(model.reg_covar),
            float(self.bound.epsilon),
            np.array(model.known_weights or (), float),
            has_masses,
        )
        scratch, self._on = make_scratch(*sizes), None
        work = make_work(LINEAR if has_masses else sizes[0], model.n_components, p)
        if isinstance(self.bound, CompletedGaussians):
            self._on = make_completion(len(scratch.matrices), model.n_components, d)
            work = work._replace(rows=np.empty(BLOCK * q), largest=np.empty(BLOCK))
        self._tools = Tools(
            sizes[0], self.bound.centre, np.full(p, np.inf), hyper, scratch, work,
            np.empty_like(work.rows), np.empty(q), np.empty(q),
        )  # fmt: skip
        self._no_memory = np.empty((0, model.n_components))
        self._run: Callable[..., tuple[int, int]] | None = None

    def load_theta(self, now: Current) -> None:
        """Copy φ(θ).

        If θ is θ̄(s), φ is loaded as the kernels write it: then the beginning of a stretch makes no
        difference, bit by bit.
        """
        self._theta = self.prepared(now.theta)
        if isinstance(self.task.e_step, BlockExpectation):
            self._tools = self._tools._replace(reach=self.task.e_step.reach)
        in_domain = self.bound.in_domain(now.s)
        self._restate = in_domain and all(map(np.array_equal, now.theta, self.bound.m_step(now.s)))

    def prepared(self, theta: Theta) -> Coefficients:
        """Return φ(θ) in new arrays."""
        return Coefficients(*(np.array(part, order="C") for part in self.bound.coefficients(theta)))

    def theta_of(self, s: Array) -> Theta:
        """Return θ̄(s)."""
        return self.bound.m_step(s)

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel."""
        update, index = self.update, drawn.index
        memory = self._no_memory if drawn.memory is None else drawn.memory
        anchor = self._theta if self.anchor is None else self.anchor
        if self._run is None:
            self._run = loop_for(self._theta, self._tools, self._on)
        restate, self._restate = self._restate, False
        restates_anchor, self.restates_anchor = self.restates_anchor, False
        with one_thread_blas():
            return self._run(
                twin(drawn.y), drawn.weight, self.is_divided, self.scale, self.share,
                REFERENCES[update.reference], update.fixed, self.moments, update.renewed_by != "drawn",
                update.renewed_by != "none",
                update.centre == "proxy", restate, restates_anchor, steps, index[0], index[-1], twin(memory),
                self.centre, self.before, self.s, self._theta, anchor, self._tools, self._on,
            )  # fmt: skip
