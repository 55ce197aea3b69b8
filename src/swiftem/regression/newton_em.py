r"""EM for regressions in NumPy: the starts of all of them, and the fits of Poisson responses.

Poisson responses have no finite statistics: y given x is Poisson with the mean exp(βᵀx̃), and no finite number
of means over rows gives the M-step. Each pass makes one Newton step for each component instead, halved until
the expected log-likelihood gains: this is a generalised EM, whose objective never increases. Rows far from
all others may have any βᵀx̃ on the way: above :data:`LARGEST` the exponential is continued as a straight line,
so that log-likelihoods are finite, concave in β, and still tell components apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from swiftem.core.checkpoint import check_form
from swiftem.core.types import Array, Tree
from swiftem.fit.driver import Drive, FitState, Outcome

CANDIDATES, SHORT, ROWS = 10, 8, 2000
"""Candidates of a start, their passes, and the rows that they are compared on."""
FLOOR = 1e-6
"""Smallest variance of the noise in a start, relative to the variance of y."""
HALVINGS, DOUBLINGS = 20, 8
LARGEST = 300.0
"""Largest logarithm of a mean."""
ABOVE = 3.0
"""Logarithm of a mean, above that of the largest count, from which on Newton steps are too short: 1 each."""
FLAT = 1e-12
"""Share of the largest curvature below which another one is rounding."""


class Regressions(NamedTuple):
    """Weights (M,), coefficients (M, k) and variances (M,)."""

    weights: Array
    beta: Array
    variances: Array

    def for_mixture(self) -> tuple[Array, dict[str, Array]]:
        """Return weights and parameters as the mixture of rows (x, y) has them."""
        return self.weights, {"coefficients": self.beta, "variances": self.variances}


class Units(NamedTuple):
    """Centre and scale of the columns, (d,) each, and of the response; counts have none.

    Without an ``intercept`` the centres are zero.
    """

    intercept: bool
    centre: Array
    scale: Array
    shift: float
    unit: float

    @classmethod
    def of(cls, family: str, rows: Array, values: Array, weight: Array, intercept: bool) -> Units:
        """Return means and standard deviations, or one for constant columns."""
        centre = np.average(rows, axis=0, weights=weight) if intercept else np.zeros(rows.shape[1])
        scale = np.sqrt(np.average(np.square(rows - centre), axis=0, weights=weight))
        shift, unit = 0.0, 1.0
        if family == "gaussian":
            shift = float(np.average(values, weights=weight)) if intercept else 0.0
            unit = float(np.sqrt(np.average((values - shift) ** 2, weights=weight))) or 1.0
        return cls(intercept, centre, np.where(scale > 0.0, scale, 1.0), shift, unit)

    def design(self, rows: Array) -> Array:
        """Return standardised rows, after a column of ones if there is an intercept."""
        standard = (rows - self.centre) / self.scale
        return np.column_stack([np.ones(len(rows)), standard]) if self.intercept else standard

    def outside(self, beta: Array, variances: Array) -> tuple[Array, Array]:
        """Return coefficients, intercepts first, zero if there is none, and variances in the data's units."""
        slopes = self.unit * (beta[:, 1:] if self.intercept else beta) / self.scale
        constant = beta[:, 0] if self.intercept else np.zeros(len(slopes))
        first = self.shift + self.unit * constant - slopes @ self.centre
        return np.column_stack([first, slopes]), variances * self.unit**2

    def inside(self, beta: Array, variances: Array) -> tuple[Array, Array]:
        """Return coefficients and variances in standardised units: the inverse of :meth:`outside`."""
        first, slopes = beta[:, 0], beta[:, 1:] * self.scale / self.unit
        if self.intercept:
            first = (first + beta[:, 1:] @ self.centre - self.shift) / self.unit
            slopes = np.column_stack([first, slopes])
        return slopes, variances / self.unit**2


def mean_of(eta: Array) -> Array:
    """Return exp(η), at most e^300."""
    return np.exp(np.minimum(eta, LARGEST))


def _total_of(eta: Array) -> Array:
    """Return exp(η), continued as a straight line above 300."""
    return mean_of(eta) * (1.0 + np.maximum(eta - LARGEST, 0.0))


def normalised(logs: Array) -> tuple[Array, Array]:
    """Return the responsibilities (n, M) and log-likelihoods (n,) of log ω_m f_m (n, M).

    >>> normalised(np.array([[-1e130, -1e130]]))[0]
    array([[0.5, 0.5]])
    """
    largest = logs.max(axis=1, keepdims=True)
    r = np.exp(logs - largest)
    totals = r.sum(axis=1, keepdims=True)
    return r / totals, (largest + np.log(totals))[:, 0]


def log_densities(family: str, X: Array, y: Array, now: Regressions) -> Array:
    """Return log ω_m + log f(y | x; θ_m), (n, M), without log y! for Poisson responses."""
    mean = X @ now.beta.T
    with np.errstate(divide="ignore"):
        weights = np.log(now.weights)
    if family == "poisson":
        return np.asarray(weights + y[:, None] * mean - _total_of(mean))
    return np.asarray(
        weights - 0.5 * ((y[:, None] - mean) ** 2 / now.variances + np.log(2.0 * np.pi * now.variances))
    )


def one_pass(
    family: str, X: Array, y: Array, weight: Array, now: Regressions, ridge: float, floor: float
) -> tuple[Regressions, float]:
    """Return the next parameters, and the mean log-likelihood of the given ones, minus the penalty."""
    r, found = normalised(log_densities(family, X, y, now))
    r *= weight[:, None]
    total = float(weight.sum())
    value = float(weight @ found) / total
    value -= 0.5 * ridge * float(np.square(now.beta).sum()) / total
    beta, variances = now.beta.copy(), now.variances.copy()
    for m in range(len(beta)):
        if family == "poisson":
            beta[m] = _newton(X, y, r[:, m], beta[m], ridge)
        else:
            gram = (X * r[:, m : m + 1]).T @ X + max(ridge, 1e-10) * np.eye(X.shape[1])
            beta[m] = np.linalg.solve(gram, X.T @ (r[:, m] * y))
            variances[m] = max(float(r[:, m] @ (y - X @ beta[m]) ** 2) / max(r[:, m].sum(), 1e-300), floor)
    return Regressions(r.sum(axis=0) / total, beta, variances), value


def _newton(X: Array, y: Array, r: Array, beta: Array, ridge: float) -> Array:
    """Return coefficients after a Newton step of Σ r (y βᵀx − exp βᵀx) − ridge·|β|² / 2."""

    def gain(at: Array) -> float:
        eta = X @ at
        return float(r @ (y * eta - _total_of(eta))) - 0.5 * ridge * float(at @ at)

    eta = X @ beta
    mean = mean_of(eta)
    slope = X.T @ (r * (y - mean)) - ridge * beta
    curvature = (X * (r * mean)[:, None]).T @ X + (ridge + 1e-10) * np.eye(X.shape[1])
    # One row may outweigh all others by more than the digits there are: the step is along it then.
    size = np.sqrt(np.diagonal(curvature))
    step = np.linalg.lstsq(curvature / np.outer(size, size), slope / size, rcond=FLAT)[0] / size
    before = gain(beta)
    for _ in range(HALVINGS):
        now = gain(beta + step)
        if now >= before:
            break
        step = 0.5 * step
    else:
        return beta
    if eta.max() > np.log1p(y.max()) + ABOVE:
        for _ in range(DOUBLINGS):
            before, now = now, gain(beta + 2.0 * step)
            if not now > before:
                break
            step = 2.0 * step
    return np.asarray(beta + step)


def best_start(
    family: str,
    X: Array,
    y: Array,
    weight: Array,
    n_components: int,
    ridge: float,
    rng: np.random.Generator,
) -> Regressions:
    """Return the best of several starts: regressions of a few random rows, and short fits to a sample."""
    if len(y) > ROWS:
        index = rng.choice(len(y), ROWS, replace=False)
        X, y, weight = X[index], y[index], weight[index]
    best, best_value = None, -np.inf
    target = np.log(y + 0.5) if family == "poisson" else y
    spread = max(float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)), FLOOR)
    few = min(X.shape[1] + 1, len(y))
    for _ in range(CANDIDATES if n_components > 1 else 1):
        beta = np.empty((n_components, X.shape[1]))
        for m in range(n_components):
            rows = rng.choice(len(y), few, replace=False)
            gram = X[rows].T @ X[rows] + 0.1 * np.eye(X.shape[1])
            beta[m] = np.linalg.solve(gram, X[rows].T @ target[rows])
        now = Regressions(
            np.full(n_components, 1.0 / n_components), beta, np.full(n_components, 0.25 * spread)
        )
        value = -np.inf
        for _ in range(SHORT):
            now, value = one_pass(family, X, y, weight, now, ridge, FLOOR)
        if np.isfinite(value) and value > best_value:
            best, best_value = now, value
    assert best is not None, "a start has a finite likelihood"
    return best


@dataclass(kw_only=True)
class NewtonFit(FitState):
    """State of a fit of counts: parameters of standardised rows, now and ``before`` the last pass."""

    now: Regressions
    before: Regressions | None = None

    @property
    def bound(self) -> float:
        """The largest mean log-likelihood; the last pass may have lost some by rounding."""
        return max((-moment.objective for moment in self.moments), default=-inf)

    def restore(self, kept: Mapping[str, Tree]) -> None:
        """Restore what a checkpoint stored; raise an error if it has another form."""
        like = self.now
        super().restore(kept)
        check_form("now", self.now, like)


@dataclass(frozen=True)
class NewtonPass:
    """Passes of em whose M-step is a Newton step per component.

    Attributes
    ----------
    fit : NewtonFit
        The fit.
    design, y, weight : ndarray
        Standardised rows, counts and weights.
    ridge : float
        Precision of the prior on the coefficients.
    tol : float
        The fit has converged if a pass gains less.
    """

    fit: NewtonFit
    design: Array
    y: Array
    weight: Array
    ridge: float
    tol: float

    def begin(self, drive: Drive) -> None:
        """Begin the phase."""

    def advance(self, drive: Drive) -> Outcome | None:
        """Make a pass; return how the fit ended, or None if it goes on."""
        drive.check()
        fit, bound = self.fit, self.fit.bound
        later, value = one_pass("poisson", self.design, self.y, self.weight, fit.now, self.ridge, 0.0)
        fit.passes += 1.0
        if value < bound and fit.before is not None:  # by rounding: those before are better
            fit.now = fit.before
        is_stopped = drive.note(-value, 1.0, "em", fit.now)
        if value - bound < self.tol:
            return Outcome.CONVERGED
        if not is_stopped:
            fit.now, fit.before = later, fit.now
        return None if drive.left >= 1.0 else Outcome.OUT_OF_PASSES

    def kept(self) -> Tree:
        """Return nothing: a pass depends on the fit alone."""
        return ()

    def restore(self, kept: Any) -> None:
        """Restore nothing."""
