"""Every random draw of the library: streams of sample indices and their generators.

The draws of iteration k are a function of (seed, stream, order, n, b, k), and of the weights if they are
drawn in proportion to these. Each chunk of a stream has
its own generator. Therefore nothing depends on the length of the run so far, on records, on callbacks or on
kernels, and a run can be resumed at any k from its seed alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import as_integers, shown
from swiftem.core.types import Array, Index

__all__ = ["BlockDraws", "Draws", "Entropy", "GivenDraws", "SeededDraws", "generator", "read_seed"]

Entropy = NDArray[np.uint32]
"""Four words that represent a seed."""

Seed = int | np.random.SeedSequence | np.random.Generator | None

INITIAL_THETA, TERMINATION, INDICES = 0, 1, 2
"""First part of a generator's key: the purpose of its draws."""

CHUNK = 65_536
"""Indices drawn at once."""
ORDERS = 64
"""Maximum number of permutations drawn at once: for few samples, a chunk would be thousands."""


def read_seed(seed: Seed) -> Entropy:
    """Return the four words of ``seed``; None takes them from the system.

    >>> (read_seed(0) == read_seed(0)).all()
    np.True_
    """
    known = isinstance(seed, Integral | np.random.SeedSequence | np.random.Generator)
    if isinstance(seed, bool) or not (seed is None or known):
        raise TypeError(f"seed must be a non-negative integer, a NumPy Generator or None, got {shown(seed)}.")
    if isinstance(seed, np.random.Generator):
        seed = np.random.SeedSequence(seed.integers(2**32, size=4).tolist())
    if not isinstance(seed, np.random.SeedSequence):
        try:
            seed = np.random.SeedSequence(seed)
        except (TypeError, ValueError):
            raise TypeError(
                f"seed must be a non-negative integer, a NumPy Generator or None, got {shown(seed)}."
            ) from None
    return seed.generate_state(4, np.uint32).astype(np.uint32, copy=False)


def generator(entropy: Entropy, *key: int) -> np.random.Generator:
    """Return the generator with this key: the same entropy and key give the same numbers."""
    return np.random.default_rng(np.random.SeedSequence(entropy.tolist(), spawn_key=key))


class Draws(Protocol):
    """The sample indices of each iteration."""

    def at(self, k: int) -> tuple[Index, ...]:
        """Return the indices of iteration ``k``, an array of shape (b,) per stream."""
        ...

    def block(self, start: int, stop: int) -> tuple[Index, ...]:
        """Return the indices of iterations ``start`` to ``stop`` − 1, an array (., b) per stream."""
        ...


class SeededDraws:
    """Sample indices from a seed.

    Parameters
    ----------
    entropy : ndarray of uint32, shape (4,)
        From :func:`read_seed`.
    n, batch_size : int
        Number of samples, and samples per iteration.
    orders : sequence of {"iid", "shuffled", "weighted"}
        One per stream: uniform with replacement; consecutive pieces of successive permutations; or with
        replacement, in proportion to the weights.
    weight : ndarray, shape (n,), optional
        The weights; by default all are equal.

    Examples
    --------
    >>> from swiftem.core.draws import SeededDraws, read_seed
    >>> i, j = SeededDraws(read_seed(0), n=5, batch_size=1, orders=["iid", "shuffled"]).at(0)
    >>> i.shape
    (1,)
    """

    def __init__(
        self, entropy: Entropy, n: int, batch_size: int, orders: Sequence[str], weight: Array | None = None
    ) -> None:
        self._streams: list[_Stream] = []
        for stream, order in enumerate(orders):
            if order == "shuffled":
                self._streams.append(_Shuffled(entropy, stream, n, batch_size))
            elif order == "weighted" and weight is not None:
                self._streams.append(_Weighted(entropy, stream, weight, batch_size))
            else:
                self._streams.append(_Iid(entropy, stream, n, batch_size))

    def at(self, k: int) -> tuple[Index, ...]:
        """Return the indices of iteration ``k``, an array of shape (b,) per stream."""
        return tuple(stream.at(k) for stream in self._streams)

    def block(self, start: int, stop: int) -> tuple[Index, ...]:
        """Return the indices of iterations ``start`` to ``stop`` − 1, an array (., b) per stream."""
        return tuple(stream.block(start, stop) for stream in self._streams)

    def twin(self) -> SeededDraws:
        """Return the same draws with chunks of their own, for another thread."""
        found = copy(self)
        found._streams = [copy(stream) for stream in self._streams]
        return found


class _Stream(ABC):
    """Sample indices (b,) of each iteration, drawn for several iterations at a time and cached."""

    def __init__(self, b: int, at_once: int) -> None:
        self._b, self._rows = b, max(1, at_once // b)
        self._chunk = -1
        self._drawn: Index = np.empty((0, b), dtype=np.intp)

    def at(self, k: int) -> Index:
        """Return the indices (b,) of iteration ``k``."""
        chunk, row = divmod(k, self._rows)
        found: Index = self._draw(chunk)[row]
        return found

    def block(self, start: int, stop: int) -> Index:
        """Return the indices of iterations ``start`` to ``stop`` − 1, shape (., b)."""
        pieces: list[Index] = [self._drawn[:0]]
        while start < stop:
            chunk, row = divmod(start, self._rows)
            end = min(stop - start + row, self._rows)
            pieces.append(self._draw(chunk)[row:end])
            start += end - row
        return np.concatenate(pieces)

    def _draw(self, chunk: int) -> Index:
        if chunk != self._chunk:
            self._chunk, self._drawn = chunk, self.rows(chunk * self._rows, self._rows)
        return self._drawn

    @abstractmethod
    def rows(self, start: int, rows: int) -> Index:
        """Return rows ``start``, ... of the stream, shape (rows, b)."""


class _Iid(_Stream):
    """Uniform with replacement."""

    def __init__(self, entropy: Entropy, stream: int, n: int, b: int) -> None:
        super().__init__(b, CHUNK)
        self._entropy, self._stream, self._n = entropy, stream, n

    def rows(self, start: int, rows: int) -> Index:
        """Return rows ``start``, ... of the stream, shape (rows, b); ``start`` is a multiple of ``rows``."""
        rng = generator(self._entropy, INDICES, self._stream, start)
        return rng.integers(self._n, size=(rows, self._b), dtype=np.intp)


class _Weighted(_Stream):
    """With replacement, in proportion to weights."""

    def __init__(self, entropy: Entropy, stream: int, weight: Array, b: int) -> None:
        super().__init__(b, CHUNK)
        self._entropy, self._stream = entropy, stream
        self._sums = np.cumsum(weight / weight.max())  # weights may be as large as 1e100

    def rows(self, start: int, rows: int) -> Index:
        """Return rows ``start``, ... of the stream, shape (rows, b); ``start`` is a multiple of ``rows``."""
        at = generator(self._entropy, INDICES, self._stream, start).random((rows, self._b)) * self._sums[-1]
        found: Index = np.searchsorted(self._sums, at, side="right")
        found[found == len(self._sums)] -= 1  # a product may be rounded up to the whole sum
        return found


class _Permutations(_Stream):
    """An infinite sequence of permutations, cut into pieces of b; the chunk size does not change it."""

    def __init__(self, entropy: Entropy, stream: int, n: int, b: int) -> None:
        super().__init__(b, min(CHUNK, ORDERS * n))
        self._entropy, self._stream, self._n = entropy, stream, n

    def rows(self, start: int, rows: int) -> Index:
        """Return rows ``start``, ... of the stream, shape (rows, b)."""
        position, end, pieces = start * self._b, (start + rows) * self._b, []
        while position < end:
            number, offset = divmod(position, self._n)
            piece = self._piece(number, offset)[: end - position]
            pieces.append(piece)
            position += len(piece)
        return np.concatenate(pieces).reshape(rows, self._b)

    @abstractmethod
    def _piece(self, number: int, offset: int) -> Index:
        """Return part of permutation ``number``, from ``offset`` on, at least one index."""


class _Shuffled(_Permutations):
    """Successive permutations."""

    def __init__(self, entropy: Entropy, stream: int, n: int, b: int) -> None:
        super().__init__(entropy, stream, n, b)
        self._number, self._order = -1, np.empty(0, dtype=np.intp)

    def _piece(self, number: int, offset: int) -> Index:
        return self._permutation(number)[offset:]

    def _permutation(self, number: int) -> Index:
        if number != self._number:
            rng = generator(self._entropy, INDICES, self._stream, number)
            self._number, self._order = number, rng.permutation(self._n)
        return self._order


class BlockDraws(SeededDraws):
    """Sample indices from a seed, for data on disk: nearby samples are read together.

    An epoch has each sample once. The blocks of the data come in random order (in their own order if the
    data can only be read so); consecutive ones form a window, and samples are shuffled within it. Streams are
    independent of each other. The draws of an epoch are a function of seed, stream, layout and its number:
    a run can be resumed at any k without reading the data before.

    Parameters
    ----------
    entropy : ndarray of uint32, shape (4,)
        From :func:`read_seed`.
    edges : ndarray of int, shape (B + 1,)
        First indices of the blocks, and n.
    per_window : int
        Blocks per window.
    in_order : bool
        Whether blocks come in the order of the data.
    batch_size, streams : int
        Samples per iteration and stream, and number of streams.

    Examples
    --------
    Three blocks of two samples, one block per window: pairs of neighbours, in random order.

    >>> import numpy as np
    >>> from swiftem.core.draws import BlockDraws, read_seed
    >>> draws = BlockDraws(read_seed(0), np.array([0, 2, 4, 6]), 1, False, batch_size=2, streams=1)
    >>> sorted(sorted(draws.at(k)[0].tolist()) for k in range(3))
    [[0, 1], [2, 3], [4, 5]]
    """

    def __init__(
        self,
        entropy: Entropy,
        edges: Index,
        per_window: int,
        in_order: bool,
        *,
        batch_size: int,
        streams: int,
    ) -> None:
        self._streams = [
            _Windowed(entropy, stream, edges, per_window, in_order, batch_size) for stream in range(streams)
        ]


class _Windowed(_Permutations):
    """Blocks in random order or in their own, samples shuffled within a window of blocks."""

    def __init__(
        self, entropy: Entropy, stream: int, edges: Index, per_window: int, in_order: bool, b: int
    ) -> None:
        super().__init__(entropy, stream, int(edges[-1]), b)
        self._edges, self._per_window, self._in_order = edges, per_window, in_order
        self._number, self._window = -1, -1
        self._blocks = self._ends = self._order = np.empty(0, dtype=np.intp)

    def _piece(self, number: int, offset: int) -> Index:
        if number != self._number:
            self._blocks = np.arange(len(self._edges) - 1)
            if not self._in_order:
                generator(self._entropy, INDICES, self._stream, number).shuffle(self._blocks)
            ends = np.cumsum(np.diff(self._edges)[self._blocks])
            self._ends = np.append(ends[self._per_window - 1 : -1 : self._per_window], ends[-1])
            self._number, self._window = number, -1
        window = int(np.searchsorted(self._ends, offset, side="right"))
        if window != self._window:
            blocks = self._blocks[window * self._per_window : (window + 1) * self._per_window]
            self._order = np.concatenate(
                [np.arange(self._edges[block], self._edges[block + 1]) for block in blocks]
            )
            generator(self._entropy, INDICES, self._stream, number, window).shuffle(self._order)
            self._window = window
        begin = int(self._ends[window]) - len(self._order)
        return self._order[offset - begin :]


class GivenDraws:
    """Sample indices given by the caller.

    Parameters
    ----------
    draws : array-like of int, shape (n_iter,) or (n_iter, b), or a sequence of them
        One array if the method has one index stream, otherwise one per stream.
    n, batch_size, streams, n_iter : int
        Required sizes.
    start : int
        The iteration of the first row.
    """

    def __init__(
        self, draws: Any, *, n: int, batch_size: int, streams: int, n_iter: int, start: int = 0
    ) -> None:
        if streams == 0:
            raise ValueError("draws must be left out for a method that draws no samples.")
        parts = [draws] if streams == 1 else list(draws) if np.iterable(draws) else []
        if len(parts) != streams:
            raise ValueError(
                f"draws must be {streams} index arrays for this method, a pair (i, j), "
                f"got {'an array' if isinstance(draws, np.ndarray) else len(parts)}."
            )
        self._start = start
        self._drawn = tuple(_given(part, n, batch_size, n_iter) for part in parts)

    def at(self, k: int) -> tuple[Index, ...]:
        """Return the indices of iteration ``k``, an array of shape (b,) per stream."""
        return tuple(drawn[k - self._start] for drawn in self._drawn)

    def block(self, start: int, stop: int) -> tuple[Index, ...]:
        """Return the indices of iterations ``start`` to ``stop`` − 1, an array (., b) per stream."""
        return tuple(
            np.ascontiguousarray(drawn[start - self._start : stop - self._start]) for drawn in self._drawn
        )


def _given(draws: Any, n: int, b: int, n_iter: int) -> Index:
    """Return one stream's indices as a validated array (n_iter, b)."""
    try:
        index = as_integers("draws", draws) if np.size(draws) else np.empty((0, b), dtype=np.intp)
    except ValueError:
        raise ValueError("draws must be rectangular arrays, got rows of unequal length.") from None
    if b == 1 and index.ndim == 1:
        index = index[:, None]
    if index.shape != (n_iter, b):
        wanted = f"({n_iter},) or ({n_iter}, 1)" if b == 1 else f"({n_iter}, {b})"
        raise ValueError(
            f"draws must have shape (n_iter, batch_size) = {wanted} for each index stream, "
            f"got {np.shape(draws)}."
        )
    if index.size and (index.min() < 0 or index.max() >= n):
        worst = index.min() if index.min() < 0 else index.max()
        raise ValueError(f"draws must be sample indices from 0 to {n - 1}, got {worst}.")
    return index
