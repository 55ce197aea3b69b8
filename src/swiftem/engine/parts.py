"""The parts of full passes over a source, and the samples of a stretch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Index
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Source
from swiftem.engine.threads import part_ends

__all__ = ["Drawn", "Part", "Samples", "Whole", "chunks", "is_served", "parts", "plain", "read_only"]

BLOCKS = 64
"""Blocks converted at a time if samples do not have the kernels' type."""


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: kernels are compiled for such arrays only.

    Numba would compile them again for a writable array.

    >>> read_only(np.ones(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def plain(y: NDArray[Any]) -> NDArray[Any]:
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
    y: NDArray[Any]
    weight: Array

    @property
    def here(self) -> slice:
        """Their position among all samples."""
        return slice(self.first, self.first + len(self.y))


def is_served(source: Source) -> bool:
    """Tell whether compiled code can read the rows of a source: in an array, or part by part."""
    return type(source) is ArraySource or isinstance(source, StoredSource)


def parts(source: Source, least_rows: int) -> list[Part] | Iterator[Part]:
    """Return the parts of a full pass, which depend only on the source, not on the number of threads.

    For an array they are views, all at once; for a stored source, they are a mebibyte each, read in order by
    a thread that is a few parts ahead of the computation.
    """
    if isinstance(source, StoredSource):
        return _read(source, source.chunk_rows)
    assert isinstance(source, ArraySource)
    y = source.y.reshape(source.n, -1)
    weight = None if source.weight is None else read_only(source.weight)
    return [
        Part(start, y[start:stop], NONE if weight is None else weight[start:stop])
        for start, stop in part_ends(source.n, least_rows=least_rows)
    ]


def _read(source: StoredSource, rows: int) -> Iterator[Part]:
    for batch in source.blocks(rows):
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
        Their sample indices, or None if ``y`` and ``memory`` are those of all samples.
    """

    y: NDArray[Any]
    weight: Array
    index: tuple[Index, ...]  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    memory: Any
    numbers: Index | None


class Samples:
    """Provides compiled loops with the samples of a stretch: all samples of an array, else the drawn ones.

    The drawn ones are read into an array, with their memory. Thus arrays and files share one set of kernels,
    and a memory in a file is accessed in order.

    Parameters
    ----------
    source : ArraySource or StoredSource
        The data.
    dtype : dtype, optional
        Type to convert samples to; by default they are not converted.
    """

    def __init__(self, source: Source, dtype: Any = None, streams: int = 1) -> None:
        self._dtype = dtype
        self._source: Source | None = source
        self.most_rows: int | None = None
        if isinstance(source, StoredSource):
            self._reader = source.reader()
            self._reader.serve(streams)
            self.most_rows = source.layout.window_rows
        else:
            assert isinstance(source, ArraySource)
            y = source.y.reshape(source.n, -1)
            self.y = read_only(np.require(y, dtype, ["C", "A"]))
            self.weight = NONE
            if source.weight is not None:
                self.weight = read_only(np.require(source.weight, np.float64, ["C", "A"]))

    def stop(self, start: int, stop: int, batch_size: int) -> int:
        """Return where a stretch from ``start`` must stop: its samples must fit into a window."""
        return stop if self.most_rows is None else min(stop, start + max(1, self.most_rows // batch_size))

    def drawn(self, index: tuple[Index, ...], memory: Any = None) -> Drawn:
        """Return the samples of ``index``, an array (iterations, b) per stream."""
        source = self._source
        if not isinstance(source, StoredSource):
            return Drawn(self.y, self.weight, index, memory, None)
        flat = np.concatenate([part.ravel() for part in index])
        numbers = flat
        place = np.arange(len(flat))
        if memory is not None:  # a sample that is drawn twice has one row
            numbers, place = np.unique(flat, return_inverse=True)
        batch = self._reader.take(numbers)
        y = read_only(np.require(batch.y.reshape(len(numbers), -1), self._dtype, ["C", "A"]))
        edges = np.cumsum([part.size for part in index])[:-1]
        local = tuple(
            np.ascontiguousarray(here.reshape(part.shape), dtype=np.intp)
            for here, part in zip(np.split(place, edges), index, strict=True)
        )
        remembered = None if memory is None else memory[numbers]
        weight = read_only(batch.weight) if source.is_weighted else NONE
        return Drawn(y, weight, local, remembered, numbers)

    @staticmethod
    def remember(drawn: Drawn, memory: Any) -> None:
        """Write the changed rows back to the memory."""
        if drawn.numbers is not None and memory is not None:
            memory[drawn.numbers] = drawn.memory


class Whole(Samples):
    """Samples in memory, in the given arrays: ``y`` (n, ...) and ``weight`` (n,) or (0,)."""

    def __init__(self, y: NDArray[Any], weight: Array) -> None:
        self.y, self.weight = y, weight
        self._source, self.most_rows = None, None
