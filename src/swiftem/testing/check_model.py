"""The contract tests of a model, and what all contract tests share."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from swiftem._run import run
from swiftem.core.algorithm import Result
from swiftem.core.compute import Compute
from swiftem.core.loop import map_arrays
from swiftem.core.model import BoundModel, Model
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Theta, Tree
from swiftem.data.as_source import as_source
from swiftem.methods import EM, FastIncrementalEM, IncrementalEM, Method, OnlineEM, VarianceReducedEM

NOT_ONE_MODEL = "E-step, M-step, penalty and log-likelihood do not belong to one model."


@dataclass(frozen=True)
class Case:
    """A model with data and initial parameters."""

    name: str
    model: Model
    data: Any
    theta0: Theta = None

    @cached_property
    def source(self) -> Source:
        """The data as a source."""
        return as_source(self.data)

    @cached_property
    def bound(self) -> BoundModel:
        """The model for these data."""
        return self.model.bind(self.source)

    @cached_property
    def e_step(self) -> Compute:
        """Plain E-steps."""
        return Compute(self.bound, self.source)

    def run(self, method: Method, **options: Any) -> Result:
        """Run a method, from the initial parameters unless others are given."""
        options = {"theta0": self.theta0, "data": self.data, "record_every": 1} | options
        return run(self.model, method=method, **options)


def check_model(model: Model, data: Any, *, theta0: Theta | None = None, seed: int = 0) -> None:
    """Run the contract tests on a model; an AssertionError says what is broken.

    Parameters
    ----------
    model : Model
        The model.
    data : array-like, SciPy sparse matrix, tuple of two arrays, or Source
        Data for the model, a few dozen to a few thousand samples.
    theta0 : NamedTuple, optional
        Initial parameters; by default the model's own.
    seed : int
        For initial parameters and draws.

    Notes
    -----
    The requirements: initial parameters depend only on the generator; a sample's rows do not depend on the
    others in its batch; statistics are linear in rows and weights and additive over blocks; functions do not
    write to their arguments; all statistics of data lie in the domain; EM never increases the objective,
    which is stationary where EM converges; with full batches and γ = 1 every method is EM; the same seed
    gives the same trajectory; constant weights change nothing; model, parameters and state pickle.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.models import GaussianMixtureModel
    >>> from swiftem.testing import check_model
    >>> check_model(GaussianMixtureModel(n_components=3), np.random.default_rng(0).normal(size=(50, 2)))
    """
    case = Case("data", model, data)
    bound = case.bound
    theta = check_initial_theta(bound, seed) if theta0 is None else bound.check_theta(theta0)
    case = replace(case, theta0=theta)
    batch = freeze(case.source.take(np.arange(min(case.source.n, 20))))
    check_rows(bound, batch, theta)
    check_statistics(bound, batch, theta)
    check_m_step(case)
    check_em_descends(case)
    check_em_ends_at_a_minimum(case)
    check_methods(case, seed)
    check_constant_weights(case, seed)
    assert_pickles(model, "model")
    assert_pickles(theta, "theta")


def part_of(batch: Batch, i: int) -> Batch:
    """Return sample i of a batch as a batch."""
    return Batch(batch.y[i : i + 1], batch.weight[i : i + 1], batch.index[i : i + 1])


def check_initial_theta(bound: BoundModel, seed: int) -> Theta:
    """Initial parameters are a function of the generator."""
    once, again = (bound.initial_theta(np.random.default_rng(seed)) for _ in range(2))
    require(np.isfinite(flatten(once)).all(), "initial_theta must return finite numbers.")
    require(
        np.array_equal(flatten(once), flatten(again)),
        "initial_theta must return the same for the same generator: take all randomness from rng.",
    )
    return once


def check_rows(bound: BoundModel, batch: Batch, theta: Theta) -> None:
    """The E-step treats each sample separately."""
    rows, loglik = bound.posterior(batch, freeze(theta))
    b = len(batch.index)
    require(rows.ndim == 2 and len(rows) == b, f"the E-step must return rows (b, R), got shape {rows.shape}.")
    require(loglik.shape == (b,), f"the E-step must return a log-likelihood (b,), got shape {loglik.shape}.")
    require(np.isfinite(rows).all(), "the E-step must return finite rows.")
    require(np.isfinite(loglik).all(), "the E-step must return a finite log-likelihood.")
    for i in range(b):
        together = np.append(rows[i], loglik[i])
        alone = np.append(*bound.posterior(part_of(batch, i), theta))
        require(
            np.allclose(alone, together, rtol=1e-9, atol=1e-12),
            f"the E-step of a sample must not depend on the others in its batch, but sample {i}'s does.",
        )


def check_statistics(bound: BoundModel, batch: Batch, theta: Theta) -> None:
    """Statistics are flat, linear in rows and weights, and additive over samples."""
    rng = np.random.default_rng(0)
    rows, _ = bound.posterior(batch, theta)
    weight, other = rng.random(len(rows)), rng.random(rows.shape)
    s = bound.statistics(batch, freeze(rows), freeze(weight))
    is_flat = s.ndim == 1 and s.dtype == np.float64
    require(is_flat, f"statistics must be flat float64, got {s.dtype}, shape {s.shape}.")
    together = bound.statistics(batch, rows + 2.0 * other, weight)
    separate = s + 2.0 * bound.statistics(batch, other, weight)
    require(np.allclose(together, separate), "statistics must be linear in rows.")
    threefold = bound.statistics(batch, rows, 3.0 * weight)
    require(np.allclose(threefold, 3.0 * s), "statistics must be linear in weight.")
    parts = [
        bound.statistics(part_of(batch, i), rows[i : i + 1], weight[i : i + 1]) for i in range(len(rows))
    ]
    require(np.allclose(np.sum(parts, axis=0), s), "statistics must add up over the samples of a batch.")


def check_m_step(case: Case) -> None:
    """The M-step exists at every mean of statistics, is a function of s, and returns new arrays."""
    bound, s = case.bound, case.e_step.full(case.theta0)
    require(bound.in_domain(freeze(s)), "in_domain must hold for the statistics of a full pass.")
    once, again = bound.m_step(freeze(s)), bound.m_step(s)
    require(np.isfinite(flatten(once)).all(), "m_step must return finite numbers.")
    require(np.array_equal(flatten(once), flatten(again)), "m_step must return the same for the same s.")
    before = flatten(once).copy()
    s += 1.0
    require(np.array_equal(flatten(again), before), "m_step must return new arrays, not views of s.")
    require(isfinite(bound.penalty(once)), "penalty must be finite at the result of an M-step.")
    require(not bound.in_domain(np.full_like(s, np.nan)), "in_domain must not hold for NaN.")


def check_em_descends(case: Case) -> None:
    """EM never increases the objective: E-step, M-step, penalty and log-likelihood match."""
    values = [case.e_step.objective(iterate.theta) for iterate in case.run(EM(), n_iter=20).path]
    for k, (before, after) in enumerate(pairwise(values)):
        require(
            after <= before + 1e-9 * max(1.0, abs(before)),
            f"EM must not increase the objective, but from {before:.12g} it went to {after:.12g} at k = {k}: "
            + NOT_ONE_MODEL,
        )


def check_em_ends_at_a_minimum(case: Case) -> None:
    r"""Where EM converges, :math:`V(s) = \overline{\mathcal{L}}(\bar\theta(s))` is stationary (Lemma global).

    With a slightly wrong penalty or likelihood EM may descend, but not converge to such a point. If EM has
    not converged after a while, nothing is checked.
    """
    bound, e_step, many = case.bound, case.e_step, {"n_iter": 250, "record_every": None}
    rest = case.run(EM(), **many)
    for _ in range(19):
        if np.abs(rest.s - e_step.full(rest.theta)).max() <= 1e-12:
            break
        rest = case.run(EM(), theta0=rest.theta, s0=rest.s, state=rest.state, **many)
    if np.abs(rest.s - e_step.full(rest.theta)).max() > 1e-9:
        return

    here = e_step.objective(rest.theta)

    def slope(direction: Array, step: float) -> float:
        return (e_step.objective(bound.m_step(rest.s + step * direction)) - here) / step

    steepest = -1e-6 * max(1.0, abs(here))
    for seed in range(8):
        # Towards other statistics of these data, so that the path stays inside the domain.
        direction = e_step.full(bound.initial_theta(np.random.default_rng(seed))) - rest.s
        long, short = slope(direction, 1e-4), slope(direction, 1e-5)
        # The effect of curvature shrinks with the step; a slope does not.
        require(
            short > steepest or not 0.5 < short / long < 2.0,
            f"the objective must not decrease where EM converges, but has a slope of {short:.1e} there: "
            + NOT_ONE_MODEL,
        )


def check_methods(case: Case, seed: int) -> None:
    """With full batches and γ = 1 every method is EM; a seed determines the trajectory."""
    n, n_iter = case.source.n, 3
    everything = np.tile(np.arange(n), (n_iter, 1))
    em = case.run(EM(), n_iter=n_iter)
    full: list[Method] = [
        OnlineEM(step_size=1.0, batch_size=n),
        IncrementalEM(batch_size=n),
        VarianceReducedEM(step_size=1.0, batch_size=n),
        FastIncrementalEM(step_size=1.0, batch_size=n),
    ]
    for method in full:
        draws = everything if method.index_streams == 1 else [everything] * method.index_streams
        result = case.run(method, n_iter=n_iter, draws=draws)
        assert_same_path(result, em, 1e-7, f"{method.name} with full batches and step 1 must be em")
        assert_pickles(result.state, f"the state of {method.name}")
    for method in (OnlineEM(), IncrementalEM(), VarianceReducedEM(), FastIncrementalEM()):
        once, again = (case.run(method, n_iter=30, seed=seed, record_every=10) for _ in range(2))
        assert_same_path(once, again, 0.0, f"the same seed must give the same trajectory of {method.name}")


def check_constant_weights(case: Case, seed: int) -> None:
    """The objective is a weighted mean: doubling all weights changes nothing.

    Priors in counts, which a model has if its ``in_counts`` is True, do change: as if each row occurred
    twice.
    """
    data, source = case.data, case.source
    if isinstance(data, Source):
        return  # it has its own weights
    if getattr(case.model, "in_counts", False):
        doubled = case.run(EM(), n_iter=5, sample_weight=np.full(source.n, 2.0))
        twice = case.run(EM(), n_iter=5, data=np.concatenate([np.asarray(data)] * 2))
        assert_same_path(doubled, twice, 1e-8, "weights of two must be equivalent to every row twice")
        return
    weighted = source.n_documents if hasattr(data, "tocsr") else source.n
    plain, doubled = (
        case.run(IncrementalEM(), n_iter=20, seed=seed, record_every=10, sample_weight=weight)
        for weight in (None, np.full(weighted, 2.0))
    )
    assert_same_path(doubled, plain, 1e-9, "doubling all weights must change nothing")


def require(condition: object, sentence: str) -> None:
    """Raise AssertionError with ``sentence`` unless ``condition`` holds."""
    if not condition:
        raise AssertionError(sentence)


def flatten(value: Tree) -> Array:
    """Return all numbers in nested tuples, lists, mappings or dataclasses of arrays, as one vector.

    >>> flatten((1.0, [np.zeros((1, 2))]))
    array([1., 0., 0.])
    """
    if isinstance(value, Mapping):
        value = list(value.values())
    elif is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, tuple | list):
        return np.concatenate([np.empty(0), *map(flatten, value)])
    return np.asarray(value, dtype=np.float64).ravel()


def freeze(value: Tree) -> Tree:
    """Return a copy of nested tuples of arrays in which all arrays are read-only."""

    def read_only(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array.flags.writeable = False
        return array

    return map_arrays(read_only, value)


def distance(a: Theta, b: Theta) -> float:
    """Return the largest difference, relative to max(|value|, 1e-3)."""
    x, y = flatten(a), flatten(b)
    require(x.shape == y.shape, f"theta must keep its size, got {x.size} and {y.size} numbers.")
    return float((np.abs(x - y) / np.maximum(np.abs(y), 1e-3)).max(initial=0.0))


def assert_same_path(ours: Result, theirs: Result, tolerance: float, sentence: str) -> None:
    """Require that two runs recorded the same parameters at every k they both have."""
    by_k = {iterate.k: iterate for iterate in theirs.path}
    shared = [(iterate, by_k[iterate.k]) for iterate in ours.path if iterate.k in by_k]
    require(shared, f"{sentence}: the runs share no recorded iterate.")
    for mine, other in shared:
        far = distance(mine.theta, other.theta)
        require(far <= tolerance, f"{sentence}: theta differs by {far:.1e} at k = {mine.k}.")


def assert_pickles(value: object, what: str) -> None:
    """Require that ``value`` pickles; a local class, which pickle cannot find, is allowed."""
    try:
        again = pickle.loads(pickle.dumps(value))
    except (pickle.PicklingError, AttributeError):
        return  # a lambda, or a class inside a function: its location is the problem, not the object
    except Exception as error:
        raise AssertionError(f"{what} must pickle: {error}.") from error
    require(type(again) is type(value), f"{what} must keep its type when pickled.")
