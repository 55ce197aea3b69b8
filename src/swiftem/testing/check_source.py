"""The contract tests of a source."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Source
from swiftem.testing.compare import require

__all__ = ["check_source"]


MEMBERS = ("n", "total_weight", "access", "take", "blocks", "fingerprint")
STORED = (*MEMBERS, "dtype", "tail", "is_weighted", "layout", "allow_missing", "found")
ARRAY = (*MEMBERS, "y", "weight", "like", "allow_missing", "found")


def check_source(source: Source, y: Any = None) -> None:
    """Run the contract tests on a source; an AssertionError says what is broken.

    Parameters
    ----------
    source : Source
        The source.
    y : array-like, shape (n,) or (n, d), optional
        The expected samples, if they are known.

    Notes
    -----
    The requirements: ``n``, ``total_weight`` and ``access``; blocks that cover all samples in order, at most
    ``rows`` at a time, the same in every pass; positive weights with the right sum; ``take`` that returns
    the same samples as the blocks, also for repeated indices, if access is random; a constant fingerprint.
    For a stored source also that blocks have the exact size, and that its layout covers all samples.

    Examples
    --------
    >>> from swiftem.data import ArraySource
    >>> from swiftem.testing import check_source
    >>> check_source(ArraySource([[1.0], [2.0], [3.0]]), [[1.0], [2.0], [3.0]])
    """
    wanted: tuple[str, ...] = MEMBERS
    if isinstance(source, StoredSource | ArraySource):
        wanted = STORED if isinstance(source, StoredSource) else ARRAY
    missing = [name for name in wanted if not hasattr(source, name)]
    require(
        not missing, f"{type(source).__name__} must have {', '.join(missing)}: see help(swiftem.data.Source)."
    )
    require(source.access in ("random", "sequential"), f"access must be named, got {source.access!r}.")
    n = source.n
    require(n >= 1, f"a source must have at least one sample, got n = {n}.")
    whole, weight = _check_blocks(source, n)
    if y is not None:
        expected = np.asarray(y)
        require(
            whole.shape == expected.shape and np.array_equal(whole, expected.astype(whole.dtype)),
            "blocks must return the given samples.",
        )
    require((weight > 0).all(), "weights must be positive: samples of weight zero must be left out.")
    require(
        abs(float(weight.sum()) - source.total_weight) <= 1e-9 * source.total_weight,
        f"total_weight must be the sum of the weights, {weight.sum()}, got {source.total_weight}.",
    )
    if source.access == "random" or isinstance(source, StoredSource):
        _check_take(source, whole, weight)
    require(source.fingerprint() == source.fingerprint(), "the fingerprint must stay the same.")
    if isinstance(source, StoredSource):
        edges = source.layout.edges
        require(edges[0] == 0 and edges[-1] == n, f"the layout must go from 0 to {n}, got {edges}.")
        require((np.diff(edges) > 0).all(), "the blocks of the layout must have samples.")


def _check_blocks(source: Source, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return all samples and weights, read twice in blocks of different size."""
    found: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for rows in (max(1, n // 3), n + 1):
        batches = list(source.blocks(rows))
        require(bool(batches), "blocks must yield something.")
        index = np.concatenate([batch.index for batch in batches])
        require(
            np.array_equal(index, np.arange(n)), f"blocks({rows}) must cover samples 0 to {n - 1} in order."
        )
        for batch in batches:
            sizes = len(batch.y), len(batch.weight), len(batch.index)
            require(
                len(set(sizes)) == 1, f"y, weight and index of a batch must have one length, got {sizes}."
            )
            require(sizes[0] <= rows, f"blocks({rows}) must not yield more, got {sizes[0]}.")
        if isinstance(source, StoredSource):
            require(
                all(len(batch.y) == rows for batch in batches[:-1]),
                f"blocks({rows}) of a stored source must have exactly this many samples, except the last.",
            )
        found.append((np.concatenate([b.y for b in batches]), np.concatenate([b.weight for b in batches])))
    (y, weight), (again, weight_again) = found
    require(
        np.array_equal(y, again) and np.array_equal(weight, weight_again),
        "all passes must return the same samples.",
    )
    return y, weight


def _check_take(source: Source, y: NDArray[Any], weight: NDArray[Any]) -> None:
    n = len(y)
    for index in (np.array([n - 1, 0, n // 2, 0]), np.arange(n)[::-1], np.arange(0)):
        batch = source.take(index)
        require(np.array_equal(batch.index, index), "take must return the indices that it was given.")
        require(
            np.array_equal(batch.y, y[index]) and np.array_equal(batch.weight, weight[index]),
            "take must return the same samples as blocks.",
        )
