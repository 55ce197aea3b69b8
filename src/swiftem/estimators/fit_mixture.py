"""One fit of a mixture from one start: em in a loop of its own, the other methods by :func:`swiftem.run`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, sqrt
from time import perf_counter
from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.algorithm import run
from swiftem.data.array_source import ArraySource
from swiftem.data.draws import Seed
from swiftem.estimators.history import Moment
from swiftem.estimators.plan import Plan
from swiftem.expectation import Expectation
from swiftem.interrupt import DeferredInterrupt
from swiftem.lanes.choose import choose_expectation
from swiftem.methods import Method
from swiftem.result import Iterate
from swiftem.schedules import resolve

__all__ = ["DegenerateComponentWarning", "Fit", "Fitting", "ILL_DEFINED"]

LOOKED_AT = 20_000
"""Rows on which the objective of a stochastic method is followed: always the same, so that changes are exact."""
MOST_RESEEDS = 5
"""A fit in which components die more often than so many times their number has data that do not allow them."""
DEAD = 1e-6
"""A component with a smaller sum of responsibilities is dead."""

ILL_DEFINED = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance (for instance "
    "caused by singleton or collapsed samples). Try to decrease the number of components, increase reg_covar, or "
    "scale the input data."
)


class DegenerateComponentWarning(UserWarning):
    """A component died or collapsed during a fit and was set to another place."""


Watch = Callable[[Moment, Theta], bool]
"""Told each moment and its θ; the fit stops when it returns True."""


@dataclass
class Fit:
    """Where a fit ended.

    Attributes
    ----------
    theta : NamedTuple
        The parameters.
    s : ndarray
        The statistics that they are the M-step of.
    moments : list of Moment
        How it went.
    bounds : list of float
        Minus the objective after each pass of em, or each look of another method.
    passes : float
        E-step evaluations divided by n.
    converged, interrupted : bool
        How it ended.
    """

    theta: Theta
    s: Array
    moments: list[Moment] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    passes: float = 0.0
    converged: bool = False
    interrupted: bool = False

    @property
    def bound(self) -> float:
        """The last of the bounds."""
        return self.bounds[-1] if self.bounds else -inf


@dataclass
class Fitting:
    """What all fits to the same data share.

    Attributes
    ----------
    bound : BoundGaussians
        The model, for these data.
    source : ArraySource
        The data.
    plan : Plan
        Which method.
    max_passes, tol : int and float
        When to stop: the passes, and a gain of the objective in a pass.
    """

    model: Any
    bound: Any
    source: ArraySource
    plan: Plan
    max_passes: int
    tol: float

    def fit(self, theta: Theta, s: Array | None, last_bound: float, seed: Seed, watch: Watch) -> Fit:
        """Return the fit from ``theta``, which is the M-step of ``s`` where that is given."""
        if self.plan.method is None:
            return self._em(theta, s, last_bound, seed, watch)
        return self._stochastic(theta, s, seed, watch)

    def _em(self, theta: Theta, s: Array | None, last_bound: float, seed: Seed, watch: Watch) -> Fit:
        """Batch EM: E-step, M-step, and the bound of the θ before it, as scikit-learn counts."""
        fit = Fit(theta, np.empty(0) if s is None else s)
        reseeds = 0
        began = perf_counter()
        rng = np.random.default_rng(seed)
        with DeferredInterrupt() as interrupt:
            e_step = choose_expectation("auto", self.bound, self.source, interrupt.check)
            try:
                for iteration in range(1, self.max_passes + 1):
                    interrupt.check()
                    s = e_step.full(fit.theta)
                    objective = e_step.objective(fit.theta)
                    dead = self._dead(s)
                    if len(dead):
                        reseeds += len(dead)
                        if reseeds > MOST_RESEEDS * self.model.n_components:
                            raise ValueError(ILL_DEFINED)
                        fit.theta = reseed(self.bound, self.source, fit.theta, dead, rng)
                        fit.passes, last_bound = iteration, -inf
                        continue
                    fit.theta, fit.s = self.bound.m_step(s), s
                    fit.passes = iteration
                    fit.bounds.append(-objective)
                    fit.moments.append(Moment(iteration, perf_counter() - began, objective, 1.0, 0, "em"))
                    stop = watch(fit.moments[-1], fit.theta)
                    fit.converged = abs(-objective - last_bound) < self.tol
                    last_bound = -objective
                    if fit.converged or stop:
                        break
            except KeyboardInterrupt:
                fit.interrupted = True
        return fit

    def _dead(self, s: Array) -> Array:
        """Return the components without samples, or all that collapsed where the M-step does not exist."""
        counts = self.bound.unpack(s).weights * self.source.total_weight
        dead = np.flatnonzero(counts < DEAD) if not self.bound.model.in_counts else np.empty(0, dtype=np.intp)
        if len(dead) or self.bound.in_domain(s):
            return dead
        return collapsed(self.bound, s)

    def _stochastic(self, theta: Theta, s: Array | None, seed: Seed, watch: Watch) -> Fit:
        """Any other method: one pass of sem where the plan says so, then the method, looked at once an epoch."""
        assert self.plan.method is not None
        fit = Fit(theta, np.empty(0) if s is None else s)
        began = perf_counter()
        look = _Look(self.bound, self.source, self.tol, 2 if self.plan.name == "sem" else 1)
        look.at(theta, 0.0)
        spent = 0.0
        for method in (self.plan.start, self.plan.method):
            if method is None:
                continue
            left = self.max_passes - spent
            epochs = (
                1 if method is self.plan.start else _epochs_in(method, self.source.n, left, s is not None)
            )
            if epochs < 1:
                break
            spent = self._run(method, epochs, spent, fit, s, seed, watch, look, began)
            s = fit.s
            if fit.interrupted:
                break
        return fit

    def _run(
        self, method: Method, epochs: int, spent: float, fit: Fit, s: Array | None, seed: Seed, watch: Watch,
        look: _Look, began: float,
    ) -> float:  # fmt: skip
        """Run one method for some epochs at most, write to ``fit``, and return the passes spent so far."""
        n = self.source.n
        epoch = method.epoch(n)
        gamma = resolve(method.step_size, n, method.batch_size)

        def at_epoch(iterate: Iterate) -> bool:
            if iterate.k == 0:
                return False
            passes = spent + iterate.passes
            at_rest = look.at(iterate.theta, passes)
            moment = Moment(
                passes,
                perf_counter() - began,
                look.objective,
                float(gamma(iterate.k)),
                iterate.rejected,
                method.name,
            )
            fit.moments.append(moment)
            fit.bounds.append(-look.objective)
            fit.converged = at_rest and method is self.plan.method
            return watch(moment, iterate.theta) or fit.converged

        result = run(
            self.model, self.source, method, theta0=fit.theta, s0=s, n_iter=epochs * epoch, seed=seed,
            record_every=epoch, record=lambda iterate: None, callback=at_epoch,
        )  # fmt: skip
        fit.theta, fit.passes = result.theta, spent + result.passes
        fit.interrupted = result.status == "interrupted"
        if result.s is not None:
            fit.s = result.s
        return fit.passes


def _epochs_in(method: Method, n: int, passes: float, s_given: bool) -> int:
    """Return how many epochs fit into a number of passes, at least one where there is a pass left."""
    share = method.epoch(n) * method.batch_size / n
    first = 0.0 if s_given and not method.remembers else 1.0
    cost = {"sem": share, "iem": share, "sem-vr": 1.0 + 2.0 * share, "fiem": 2.0 * share}[method.name]
    return max(int((passes - first) / cost + 1e-9), 1 if passes >= 1 else 0)


class _Look:
    """Follows the objective on rows that stay the same, and says when it is at rest.

    The change of the mean log-likelihood from one look to the next has a standard error, that of the rows'
    own changes. A fit is at rest when the gain in a pass is below ``tol``, or not to be told from nothing:
    with sem, whose noise does not end, at two looks in a row.
    """

    def __init__(self, bound: Any, source: ArraySource, tol: float, looks: int = 1) -> None:
        self._all = source.n <= LOOKED_AT
        rows = source
        if not self._all:
            index = np.sort(np.random.default_rng(0).choice(source.n, LOOKED_AT, replace=False))
            weight = None if source.weight is None else source.weight[index]
            rows = ArraySource(source.y[index], weight)
        self._bound, self._tol, self._looks = bound, tol, looks
        self._e_step: Expectation = choose_expectation("auto", bound, rows)
        self._weight = np.ones(rows.n) if rows.weight is None else rows.weight
        self._last: Array | None = None
        self._last_passes, self._calm = 0.0, 0
        self.objective = inf

    def at(self, theta: Theta, passes: float) -> bool:
        """Look at ``theta``; return whether the fit is at rest."""
        found = self._e_step.evaluate(theta).log_likelihood
        penalty = self._bound.penalty(theta)
        total = self._weight.sum()
        objective = penalty - float(self._weight @ found) / total
        calm = False
        if self._last is not None:
            change = found - self._last
            mean = float(self._weight @ change) / total
            noise = 0.0 if self._all else sqrt(float(self._weight**2 @ (change - mean) ** 2)) / total
            gain = self.objective - objective
            calm = abs(gain) < max(
                self._tol * (passes - self._last_passes), 2.0 * noise if self._tol else 0.0
            )
        self._calm = self._calm + 1 if calm else 0
        self._last, self._last_passes, self.objective = found, passes, objective
        return self._calm >= self._looks


def collapsed(bound: Any, s: Array) -> Array:
    """Return the components whose own covariance does not exist; all where that is not of one component."""
    parts = bound.unpack(s)
    counts = np.maximum(parts.weights, np.finfo(np.float64).tiny)
    if bound.kind.name == "tied":
        return np.arange(len(counts))
    means = parts.sums / counts[:, None]
    variances, floor = bound.kind.covariances(parts, means, bound.prior, bound.model.reg_covar)
    alone = [m for m in range(len(counts))
             if bound.kind.factor(variances[m : m + 1], np.asarray(floor)[m : m + 1]) is None]  # fmt: skip
    return np.array(alone if alone else range(len(counts)), dtype=np.intp)


def reseed(bound: Any, source: ArraySource, theta: Theta, dead: Array, rng: np.random.Generator) -> Theta:
    """Set components to rows that the others explain worst, with the covariance of all data, and say so."""
    warnings.warn(
        f"{len(dead)} of {len(theta.weights)} components died or collapsed and were set to rows that the others "
        "explain worst. Fewer components, a larger reg_covar or a prior would keep them.",
        DegenerateComponentWarning,
        stacklevel=2,
    )
    pooled = bound.initial_theta(rng)
    candidates = rng.choice(source.n, min(source.n, 1000), replace=False)
    batch = source.take(candidates)
    worst = np.argsort(bound.posterior(batch, theta)[1])[: len(dead)]
    worst = np.resize(worst, len(dead))
    means, weights = theta.means.copy(), theta.weights.copy()
    means[dead] = np.asarray(batch.y, dtype=np.float64).reshape(len(candidates), -1)[worst]
    weights[dead] = 1.0 / len(weights)
    covariances, factors = theta.covariances.copy(), theta.precisions_cholesky.copy()
    if bound.kind.name == "tied":
        covariances, factors = pooled.covariances, pooled.precisions_cholesky
    else:
        covariances[dead], factors[dead] = pooled.covariances[dead], pooled.precisions_cholesky[dead]
    return type(theta)(weights / weights.sum(), means, covariances, factors)
