"""What a run reports: records and callbacks, and averages of its statistics (Polyak and Ruppert)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from swiftem._checks import check_int
from swiftem.checkpoints.run_checkpoint import Position
from swiftem.engine.lane import Current
from swiftem.methods.method import Method
from swiftem.models.model import BoundModel
from swiftem.result import Iterate

__all__ = ["Averaging", "Records"]


class Records:
    """Records of a run, and calls of its callback: every ``every`` iterations, by default once per epoch.

    ``path`` has the records, ``last`` is the k of the last one (−1 before the first), ``stopped`` tells
    whether the callback ended the run, and ``per_pass`` is the number of evaluations per pass.
    """

    def __init__(
        self, every: int | None, record: Callable[[Iterate], Any] | None,
        callback: Callable[[Iterate], bool | None] | None, epoch: int,
    ) -> None:  # fmt: skip
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
        """Tell whether iterate ``k`` is to be recorded, and is not yet."""
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


POINTS = 16
"""Points per epoch or window that are averaged. Neighbours differ by a step: more of them change little, and
between two points compiled code is not interrupted."""


class Averaging:
    """The average of ŝ at every m-th iteration, from some point on; E-steps use ŝ itself.

    Two sums, of the points before and since the last restart, give an average over the last W to 2W
    iterations (restarts every W), or over their last half to three quarters (restarts at powers of two).
    They are in the method's state, so that a resumed run continues them.

    Parameters
    ----------
    method : Method
        Its ``average`` is None, "suffix" or W.
    model : BoundModel
        For the M-step.
    n : int
        Number of samples.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> model, gamma = models.GaussianMixtureModel(1), swiftem.schedules.power(1.0, 0.6)
    >>> plain, averaged = (
    ...     swiftem.run(model, y, methods.OnlineEM(gamma, average=average), n_iter=20_000, seed=0).theta
    ...     for average in (None, "suffix")
    ... )
    >>> bool(abs(averaged.means - y.mean()) < 0.7 * abs(plain.means - y.mean()))
    True
    """

    def __init__(self, method: Method, model: BoundModel, n: int) -> None:
        self.kind, self._model = method.average, model
        length = method.epoch(n) if self.kind == "suffix" else self.kind
        self._every = 0 if length is None else max(1, int(length) // POINTS)
        self._window = None if self.kind in (None, "suffix") else max(1, -(-int(self.kind) // self._every))

    def next(self, k: int, stop: int) -> int:
        """Return the next point after ``k``, at most ``stop``."""
        return min(stop, (k // self._every + 1) * self._every) if self._every else stop

    def add(self, now: Current) -> None:
        """Add the statistics of ``now`` if it is a point."""
        if not self._every or now.k % self._every:
            return
        number, sums, counts = now.k // self._every, now.state.sums.copy(), now.state.counts.copy()
        if number % self._window == 0 if self._window else number & (number - 1) == 0:
            sums[0], counts[0], sums[1], counts[1] = sums[1], counts[1], 0.0, 0
        sums[1] += now.s
        counts[1] += 1
        now.state = now.state._replace(sums=sums, counts=counts)

    def reported(self, now: Current) -> Current:
        """Return ``now`` with the average as statistics, and its M-step as θ."""
        if not self._every or not now.state.counts.any():
            return now
        s = now.state.sums.sum(axis=0) / now.state.counts.sum()
        return replace(now, s=s, theta=self._model.m_step(s)) if self._model.in_domain(s) else now

    def kept(self, now: Current) -> Any:
        """Return the method's state, with the ŝ and θ that the average is not."""
        return now.state._replace(s=now.s, theta=now.theta) if self._every else now.state
