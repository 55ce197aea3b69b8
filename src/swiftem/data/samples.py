"""Samples in the form that compiled code gets: the parts of a full pass, the draws of a stretch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from swiftem.core.source import Reader, Source
from swiftem.core.types import Array, Index
from swiftem.kernels.threads import part_ends

BLOCKS = 64
"""Blocks converted at a time if samples do not have the kernels' type."""


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view: kernels are compiled for such arrays only.

    Numba would compile them again for a writable array.

    >>> read_only(np.ones(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def plain(y: np.ndarray) -> np.ndarray:
    """Return samples in the kernels' form: (b, d), in C order, read-only, float32 or float64.

    Others are converted: each kind of array would be one more kernel to compile.
    """
    y = y[:, None] if y.ndim == 1 else y
    dtype = y.dtype if y.dtype in (np.float32, np.float64) else np.float64
    return read_only(np.require(y, dtype, ["C", "A"]))


def chunks(count: int, block: int) -> list[slice]:
    """Return slices of whole blocks, large enough to be worth a call, and small if they are converted.

    >>> chunks(150, 1)
    [slice(0, 64, None), slice(64, 128, None), slice(128, 150, None)]
    """
    size = BLOCKS * block
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


NONE = read_only(np.empty(0))


class Part(NamedTuple):
    """Consecutive samples: the index of the first, ``y`` (b, d), and ``weight`` (b,) or (0,) for ones."""

    first: int
    y: np.ndarray
    weight: Array

    @property
    def here(self) -> slice:
        """Their position among all samples."""
        return slice(self.first, self.first + len(self.y))


def is_served(source: Source) -> bool:
    """Return whether compiled code can read the rows of a source: in an array, or part by part."""
    return source.rows_in_memory is not None or source.row_bytes > 0


def parts(source: Source, least_rows: int) -> list[Part] | Iterator[Part]:
    """Return the parts of a full pass, which depend only on the source, not on the number of threads.

    For an array they are views, all at once; for a stored source, they are a mebibyte each, read in order by
    a thread that is a few parts ahead of the computation.
    """
    if source.rows_in_memory is None:
        return _read(source)
    y = source.rows_in_memory.reshape(source.n, -1)
    weight = None if source.weight is None else read_only(source.weight)
    return [
        Part(start, y[start:stop], NONE if weight is None else weight[start:stop])
        for start, stop in part_ends(source.n, least_rows=least_rows)
    ]


def _read(source: Source) -> Iterator[Part]:
    for batch in source.blocks(source.chunk_rows):
        y = batch.y[:, None] if batch.y.ndim == 1 else batch.y
        yield Part(int(batch.index[0]), y, read_only(batch.weight) if source.is_weighted else NONE)


class Drawn(NamedTuple):
    """The samples of a stretch, in the form of compiled loops.

    Attributes
    ----------
    y, weight : ndarray, shape (u, d) and (u,) or (0,)
        Samples.
    index : tuple of ndarray, shape (iterations, b)
        Positions of the drawn samples in ``y``.
    memory : ndarray, shape (u, R), or None
        Their memory.
    numbers : ndarray of int, shape (u,), or None
        Their sample indices, or None if ``y`` and ``memory`` hold all samples.
    """

    y: np.ndarray
    weight: Array
    index: tuple[Index, ...]  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    memory: np.ndarray | None
    numbers: Index | None


@dataclass
class Samples:
    """Provides compiled loops with the samples of a stretch: all samples of an array, else the drawn ones.

    The drawn ones are read into an array, with their memory. Thus arrays and files share one set of kernels,
    and a memory in a file is accessed in order. :func:`samples_of` makes them from a source.

    Attributes
    ----------
    y, weight : ndarray, shape (n, ...) and (n,) or (0,)
        All samples and their weights, read-only, if they are in memory.
    reader : Reader or None
        Reads samples by index if they are not in memory.
    is_weighted : bool
        Whether what it reads has weights.
    dtype : dtype or None
        Type to convert what it reads to; None for its own.
    most_rows : int or None
        Largest number of samples that a stretch may read.
    """

    y: np.ndarray
    weight: Array
    reader: Reader | None = None
    is_weighted: bool = False
    dtype: DTypeLike | None = None
    most_rows: int | None = None

    def stop(self, start: int, stop: int, batch_size: int) -> int:
        """Return where a stretch from ``start`` must stop: its samples must fit into a window."""
        return stop if self.most_rows is None else min(stop, start + max(1, self.most_rows // batch_size))

    def drawn(self, index: tuple[Index, ...], memory: np.ndarray | None = None) -> Drawn:
        """Return the samples of ``index``, an array (iterations, b) per stream."""
        if self.reader is None:
            return Drawn(self.y, self.weight, index, memory, None)
        numbers = np.concatenate([part.ravel() for part in index])
        place = np.arange(len(numbers))
        if memory is not None:  # a sample that is drawn twice has one row
            numbers, place = np.unique(numbers, return_inverse=True)
        batch = self.reader.take(numbers)
        y = read_only(np.require(batch.y.reshape(len(numbers), -1), self.dtype, ["C", "A"]))
        edges = np.cumsum([part.size for part in index])[:-1]
        local = tuple(
            np.ascontiguousarray(here.reshape(part.shape), dtype=np.intp)
            for here, part in zip(np.split(place, edges), index, strict=True)
        )
        weight = read_only(batch.weight) if self.is_weighted else NONE
        return Drawn(y, weight, local, None if memory is None else memory[numbers], numbers)

    @staticmethod
    def remember(drawn: Drawn, memory: np.ndarray | None) -> None:
        """Write the changed rows back to the memory."""
        if drawn.numbers is not None and memory is not None:
            memory[drawn.numbers] = drawn.memory


def samples_of(source: Source, dtype: DTypeLike | None = None, streams: int = 1) -> Samples:
    """Return the samples of a source for a number of streams of draws; ``dtype`` converts them."""
    if source.rows_in_memory is None:
        assert source.layout is not None, "samples that are not in memory have a layout"
        reader = source.reader()
        reader.serve(streams)
        return Samples(NONE, NONE, reader, source.is_weighted, dtype, source.layout.window_rows)
    y = read_only(np.require(source.rows_in_memory.reshape(source.n, -1), dtype, ["C", "A"]))
    if source.weight is None:
        return Samples(y, NONE)
    return Samples(y, read_only(np.require(source.weight, np.float64, ["C", "A"])))
