"""Responses: numbers or counts, of which some may be missing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from swiftem.core.checks import TOO_LARGE, in_numpy, refuse_values, shown, unmasked
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.data.as_source import is_planned
from swiftem.fit.validated import is_stored, validated
from swiftem.mixture.tables.columns import is_missing

__all__ = ["Observed", "name_of", "read_responses", "read_rows"]

NO_X = (
    "X must have no missing values in a mixture of regressions, which has no distribution of X, got NaN: "
    "leave out such rows, or fill them in, for example by impute of a GaussianMixture with missing='ignore'."
)


class Observed(NamedTuple):
    """Rows (n, d), responses and weights (n,), of rows with a positive weight and an observed response."""

    rows: Array
    values: Array
    weight: Array | None

    @property
    def source(self) -> ArraySource:
        """Rows (x, y)."""
        return ArraySource(np.column_stack([self.rows, self.values]), self.weight)


def read_responses(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return rows (n, d), responses (n,) with zeros in place of missing ones, and which are observed."""
    _check_in_memory("X", X)
    _check_in_memory("y", y)
    X, values = in_numpy(X), unmasked(in_numpy(y))
    seen = None
    if y is not None:
        values, seen = _filled(values)
    rows, found = _validated(estimator, X, y=values, y_numeric=True, reset=reset)
    found = np.asarray(found, dtype=np.float64)
    seen = np.ones(len(found), dtype=bool) if seen is None else seen
    if estimator.family == "poisson":
        bad = seen & ((found < 0) | (found != np.floor(found)))
        if bad.any():
            raise ValueError(f"y must be counts (0, 1, 2, ...) for family='poisson', got {found[bad][0]:g}.")
    return rows, found, seen


def read_rows(estimator: Any, X: Any) -> Array:
    """Return rows (n, d) without their responses."""
    _check_in_memory("X", X)
    rows: Array = _validated(estimator, in_numpy(X), reset=False)
    return rows


def _check_in_memory(name: str, data: Any) -> None:
    """Raise TypeError for files, sources and Dask collections."""
    is_list = name == "y" and isinstance(data, list | tuple)  # of texts, not of files
    if isinstance(data, str | Source) or (is_stored(data) and not is_list) or is_planned(data):
        raise TypeError(
            f"{name} must be an array or a data frame in memory for a mixture of regressions, got "
            f"{shown(data)}: read it first, or use swiftem fit FILE --response COLUMN."
        )


def _validated(estimator: Any, X: Any, **options: Any) -> Any:
    try:
        return validated(estimator, X, dtype=np.float64, **options)
    except ValueError as error:
        if str(error).startswith("Input X contains NaN"):
            raise ValueError(NO_X) from None
        raise


def _filled(y: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Return responses with zeros in place of NaN, None and pandas' NA, and which are observed."""
    try:
        values = np.asarray(y)
    except ValueError:  # rows of unequal length: scikit-learn has the sentence
        return y, None
    refuse_values("y", values)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        missing = np.array([is_missing(value) for value in values.ravel().tolist()], dtype=bool)
        missing = missing.reshape(values.shape)
        try:
            np.where(missing, 0.0, values).astype(np.float64)
        except OverflowError:
            raise ValueError(TOO_LARGE.format("y")) from None
        except (TypeError, ValueError):  # scikit-learn has the sentence
            return y, None
    else:
        return y, None
    if not missing.any() or values.ndim not in (1, 2):
        return y, None
    filled = np.where(missing, 0.0, values)
    if filled.dtype.kind == "O":
        filled = filled.astype(np.float64)
    return filled, ~column_or_1d(missing)


def name_of(y: Any) -> str | None:
    """Return the name of a series of pandas or polars; None for other responses.

    >>> name_of(np.zeros(3)) is None
    True
    """
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None
