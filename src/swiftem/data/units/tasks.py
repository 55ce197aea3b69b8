"""Units, and tasks over them: one after the other in this process.

A unit is a fixed part of the data that a task reads where it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from swiftem.core.types import Array
from swiftem.data.as_source import is_planned
from swiftem.data.weights import check_weights

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Item", "Units", "Work", "aligned", "nothing", "unit_weights"]

T = TypeVar("T")

Item = tuple[object, object, str]
"""A unit and its weights or None, both lazy or not, and the unit's name in errors."""
Work = Sequence[tuple[Any, ...]]
"""Number of a unit, and further arguments of its task."""


def nothing() -> None:
    """Do nothing between tasks."""


class Units:
    """Units of data that are read by this process. Threads work within a unit; results do not depend on them.

    Parameters
    ----------
    read : callable
        ``read(unit, weight, where)`` returns the checked content of a unit, and takes such content as a unit,
        too. It must be a function of a module, or a partial of one, so that workers find it by name.
    items : iterable of tuple
        Arguments of ``read`` for each unit.

    Examples
    --------
    >>> units = Units(lambda unit, weight, where: unit, [(3, None, "a"), (4, None, "b")])
    >>> units.map(pow, [(1, 2), (0, 3)])
    [16, 27]
    """

    client: Client | None = None
    """The distributed.Client whose workers run the tasks, if any."""

    def __init__(self, read: Callable[..., object], items: Iterable[Item]) -> None:
        self.read, self.items = read, list(items)

    def map(
        self, function: Callable[..., T], work: Work | None = None, *, check: Callable[[], None] = nothing
    ) -> list[T]:
        """Return ``function(content, *arguments)`` of units, in order.

        Parameters
        ----------
        function : callable
            A function of a module, or a partial of one; results depend only on its arguments.
        work : sequence of tuple, optional
            Number of a unit and further arguments of its task; by default all units, without any.
        check : callable
            Called regularly; it may raise, and no task is left running.
        """
        results = []
        for number, *arguments in self.every() if work is None else work:
            check()
            results.append(function(self.read(*map(_computed, self.items[number])), *arguments))
        return results

    def every(self) -> Work:
        """Return the tasks of all units, without further arguments."""
        return [(number,) for number in range(len(self.items))]

    def select(self, numbers: Sequence[int]) -> None:
        """Leave out all but some units, and number these from 0."""
        self.items = [self.items[number] for number in numbers]

    def hold(self, size: float) -> None:
        """Keep the content of units in the workers' memory, if ``size`` bytes fit: not in this process."""


def _computed(part: Any) -> Any:
    """Return a lazy object, computed in this thread; others unchanged."""
    return part.compute(scheduler="synchronous") if is_planned(part) else part


def aligned(array: Any) -> Any:
    """Return an array whose sums have the same bits everywhere: those from the network may not be aligned."""
    return None if array is None else np.require(array, requirements=["C", "A", "W"])


def unit_weights(weight: object, n: int, samples: str, where: str) -> Array:
    """Return the weights of the samples ("rows" or "documents") of a unit; invalid ones raise ValueError."""
    found: Array = aligned(np.asarray(weight, dtype=np.float64).reshape(-1))
    if len(found) != n:
        raise ValueError(
            f"sample_weight must be chunked like the {samples}: {n} {samples} and {len(found)} weights "
            f"in {where}."
        )
    check_weights(f"sample_weight of {where}", found, samples.removesuffix("s"))
    return found
