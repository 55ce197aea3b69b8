"""The choice of a run's lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem.data.rows.array_source import ArraySource
from swiftem.engine.document_lane import document_lane
from swiftem.engine.functions import functions_lane
from swiftem.engine.gaussian_mixture import gaussian_mixture_lane
from swiftem.engine.gpu.topics.lane import device_document_lane
from swiftem.engine.lane import Current, Lane, Task
from swiftem.engine.parts import is_served
from swiftem.engine.plsa import plsa_lane
from swiftem.engine.threads import one_thread_blas
from swiftem.methods.update import declared
from swiftem.models.components import BoundComponents
from swiftem.models.gaussian_components import BoundGaussians

__all__ = ["OneThreadLane", "choose_lane"]


def choose_lane(kernels: str, task: Task) -> Lane | None:
    """Return the fused lane for this model and method, or None: then the run goes iteration by iteration.

    Parameters
    ----------
    kernels : {"auto", "reference", "numpy"} or str
        As in :class:`swiftem.problem.Problem`.
    task : Task
        Model, method and data.
    """
    if kernels.startswith("torch:"):
        from swiftem.engine.gpu.lane import device_lane

        return device_lane(task)
    if kernels != "auto":
        return None
    lanes = (
        gaussian_mixture_lane, gaussian_components_lane, plsa_lane, device_document_lane, document_lane,
        functions_lane,
    )  # fmt: skip
    for lane_for in lanes:
        lane = lane_for(task)
        if lane is not None:
            return lane
    return None


def gaussian_components_lane(task: Task) -> Lane | None:
    """Return the lane of a mixture: compiled stretches for Gaussians, single iterations for others."""
    if not isinstance(task.model, BoundComponents) or not is_served(task.source):
        return None
    if not isinstance(task.model, BoundGaussians):
        return OneThreadLane(task)
    y = task.source.y if isinstance(task.source, ArraySource) else None
    if y is not None and (not y.flags.c_contiguous or y.dtype not in (np.float32, np.float64)):
        # Each kind of array would be four more kernels to compile, and a copy would double the memory.
        return OneThreadLane(task)
    update = declared(task.method)
    if update is None:
        return OneThreadLane(task)
    from swiftem.engine.gaussian_batches import GaussianLane

    return GaussianLane(task, update)


class OneThreadLane:
    """Algorithm 1 with BLAS limited to one thread: for batches more threads cost more than they gain.

    E-steps are compiled (:class:`swiftem.engine.block_expectation.BlockExpectation`), and the threads
    of full passes are the library's own.
    """

    def __init__(self, task: Task) -> None:
        self._plain = task.plain(task)

    def advance(self, now: Current, stop: int) -> None:
        """Do iterations ``now.k`` to ``stop`` − 1."""
        with one_thread_blas():
            self._plain.advance(now, stop)

    def snapshot(self) -> Any:
        """Return None: the whole state is in ``now``."""
        return self._plain.snapshot()

    def restore(self, snapshot: Any, now: Current) -> None:
        """Do nothing: the whole state is in ``now``."""
        self._plain.restore(snapshot, now)
