"""Sequences given as arrays with their lengths, as lists of arrays, or by a column that names them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import as_integers, in_numpy, read_sample_weight, shown
from swiftem.core.source import Source
from swiftem.core.types import Index
from swiftem.data.array import ArraySource
from swiftem.data.as_source import is_planned
from swiftem.data.columns import Columns
from swiftem.data.stored import StoredSource
from swiftem.data.table_files import ROWS, TableFile
from swiftem.data.tables import are_paths, format_of, open_source, table_files
from swiftem.hmm.sequences import SequenceSource

Runs = tuple[list[Any], list[int]]
"""Values that follow each other, and how often each is repeated."""


def divided(
    X: Any, lengths: ArrayLike | None, sequence: Any, allow_missing: bool
) -> tuple[Any, Index | None]:
    """Return the steps of all sequences, and the number of steps of each; None if X is one sequence.

    Parameters
    ----------
    X : array-like, table, list of these, path or list of paths
        The steps.
    lengths : array-like of int, optional
        Numbers of steps.
    sequence : str, int or array-like, optional
        A column of a table or of a file, or a value for each step: steps of a sequence have the same.
    allow_missing : bool
        Whether cells of files may be missing.
    """
    if is_planned(X):
        raise TypeError("X must be in memory or in files for a hidden Markov model, got a Dask collection.")
    if isinstance(X, list | tuple) and len(X) and all(len(np.shape(part)) == 2 for part in X):
        if lengths is not None or sequence is not None:
            raise ValueError("lengths and sequence must be left out if X is a list of sequences.")
        given = [len(part) for part in X]
        return (X[0] if len(X) == 1 else _joined(X)), _checked_lengths(given)
    if sequence is None:
        return X, None if lengths is None else _checked_lengths(in_numpy(lengths))
    if lengths is not None:
        raise ValueError("lengths must be left out if sequence is given.")
    if are_paths(X):
        source = open_source(X, drop=[sequence], allow_missing=allow_missing)
        return source, lengths_in_files(X if isinstance(X, list | tuple) else [X], sequence)
    if isinstance(sequence, str | int):
        X, sequence = _without_column(X, sequence)
    return X, _lengths_of([_runs(np.asarray(in_numpy(sequence)))])


def lengths_in_files(paths: Sequence[Any], sequence: str | int) -> Index:
    """Return the numbers of steps of the sequences that a column of files names."""
    return _lengths_of(_runs_in_files(paths, sequence))


def sequences_of(rows: Source, lengths: Index | None, sample_weight: ArrayLike | None) -> SequenceSource:
    """Return sequences of rows, with their weights, after checks."""
    if not isinstance(rows, ArraySource | StoredSource) or rows.is_weighted:
        raise TypeError("X must be rows in memory or in files without weights, for a hidden Markov model.")
    lengths = np.array([rows.n]) if lengths is None else lengths
    if lengths.sum() != rows.n:
        raise ValueError(f"lengths must sum to the number of steps, {rows.n}, got {lengths.sum()}.")
    weight = None if sample_weight is None else read_sample_weight(sample_weight, len(lengths), "sequence")
    return SequenceSource(rows, lengths, weight)


def _checked_lengths(lengths: Any) -> Index:
    found = as_integers("lengths", np.atleast_1d(lengths))
    if found.ndim != 1 or not len(found) or (found < 1).any():
        place = int(np.argmin(found)) if found.ndim == 1 and len(found) else 0
        raise ValueError(f"lengths must be positive, got a sequence without steps at position {place}.")
    return found


def _joined(parts: Sequence[Any]) -> Any:
    """Return tables or arrays as one, of the same kind."""
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(list(parts))
    widths = {np.shape(part)[1] for part in parts}
    if len(widths) > 1:
        raise ValueError(f"X must have sequences of the same columns, got {sorted(widths)} columns.")
    return np.concatenate([in_numpy(part) for part in parts])


def _without_column(X: Any, name: str | int) -> tuple[Any, NDArray[Any]]:
    """Return a table without a column, and that column."""
    if isinstance(X, np.ndarray) and isinstance(name, int):
        return np.delete(X, name, axis=1), X[:, name]
    if not hasattr(X, "columns"):
        raise TypeError(
            f"sequence must be an array of values for each step unless X is a table, got {name!r}."
        )
    names = list(getattr(X, "column_names", X.columns))
    if name not in names:
        raise ValueError(f"sequence must be a column of X, got {name!r}.")
    left = [other for other in names if other != name]
    return (X.select(left) if hasattr(X, "select") else X[left]), np.asarray(X[name])


def _runs(ids: NDArray[Any]) -> Runs:
    """Return the runs of equal ids.

    >>> _runs(np.array(["a", "a", "b"]))
    (['a', 'b'], [2, 1])
    """
    if ids.ndim != 1 or not len(ids):
        raise ValueError(f"sequence must have a value for each step, got {shown(ids)}.")
    edges = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)]
    return ids[edges[:-1]].tolist(), [stop - start for start, stop in pairwise(edges)]


def _runs_in_files(paths: Sequence[Any], sequence: str | int) -> Iterator[Runs]:
    """Yield the runs of a column of files, part by part."""
    for file in chain.from_iterable(map(table_files, paths)):
        make = format_of(file)
        if not issubclass(make, TableFile):
            raise ValueError(f"sequence must be given for Parquet or CSV files, got {file}: give lengths.")
        table = make(file)
        alone = Columns((), (), (), None, table.header.find(sequence, "sequence"), {})
        for _, arrays in table.batches(alone, range(len(table.groups)), ROWS):
            if arrays[0].null_count:
                raise ValueError(f"{file} must have a value in every row of column {sequence!r}.")
            yield _runs(arrays[0].to_numpy(zero_copy_only=False))


def _lengths_of(parts: Iterable[Runs]) -> Index:
    """Return the numbers of steps of sequences from runs of ids; an id may only continue in the next part."""
    lengths: list[int] = []
    seen: set[Any] = set()
    last: Any = None
    for ids, counts in parts:
        if lengths and ids[0] == last:
            lengths[-1] += counts[0]
            ids, counts = ids[1:], counts[1:]
        for id_ in ids:
            if id_ != id_ or id_ is None:
                raise ValueError("sequence must have a value for each step, got a missing one.")
            if id_ in seen:
                raise ValueError(
                    f"sequence must have the steps of a sequence one after the other, got {id_!r} again "
                    "after others: sort the steps by sequence, then by time."
                )
            seen.add(id_)
        lengths += counts
        last = ids[-1] if ids else last
    return np.array(lengths)
