"""The mixture of exponential distributions as functions, two of them compiled: the same model, at full speed.

Run it: python examples/compiled_mixture.py
"""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numba
import numpy as np

import swiftem
from swiftem import methods, models

EPSILON = 1e-3


class ExponentialMixtureTheta(NamedTuple):
    """Parameters: ``weights`` (M,) and ``rates`` (M,)."""

    weights: np.ndarray
    rates: np.ndarray


def initial_theta(y, rng):
    """Return equal weights and rates spread around the one that fits all samples."""
    return ExponentialMixtureTheta(np.full(2, 0.5), np.exp(rng.normal(size=2)) / y.mean())


@numba.njit
def expected_statistics(y, theta):
    """E-step of samples (b,): statistics (b, 2M) and log-likelihood (b,)."""
    M = len(theta.weights)
    rows, log_likelihood = np.empty((len(y), 2 * M)), np.empty(len(y))
    for i in range(len(y)):
        for m in range(M):
            rows[i, m] = np.log(theta.weights[m] * theta.rates[m]) - theta.rates[m] * y[i]
        largest = rows[i, :M].max()
        log_likelihood[i] = largest + np.log(np.exp(rows[i, :M] - largest).sum())
        for m in range(M):
            rows[i, m] = np.exp(rows[i, m] - log_likelihood[i])
            rows[i, M + m] = rows[i, m] * y[i]
    return rows, log_likelihood


@numba.njit
def m_step(s):
    """Minimise penalty − Σ_m (s_m log(weight_m rate_m) − s_(M+m) rate_m), the weights summing to 1."""
    M = len(s) // 2
    count, total = s[:M] + EPSILON, s[M:] + EPSILON
    return ExponentialMixtureTheta(count / count.sum(), count / total)


@numba.njit
def in_domain(s):
    """Tell whether the M-step gives positive weights and rates."""
    return np.all(s + EPSILON > 0)


def penalty(theta):
    """Return −ε Σ (log weight + log rate − rate)."""
    return -EPSILON * float((np.log(theta.weights) + np.log(theta.rates) - theta.rates).sum())


MODEL = models.FunctionModel(initial_theta, expected_statistics, m_step, penalty, in_domain)


def microseconds(y: np.ndarray, n_iter: int, kernels: str) -> float:
    """Return the time an iteration takes, the first pass and compiling apart."""
    times = []
    for iterations in (1, 1 + n_iter):
        method = methods.FastIncrementalEM()
        swiftem.run(MODEL, y, method, n_iter=1, seed=0, kernels=kernels)
        begin = perf_counter()
        swiftem.run(MODEL, y, method, n_iter=iterations, seed=0, kernels=kernels)
        times.append(perf_counter() - begin)
    return 1e6 * (times[1] - times[0]) / n_iter


def main() -> None:
    """Fit two kinds of waiting times, and time both ways through the iterations."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.exponential(1.0, size=700), rng.exponential(20.0, size=300)])
    result = swiftem.run(MODEL, y, methods.FastIncrementalEM(), n_iter=30 * len(y), seed=0)
    print(f"fiem: mean waiting times {np.sort(1 / result.theta.rates).round(2)}")
    compiled = microseconds(y, 200_000, "auto")
    python = microseconds(y, 5_000, "reference")
    print(f"An iteration takes {compiled:.2f} µs; in Python {python:.1f} µs: {python / compiled:.0f} times.")


if __name__ == "__main__":
    main()
