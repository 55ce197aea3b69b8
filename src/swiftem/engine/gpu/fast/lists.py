"""Logits of chunks of rows on a GPU, and lists of the candidates of each component: ``list_kernels.py``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import triton

from swiftem.engine.gpu.fast import list_kernels as kernels

__all__ = ["NEGLIGIBLE", "Lists", "chunk_of", "in_two"]

NUMBERS = 3 << 23
"""Most logits of a chunk of rows."""
NEGLIGIBLE = 40.0
"""Logits that are less than the largest one by this, to base 2, count for nothing."""
SEGMENT = 1024
"""Rows whose candidates are counted by one program."""


def in_two(values: Any) -> Any:
    """Return float64 numbers (M, D) as sums of two float32 numbers, (M, 2, D)."""
    first = values.float()
    return torch.stack([first, (values - first.double()).float()], dim=1)


def chunk_of(n: int, padded: int, tile: int) -> int:
    """Return the rows of each of a few equal chunks, a multiple of ``tile``."""
    chunks = triton.cdiv(n, max(tile, NUMBERS // padded // tile * tile))
    return int(triton.cdiv(n, chunks * tile)) * tile


class Lists:
    """Memory of one chunk of rows, and the logarithms of all.

    Parameters
    ----------
    n, count : int
        Rows and components.
    padded : int
        Components of the logits, some of which may only pad.
    parts : int
        Groups of components whose largest logits are known.
    size : int
        Rows of a chunk, from :func:`chunk_of`.
    device : device
        The GPU.

    Attributes
    ----------
    size : int
        Rows of a chunk.
    logits : tensor, shape (padded, size)
        Of a chunk, to base 2.
    maxima : tensor, shape (parts, size)
        The largest logits of each group.
    rows : tensor of int
        The rows of candidates, component after component.
    ends : tensor of int
        Cumulative numbers of candidates, of each component and segment of rows.
    logs : tensor, shape (2, n)
        The largest logit of each row, and log2 of the sum of 2^(logit − largest).
    """

    TILE = 32, 128
    """Rows and components of a tile of logits."""

    def __init__(self, n: int, count: int, padded: int, parts: int, size: int, device: Any) -> None:
        self._n, self._count, self.size = n, count, size
        segments = triton.cdiv(self.size, SEGMENT)
        self.logits, self.maxima = (
            torch.empty((rows, self.size), dtype=torch.float32, device=device) for rows in (padded, parts)
        )
        self.rows = torch.empty(count * self.size, dtype=torch.int32, device=device)
        self._counts = torch.empty(count * segments, dtype=torch.int32, device=device)
        self.ends = torch.zeros(count * segments + 1, dtype=torch.int32, device=device)
        self.logs = torch.empty((2, n), dtype=torch.float32, device=device)

    def chunks(self) -> Iterator[tuple[int, int, int]]:
        """Yield first row, number of rows and number of segments of each chunk."""
        for first in range(0, self._n, self.size):
            here = min(self.size, self._n - first)
            yield first, here, triton.cdiv(here, SEGMENT)

    def make(self, first: int, here: int, segments: int, cut: Any) -> None:
        """List the pairs whose logits are within ``cut`` (1,) of the largest of their row."""
        size, largest = self.size, self.logs[0, first:]
        kernels.row_maxima[(triton.cdiv(here, 128),)](
            self.maxima, largest, here, size, len(self.maxima), B=128
        )
        of_chunk, grid = (self.logits, largest, cut), (self._count, segments)
        kernels.count[grid](*of_chunk, self._counts, here, size, B=SEGMENT)
        some = self._counts[: self._count * segments]
        torch.cumsum(some, 0, dtype=torch.int32, out=self.ends[1 : len(some) + 1])
        kernels.list_rows[grid](*of_chunk, self.ends, self.rows, here, size, B=SEGMENT)

    def logarithms(self, first: int, here: int) -> tuple[Any, Any]:
        """Compute the logarithms of a chunk, and return them: the largest logits, and log2 of the sums."""
        largest, log = self.logs[0, first:], self.logs[1, first:]
        kernels.logarithms[(triton.cdiv(here, self.TILE[0]),)](
            self.logits, largest, log, here, self.size, len(self.logits), B=self.TILE[0], C=self.TILE[1]
        )
        return largest, log
