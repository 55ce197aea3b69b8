"""Comparison of parameters and trajectories, for the contract tests."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from swiftem.core.result import Result
from swiftem.core.types import Array, Theta

__all__ = ["assert_pickles", "assert_same_path", "flatten", "freeze", "require"]


def require(condition: Any, sentence: str) -> None:
    """Raise AssertionError with ``sentence`` unless ``condition`` holds."""
    if not condition:
        raise AssertionError(sentence)


def flatten(value: Any) -> Array:
    """Return all numbers in nested tuples, lists, mappings or dataclasses of arrays, as one vector.

    >>> flatten((1.0, [np.zeros((1, 2))]))
    array([1., 0., 0.])
    """
    if isinstance(value, Mapping):
        value = list(value.values())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, (tuple, list)):
        return np.concatenate([np.empty(0), *(flatten(part) for part in value)])
    return np.asarray(value, dtype=np.float64).ravel()


def freeze(value: Any) -> Any:
    """Return a copy of nested tuples of arrays in which all arrays are read-only."""
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
        return value
    if isinstance(value, dict):
        return {key: freeze(part) for key, part in value.items()}
    if isinstance(value, tuple):
        parts = [freeze(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


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


def assert_pickles(value: Any, what: str) -> None:
    """Require that ``value`` pickles; a local class, which pickle cannot find, is allowed."""
    try:
        again = pickle.loads(pickle.dumps(value))
    except (pickle.PicklingError, AttributeError):
        return  # a lambda, or a class inside a function: its location is the problem, not the object
    except Exception as error:
        raise AssertionError(f"{what} must pickle: {error}.") from error
    require(type(again) is type(value), f"{what} must keep its type when pickled.")
