"""The samples of a stretch of iterations, in the form that compiled loops get."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.source import Source
from swiftem.core.types import Array, Index
from swiftem.data.parts import NONE, read_only

__all__ = ["Drawn", "Repeated", "Samples", "Whole"]


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
    source : Source
        The data.
    dtype : dtype, optional
        Type to convert samples to; by default they are not converted.
    """

    def __init__(self, source: Source, dtype: Any = None, streams: int = 1) -> None:
        self._dtype = dtype
        self._reader: Any = None
        self.most_rows: int | None = None
        rows = source.rows_in_memory
        if rows is None:
            assert source.layout is not None, "samples that are not in memory have a layout"
            self._reader, self._is_weighted = source.reader(), source.is_weighted
            self._reader.serve(streams)
            self.most_rows = source.layout.window_rows
        else:
            y = rows.reshape(source.n, -1)
            self.y = read_only(np.require(y, dtype, ["C", "A"]))
            self.weight = NONE
            if source.weight is not None:
                self.weight = read_only(np.require(source.weight, np.float64, ["C", "A"]))

    def stop(self, start: int, stop: int, batch_size: int) -> int:
        """Return where a stretch from ``start`` must stop: its samples must fit into a window."""
        return stop if self.most_rows is None else min(stop, start + max(1, self.most_rows // batch_size))

    def drawn(self, index: tuple[Index, ...], memory: Any = None) -> Drawn:
        """Return the samples of ``index``, an array (iterations, b) per stream."""
        if self._reader is None:
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
        weight = read_only(batch.weight) if self._is_weighted else NONE
        return Drawn(y, weight, local, remembered, numbers)

    @staticmethod
    def remember(drawn: Drawn, memory: Any) -> None:
        """Write the changed rows back to the memory."""
        if drawn.numbers is not None and memory is not None:
            memory[drawn.numbers] = drawn.memory


class Whole(Samples):
    """Samples in memory, in the given arrays: ``y`` (n, ...) and ``weight`` (n,) or (0,)."""

    def __init__(self, y: NDArray[Any], weight: Array) -> None:
        self.y, self.weight = read_only(y), read_only(weight)
        self._reader, self.most_rows = None, None


class Repeated(Samples):
    """Tokens of large counts, of which only the drawn ones are in memory."""

    def __init__(self, source: Any, dtype: Any) -> None:
        self._reader, self._dtype, self.most_rows = source, dtype, 1 << 16
        self._is_weighted = source.entries()[3] is not None
