"""The fused lanes of Gaussian mixtures with covariances: batches of all sizes, in compiled stretches."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.kernels.numba import gaussian_batches as kernels
from swiftem.kernels.numba.gaussian_blocks import make_work
from swiftem.kernels.numba.gaussian_m_step import Hyper, m_step, make_scratch
from swiftem.kernels.threads import one_thread_blas
from swiftem.lanes.gaussian_expectation import GaussianExpectation
from swiftem.lanes.lane import Current, FusedLane, Task, step_sizes
from swiftem.lanes.parts import Samples
from swiftem.methods import FastIncrementalEM, IncrementalEM, OnlineEM, VarianceReducedEM
from swiftem.models.covariance import Coefficients
from swiftem.models.gaussian_components import BoundGaussians

__all__ = ["LANES"]


class _GaussianLane(FusedLane):
    """What the four methods share: samples, statistics and φ(θ) as plain arrays."""

    FIRST = 16

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        assert isinstance(task.model, BoundGaussians)
        self.bound, source = task.model, task.source
        model, prior, d = self.bound.model, self.bound.prior, self.bound.d
        self.samples = Samples(source, streams=task.method.index_streams)
        self.weight_scale = source.n / source.total_weight
        self.share = self.weight_scale / source.n
        sizes = self.bound.kind.code, model.n_components, d
        q = self.bound.kind.size(model.n_components, d)
        hyper = Hyper(
            *prior, float(model.reg_covar), float(self.bound.epsilon), np.array(model.known_weights or ())
        )
        work = make_work(*sizes)
        self.tools = kernels.Tools(
            sizes[0], self.bound.centre, np.full(d, np.inf), hyper, make_scratch(*sizes), work,
            np.empty_like(work.rows), np.empty(q), np.empty(q),
        )  # fmt: skip

    @property
    def per_iteration(self) -> int:
        """E-step evaluations of one iteration."""
        return self.task.method.batch_size * self.task.method.index_streams

    def load(self, now: Current) -> None:
        """Copy s and φ(θ), which the kernels change in place.

        Where θ is θ̄(s), φ is taken as the kernels write it: then it makes no difference, to the last bit,
        where a stretch begins.
        """
        self.s = now.s.copy()
        self.theta = self.coefficients(now.theta)
        self.moved = False
        if isinstance(self.task.e_step, GaussianExpectation):
            self.tools = self.tools._replace(reach=self.task.e_step.reach)
        if self.bound.in_domain(now.s) and all(map(np.array_equal, now.theta, self.bound.m_step(now.s))):
            m_step(self.tools.kind, self.s, self.tools.hyper, self.tools.scratch, self.theta)

    def coefficients(self, theta: Theta) -> Coefficients:
        """Return φ(θ) in arrays of its own."""
        return Coefficients(*(np.array(part, order="C") for part in self.bound.coefficients(theta)))

    def stretch(self, now: Current, stop: int) -> int:
        """Run the kernel."""
        stop = self.prepare(now, stop)
        with one_thread_blas():
            rejected = self.compiled(now, stop)
        now.rejected += rejected
        self.moved |= stop - now.k > rejected
        self.task.e_step.evaluations += (stop - now.k) * self.per_iteration
        return stop

    def prepare(self, now: Current, stop: int) -> int:
        """Return where the kernel has to stop."""
        return self.samples.stop(now.k, stop, self.task.method.batch_size)

    @abstractmethod
    def compiled(self, now: Current, stop: int) -> int:
        """Do iterations ``now.k`` to ``stop`` − 1; return how many were rejected."""

    def store(self, now: Current) -> None:
        """Give s and θ = θ̄(s) back; θ stays as it was where every step was rejected."""
        if self.moved:
            now.s = self.s.copy()
            now.theta = self.bound.m_step(now.s)


class _OnlineLane(_GaussianLane):
    """sem."""

    def compiled(self, now: Current, stop: int) -> int:
        """Run the kernel."""
        steps = step_sizes(self.task.gamma, now.k, stop)
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop))
        return int(
            kernels.online_em(
                drawn.y, drawn.weight, self.weight_scale, steps, *drawn.index, self.s, self.theta, self.tools
            )
        )


class _IncrementalLane(_GaussianLane):
    """iem."""

    centre: Array

    def load(self, now: Current) -> None:
        """Copy the centre, too."""
        super().load(now)
        self.centre = now.state.centre.copy()

    def compiled(self, now: Current, stop: int) -> int:
        """Run the kernel."""
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop), now.state.memory)
        rejected = kernels.incremental_em(
            drawn.y, drawn.weight, self.share, *drawn.index, drawn.memory,
            self.centre, self.s, self.theta, self.tools,
        )  # fmt: skip
        self.samples.remember(drawn, now.state.memory)
        return int(rejected)

    def store(self, now: Current) -> None:
        """Give the centre back, too."""
        super().store(now)
        now.state = now.state._replace(centre=self.centre)


class _FastIncrementalLane(_IncrementalLane):
    """fiem."""

    def compiled(self, now: Current, stop: int) -> int:
        """Run the kernel."""
        steps = step_sizes(self.task.gamma, now.k, stop)
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop), now.state.memory)
        rejected = kernels.fast_incremental_em(
            drawn.y, drawn.weight, self.weight_scale, self.share, steps, *drawn.index, drawn.memory,
            self.centre, self.s, self.theta, self.tools,
        )  # fmt: skip
        self.samples.remember(drawn, now.state.memory)
        return int(rejected)


class _VarianceReducedLane(_GaussianLane):
    """sem-vr."""

    renewed = -1
    anchor: tuple[Theta, Coefficients] | None = None

    @property
    def per_iteration(self) -> int:
        """Each sample is evaluated at θ and at the anchor."""
        return 2 * self.task.method.batch_size

    def prepare(self, now: Current, stop: int) -> int:
        """Renew the anchor where it is time; stop before the next time."""
        method: Any = self.task.method
        length: int = method.epoch_length or method.epoch(self.task.source.n)
        if now.k % length == 0 and self.renewed != now.k:
            self.store(now)
            now.state = type(now.state)(now.theta, self.task.e_step.full(now.theta))
            self.renewed = now.k
        return super().prepare(now, min(stop, now.k + length - now.k % length))

    def compiled(self, now: Current, stop: int) -> int:
        """Run the kernel."""
        theta, centre = now.state
        if self.anchor is None or self.anchor[0] is not theta:
            self.anchor = theta, self.coefficients(theta)
        steps = step_sizes(self.task.gamma, now.k, stop)
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop))
        return int(
            kernels.variance_reduced_em(
                drawn.y, drawn.weight, self.weight_scale, steps, *drawn.index,
                self.anchor[1], centre, self.s, self.theta, self.tools,
            )
        )  # fmt: skip


LANES: dict[type, type[_GaussianLane]] = {
    OnlineEM: _OnlineLane,
    IncrementalEM: _IncrementalLane,
    VarianceReducedEM: _VarianceReducedLane,
    FastIncrementalEM: _FastIncrementalLane,
}
"""The lane of each method."""
