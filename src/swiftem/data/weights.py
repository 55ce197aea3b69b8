"""Sample weights: valid values, and validation of ``sample_weight``, the same for all sources.

Weights apply to statistics, not to draws: with uniform draws, the proxy is the mean of n·w_i/W times a
sample's statistics, where W is the sum of weights. Draws in proportion to the weights would have less
variance, but seeded draws would depend on the weights.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import as_floats
from swiftem.core.types import Array, Index

__all__ = [
    "bad_weights",
    "check_weights",
    "checked_weights",
    "read_sample_weight",
    "wanted_of_weight",
]

LEAST, MOST = 1e-100, 1e100
"""Range of positive weights, so that squares, sums and products with counts are finite."""


def wanted_of_weight(value: float) -> str:
    """Return what a weight must be if ``value`` is invalid, else an empty text.

    >>> wanted_of_weight(-1.0), wanted_of_weight(1e308), wanted_of_weight(2.0)
    ('not negative', 'zero or from 1e-100 to 1e+100', '')
    """
    if not isfinite(value):
        return "finite"
    if value < 0.0:
        return "not negative"
    if value and not LEAST <= value <= MOST:
        return f"zero or from {LEAST:g} to {MOST:g}"
    return ""


def bad_weights(weight: NDArray[Any]) -> Index:
    """Return the indices (k,) of invalid weights: :func:`wanted_of_weight` says why."""
    return np.flatnonzero(~((weight == 0.0) | ((weight >= LEAST) & (weight <= MOST))))


def check_weights(name: str, weight: Array, one: str = "position", many: str = "weights") -> None:
    """Raise ValueError for the first invalid weight, or count of words.

    Extreme numbers have infinite sums, or squares that are zero.
    """
    bad = bad_weights(weight)
    if len(bad):
        value = float(weight[bad[0]])
        wanted = "not be negative" if value < 0.0 else f"be {wanted_of_weight(value)}"
        advice = f": divide all {many} by one number" if value > 0.0 and isfinite(value) else ""
        raise ValueError(f"{name} must {wanted}, got {value:g} at {one} {bad[0]}{advice}.")


def checked_weights(file: Path, values: Any, start: int = 0) -> Array:
    """Return a column of weights as float64; errors name file and row, counted from ``start``."""
    weight = np.asarray(values, dtype=np.float64)
    bad = bad_weights(weight)
    if len(bad):
        value = float(weight[bad[0]])
        raise ValueError(
            f"{file} must have weights that are {wanted_of_weight(value)}, got {value:g} "
            f"in row {start + bad[0]} (from 0)."
        )
    return weight


def read_sample_weight(sample_weight: ArrayLike | None, n: int, what: str) -> Array | None:
    """Return weights of shape (n,), one per ``what``, or None if all are equal to one.

    Raises
    ------
    ValueError
        If a weight is negative, not finite or out of range, if all are zero, or if their number is wrong.
    """
    if sample_weight is None:
        return None
    weight = as_floats("sample_weight", sample_weight)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight per {what}, got {weight.shape}.")
    check_weights("sample_weight", weight)
    if not (weight > 0).any():
        raise ValueError("sample_weight must have a positive entry, got only zeros.")
    return np.ascontiguousarray(weight)


def extent_of(*numbers: Array) -> tuple[float, float]:
    """Return the smallest and the largest of all positive numbers.

    >>> extent_of(np.array([0.0, 2.0]), np.array([0.5]))
    (0.5, 2.0)
    """
    least, most = np.inf, 0.0
    for array in (np.asarray(each, dtype=np.float64) for each in numbers):
        least = min(least, float(np.min(array, initial=np.inf, where=array > 0)))
        most = max(most, float(np.max(array, initial=0.0)))
    return least, most
