"""The mini-batch lane of the mixture with unit variances: matrix products, in compiled stretches."""

from __future__ import annotations

import numpy as np

from swiftem._typing import Array
from swiftem.data.rows.array_source import ArraySource
from swiftem.engine.compiled_lane import Drawn
from swiftem.engine.gaussian_batches import REFERENCES
from swiftem.engine.gaussian_mixture import Geometry, MixtureLane, geometry_of
from swiftem.engine.lane import Task
from swiftem.engine.numba.gaussian_blocks import twin
from swiftem.engine.numba.mixture_batches import batches
from swiftem.engine.numba.softmax import make_work
from swiftem.engine.threads import one_thread_blas
from swiftem.methods.method import Update

__all__ = ["MixtureBatchesLane"]


class MixtureBatchesLane(MixtureLane):
    """Many samples at once."""

    FIRST = 16

    def __init__(self, task: Task, update: Update) -> None:
        y = task.source.y if isinstance(task.source, ArraySource) else None
        dtype = None if y is None or y.dtype in (np.float32, np.float64) else np.float64
        super().__init__(task, update, dtype)
        geometry: Geometry = getattr(task.e_step, "geometry", None) or geometry_of(task.source)
        sizes = task.method.batch_size, self.bound.model.n_components, self.bound.d
        self._blocks = (
            geometry.centre, geometry.near, np.empty(sizes[1]), np.empty(sizes[1:]),
            make_work(*sizes), make_work(*sizes),
        )  # fmt: skip
        self._no_memory = np.empty((0, sizes[1]))

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel."""
        update, index = self.update, drawn.index
        memory = self._no_memory if drawn.memory is None else drawn.memory
        anchor = self.theta if self.anchor is None else self.anchor
        arrays = self.arrays()
        with one_thread_blas():
            found: tuple[int, int] = batches(
                twin(drawn.y), drawn.weight, self.is_divided, self.scale, self.share,
                REFERENCES[update.reference], update.fixed, self.moments, update.renewed_by != "drawn",
                update.renewed_by != "none",
                update.reference == "previous", steps, index[0], index[-1], twin(memory), *anchor,
                *arrays, *self._blocks,
            )  # fmt: skip
        return found
