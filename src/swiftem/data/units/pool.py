"""Execution of the tasks of units in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["LocalPool", "Pool"]


class Pool(Protocol):
    """Runs a pure function of units, here or elsewhere."""

    def map(
        self, function: Callable[..., Any], common: Any, work: Sequence[tuple[Any, ...]], *,
        name: str, check: Callable[[], None] = lambda: None,
    ) -> list[Any]:  # fmt: skip
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
        ...

    def hold(
        self, prepare: Callable[..., Any], work: list[tuple[Any, ...]], size: float
    ) -> list[tuple[Any, ...]]:
        """Return the work with units kept in memory as ``prepare(*item)``, if rows of ``size`` bytes fit."""
        ...

    def equip(self, compile_ahead: Callable[[], None]) -> None:
        """Compile kernels where the tasks run, before the first of them."""
        ...

    def spent(self) -> str:
        """Return a line on the workers, and how their time was spent; empty if there are none."""
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

    def hold(
        self, prepare: Callable[..., Any], work: list[tuple[Any, ...]], size: float
    ) -> list[tuple[Any, ...]]:
        """Return the work unchanged: the process may need its memory for other things."""
        return work

    def equip(self, compile_ahead: Callable[[], None]) -> None:
        """Do nothing: kernels are compiled when they are used."""

    def spent(self) -> str:
        """Return an empty line."""
        return ""


def _here(value: Any) -> Any:
    """Return a lazy object, computed in this thread; others unchanged."""
    if not hasattr(value, "__dask_graph__"):
        return value
    return value.compute(scheduler="synchronous")
