"""Weights of samples: which can be used, and the reading of ``sample_weight``, the same for all sources.

Weights weight statistics, not draws: a proxy's mean is that of n·w_i/W times a sample's statistics, W the sum
of weights, under uniform draws. Draws in proportion to the weights would have less variance, but seeded draws
would depend on the weights.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._checks import as_floats
from swiftem._typing import Array, Index

__all__ = [
    "bad_weights",
    "check_weights",
    "checked_weights",
    "read_sample_weight",
    "wanted_of_weight",
]

LEAST, MOST = 1e-100, 1e100
"""Positive weights lie between these, so that squares, sums and products with counts are finite."""


def wanted_of_weight(value: float) -> str:
    """Return what a weight must be that ``value`` is not; nothing where it can be used.

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
    """Return the places (k,) of the weights that cannot be used: :func:`wanted_of_weight` says why."""
    return np.flatnonzero(~((weight == 0.0) | ((weight >= LEAST) & (weight <= MOST))))


def check_weights(name: str, weight: Array, one: str = "position", many: str = "weights") -> None:
    """Refuse weights, or counts of words, that cannot be used, naming the first.

    Those near the ends of what a number can be make infinite sums, and squares that are zero.
    """
    bad = bad_weights(weight)
    if len(bad):
        value = float(weight[bad[0]])
        wanted = "not be negative" if value < 0.0 else f"be {wanted_of_weight(value)}"
        advice = f": divide all {many} by one number" if value > 0.0 and isfinite(value) else ""
        raise ValueError(f"{name} must {wanted}, got {value:g} at {one} {bad[0]}{advice}.")


def checked_weights(file: Path, values: Any, start: int = 0) -> Array:
    """Return a column of weights as float64, or refuse it by file and row, counted from ``start``."""
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
    """Return weights of shape (n,), one per ``what``, or None when all samples count alike.

    Raises
    ------
    ValueError
        When a weight is negative, not finite or out of range, when all are zero, or when their number is
        wrong.
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
