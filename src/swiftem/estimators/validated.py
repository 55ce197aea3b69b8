"""Rows, counts and weights given to an estimator, checked by scikit-learn and beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from swiftem._checks import refuse_masked, shown
from swiftem._typing import Array
from swiftem.data.sample_weight import check_weights
from swiftem.estimators.sklearn_parts import _check_sample_weight

__all__ = ["read_weights", "validated"]


def validated(estimator: Any, X: Any, **options: Any) -> Any:
    """Call :func:`sklearn.utils.validation.validate_data`; reject masked entries, suppress its warnings.

    Parameters
    ----------
    estimator : estimator
        The estimator whose columns are set or compared.
    X : array-like or sparse, shape (n, d)
        The data.
    **options
        For ``validate_data``.
    """
    refuse_masked("X", X)
    if callable(X) or isinstance(X, Iterator):
        raise TypeError(f"X must be an array, a data frame or a sparse matrix here, got {shown(X)}.")
    with np.errstate(invalid="ignore"):  # it sums the data to look for infinities
        return validate_data(estimator, X, **options)


def read_weights(sample_weight: ArrayLike | None, X: Any) -> Array | None:
    """Return the validated weights (n,) of the rows of ``X``, or None if there are none."""
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    check_weights("sample_weight", weight)
    return weight
