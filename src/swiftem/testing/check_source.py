"""The contract tests of a source."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.source import Batch, Source
from swiftem.data.stored import StoredSource
from swiftem.testing.check_model import require


def check_source(source: Source, y: ArrayLike | None = None) -> None:
    """Run the contract tests on a source; an AssertionError says what is broken.

    Parameters
    ----------
    source : Source
        The source.
    y : array-like, shape (n,) or (n, d), optional
        The expected samples, if they are known.

    Notes
    -----
    The requirements: the members of :class:`swiftem.data.Source`; blocks that cover all samples in order, at
    most ``rows`` at a time, the same in every pass; positive weights with the right sum; ``take`` that
    returns the same samples as the blocks, also for repeated indices, if access is random; a constant
    fingerprint. For a stored source also that blocks have the exact size, and that its layout covers all
    samples.

    Examples
    --------
    >>> from swiftem.data import ArraySource
    >>> from swiftem.testing import check_source
    >>> check_source(ArraySource([[1.0], [2.0], [3.0]]), [[1.0], [2.0], [3.0]])
    """
    require(isinstance(source, Source), f"{type(source).__name__} must derive from swiftem.data.Source.")
    is_stored = isinstance(source, StoredSource)
    missing = [name for name in ("dtype", "tail") if is_stored and not hasattr(source, name)]
    require(not missing, f"{type(source).__name__} must have {', '.join(missing)}.")
    require(source.access in ("random", "sequential"), f"access must be named, got {source.access!r}.")
    n = source.n
    require(n >= 1, f"a source must have at least one sample, got n = {n}.")
    samples, weight = _check_blocks(source, n)
    if y is not None:
        is_given = np.array_equal(samples, np.asarray(y).astype(samples.dtype))
        require(is_given, "blocks must return the given samples.")
    _check_weights(source, weight)
    if source.access == "random" or is_stored:
        _check_take(source, samples, weight)
    require(source.fingerprint() == source.fingerprint(), "the fingerprint must stay the same.")
    _check_members(source, samples)


def _check_members(source: Source, samples: np.ndarray) -> None:
    """Check what the library asks of a source in addition to its samples."""
    name = type(source).__name__
    require(source.facts is source.facts, f"facts of {name} must be one dictionary.")
    needed = source.bytes_needed(2)
    require(isinstance(needed, int) and needed >= 0, f"bytes_needed must be a number of bytes, got {needed}.")
    kind, words, names = source.samples, source.n_words, source.names
    require(kind in ("rows", "tokens", "documents"), f"samples must be named, got {kind!r}.")
    require(
        (words > 0) == (kind != "rows"),
        f"{name} must have a number of words if samples are tokens or documents, got {words}.",
    )
    require(
        source.n_documents > 0 or source.samples != "tokens",
        f"{name} must have a number of documents if samples are tokens, got {source.n_documents}.",
    )
    require(isinstance(source.allow_missing, bool), f"allow_missing of {name} must be True or False.")
    if samples.dtype.kind == "f":
        is_missing = bool(np.isnan(samples).any())
        require(source.allow_missing or not is_missing, f"{name} must allow missing cells, or have none.")
        require(source.has_missing == is_missing, f"has_missing of {name} must be {is_missing}.")
    rows = source.rows_in_memory
    require(
        rows is None or np.array_equal(rows, samples, equal_nan=samples.dtype.kind == "f"),
        f"rows_in_memory of {name} must be the samples of the blocks, or None.",
    )
    require(source.chunk_rows >= 1, f"chunk_rows must be at least 1, got {source.chunk_rows}.")
    require(source.row_bytes >= 0, f"row_bytes must be a number of bytes, got {source.row_bytes}.")
    width = samples.shape[1] if samples.ndim == 2 else 1
    require(
        not names or samples.dtype.kind != "f" or len(names) == width,
        f"{name} must have a name for each column, or none, got {len(names)} for {width}.",
    )
    if source.layout is not None:
        edges = source.layout.edges
        is_whole = edges[0] == 0 and edges[-1] == source.n
        require(is_whole, f"the layout must go from 0 to {source.n}, got {edges}.")
        require((np.diff(edges) > 0).all(), "the blocks of the layout must have samples.")


def _check_weights(source: Source, weight: np.ndarray) -> None:
    require((weight > 0).all(), "weights must be positive: samples of weight zero must be left out.")
    require(
        abs(float(weight.sum()) - source.total_weight) <= 1e-9 * source.total_weight,
        f"total_weight must be the sum of the weights, {weight.sum()}, got {source.total_weight}.",
    )
    if source.weight is not None:
        require(np.array_equal(source.weight, weight), "weight must have the weights of the blocks.")
    elif not source.is_weighted:
        require((weight == 1.0).all(), "is_weighted must be True for weights other than one.")


def _check_blocks(source: Source, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all samples and weights, read twice in blocks of different size."""
    passes: list[tuple[np.ndarray, np.ndarray]] = []
    for rows in (max(1, n // 3), n + 1):
        batches = list(source.blocks(rows))
        require(bool(batches), "blocks must yield something.")
        is_all = np.array_equal(np.concatenate([batch.index for batch in batches]), np.arange(n))
        require(is_all, f"blocks({rows}) must cover samples 0 to {n - 1} in order.")
        for batch in batches:
            sizes = len(samples_of(batch)), len(batch.weight), len(batch.index)
            is_one = len(set(sizes)) == 1
            require(is_one, f"y, weight and index of a batch must have one length, got {sizes}.")
            require(sizes[0] <= rows, f"blocks({rows}) must not yield more, got {sizes[0]}.")
        require(
            not isinstance(source, StoredSource) or all(len(batch.y) == rows for batch in batches[:-1]),
            f"blocks({rows}) of a stored source must have exactly this many samples, except the last.",
        )
        samples = np.concatenate([samples_of(batch) for batch in batches])
        passes.append((samples, np.concatenate([batch.weight for batch in batches])))
    (y, weight), (again, weight_again) = passes
    is_same = np.array_equal(y, again, equal_nan=y.dtype.kind == "f") and np.array_equal(weight, weight_again)
    require(is_same, "all passes must return the same samples.")
    return y, weight


def _check_take(source: Source, y: np.ndarray, weight: np.ndarray) -> None:
    n = len(y)
    reader = source.reader()
    reader.serve(2)
    for index in (np.array([n - 1, 0, n // 2, 0]), np.arange(n)[::-1], np.arange(0)):
        for batch in (source.take(index), reader.take(index)):
            require(np.array_equal(batch.index, index), "take must return the indices that it was given.")
            is_same = np.array_equal(samples_of(batch), y[index], equal_nan=y.dtype.kind == "f")
            is_same = is_same and np.array_equal(batch.weight, weight[index])
            require(is_same, "take must return the same samples as blocks.")


def samples_of(batch: Batch) -> np.ndarray:
    """Return the samples of a batch as an array: of documents, their lengths."""
    return batch.y if isinstance(batch.y, np.ndarray) else np.asarray(batch.y.length)
