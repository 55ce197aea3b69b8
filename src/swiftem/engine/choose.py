"""The choice of a run's lane."""

from __future__ import annotations

from swiftem.engine.document_lane import document_lane
from swiftem.engine.functions import functions_lane
from swiftem.engine.gaussian_components import gaussian_components_lane
from swiftem.engine.gaussian_mixture import gaussian_mixture_lane
from swiftem.engine.lane import Lane, Task
from swiftem.engine.plsa import plsa_lane

__all__ = ["choose_lane"]


def choose_lane(kernels: str, task: Task) -> Lane | None:
    """Return the fused lane for this model and method, or None: then the run goes iteration by iteration.

    Parameters
    ----------
    kernels : {"auto", "reference", "numpy"}
        As in :class:`swiftem.problem.Problem`.
    task : Task
        Model, method and data.
    """
    if kernels != "auto":
        return None
    lanes = (gaussian_mixture_lane, gaussian_components_lane, plsa_lane, document_lane, functions_lane)
    for lane_for in lanes:
        lane = lane_for(task)
        if lane is not None:
            from swiftem.engine.numba.compile import say_when_compiling

            say_when_compiling()
            return lane
    return None
