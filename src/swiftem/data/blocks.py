"""Blocks of rows as samples, from any iterable."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import as_floats, as_numbers, check_finite, check_weights
from swiftem.core.source import Access
from swiftem.data.stored import Chunk, StoredSource, weighted

ONE_PASS = (
    "data must be readable more than once: a generator is exhausted after one pass. Give the function that "
    "makes it, or an object whose __iter__ starts again; GaussianMixture.partial_fit takes a generator."
)


def is_one_shot(blocks: object) -> bool:
    """Return whether an object can be iterated only once: generators, ``map``, open files.

    >>> is_one_shot(iter([1])), is_one_shot([1])
    (True, False)
    """
    return isinstance(blocks, Iterator)


class BlockSource(StoredSource):
    """Blocks of rows from a function or an iterable, in order.

    em, sem and sem-vr work, the latter two in the order of the blocks, shuffled within a window. The
    constructor reads the blocks once, to count and check the rows; each pass reads them again.

    Parameters
    ----------
    blocks : callable or iterable
        A function that returns a new iterator at each call, or an object whose ``__iter__`` starts again,
        such as a list. Blocks are arrays (b, d) or (b,), or pairs of such an array and its weights (b,), all
        with the same columns; the number of rows may differ, and empty blocks are skipped.
    window : int, optional
        Rows within which draws are shuffled; by default as many as fit into 16 MiB.
    allow_missing : bool
        Whether NaN is a missing cell, for models that take them, instead of an error.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.data import BlockSource
    >>> source = BlockSource(lambda: (np.full((3, 2), number) for number in range(4)))
    >>> source.n, [len(batch.y) for batch in source.blocks(5)]
    (12, [5, 5, 2])
    """

    access: ClassVar[Access] = "sequential"
    overlaps: bool = False  # objects bound to one thread, such as a database connection, stay in it

    def __init__(
        self,
        blocks: Callable[[], Iterable[Any]] | Iterable[Any],
        *,
        window: int | None = None,
        allow_missing: bool = False,
    ) -> None:
        super().__init__(window, allow_missing)
        if is_one_shot(blocks):
            raise ValueError(ONE_PASS)
        if not (callable(blocks) or isinstance(blocks, Iterable)):
            raise TypeError(f"blocks must be a function or an iterable, got {type(blocks).__name__}.")
        self._make = blocks
        self._form: tuple[tuple[int, ...], bool] | None = None
        self.dtype = np.dtype(np.float32)
        for y, weight in self._checked():
            self.dtype = np.result_type(self.dtype, y.dtype if y.dtype.kind == "f" else np.float64)
            self.n += len(y)
            self.total_weight += float(len(y)) if weight is None else float(weight.sum())
        if self._form is None or not self.n:
            raise ValueError("data must have at least one row of positive weight, got blocks with none.")
        self.tail, self.is_weighted = self._form
        self.lay_out()

    def _blocks(self) -> Iterator[tuple[ArrayLike, ArrayLike | None]]:
        """Yield rows and weights as they are given."""
        made = self._make() if callable(self._make) else self._make
        if not isinstance(made, Iterable):
            raise TypeError(f"blocks must return an iterator of blocks, got {type(made).__name__}.")
        for number, block in enumerate(made):
            if isinstance(block, tuple) and len(block) != 2:
                raise ValueError(
                    f"block {number} of data must be rows, or rows and weights, got a tuple of {len(block)}."
                )
            yield block if isinstance(block, tuple) else (block, None)

    def _checked(self) -> Iterator[Chunk]:
        """Yield the blocks with rows of positive weight, or raise an error with the block."""
        for number, (rows, weights) in enumerate(self._blocks()):
            name = f"block {number} of data"
            y = as_numbers(name, rows, self.allow_missing)
            if y.ndim not in (1, 2) or 0 in y.shape[1:]:
                raise ValueError(f"{name} must have shape (b,) or (b, d), got {y.shape}.")
            weight = None if weights is None else as_floats(f"the weights of {name}", weights)
            form = y.shape[1:], weight is not None
            self._form = self._form or form
            if form[0] != self._form[0]:
                raise ValueError(
                    f"{name} must have rows of shape {self._form[0]}, as the first block, got {form[0]}."
                )
            if form[1] != self._form[1]:
                raise ValueError(f"{name} must have weights if the first has, and none if it has none.")
            check_finite(name, y, self.allow_missing)
            if weight is not None:
                if weight.shape != (len(y),):
                    raise ValueError(
                        f"the weights of {name} must have shape ({len(y)},), got {weight.shape}."
                    )
                check_weights(f"the weights of {name}", weight)
            chunk = weighted(y, weight)
            if len(chunk.y):
                yield chunk

    def unweighted(self) -> StoredSource:
        """Return a source of all rows, also of weight zero, without weights."""
        if not self.is_weighted:
            return self
        return BlockSource(
            lambda: (rows for rows, _ in self._blocks()),
            window=self._window,
            allow_missing=self.allow_missing,
        )

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield all rows in order, block by block, large blocks in pieces."""
        for y, weight in self._checked():
            for start in range(0, len(y), rows):
                part = np.array(y[start : start + rows], dtype=self.dtype, order="C")
                yield Chunk(part, None if weight is None else weight[start : start + rows].copy())

    def fingerprint(self) -> str:
        """Return a hash of the rows, the weights and the window, by one pass."""
        digest = hashlib.blake2b(f"blocks{self.dtype}{self.layout.edges[1]}".encode(), digest_size=16)
        for batch in self.blocks(4096):
            digest.update(np.ascontiguousarray(batch.y).data)
            if self.is_weighted:
                digest.update(np.ascontiguousarray(batch.weight).data)
        return digest.hexdigest()
