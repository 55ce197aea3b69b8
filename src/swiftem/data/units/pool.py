"""Who does the tasks of units: this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["LocalPool", "Pool"]


class Pool(Protocol):
    """Does a pure function of units, here or elsewhere."""

    def map(
        self, function: Callable[..., Any], common: Any, work: Sequence[tuple[Any, ...]], *,
        name: str, check: Callable[[], None] = lambda: None,
    ) -> list[Any]:  # fmt: skip
        """Return ``function(common, *item)`` of each item, in order.

        Parameters
        ----------
        function : callable
            Of a module, so that it can be found by name elsewhere; its results depend on its arguments alone.
        common : object
            The same for all items: it is sent once.
        work : sequence of tuple
            The items.
        name : str
            Of the tasks, for people.
        check : callable
            Called now and then; it may raise, and nothing is left running.
        """
        ...

    def hold(self, work: list[tuple[Any, ...]], size: float | None) -> list[tuple[Any, ...]]:
        """Return the work with what is planned kept in memory, if rows of ``size`` bytes fit there."""
        ...


class LocalPool:
    """Units one after the other; the threads are those within a unit, and change no bit.

    >>> LocalPool().map(pow, 2, [(3,), (4,)], name="powers")
    [8, 16]
    """

    def map(
        self, function: Callable[..., Any], common: Any, work: Sequence[tuple[Any, ...]], *,
        name: str, check: Callable[[], None] = lambda: None,
    ) -> list[Any]:  # fmt: skip
        """Return ``function(common, *item)`` of each item."""
        found = []
        for item in work:
            check()
            found.append(function(common, *map(_here, item)))
        return found

    def hold(self, work: list[tuple[Any, ...]], size: float | None) -> list[tuple[Any, ...]]:
        """Return the work as it is: the process may have other plans for its memory."""
        return work


def _here(value: Any) -> Any:
    """Return a planned object, computed in this thread; others as they are."""
    if not hasattr(value, "__dask_graph__"):
        return value
    return value.compute(scheduler="synchronous")
