"""Which lane a run takes."""

from __future__ import annotations

from swiftem.lanes.lane import Lane, Task

__all__ = ["choose_lane"]


def choose_lane(kernels: str, task: Task) -> Lane | None:
    """Return the fused lane for this model and method, or None: then iteration by iteration.

    Parameters
    ----------
    kernels : {"auto", "reference"}
        As the user said.
    task : Task
        Model, method and data.
    """
    return None
