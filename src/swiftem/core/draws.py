"""Streams of sample indices and their generators.

The draws of iteration k are a function of (seed, stream, order, n, b, k), and of the weights if samples are
drawn in proportion to these. Each chunk of a stream has its own generator. Therefore nothing depends on the
length of the run so far, on records, on callbacks or on kernels, and a run can be resumed at any k from its
seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import as_integers, shown
from swiftem.core.types import Array, Index

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
    if isinstance(seed, np.random.Generator):
        seed = np.random.SeedSequence(seed.integers(2**32, size=4).tolist())
    if not isinstance(seed, np.random.SeedSequence):
        wrong = f"seed must be a non-negative integer, a NumPy Generator or None, got {shown(seed)}."
        if isinstance(seed, bool) or not (seed is None or isinstance(seed, Integral)):
            raise TypeError(wrong)
        try:
            seed = np.random.SeedSequence(seed)
        except (TypeError, ValueError):
            raise TypeError(wrong) from None
    return seed.generate_state(4, np.uint32).astype(np.uint32, copy=False)


def generator(entropy: Entropy, *key: int) -> np.random.Generator:
    """Return the generator with this key: the same entropy and key give the same numbers."""
    return np.random.default_rng(np.random.SeedSequence(entropy.tolist(), spawn_key=key))


class Stream:
    """Sample indices (b,) of each iteration, drawn for several iterations at a time and cached.

    Parameters
    ----------
    rows : callable
        Gets an iteration and a number of iterations; returns the indices of as many, (number, b).
    b : int
        Indices per iteration.
    at_once : int
        Indices drawn at once.
    first : int
        The iteration that ``rows`` calls 0.
    """

    def __init__(self, rows: Callable[[int, int], Index], b: int, at_once: int, first: int = 0) -> None:
        length = max(1, at_once // b)
        self._first, self._length = first, length
        self._chunk = lru_cache(maxsize=1)(lambda chunk: rows(chunk * length, length))

    def at(self, k: int) -> Index:
        """Return the indices (b,) of iteration ``k``."""
        chunk, row = divmod(k - self._first, self._length)
        index: Index = self._chunk(chunk)[row]
        return index

    def block(self, start: int, stop: int) -> Index:
        """Return the indices of iterations ``start`` to ``stop`` − 1, shape (., b)."""
        start, stop = start - self._first, stop - self._first
        pieces = [self._chunk(start // self._length)[:0]]
        while start < stop:
            chunk, row = divmod(start, self._length)
            end = min(stop - start + row, self._length)
            pieces.append(self._chunk(chunk)[row:end])
            start += end - row
        return np.concatenate(pieces)


class Draws:
    """The sample indices of each iteration, one array per stream."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._streams = streams

    def at(self, k: int) -> tuple[Index, ...]:
        """Return the indices of iteration ``k``, an array of shape (b,) per stream."""
        return tuple(stream.at(k) for stream in self._streams)

    def block(self, start: int, stop: int) -> tuple[Index, ...]:
        """Return the indices of iterations ``start`` to ``stop`` − 1, an array (., b) per stream."""
        return tuple(stream.block(start, stop) for stream in self._streams)


def seeded_draws(
    entropy: Entropy, n: int, batch_size: int, orders: Sequence[str], weight: Array | None = None
) -> Draws:
    """Return sample indices from a seed.

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
    >>> from swiftem.core.draws import seeded_draws, read_seed
    >>> i, j = seeded_draws(read_seed(0), n=5, batch_size=1, orders=["iid", "shuffled"]).at(0)
    >>> i.shape
    (1,)
    """
    # Relative to the largest, as weights may be as large as 1e100.
    sums = None if weight is None else np.cumsum(weight / weight.max())

    def stream(number: int, order: str) -> Stream:
        def independent(start: int, rows: int) -> Index:
            rng, size = generator(entropy, INDICES, number, start), (rows, batch_size)
            if order == "weighted" and sums is not None:
                # A product may be rounded up to the whole sum.
                index: Index = np.searchsorted(sums, rng.random(size) * sums[-1], side="right")
                return index.clip(max=n - 1)
            return rng.integers(n, size=size, dtype=np.intp)

        @lru_cache(maxsize=1)
        def permutation(epoch: int) -> Index:
            return generator(entropy, INDICES, number, epoch).permutation(n)

        if order == "shuffled":
            return _successive(lambda epoch, offset: permutation(epoch)[offset:], n, batch_size)
        return Stream(independent, batch_size, CHUNK)

    return Draws([stream(number, order) for number, order in enumerate(orders)])


def block_draws(
    entropy: Entropy, edges: Index, per_window: int, in_order: bool, *, batch_size: int, streams: int
) -> Draws:
    """Return sample indices from a seed, for data on disk: nearby samples are read together.

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
    >>> from swiftem.core.draws import block_draws, read_seed
    >>> draws = block_draws(read_seed(0), np.array([0, 2, 4, 6]), 1, False, batch_size=2, streams=1)
    >>> sorted(sorted(draws.at(k)[0].tolist()) for k in range(3))
    [[0, 1], [2, 3], [4, 5]]
    """

    def stream(number: int) -> Stream:
        @lru_cache(maxsize=1)
        def windows(epoch: int) -> tuple[Index, Index]:
            """Return the order of the blocks, and the ends of their windows."""
            blocks = np.arange(len(edges) - 1)
            if not in_order:
                generator(entropy, INDICES, number, epoch).shuffle(blocks)
            ends = np.cumsum(np.diff(edges)[blocks])
            return blocks, np.append(ends[per_window - 1 : -1 : per_window], ends[-1])

        @lru_cache(maxsize=1)
        def samples(epoch: int, window: int) -> Index:
            blocks = windows(epoch)[0][window * per_window : (window + 1) * per_window]
            order = np.concatenate([np.arange(edges[block], edges[block + 1]) for block in blocks])
            generator(entropy, INDICES, number, epoch, window).shuffle(order)
            return order

        def piece(epoch: int, offset: int) -> Index:
            ends = windows(epoch)[1]
            window = int(np.searchsorted(ends, offset, side="right"))
            order = samples(epoch, window)
            return order[offset - (int(ends[window]) - len(order)) :]

        return _successive(piece, int(edges[-1]), batch_size)

    return Draws([stream(number) for number in range(streams)])


def _successive(piece: Callable[[int, int], Index], n: int, b: int) -> Stream:
    """Return an infinite sequence of permutations of n samples, cut into pieces of b.

    ``piece(epoch, offset)`` returns part of a permutation from ``offset`` on, at least one index. The size of
    a chunk does not change the sequence.
    """

    def rows(start: int, count: int) -> Index:
        position, end, pieces = start * b, (start + count) * b, []
        while position < end:
            pieces.append(piece(*divmod(position, n))[: end - position])
            position += len(pieces[-1])
        return np.concatenate(pieces).reshape(count, b)

    return Stream(rows, b, min(CHUNK, ORDERS * n))


def given_draws(
    draws: ArrayLike, *, n: int, batch_size: int, streams: int, n_iter: int, start: int = 0
) -> Draws:
    """Return sample indices given by the caller.

    Parameters
    ----------
    draws : array-like of int, shape (n_iter,) or (n_iter, b), or a sequence of them
        One array if the method has one index stream, otherwise one per stream.
    n, batch_size, streams, n_iter : int
        Required sizes.
    start : int
        The iteration of the first row.
    """
    if streams == 0:
        raise ValueError("draws must be left out for a method that draws no samples.")
    parts = [draws] if streams == 1 else list(draws) if np.iterable(draws) else []
    if len(parts) != streams:
        raise ValueError(
            f"draws must be {streams} index arrays for this method, a pair (i, j), "
            f"got {'an array' if isinstance(draws, np.ndarray) else len(parts)}."
        )

    def stream(index: Index) -> Stream:
        return Stream(lambda row, rows: index[row : row + rows], batch_size, index.size, start)

    given = [_given(part, n, batch_size, n_iter) for part in parts]
    return Draws([stream(index) for index in given])


def _given(draws: ArrayLike, n: int, b: int, n_iter: int) -> Index:
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


def spread_rows(n: int, count: int, rng: np.random.Generator) -> Index:
    """Return ``count`` distinct sample indices in order, one at random from each of as many equal parts.

    Memory does not depend on n, and sorted data are covered evenly.

    >>> (spread_rows(6, 3, np.random.default_rng(0)) // 2).tolist()
    [0, 1, 2]
    """
    if count >= n:
        return np.arange(n)
    edges = n * np.arange(count + 1) // count
    return edges[:-1] + np.floor(rng.random(count) * np.diff(edges)).astype(np.intp)
