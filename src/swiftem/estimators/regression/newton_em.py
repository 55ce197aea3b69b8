r"""EM for regressions in NumPy: the starts of all of them, and the fits of Poisson responses.

Poisson responses have no finite statistics: y given x is Poisson with the mean exp(βᵀx̃), and no finite number
of means over rows gives the M-step. Each pass makes one Newton step for each component instead, halved until
the expected log-likelihood gains: this is a generalised EM, whose objective never increases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from swiftem._typing import Array

__all__ = ["Regressions", "best_start", "log_densities", "one_pass", "poisson_fit"]

CANDIDATES, SHORT, ROWS = 10, 8, 2000
"""Candidates of a start for each ``n_init``, their passes, and the rows that they are compared on."""
HALVINGS = 20
LARGEST = 300.0
"""Largest logarithm of a mean."""


class Regressions(NamedTuple):
    """Weights (M,), coefficients (M, k) and variances (M,) of standardised rows."""

    weights: Array
    beta: Array
    variances: Array


def log_densities(family: str, X: Array, y: Array, now: Regressions) -> Array:
    """Return log ω_m + log f(y | x; θ_m), (n, M), without log y! for Poisson responses."""
    mean = X @ now.beta.T
    with np.errstate(divide="ignore"):
        weights = np.log(now.weights)
    if family == "poisson":
        mean = np.minimum(mean, LARGEST)
        return np.asarray(weights + y[:, None] * mean - np.exp(mean))
    return np.asarray(
        weights - 0.5 * ((y[:, None] - mean) ** 2 / now.variances + np.log(2.0 * np.pi * now.variances))
    )


def one_pass(
    family: str, X: Array, y: Array, weight: Array, now: Regressions, ridge: float, floor: float
) -> tuple[Regressions, float]:
    """Return the next parameters, and the mean log-likelihood of the given ones, minus the penalty."""
    logs = log_densities(family, X, y, now)
    largest = logs.max(axis=1, keepdims=True)
    r = np.exp(logs - largest)
    totals = r.sum(axis=1, keepdims=True)
    r *= weight[:, None] / totals
    total = weight.sum()
    value = float(weight @ (largest + np.log(totals))[:, 0]) / total
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
        eta = np.minimum(X @ at, LARGEST)
        return float(r @ (y * eta - np.exp(eta))) - 0.5 * ridge * float(at @ at)

    mean = np.exp(np.minimum(X @ beta, LARGEST))
    slope = X.T @ (r * (y - mean)) - ridge * beta
    curvature = (X * (r * mean)[:, None]).T @ X + (ridge + 1e-10) * np.eye(X.shape[1])
    step, before = np.linalg.solve(curvature, slope), gain(beta)
    for _ in range(HALVINGS):
        if gain(beta + step) >= before:
            return beta + step
        step = 0.5 * step
    return beta


def best_start(
    family: str, X: Array, y: Array, weight: Array, n_components: int, n_init: int, ridge: float,
    floor: float, rng: np.random.Generator,
) -> Regressions:  # fmt: skip
    """Return the best of several starts: regressions of a few random rows, and short fits to a sample."""
    if len(y) > ROWS:
        index = rng.choice(len(y), ROWS, replace=False)
        X, y, weight = X[index], y[index], weight[index]
    best, best_value = None, -np.inf
    target = np.log(y + 0.5) if family == "poisson" else y
    spread = max(float(np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)), floor)
    few = min(X.shape[1] + 1, len(y))
    for _ in range(CANDIDATES * n_init if n_components > 1 else 1):
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
            now, value = one_pass(family, X, y, weight, now, ridge, floor)
        if np.isfinite(value) and value > best_value:
            best, best_value = now, value
    assert best is not None, "a start has a finite likelihood"
    return best


def poisson_fit(
    X: Array, y: Array, weight: Array, start: Regressions, tol: float, max_iter: int, ridge: float
) -> tuple[Regressions, int, bool]:
    """Return the parameters, the number of passes, and whether the gain per pass fell below ``tol``."""
    now, before = start, -np.inf
    for number in range(1, max_iter + 1):
        later, value = one_pass("poisson", X, y, weight, now, ridge, 0.0)
        if value - before < tol:
            return now, number, True
        now, before = later, value
    return now, max_iter, False
