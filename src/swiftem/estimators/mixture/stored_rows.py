"""Rows given to an estimator as files, sources or streams of blocks, not as an array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._typing import Array
from swiftem.data.as_source import as_source, is_blocks
from swiftem.data.draws import spread_rows
from swiftem.data.foreign import is_planned
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.block_source import BlockSource, is_one_shot
from swiftem.data.rows.npy_source import NpySource
from swiftem.data.rows.open_source import are_paths
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Source
from swiftem.data.units.collections import parts_of
from swiftem.data.units.unit_source import UnitSource

__all__ = ["blocks_of", "in_memory", "is_stored", "open_rows", "some_rows"]

SAMPLE = 50_000
"""Maximum number of rows used to find a start."""
SAMPLE_BYTES = 8 * 10**6
"""Maximum size of these rows, if that leaves enough rows for each component."""
PER_COMPONENT = 100
ROWS = 4096
"""Rows read at a time from a user-defined source."""


def is_stored(X: Any) -> bool:
    """Tell whether ``X`` is read on demand: a path, a source or a function that returns blocks.

    >>> import numpy as np
    >>> is_stored("rows.npy"), is_stored(np.zeros((3, 2))), is_stored([[0.0], [1.0]])
    (True, False, False)
    """
    if isinstance(X, np.ndarray):
        return False
    if isinstance(X, Source):
        return type(X) is not ArraySource
    return are_paths(X) or is_blocks(X)


def open_rows(X: Any, sample_weight: ArrayLike | None = None, *, allow_missing: bool = False) -> StoredSource:
    """Return rows as a source; also a memory map with weights."""
    if isinstance(X, np.ndarray):
        return NpySource(X, sample_weight=sample_weight, allow_missing=allow_missing)
    source = as_source(X, sample_weight, allow_missing=allow_missing)
    if not isinstance(source, StoredSource):  # user-defined
        if hasattr(source, "n_words"):
            raise TypeError("data must be rows of numbers for a mixture, got word counts or tokens.")
        source = BlockSource(_Again(source), allow_missing=allow_missing)
    if not source.tail:
        raise ValueError("Expected 2D array, got 1D array instead: rows must have columns, (n, d).")
    return source


class _Again:
    """The blocks of a source, from the beginning each time."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def __iter__(self) -> Iterator[tuple[NDArray[Any], Array]]:
        return ((batch.y, batch.weight) for batch in self._source.blocks(ROWS))


def blocks_of(
    X: Any, sample_weight: ArrayLike | None, *, allow_missing: bool = False
) -> Iterator[tuple[NDArray[Any], Array | None]]:
    """Yield rows and weights block by block; blocks of a generator as they come, in one pass."""
    if is_planned(X):
        parts = parts_of("X", X)
        weights = [None] * len(parts) if sample_weight is None else parts_of("sample_weight", sample_weight)
        if len(weights) != len(parts):
            raise ValueError(f"sample_weight must be chunked like the rows, in {len(parts)} units.")
        for part, weight in zip(parts, weights, strict=True):
            rows, of_rows = part.compute(), None if weight is None else np.asarray(weight.compute())
            if len(rows):
                yield rows, of_rows
        return
    if not is_one_shot(X):
        source = open_rows(X, sample_weight, allow_missing=allow_missing)
        for batch in source.blocks(source.chunk_rows):
            yield batch.y, batch.weight if source.is_weighted else None
        return
    if sample_weight is not None:
        raise ValueError("sample_weight must be given with each block, as a pair (rows, weights).")
    count = 0
    for block in X:
        rows, weight = block if isinstance(block, tuple) and len(block) == 2 else (block, None)
        if len(rows):
            count += 1
            yield rows, weight
    if not count:
        raise ValueError("data must have at least one row, got blocks with none.")


def in_memory(source: Source, index: Any) -> ArraySource:
    """Return rows by number as an array, with their weights if there are any."""
    batch = source.take(index)
    weighted = source.is_weighted if isinstance(source, StoredSource) else source.weight is not None  # type: ignore[attr-defined]
    allow_missing = getattr(source, "allow_missing", False)
    return ArraySource(batch.y, batch.weight if weighted else None, allow_missing=allow_missing)


def some_rows(
    source: StoredSource | UnitSource, n_components: int, random_state: np.random.RandomState
) -> ArraySource:
    """Return the rows used to find a start: all if they are few, else a sample.

    If all are used, ``random_state`` is not, and the start is that of an array. Units have one sample.
    """
    if isinstance(source, UnitSource):
        return source.some
    most = max(PER_COMPONENT * n_components, min(SAMPLE, SAMPLE_BYTES // source.row_bytes))
    if source.n <= most:
        return in_memory(source, np.arange(source.n))
    rng = np.random.default_rng(random_state.randint(2**31 - 1))
    return in_memory(source, spread_rows(source.n, most, rng))
