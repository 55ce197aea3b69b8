"""Reading of the ``sample_weight`` argument, the same for all sources."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from swiftem._checks import as_floats
from swiftem._typing import Array

__all__ = ["read_sample_weight"]


def read_sample_weight(sample_weight: ArrayLike | None, n: int, what: str) -> Array | None:
    """Return weights of shape (n,), one per ``what``, or None when all samples count alike.

    Raises
    ------
    ValueError
        When a weight is negative or not finite, when all are zero, or when their number is wrong.
    """
    if sample_weight is None:
        return None
    weight = as_floats("sample_weight", sample_weight)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight per {what}, got {weight.shape}.")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative, got {weight.min():g}.")
    if not (weight > 0).any():
        raise ValueError("sample_weight must have a positive entry, got only zeros.")
    return np.ascontiguousarray(weight)
