"""The choice of lane for the Gaussian mixture with unit variances, and the lane for few samples at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array
from swiftem.engine.compiled_lane import CompiledLane, Followed
from swiftem.engine.lane import Current, Lane, Task
from swiftem.engine.parts import Drawn, Samples, is_served
from swiftem.methods.update import Update, declared
from swiftem.models.gaussian_mixture import BoundGaussianMixture, GaussianMixtureTheta

__all__ = ["FewSamplesLane", "MixtureLane", "gaussian_mixture_lane"]

MOST_WORK = 2048
"""Above this b·M·d, matrix products in blocks are faster than a loop over samples."""


def gaussian_mixture_lane(task: Task) -> Lane | None:
    """Return the lane for this mixture and method, or None if it does not apply."""
    if type(task.model) is not BoundGaussianMixture or not is_served(task.source):
        return None
    update = declared(task.method)
    if update is None:
        return None
    if task.method.batch_size * task.model.model.n_components * task.model.d <= MOST_WORK:
        return FewSamplesLane(task, update, np.float64)
    from swiftem.engine.mixture_batches import MixtureBatchesLane

    return MixtureBatchesLane(task, update)


class MixtureLane(CompiledLane):
    """Statistics and θ as plain arrays."""

    def __init__(self, task: Task, update: Update, dtype: Any = None) -> None:
        super().__init__(task, update, Samples(task.source, dtype, task.method.index_streams))
        assert isinstance(task.model, BoundGaussianMixture)
        self.bound, hyper = task.model, task.model.model
        self.penalty = (float(hyper.delta), float(hyper.epsilon), hyper.known_weights is not None)

    def load_theta(self, now: Current) -> None:
        """Copy θ.

        If it is θ̄(s), its weights are loaded as the kernels write them, not normalised: then the beginning
        of a stretch makes no difference, bit by bit.
        """
        self.theta = self.prepared(now.theta)
        if all(map(np.array_equal, now.theta, self.bound.m_step(now.s))):
            self._restate(self.theta, now.s)

    def prepared(self, theta: GaussianMixtureTheta) -> GaussianMixtureTheta:
        """Return a copy."""
        return GaussianMixtureTheta(theta.weights.copy(), theta.means.copy())

    def theta_of(self, s: Array) -> GaussianMixtureTheta:
        """Return θ̄(s)."""
        return self.bound.m_step(s)

    def parts(self, flat: Array) -> tuple[Array, Array]:
        """Return views (M,) and (M, d) of flat statistics."""
        n_components = self.bound.model.n_components
        return flat[:n_components], flat[n_components:].reshape(n_components, -1)

    def arrays(self) -> tuple[Any, ...]:
        """Return the arrays that kernels change: ``before``, centre and s in parts, the penalty, and θ."""
        if self.restates_anchor:
            self._restate(self.anchor, self.before)
            self.restates_anchor = False
        parts = (*self.parts(self.before), *self.parts(self.centre), *self.parts(self.s))
        return (*parts, *self.penalty, *self.theta)

    def _restate(self, theta: GaussianMixtureTheta, s: Array) -> None:
        """Write the weights of θ̄(s) as the kernels do."""
        _, epsilon, known = self.penalty
        if not known:
            theta.weights[:] = s[: len(theta.weights)] + epsilon


class Far(NamedTuple):
    """Whether a sample was far from all means: the loop then rounds differently."""

    followed: Followed | None


class FewSamplesLane(MixtureLane):
    """One sample after the other.

    The fast loop computes plain densities, and returns if all of them vanish; from there on the lane uses
    the same loop compiled with densities relative to the largest.
    """

    far: int | None = None

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel; if a sample is too far from all means, switch to the careful one and continue."""
        from swiftem.engine.numba.gaussian_mixture import few_samples  # Numba is heavy

        update = self.update
        index = None if update.renewed_by == "drawn" else drawn.index[0]
        other = None if update.renewed_by == "none" else drawn.index[-1]
        anchor = (None, None) if self.anchor is None else self.anchor
        arrays, begin, rejected = self.arrays(), 0, 0
        if update.reference != "previous":
            arrays = (None, None, *arrays[2:])  # code for what follows is left out
        while True:
            done, more, moved = few_samples(
                drawn.y, drawn.weight, self.is_divided, self.scale, self.share, update.fixed,
                self.moments if update.is_optimal else None, steps[begin:],
                index if index is None else index[begin:],
                other if other is None else other[begin:], drawn.memory, *anchor, *arrays, self.far,
            )  # fmt: skip
            if begin + done == len(steps):
                return rejected + more, begin - rejected + moved
            if self.far is not None:
                raise FloatingPointError("the statistics are no longer finite: use a smaller step_size.")
            self.far, begin, rejected = 0, done, more

    def snapshot(self) -> Any:
        """Also store whether the careful loop is in use."""
        followed = super().snapshot()
        return followed if self.far is None else Far(followed)

    def restore(self, snapshot: Any, now: Current) -> None:
        """Continue with the same loop."""
        if isinstance(snapshot, Far):
            self.far, snapshot = 0, snapshot.followed
        super().restore(snapshot, now)
