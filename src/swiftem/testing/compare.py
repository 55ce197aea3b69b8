"""A model with data and a start, and comparison of parameters and trajectories, for the contract tests."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from swiftem._run import run
from swiftem.core.algorithm import Result
from swiftem.core.compute import Compute
from swiftem.core.loop import map_arrays
from swiftem.core.method import Method
from swiftem.core.model import BoundModel, Model
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta, Tree
from swiftem.data.as_source import as_source


@dataclasses.dataclass(frozen=True)
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
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
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
