"""Validated results of user-defined functions; errors name the function."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from swiftem._typing import Array

__all__ = ["described", "read_penalty", "read_statistics", "read_theta", "read_truth"]


def described(value: Any) -> str:
    """Return a short description; parameters with different descriptions have different forms.

    >>> described((np.zeros(2), 1.0)), described(None)
    ('a tuple of 2 (an array of shape (2,), a number)', 'None')
    """
    if value is None:
        return "None"
    if isinstance(value, tuple | list):
        parts = f" ({', '.join(map(described, value))})" if 0 < len(value) < 5 else ""
        return f"a {'tuple' if isinstance(value, tuple) else 'list'} of {len(value)}{parts}"
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    if isinstance(value, Real | np.number | np.ndarray):
        return "a number"
    return f"an object of type {type(value).__name__}"


def read_statistics(found: Any, b: int, known: list[int]) -> tuple[Array, Array]:
    """Return statistics (b, q) and log-likelihoods (b,) from ``expected_statistics``, validated.

    ``known`` stores q once it is known.
    """
    wanted = f"expected_statistics must return arrays of shape (b, q) and (b,) for b = {b} samples"
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise TypeError(f"{wanted}, got {described(found)}.")
    rows, loglik = (np.asarray(part) for part in found)
    if rows.dtype.kind not in "biuf" or loglik.dtype.kind not in "biuf":
        raise TypeError(f"{wanted}, of real numbers, got dtypes {rows.dtype} and {loglik.dtype}.")
    if rows.ndim != 2 or len(rows) != b or loglik.shape != (b,) or not rows.shape[1]:
        raise ValueError(f"{wanted}, got {rows.shape} and {loglik.shape}.")
    known += [] if known else [rows.shape[1]]
    if rows.shape[1] != known[0]:
        raise ValueError(f"{wanted}, with the same q for all samples, got {known[0]} and {rows.shape[1]}.")
    return rows.astype(np.float64, copy=False), loglik.astype(np.float64, copy=False)


def read_theta(name: str, found: Any) -> Any:
    """Return parameters unchanged; raise TypeError if function ``name`` returned None."""
    if found is None:
        raise TypeError(f"{name} must return the parameters, got None.")
    return found


def read_penalty(found: Any) -> float:
    """Return a penalty as a validated float."""
    if np.ndim(found) or np.asarray(found).dtype.kind not in "biuf":
        raise TypeError(f"penalty must return a number, got {described(found)}.")
    return float(found)


def read_truth(found: Any) -> bool:
    """Return the validated result of ``in_domain``."""
    if np.ndim(found) or np.asarray(found).dtype.kind not in "bi":
        raise TypeError(f"in_domain must return True or False, got {described(found)}.")
    return bool(found)
