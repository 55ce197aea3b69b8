"""Rows, counts and weights given to an estimator, checked by scikit-learn and beyond it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import validate_data

from swiftem._checks import refuse_masked, shown, unmasked
from swiftem._typing import Array
from swiftem.data.sample_weight import check_weights
from swiftem.estimators.sklearn_parts import _check_sample_weight

__all__ = ["allows_missing", "read_weights", "validated"]


def allows_missing(estimator: Any) -> bool:
    """Tell whether an estimator takes NaN for missing cells."""
    return getattr(estimator, "missing", "error") == "ignore"


def validated(estimator: Any, X: Any, **options: Any) -> Any:
    """Call :func:`sklearn.utils.validation.validate_data`; reject masked entries, suppress its warnings.

    If the estimator's ``missing`` is "ignore", cells that are masked, None, NaN or pandas' NA become NaN.

    Parameters
    ----------
    estimator : estimator
        The estimator whose columns are set or compared.
    X : array-like or sparse, shape (n, d)
        The data.
    **options
        For ``validate_data``.
    """
    if allows_missing(estimator):
        X, options = unmasked(X), options | {"ensure_all_finite": "allow-nan"}
    refuse_masked("X", X)
    if callable(X) or isinstance(X, Iterator):
        raise TypeError(f"X must be an array, a data frame or a sparse matrix here, got {shown(X)}.")
    with np.errstate(invalid="ignore"):  # it sums the data to look for infinities
        try:
            return validate_data(estimator, X, **options)
        except ValueError as error:
            if not hasattr(estimator, "missing") or not str(error).startswith("Input X contains NaN"):
                raise
            raise ValueError(
                f"Input X contains NaN: give {type(estimator).__name__} missing='ignore' if cells are "
                "missing at random, or fill in or leave out such rows."
            ) from None


def read_weights(sample_weight: ArrayLike | None, X: Any) -> Array | None:
    """Return the validated weights (n,) of the rows of ``X``, or None if there are none."""
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    check_weights("sample_weight", weight)
    return weight
