"""The parts of a full pass, and the form in which compiled code gets rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from swiftem.core.source import Source
from swiftem.core.types import Array
from swiftem.kernels.threads import part_ends

__all__ = ["NONE", "Part", "chunks", "is_served", "parts", "plain", "read_only"]

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
