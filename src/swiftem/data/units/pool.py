"""Execution of the tasks of units: the contract, and one after the other in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from swiftem.data.foreign import is_planned

__all__ = ["LocalPool", "Pool"]

Work = list[tuple[Any, ...]]
"""Arguments of the tasks of units: the unit, its weights, and its place."""


class Pool(ABC):
    """Base class of executors of pure functions of units, here or elsewhere.

    Attributes
    ----------
    client : distributed.Client or None
        The client whose workers run the tasks, if any.
    """

    client: Any = None

    @abstractmethod
    def map(
        self,
        function: Callable[..., Any],
        common: Any,
        work: Sequence[tuple[Any, ...]],
        *,
        name: str,
        check: Callable[[], None] = lambda: None,
    ) -> list[Any]:
        """Return ``function(common, *item)`` of each item, in order.

        Parameters
        ----------
        function : callable
            A function of a module, so that it can be found by name elsewhere; results depend only on its
            arguments.
        common : object
            The same for all items: it is sent once.
        work : sequence of tuple
            The items.
        name : str
            Name of the tasks, for messages.
        check : callable
            Called regularly; it may raise, and no task is left running.
        """

    def hold(self, prepare: Callable[..., Any], work: Work, size: float) -> Work:
        """Return the work with units kept in memory as ``prepare(*item)``, if rows of ``size`` bytes fit.

        By default the work is returned unchanged.
        """
        return work


class LocalPool(Pool):
    """Processes units sequentially. Threads work within a unit; results do not depend on them.

    >>> LocalPool().map(pow, 2, [(3,), (4,)], name="powers")
    [8, 16]
    """

    def map(
        self,
        function: Callable[..., Any],
        common: Any,
        work: Sequence[tuple[Any, ...]],
        *,
        name: str,
        check: Callable[[], None] = lambda: None,
    ) -> list[Any]:
        """Return ``function(common, *item)`` of each item."""
        results = []
        for item in work:
            check()
            results.append(function(common, *map(_computed, item)))
        return results


def _computed(value: Any) -> Any:
    """Return a lazy object, computed in this thread; others unchanged."""
    return value.compute(scheduler="synchronous") if is_planned(value) else value
