r"""The remaining gain of em, which decides whether a fit has converged.

Near a stationary point em converges linearly: gains of the mean log-likelihood shrink by a factor c per pass.
With the last two gains g and g', c = g / g', and by Aitken's extrapolation the remaining gain is

.. math:: R = g\, (c + c^2 + \dots) = g\, c / (1 - c).

It is infinite on a plateau, if gains do not shrink. Early gains shrink faster than later ones: c is assumed
to rise once more by as much as it did, or halfway to 1 if that is unknown, and to be at least
:data:`LEAST_RATE`. A fit has converged if em gains less than ``tol`` per pass and R is
below :data:`MULTIPLE` times ``tol``, whatever the method: stochastic methods end with passes of em. For a
tiny ``tol`` it is enough that R, summed over all rows, is below :data:`NEGLIGIBLE`. On few rows, where a pass
is cheap, a fit also looks ahead (:func:`swiftem.estimators.mixture.optima.accelerated.beyond_plateau`).
"""

from __future__ import annotations

from math import inf, isfinite

__all__ = ["MULTIPLE", "NEGLIGIBLE", "Remaining"]

MULTIPLE = 8.0
"""Maximum remaining gain of a converged fit, in units of ``tol``."""
NEGLIGIBLE = 0.005
"""A gain of the total log-likelihood of all rows that cannot distinguish two fits."""
LEAST_RATE, UNKNOWN_RATE = 0.9, 0.9999
"""Minimum of c, and its value if there was only one gain."""
ROUNDING = 1e-13
"""A smaller gain, relative to the bound, is rounding."""


class Remaining:
    """Receives the bounds of em, pass by pass.

    Parameters
    ----------
    tol : float
        Tolerance of the fit.
    n : int
        Number of rows.
    last_bound, last_gain, last_rate : float
        Last values of em before; −∞, ∞ and ∞ if unknown.

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
        self, tol: float, n: int, last_bound: float = -inf, last_gain: float = inf,
        last_rate: float = inf,
    ) -> None:  # fmt: skip
        self._tol, self.small = tol, max(MULTIPLE * tol, NEGLIGIBLE / n)
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

        ``rate`` is c if it is known otherwise, as with larger steps than those of em.
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
