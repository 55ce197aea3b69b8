"""Records of a run, and its callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from swiftem.core.algorithm import Current
from swiftem.core.checkpoint import Position
from swiftem.core.checks import check_int
from swiftem.core.result import Iterate

__all__ = ["Records"]


class Records:
    """Records of a run, and calls of its callback: every ``every`` iterations, by default once per epoch.

    ``path`` has the records, ``last`` is the k of the last one (−1 before the first), ``stopped`` says
    whether the callback ended the run, and ``per_pass`` is the number of evaluations per pass.
    """

    def __init__(
        self,
        every: int | None,
        record: Callable[[Iterate], Any] | None,
        callback: Callable[[Iterate], bool | None] | None,
        epoch: int,
    ) -> None:
        if every is not None:
            self.every = check_int("record_every", every, minimum=1)
        else:
            self.every = 0 if record is None and callback is None else epoch
        self._record, self._callback, self.per_pass = record, callback, 1
        self.path: list[Any] = []
        self.last, self.stopped = -1, False

    def restore(self, kept: Position) -> None:
        """Restore the records from a checkpoint."""
        self.path, self.last, self.stopped = kept.path, kept.recorded, kept.stopped

    def next(self, k: int, stop: int) -> int:
        """Return the k of the next record after ``k``, at most ``stop``."""
        return min(stop, (k // self.every + 1) * self.every) if self.every else stop

    def is_due(self, k: int) -> bool:
        """Return whether iterate ``k`` is to be recorded, and is not yet."""
        return bool(self.every) and k % self.every == 0 and k != self.last and not self.stopped

    def take(self, now: Current) -> None:
        """Record the current iterate if that is due and not done yet, and call the callback."""
        if not self.is_due(now.k):
            return
        self.last = now.k
        iterate = Iterate(now.k, now.evaluations / self.per_pass, now.theta, now.s, now.rejected)
        kept = iterate if self._record is None else self._record(iterate)
        if kept is not None:
            self.path.append(kept)
        self.stopped = self._callback is not None and bool(self._callback(iterate))
