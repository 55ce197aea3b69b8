"""The fused lane of the Gaussian mixture with unit variances."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array
from swiftem.engine.lane import Current, FusedLane, Lane, Task, step_sizes
from swiftem.engine.parts import Samples, is_served
from swiftem.methods import FastIncrementalEM, IncrementalEM, OnlineEM, VarianceReducedEM
from swiftem.models.gaussian_mixture import BoundGaussianMixture, GaussianMixtureTheta

__all__ = [
    "FastIncrementalLane",
    "IncrementalLane",
    "MixtureLane",
    "OnlineLane",
    "VarianceReducedLane",
    "gaussian_mixture_lane",
]

MOST_WORK = 2048
"""Above this b·M·d matrix products in blocks are faster than a loop over samples."""


def gaussian_mixture_lane(task: Task) -> Lane | None:
    """Return the lane for this mixture and method, or None where it does not apply."""
    kinds: dict[type, type[MixtureLane]] = {
        OnlineEM: OnlineLane,
        IncrementalEM: IncrementalLane,
        VarianceReducedEM: VarianceReducedLane,
        FastIncrementalEM: FastIncrementalLane,
    }
    kind = kinds.get(type(task.method))
    if kind is None or type(task.model) is not BoundGaussianMixture or not is_served(task.source):
        return None
    work = task.method.batch_size * task.model.model.n_components * task.model.d
    if work > MOST_WORK:
        from swiftem.engine.mixture_batches import BATCH_LANES

        kind = BATCH_LANES[kind]
    return kind(task)


def _kernels() -> Any:
    """Return the compiled loops, imported only now: Numba is heavy."""
    from swiftem.engine.numba import gaussian_mixture

    return gaussian_mixture


class MixtureSnapshot(NamedTuple):
    """``far``: whether a sample was met that is far from all means; the loops then round differently."""

    far: bool


class MixtureLane(FusedLane):
    """What the four methods share: samples, statistics and working parameters as plain arrays."""

    centre: Array
    centre_parts: tuple[Array, Array]

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        assert isinstance(task.model, BoundGaussianMixture)
        self.samples = Samples(task.source, np.float64, task.method.index_streams)
        self.weight_scale = task.source.n / task.source.total_weight
        self.share = self.weight_scale / task.source.n
        self.far: int | None = None
        hyper = task.model.model
        self.penalty = (float(hyper.delta), float(hyper.epsilon), hyper.known_weights is not None)

    @property
    def per_iteration(self) -> int:
        """E-step evaluations of one iteration."""
        return self.task.method.batch_size * self.task.method.index_streams

    def load(self, now: Current) -> None:
        """Copy s and θ, which the kernels change in place.

        Where θ is θ̄(s), its weights are taken as the kernels write them, not normalised: then it makes no
        difference, to the last bit, where a stretch begins.
        """
        self.s = now.s.copy()
        weights, means = now.theta.weights.copy(), now.theta.means.copy()
        _, epsilon, known = self.penalty
        if not known and all(map(np.array_equal, now.theta, self.task.model.m_step(now.s))):
            weights = now.s[: len(weights)] + epsilon
        self.theta = GaussianMixtureTheta(weights, means)
        self.s_parts = self.parts(self.s)
        self.moved = False

    def parts(self, flat: Array) -> tuple[Array, Array]:
        """Return views (M,) and (M, d) of flat statistics."""
        n_components = len(self.theta.weights)
        return flat[:n_components], flat[n_components:].reshape(n_components, -1)

    def stretch(self, now: Current, stop: int) -> int:
        """Run the kernel; where a sample is too far from all means, change to the careful one and go on."""
        stop = self.prepare(now, stop)
        done, rejected = self.compiled(now, stop)
        now.rejected += rejected
        self.moved |= done > rejected
        self.task.e_step.evaluations += done * self.per_iteration
        if now.k + done < stop:
            if self.far is not None:
                raise FloatingPointError("the statistics are no longer finite: take a smaller step_size.")
            self.far = 0
        return now.k + done

    def snapshot(self) -> MixtureSnapshot | None:
        """Return which of the two kinds of loops is in use, where it is not the first."""
        return None if self.far is None else MixtureSnapshot(True)

    def restore(self, snapshot: Any, now: Current) -> None:
        """Go on with the same kind of loops."""
        if isinstance(snapshot, MixtureSnapshot):
            self.far = 0

    def prepare(self, now: Current, stop: int) -> int:
        """Return where the kernel has to stop."""
        return self.samples.stop(now.k, stop, self.task.method.batch_size)

    @abstractmethod
    def compiled(self, now: Current, stop: int) -> tuple[int, int]:
        """Do iterations ``now.k`` to ``stop`` − 1; return how many were done and how many rejected."""

    def store(self, now: Current) -> None:
        """Give s and θ = θ̄(s) back; θ stays as it was where every step was rejected."""
        if self.moved:
            now.s, now.theta = self.s, self.task.model.m_step(self.s)


class OnlineLane(MixtureLane):
    """sem."""

    def compiled(self, now: Current, stop: int) -> tuple[int, int]:
        """Run the kernel."""
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop))
        steps = step_sizes(self.task.gamma, now.k, stop)
        return _kernels().online_em(  # type: ignore[no-any-return]
            drawn.y, drawn.weight, self.weight_scale, steps, *drawn.index,
            *self.s_parts, *self.penalty, *self.theta, self.far,
        )  # fmt: skip


class IncrementalLane(MixtureLane):
    """iem."""

    def load(self, now: Current) -> None:
        """Copy the centre, too."""
        super().load(now)
        self.centre = now.state.centre.copy()
        self.centre_parts = self.parts(self.centre)

    def compiled(self, now: Current, stop: int) -> tuple[int, int]:
        """Run the kernel."""
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop), now.state.memory)
        found: tuple[int, int] = _kernels().incremental_em(
            drawn.y, drawn.weight, self.share, *drawn.index, drawn.memory,
            *self.s_parts, *self.centre_parts, *self.penalty, *self.theta, self.far,
        )  # fmt: skip
        self.samples.remember(drawn, now.state.memory)
        return found

    def store(self, now: Current) -> None:
        """Give the centre back, too."""
        super().store(now)
        now.state = now.state._replace(centre=self.centre)


class FastIncrementalLane(IncrementalLane):
    """fiem."""

    def compiled(self, now: Current, stop: int) -> tuple[int, int]:
        """Run the kernel."""
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop), now.state.memory)
        steps = step_sizes(self.task.gamma, now.k, stop)
        found: tuple[int, int] = _kernels().fast_incremental_em(
            drawn.y, drawn.weight, self.weight_scale, self.share, steps, *drawn.index, drawn.memory,
            *self.s_parts, *self.centre_parts, *self.penalty, *self.theta, self.far,
        )  # fmt: skip
        self.samples.remember(drawn, now.state.memory)
        return found


class VarianceReducedLane(MixtureLane):
    """sem-vr."""

    renewed = -1

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

    def compiled(self, now: Current, stop: int) -> tuple[int, int]:
        """Run the kernel."""
        anchor, centre = now.state
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop))
        steps = step_sizes(self.task.gamma, now.k, stop)
        return _kernels().variance_reduced_em(  # type: ignore[no-any-return]
            drawn.y, drawn.weight, self.weight_scale, steps, *drawn.index, *anchor,
            *self.s_parts, *self.parts(centre), *self.penalty, *self.theta, self.far,
        )  # fmt: skip
