"""When em has converged: larger steps within a fit, and the gain that remains."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

import numpy as np

from swiftem.core.checkpoint import check_form
from swiftem.core.method import EStep
from swiftem.core.types import Array
from swiftem.methods.accelerated import Acceleration, Anderson

__all__ = ["MOST_PASSES", "MULTIPLE", "NEGLIGIBLE", "Leaps", "Remaining"]

MULTIPLE = 8.0
"""Maximum remaining gain of a converged fit, in units of ``tol``."""
NEGLIGIBLE = 0.005
"""A gain of the total log-likelihood of all rows that cannot distinguish two fits."""
LEAST_RATE, UNKNOWN_RATE = 0.9, 0.9999
"""Minimum of c, and its value if there was only one gain."""
ROUNDING = 1e-13
"""A smaller gain, relative to the bound, is rounding."""
MOST_PASSES = 10**12
"""Larger values of ``max_iter`` are replaced by this one; the result is the same."""


class Leaps:
    """The state of an acceleration within a fit.

    Parameters
    ----------
    acceleration : Acceleration
        SQUAREM or Anderson's.
    """

    def __init__(self, acceleration: Acceleration) -> None:
        self._acceleration = acceleration
        self.state: Any = None

    @property
    def rate(self) -> float:
        """Rate of em in the last pass, infinite if that was not one of em: see :class:`Acceleration`."""
        return inf if self.state is None else float(self.state.rate)

    @property
    def point(self) -> Array | None:
        """The statistics of the next pass, or None if it is at the current parameters."""
        return self.state.point if self.state is not None and self.state.leaps else None

    def take(self, s: Array, objective: float, space: EStep, is_calm: bool = False) -> Array:
        """Return em's step from the last accepted point: ``s``, unless the pass was at a worse leap.

        Whether em has converged only its own steps tell. SQUAREM makes one before each leap, Anderson's
        acceleration only if ``is_calm``, which tells that the last pass has gained little.
        """
        before = self._acceleration.begin(s) if self.state is None else self.state
        plain = is_calm and before.leaps and isinstance(self._acceleration, Anderson)
        self.state = self._acceleration.advance(before, s, objective, space, plain=plain)
        kept: Array = self.state.kept
        return kept

    @property
    def objective(self) -> float:
        """The objective at the last accepted point."""
        return float(self.state.objective)

    def restore(self, state: Any, size: int) -> None:
        """Restore a state for ``size`` statistics; raise TypeError if it has another form."""
        if state is not None:
            check_form("steps", state, self._acceleration.begin(np.zeros(size)))
        self.state = state

    def restart(self) -> None:
        """Forget all passes: parameters have changed."""
        self.state = None


class Remaining:
    r"""The remaining gain of em, which decides whether a fit has converged; it receives the bounds of passes.

    Near a stationary point em converges linearly: gains of the mean log-likelihood shrink by a factor c per
    pass. With the last two gains g and g', c = g / g', and by Aitken's extrapolation the remaining gain is

    .. math:: R = g\, (c + c^2 + \dots) = g\, c / (1 - c).

    It is infinite on a plateau, if gains do not shrink. Early gains shrink faster than later ones: c is
    assumed to rise once more by as much as it did, or halfway to 1 if that is unknown, and to be at least
    :data:`LEAST_RATE`. A fit has converged if em gains less than ``tol`` per pass and R is below
    ``multiple`` times ``tol``, whatever the method: stochastic methods end with passes of em. For a tiny
    ``tol`` it is enough that R, summed over all rows, is below :data:`NEGLIGIBLE`. On few rows, where a pass
    is cheap, a fit also looks ahead (:func:`swiftem.mixture.fit.beyond_plateau`).

    Parameters
    ----------
    tol : float
        Tolerance of the fit.
    n : int
        Number of rows.
    last_bound, last_gain, last_rate : float
        Last values of em before; −∞, ∞ and ∞ if unknown.
    multiple : float
        Maximum remaining gain in units of ``tol``.

    Attributes
    ----------
    small : float
        Maximum remaining gain of a converged fit.

    Examples
    --------
    >>> remaining = Remaining(tol=1e-2, n=1000)
    >>> [remaining.is_small(bound) for bound in (-1.0, -0.5, -0.45, -0.4499, -0.4498)]
    [False, False, False, True, False]
    """

    def __init__(
        self,
        tol: float,
        n: int,
        last_bound: float = -inf,
        last_gain: float = inf,
        last_rate: float = inf,
        *,
        multiple: float = MULTIPLE,
    ) -> None:
        self._tol, self.small = tol, max(multiple * tol, NEGLIGIBLE / n)
        self.last_bound, self.last_gain, self.last_rate = last_bound, last_gain, last_rate

    @property
    def state(self) -> tuple[float, float, float]:
        """The last bound, gain and rate."""
        return self.last_bound, self.last_gain, self.last_rate

    def restart(self) -> None:
        """Forget all passes: parameters have changed."""
        self.last_bound, self.last_gain, self.last_rate = -inf, inf, inf

    def is_small(self, bound: float, rate: float | None = None) -> bool:
        """Take note of the bound of one more pass; return whether em would gain little from there.

        ``rate`` is c if it is known otherwise, as with larger steps than em's.
        """
        gain, before, last_rate = abs(bound - self.last_bound), self.last_gain, self.last_rate
        self.last_bound, self.last_gain = bound, gain if isfinite(gain) else inf
        self.last_rate = gain / before if 0.0 < before < inf else inf
        if not gain < self._tol:
            return False
        if rate is None:
            if gain <= ROUNDING * abs(bound):
                return True
            rate = UNKNOWN_RATE
            if isfinite(before):
                rise = self.last_rate - last_rate if isfinite(last_rate) else 0.5 * (1.0 - self.last_rate)
                rate = self.last_rate + max(rise, 0.0)
        rate = max(rate, LEAST_RATE)
        return rate < 1.0 and gain * rate / (1.0 - rate) < self.small
