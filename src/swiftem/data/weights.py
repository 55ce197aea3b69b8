"""Sample weights: valid values, and validation of ``sample_weight``, the same for all sources.

Weights apply to statistics, not to draws: with uniform draws, the proxy is the mean of n·w_i/W times a
sample's statistics, where W is the sum of weights. Draws in proportion to the weights would have less
variance, but seeded draws would depend on the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import as_floats
from swiftem.core.types import Array

LEAST, MOST = 1e-100, 1e100
"""Range of positive weights, so that squares, sums and products with counts are finite."""
RANGE = f"zero or from {LEAST:g} to {MOST:g}"


def first_bad_weight(weight: Array) -> tuple[int, str] | None:
    """Return the position of the first invalid weight, and what it must be; None if there is none.

    >>> first_bad_weight(np.array([2.0, -1.0])), first_bad_weight(np.array([1e308]))
    ((1, 'not negative'), (0, 'zero or from 1e-100 to 1e+100'))
    """
    bad = np.flatnonzero(~((weight == 0.0) | ((weight >= LEAST) & (weight <= MOST))))
    if not len(bad):
        return None
    value = weight[bad[0]]
    if not np.isfinite(value):
        return int(bad[0]), "finite"
    return int(bad[0]), "not negative" if value < 0.0 else RANGE


def check_weights(name: str, weight: Array, one: str = "position", many: str = "weights") -> None:
    """Raise ValueError for the first invalid weight, or count of words.

    Extreme numbers have infinite sums, or squares that are zero.
    """
    bad = first_bad_weight(weight)
    if bad is not None:
        place, wanted = bad
        must = "must not be negative" if wanted == "not negative" else f"must be {wanted}"
        advice = f": divide all {many} by one number" if wanted == RANGE else ""
        raise ValueError(f"{name} {must}, got {weight[place]:g} at {one} {place}{advice}.")


def check_weight_column(weight: Array, locate: Callable[[int], tuple[Path | str, int]]) -> None:
    """Raise ValueError for the first invalid weight of a table.

    Parameters
    ----------
    weight : ndarray, shape (b,)
        Weights of some rows.
    locate : callable
        Returns the file of one of these rows, and its index there.
    """
    bad = first_bad_weight(weight)
    if bad is not None:
        place, wanted = bad
        file, row = locate(place)
        raise ValueError(
            f"{file} must have weights that are {wanted}, got {weight[place]:g} in row {row} (from 0)."
        )


def read_sample_weight(
    sample_weight: ArrayLike | None, n: int, what: str, *, may_be_zero: bool = False
) -> Array | None:
    """Return weights of shape (n,), one per ``what``, or None if none are given.

    Raises
    ------
    ValueError
        If a weight is negative, not finite or out of range, if their number is wrong, or if all are zero
        unless they ``may_be_zero``.
    """
    if sample_weight is None:
        return None
    weight = as_floats("sample_weight", sample_weight)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight per {what}, got {weight.shape}.")
    check_weights("sample_weight", weight)
    if not (may_be_zero or (weight > 0).any()):
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
