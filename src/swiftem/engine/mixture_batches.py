"""The mini-batch lane of the mixture with unit variances: matrix products, in compiled stretches."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from swiftem.engine.gaussian_mixture import (
    FastIncrementalLane,
    IncrementalLane,
    MixtureLane,
    OnlineLane,
    VarianceReducedLane,
)
from swiftem.engine.lane import Current, Task, step_sizes
from swiftem.engine.mixture_blocks import Geometry, geometry_of
from swiftem.engine.numba import mixture_batches as kernels
from swiftem.engine.numba.softmax import make_work
from swiftem.engine.parts import Drawn
from swiftem.engine.threads import one_thread_blas

__all__ = ["BATCH_LANES"]


class _BatchLane(MixtureLane):
    """What the four methods share: draws and steps of a stretch, blocks, and one thread for products."""

    FIRST = 16

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        geometry: Geometry = getattr(task.e_step, "geometry", None) or geometry_of(task.source)
        n_components: int = task.model.model.n_components  # type: ignore[attr-defined]
        sizes = task.method.batch_size, n_components, len(geometry.centre)
        self.blocks = (geometry.centre, geometry.near, make_work(*sizes))
        self.blocks_too = (*self.blocks, make_work(*sizes))

    def compiled(self, now: Current, stop: int) -> tuple[int, int]:
        """Run the kernel."""
        memory = getattr(now.state, "memory", None)
        drawn = self.samples.drawn(self.task.draws.block(now.k, stop), memory)
        steps = step_sizes(self.task.gamma, now.k, stop)
        with one_thread_blas():
            rejected = self.batches(now, steps, drawn)
        self.samples.remember(drawn, memory)
        return stop - now.k, rejected

    @abstractmethod
    def batches(self, now: Current, steps: Any, drawn: Drawn) -> int:
        """Do the iterations of a stretch; return how many steps were rejected."""


class _OnlineBatches(_BatchLane, OnlineLane):
    def batches(self, now: Current, steps: Any, drawn: Drawn) -> int:
        return kernels.online_em(  # type: ignore[no-any-return]
            drawn.y, drawn.weight, self.weight_scale, steps, *drawn.index,
            *self.s_parts, *self.penalty, *self.theta, *self.blocks,
        )  # fmt: skip


class _IncrementalBatches(_BatchLane, IncrementalLane):
    def batches(self, now: Current, steps: Any, drawn: Drawn) -> int:
        return kernels.incremental_em(  # type: ignore[no-any-return]
            drawn.y, drawn.weight, self.share, *drawn.index, drawn.memory,
            *self.s_parts, *self.centre_parts, *self.penalty, *self.theta, *self.blocks,
        )  # fmt: skip


class _VarianceReducedBatches(_BatchLane, VarianceReducedLane):
    def batches(self, now: Current, steps: Any, drawn: Drawn) -> int:
        anchor, centre = now.state
        return kernels.variance_reduced_em(  # type: ignore[no-any-return]
            drawn.y, drawn.weight, self.weight_scale, steps, *drawn.index, *anchor,
            *self.s_parts, *self.parts(centre), *self.penalty, *self.theta, *self.blocks_too,
        )  # fmt: skip


class _FastIncrementalBatches(_BatchLane, FastIncrementalLane):
    def batches(self, now: Current, steps: Any, drawn: Drawn) -> int:
        return kernels.fast_incremental_em(  # type: ignore[no-any-return]
            drawn.y, drawn.weight, self.weight_scale, self.share, steps, *drawn.index, drawn.memory,
            *self.s_parts, *self.centre_parts, *self.penalty, *self.theta, *self.blocks_too,
        )  # fmt: skip


BATCH_LANES: dict[type, Any] = {
    OnlineLane: _OnlineBatches,
    IncrementalLane: _IncrementalBatches,
    VarianceReducedLane: _VarianceReducedBatches,
    FastIncrementalLane: _FastIncrementalBatches,
}
"""For each fused lane the one that takes over where batches are large."""
