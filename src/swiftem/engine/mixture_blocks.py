"""The location of the samples of a mixture with unit variances, and the blocks of passes over them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Source

__all__ = ["Geometry", "block_rows", "geometry_of"]

NUMBERS = 16_384
"""Responsibilities per block: with the samples they fit into the second-level cache."""

FARTHEST = 2e4
"""Squared distance from the centre up to which an expanded square keeps eleven digits."""


def block_rows(n_components: int) -> int:
    """Return the number of samples per block of a full pass.

    >>> block_rows(32)
    512
    """
    return max(64, NUMBERS // n_components)


class Geometry:
    """The location of the samples: their centre, and whether they are near enough for expanded squares.

    Parameters
    ----------
    y : ndarray, shape (n, d)
        All samples.

    Examples
    --------
    >>> import numpy as np
    >>> geometry = Geometry(np.array([[1000.0], [1002.0]]))
    >>> geometry.centre, geometry.near
    (array([1001.]), True)
    """

    def __init__(self, y: NDArray[Any]) -> None:
        lowest, highest = y.min(axis=0).astype(np.float64), y.max(axis=0).astype(np.float64)
        self.centre: Array = np.zeros(y.shape[1])
        if not self._is_near(lowest, highest):
            self.centre = 0.5 * (lowest + highest)
        self.near = self._is_near(lowest - self.centre, highest - self.centre)

    @staticmethod
    def _is_near(lowest: Array, highest: Array) -> bool:
        return bool(np.maximum(lowest**2, highest**2).sum() <= FARTHEST)


def geometry_of(source: Source) -> Geometry:
    """Return the location of the samples of a source; for a stored source, by one pass, which is cached."""
    if isinstance(source, ArraySource):
        return Geometry(source.y.reshape(source.n, -1))
    assert isinstance(source, StoredSource)
    if "geometry" not in source.found:
        ends = [
            end(batch.y.reshape(len(batch.index), -1), axis=0)
            for batch in source.blocks(source.chunk_rows)
            for end in (np.min, np.max)
        ]
        source.found["geometry"] = Geometry(np.array(ends))
    found: Geometry = source.found["geometry"]
    return found
