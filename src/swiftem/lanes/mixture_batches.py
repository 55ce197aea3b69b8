"""The mini-batch lane of the mixture with unit variances: matrix products with compiled steps between."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem._typing import Array, Index
from swiftem.kernels.numba import softmax
from swiftem.kernels.threads import one_thread_blas
from swiftem.lanes.gaussian_mixture import (
    FastIncrementalLane,
    IncrementalLane,
    MixtureLane,
    OnlineLane,
    VarianceReducedLane,
)
from swiftem.lanes.lane import Current, Task, step_sizes
from swiftem.lanes.mixture_blocks import Block, Geometry

__all__ = ["BATCH_LANES"]

ALL_ALIKE = np.empty(0)


class _BatchLane(MixtureLane):
    """What the four methods share: the E-step of a batch, and its sum of statistics."""

    LONGEST = 1024

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        n_components, d, b = task.model.model.n_components, self.y.shape[1], task.method.batch_size  # type: ignore[attr-defined]
        geometry: Geometry = getattr(task.e_step, "geometry", None) or Geometry(self.y)
        self.offset = geometry.centre
        self.block, self.block_too = Block(geometry, b, n_components), Block(geometry, b, n_components)
        self.change1, self.change2 = np.empty(n_components), np.empty((n_components, d))
        self.zero1, self.zero2 = np.zeros(n_components), np.zeros((n_components, d))
        self.per_sample = self.weight_scale / b

    def prepare(self, now: Current, stop: int) -> int:
        return super().prepare(now, min(stop, now.k + self.LONGEST))

    def compiled(self, now: Current, stop: int) -> tuple[int, int]:
        streams = self.task.draws.block(now.k, stop)
        steps = step_sizes(self.task.gamma, now.k, stop)
        rejected = 0
        with one_thread_blas():
            for step, *index in zip(steps.tolist(), *streams, strict=True):
                rejected += self.iteration(now, step, *index)
        return stop - now.k, rejected

    def iteration(self, now: Current, step: float, *index: Index) -> int:
        """Do one iteration; return 1 where its step was rejected, else 0."""
        raise NotImplementedError

    def e_step(self, block: Block, index: Index) -> Array:
        block.begin(self.theta, self.y, index)
        return block.e_step()

    def weights_of(self, index: Index) -> Array:
        return self.sample_weight[index] if len(self.sample_weight) else ALL_ALIKE

    def sum(self, block: Block, rows: Array, index: Index, factor: float) -> tuple[Array, Array]:
        """Return factor · Σ weight · rows ⊗ (1, y), y minus the offset, in buffers."""
        self.change1[:] = 0.0
        softmax.weigh(rows, self.weights_of(index), factor, self.change1)
        np.dot(rows.T, block.y, out=self.change2)
        return self.change1, self.change2

    def advance_by(self, step: float, centre: tuple[Array, Array], change: tuple[Array, Array]) -> int:
        return softmax.advance(  # type: ignore[no-any-return]
            *centre, *change, self.offset, step, *self.s_parts, *self.penalty, *self.theta
        )

    def renew_centre(self, block: Block, rows: Array, index: Index, memory: Array) -> None:
        """Write rows into the memory and what changed into the centre."""
        softmax.swap(rows, index, memory, True)
        change1, change2 = self.sum(block, rows, index, self.weight_scale / self.task.source.n)
        centre1, centre2 = self.centre_parts
        centre1 += change1
        centre2 += change2
        centre2 += np.multiply.outer(change1, self.offset)


class _OnlineBatches(_BatchLane, OnlineLane):
    def iteration(self, now: Current, step: float, *index: Index) -> int:
        (i,) = index
        block, weight = self.block, self.weights_of(i)
        block.begin(self.theta, self.y, i)
        self.change1[:] = 0.0
        rows = block.weighted_e_step(weight, self.per_sample, self.change1)
        np.dot(rows.T, block.y, out=self.change2)
        return self.advance_by(step, (self.zero1, self.zero2), (self.change1, self.change2))  # (oem)


class _IncrementalBatches(_BatchLane, IncrementalLane):
    def iteration(self, now: Current, step: float, *index: Index) -> int:
        (i,) = index
        self.renew_centre(self.block, self.e_step(self.block, i), i, now.state.memory)
        return self.advance_by(1.0, self.centre_parts, (self.zero1, self.zero2))  # (iem)


class _VarianceReducedBatches(_BatchLane, VarianceReducedLane):
    def iteration(self, now: Current, step: float, *index: Index) -> int:
        (i,) = index
        anchor, centre = now.state
        rows = self.e_step(self.block, i)
        self.block_too.begin(anchor)
        self.block_too.y = self.block.y
        rows -= self.block_too.e_step()
        return self.advance_by(
            step, self.parts(centre), self.sum(self.block, rows, i, self.per_sample)
        )  # (svrgem)


class _FastIncrementalBatches(_BatchLane, FastIncrementalLane):
    def iteration(self, now: Current, step: float, *index: Index) -> int:
        i, j = index
        memory = now.state.memory
        rows, news = self.e_step(self.block, i), self.e_step(self.block_too, j)
        softmax.swap(rows, i, memory, False)
        change = self.sum(self.block, rows, i, self.per_sample)
        rejected = self.advance_by(step, self.centre_parts, change)  # (sagaem), first half
        self.renew_centre(self.block_too, news, j, memory)  # (sagaem), second half
        return rejected


BATCH_LANES: dict[type, Any] = {
    OnlineLane: _OnlineBatches,
    IncrementalLane: _IncrementalBatches,
    VarianceReducedLane: _VarianceReducedBatches,
    FastIncrementalLane: _FastIncrementalBatches,
}
"""For each fused lane the one that takes over where batches are large."""
