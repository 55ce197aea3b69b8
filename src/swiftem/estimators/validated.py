"""Rows and counts that an estimator is given, checked by scikit-learn, and what it lets pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from swiftem._checks import refuse_masked, shown

__all__ = ["validated"]


def validated(estimator: Any, X: Any, **options: Any) -> Any:
    """Return what :func:`sklearn.utils.validation.validate_data` does, with no masked entry and no noise.

    Parameters
    ----------
    estimator : estimator
        Whose columns are set or compared.
    X : array-like or sparse, shape (n, d)
        The data.
    **options
        For scikit-learn.
    """
    refuse_masked("X", X)
    if callable(X) or isinstance(X, Iterator):
        raise TypeError(f"X must be an array, a data frame or a sparse matrix here, got {shown(X)}.")
    with np.errstate(invalid="ignore"):  # a sum of infinities, by which it looks for them
        return validate_data(estimator, X, **options)
