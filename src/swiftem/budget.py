"""What a run needs of memory, against what it may take."""

from __future__ import annotations

from typing import Any

import numpy as np

from swiftem._typing import Array
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Source
from swiftem.engine.threads import get_threads
from swiftem.files.memory_limit import BASE, MemoryLimitError, in_words
from swiftem.files.scratch import scratch_array
from swiftem.methods.method import Method
from swiftem.models.components import BoundComponents
from swiftem.models.gaussian_mixture import BoundGaussianMixture
from swiftem.models.model import BoundModel

__all__ = ["Allocator", "check_memory", "memory_needed", "statistics_of"]

START = 22 * 10**6
"""Of an estimator besides its passes: rows that it starts from and looks at, and k-means of them."""
COPIES = 12
"""Vectors of statistics, and parameters of about that size, that a run has at a time."""
INDICES = 8 * 65_536 * 8
"""Sample numbers that are drawn ahead, and what is made of them."""


def memory_needed(source: Source, method: Method, *, statistics: int = 0, starts: bool = False) -> int:
    """Return how many bytes a run takes at most, besides what a method remembers of all samples.

    Parameters
    ----------
    source : Source
        The data. Of an array only what is made of it counts.
    method : Method
        The method.
    statistics : int
        Length of the vector of statistics.
    starts : bool
        Whether a start is found as :class:`swiftem.GaussianMixture` does it.
    """
    needed = BASE + COPIES * 8 * statistics + (START if starts else 0)
    if isinstance(source, ArraySource) and not (source.y.dtype == np.float64 and source.y.flags.c_contiguous):
        needed += 8 * source.y.size  # some loops take a copy
    if not isinstance(source, StoredSource):
        return needed
    chunk = source.chunk_rows * source.row_bytes
    needed += source.reading + (get_threads() + 8) * chunk
    if method.index_streams:
        rows, streams = source.layout.window_rows, method.index_streams
        # Blocks of two windows for each stream; the samples of a stretch, and their numbers.
        kept = 2 * streams * (2 if source.layout.in_order else 1) * rows * source.row_bytes
        needed += kept + streams * rows * (3 * source.row_bytes + 8 * 8) + INDICES
    return needed


def statistics_of(bound: BoundModel) -> int:
    """Return the length of a mixture's vector of statistics; 0 where only an E-step could tell."""
    if isinstance(bound, BoundComponents):
        return bound.size
    return bound.model.n_components * (1 + bound.d) if isinstance(bound, BoundGaussianMixture) else 0


def check_memory(limit: int | None, source: Source, method: Method, **more: Any) -> int:
    """Return what a run needs, or refuse a limit that it cannot keep, with that."""
    needed = memory_needed(source, method, **more)
    if limit is None or needed <= limit:
        return needed
    hint = ""
    if isinstance(source, StoredSource) and method.index_streams:
        rows, size = source.layout.window_rows, source.layout.window_rows * source.row_bytes
        hint = f" (draws are from windows of {rows:,} rows, {in_words(size)}: a smaller window needs less)"
    raise MemoryLimitError(
        f"memory_limit must be at least {in_words(needed)} for {method.name} on these data, "
        f"got {in_words(limit)}{hint}."
    )


class Allocator:
    """Makes the memory of a method: in memory where it fits into the limit, else in a scratch file.

    Parameters
    ----------
    limit : int or None
        In bytes.
    needed : int
        What the run takes besides.
    folder : path, optional
        For the file.
    """

    def __init__(self, limit: int | None, needed: int, folder: Any = None) -> None:
        self._limit, self._needed, self._folder = limit, needed, folder

    def __call__(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> Array:
        """Return an array for the rows of every sample."""
        size = shape[0] * shape[1] * np.dtype(dtype).itemsize
        if self._limit is None or size + self._needed <= self._limit:
            return np.empty(shape, dtype)
        return scratch_array(shape, dtype, self._folder)
