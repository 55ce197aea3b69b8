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
from swiftem.fit.validated import is_stored
from swiftem.mixture.tables.columns import is_missing


class Observed(NamedTuple):
    """Rows (n, d), responses and weights (n,), of rows with a positive weight and an observed response."""

    rows: Array
    values: Array
    weight: Array | None

    @property
    def source(self) -> ArraySource:
        """Rows (x, y)."""
        return ArraySource(np.column_stack([self.rows, self.values]), self.weight)


def read_responses(y: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Return responses with zeros in place of NaN, None and pandas' NA, and which are observed.

    The second is None if none is missing, or if scikit-learn's validation has an error for them.
    """
    check_in_memory("y", y)
    values = unmasked(in_numpy(y))
    return (values, None) if y is None else _filled(values)


def check_counts(values: Array) -> None:
    """Raise ValueError for observed responses that are not counts."""
    bad = (values < 0) | (values != np.floor(values)) & ~np.isnan(values)
    if bad.any():
        raise ValueError(f"y must be counts (0, 1, 2, ...) for family='poisson', got {values[bad][0]:g}.")


def check_in_memory(name: str, data: Any) -> None:
    """Raise TypeError for files, sources and Dask collections."""
    is_list = name == "y" and isinstance(data, list | tuple)  # of texts, not of files
    if isinstance(data, str | Source) or (is_stored(data) and not is_list) or is_planned(data):
        raise TypeError(
            f"{name} must be an array or a data frame in memory for a mixture of regressions, got "
            f"{shown(data)}: read it first, or use swiftem fit FILE --response COLUMN."
        )


def _filled(y: Any) -> tuple[Any, NDArray[np.bool_] | None]:
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
