"""The user's rows as a source, for fits and for calls of a fitted mixture."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import check_not_lazy, in_numpy, is_tensor
from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.data.as_source import is_planned
from swiftem.data.stored import StoredSource
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource, units_of
from swiftem.fit.config import get_config
from swiftem.fit.validated import is_stored, open_rows

__all__ = ["Read", "RowSource", "no_weights_beside", "rows_of", "stored_source"]

RowSource: TypeAlias = ArraySource | StoredSource | UnitSource


class Read(NamedTuple):
    """Validated data: rows and weights as given, the indices of rows with positive weight, and their source.

    For stored rows and tensors, ``X`` has the columns and the dtype, but no rows. ``kernels`` are those of a
    device, or None.
    """

    X: NDArray[Any]
    weight: Array | None
    kept: NDArray[np.bool_] | None
    source: RowSource
    kernels: str | None = None

    @property
    def total_weight(self) -> float:
        """Sum of the weights as given: the source has no weights if all are equal."""
        return self.source.total_weight if self.weight is None else float(self.weight.sum())


def rows_of(source: Source) -> int:
    """Return the number of rows, those of units included."""
    return source.rows if isinstance(source, UnitSource) else source.n


def no_weights_beside(sample_weight: ArrayLike | None) -> None:
    """Raise ValueError if weights are given for a source, which has its own."""
    if sample_weight is not None:
        raise ValueError("sample_weight must be given to the source, not as a separate argument.")


def stored_source(
    X: Any, sample_weight: ArrayLike | None, *, on_device: bool, allow_missing: bool
) -> StoredSource | UnitSource | TensorSource | None:
    """Return rows that are not in an array as a source, or None for arrays and tables in memory.

    Parameters
    ----------
    X : object
        The user's data.
    sample_weight : array-like, optional
        Weights of the rows.
    on_device : bool
        Whether a tensor stays on its device.
    allow_missing : bool
        Whether cells may be missing.
    """
    if isinstance(X, UnitSource):
        no_weights_beside(sample_weight)
        return X
    if is_planned(X):
        return units_of(X, sample_weight, allow_missing=allow_missing)
    if on_device and is_tensor(X):
        return TensorSource(X, sample_weight)
    check_not_lazy("X", X)
    is_mapped = isinstance(in_numpy(X), np.memmap) and get_config()["memory_limit"] is not None
    if is_mapped or is_stored(X):
        return open_rows(X, sample_weight, allow_missing=allow_missing)
    return None
