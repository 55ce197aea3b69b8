r"""Units as samples: stochastic methods draw them, and store the statistics of each.

A unit u of rows with weights w has the mean statistics :math:`\bar s_u(\theta) = W_u^{-1} \sum_i w_i
s_i(\theta)` and the weight :math:`W_u = \sum_i w_i`. Their weighted mean is the mean of all rows: em is
exact, and iem, sem-vr and fiem run on Algorithm 1 with n = number of units: their memory is P × q numbers,
however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from glob import glob
from math import isfinite
from os import PathLike, stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import as_numbers, check_finite, check_weights, refuse_columns, shown
from swiftem.core.files import fingerprint
from swiftem.core.source import Access, Batch, Source
from swiftem.core.types import Array, Index
from swiftem.data.array import ArraySource
from swiftem.data.as_source import is_planned
from swiftem.data.columns import Column
from swiftem.data.table_files import TableSource
from swiftem.data.tables import are_paths, open_source
from swiftem.data.units.tasks import DaskUnits, Units, Work

if TYPE_CHECKING:
    from distributed import Client

    from swiftem.core.compute import Compute, Placement
    from swiftem.core.model import BoundModel, Model

SAMPLE = 50_000
"""Approximate maximum number of rows kept at the client."""
UNIT_BYTES = 16 * 2**20
"""Size of a unit of files without row groups."""
BLOCK = 4096
"""Rows that are summed at a time."""


class UnitSamples(Source):
    """Units as samples of a source: batches have their indices, as the content is not moved.

    Parameters
    ----------
    read : callable
        Reads a unit, as in :class:`swiftem.data.units.tasks.Units`.
    units, weights : sequence, optional
        The units, and the weights of the samples of each.
    where : sequence of str, optional
        Names of the units in errors.
    client : distributed.Client, optional
        The client whose workers read the units; by default this process does.
    token : str
        Identifies the data: it changes if they change.
    """

    access: ClassVar[Access] = "random"
    named: ClassVar[str] = "data"
    """Name of the data in errors."""
    n: int = 0
    total_weight: float = 0.0
    weight: Array

    def __init__(
        self,
        read: Callable[..., object],
        units: Sequence[object],
        weights: Sequence[object] | None = None,
        *,
        where: Sequence[str] | None = None,
        client: Client | None = None,
        token: str = "",
    ) -> None:
        where = where or [f"unit {number} of {self.named}" for number in range(len(units))]
        each = [None] * len(units) if weights is None else list(weights)
        if len(each) != len(units):
            raise ValueError(
                f"sample_weight must be chunked like the {self.samples}, in {len(units)} units, "
                f"got {len(each)}."
            )
        items = list(zip(units, each, where, strict=True))
        self.units = Units(read, items) if client is None else DaskUnits(client, read, items)
        self._token = token

    def _summarise(self, summarise: Callable[..., Any], least: str, columns: str) -> list[Any]:
        """Return the summaries of all units by a first pass; units without samples are left out."""
        every = self.units.map(summarise)
        filled = [number for number, unit in enumerate(every) if unit.n]
        if not filled:
            raise ValueError(f"{self.named} must have at least one {least}, got none.")
        first = every[filled[0]]
        for number in filled:
            if every[number].columns != first.columns:
                raise ValueError(
                    f"{self.named} must have the same {columns} in all units, got {every[number].columns} "
                    f"{columns} in {self.units.items[number][2]} and {first.columns} before."
                )
        self.units.items = [self.units.items[number] for number in filled]
        summaries = [every[number] for number in filled]
        self.n, self.names = len(summaries), first.names
        self.lengths = np.array([unit.n for unit in summaries])
        self.weight = np.array([unit.weight for unit in summaries])
        self.total_weight = float(self.weight.sum())
        return summaries

    def _drawn(self, most: int, seed: int) -> Work:
        """Return, for each unit, its number and the indices of a random share, about ``most`` in all."""
        wanted = np.minimum(self.lengths, np.ceil(most * (self.lengths / self.lengths.sum())).astype(int))
        return [
            (unit, np.sort(np.random.default_rng((seed, unit)).choice(length, count, replace=False)))
            for unit, (length, count) in enumerate(zip(self.lengths, wanted, strict=True))
        ]

    def take(self, index: Index) -> Batch:
        """Return units by index: ``y`` has the indices."""
        index = np.asarray(index)
        return Batch(index, self.weight[index], index)

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield the indices of all units in order, at most ``rows`` at a time."""
        for start in range(0, self.n, rows):
            yield self.take(np.arange(start, min(start + rows, self.n)))


class RowSummary(NamedTuple):
    """Summary of a unit by a first pass.

    Attributes
    ----------
    n : int
        Number of rows with positive weight.
    columns : int
        Number of columns.
    weight : float
        Sum of the weights.
    names : tuple of str
        Names of the columns, if there are any.
    dtype : str
        Type of the rows.
    mean : ndarray, shape (d,)
        Weighted mean of the rows, zero for a column without an observed cell.
    largest : float
        Largest absolute value.
    masses : ndarray, shape (d,), or None
        Weight of the observed cells of each column; None if no cell is missing.
    """

    n: int
    columns: int
    weight: float
    names: tuple[str, ...]
    dtype: str
    mean: Array
    largest: float
    masses: Array | None


def aligned(array: Any) -> Any:
    """Return an array whose sums have the same bits everywhere: those from the network may not be aligned."""
    return None if array is None else np.require(array, requirements=["C", "A", "W"])


def unit_weights(weight: object, n: int, samples: str, where: str) -> Array:
    """Return the weights of the samples ("rows" or "documents") of a unit; invalid ones raise ValueError."""
    weights: Array = aligned(np.asarray(weight, dtype=np.float64).reshape(-1))
    if len(weights) != n:
        raise ValueError(
            f"sample_weight must be chunked like the {samples}: {n} {samples} and {len(weights)} weights "
            f"in {where}."
        )
    check_weights(f"sample_weight of {where}", weights, samples.removesuffix("s"))
    return weights


def read_rows(unit: Any, weight: object, where: str, *, allow_missing: bool = False) -> ArraySource:
    """Return the rows of a unit with positive weight in aligned arrays; invalid rows raise ValueError.

    Parameters
    ----------
    unit : callable, ndarray (b, d), data frame, or ArraySource
        The rows. A function such as a partial :func:`read_block` returns rows and weights; a source is the
        result of an earlier call.
    weight : ndarray (b,), column of a data frame, or None
        Their weights.
    where : str
        Name of the unit in errors.
    allow_missing : bool
        Whether NaN is a missing cell, instead of an error.
    """
    names: tuple[str, ...] = ()
    if isinstance(unit, ArraySource):
        rows, weights, names = unit.y, unit.weight, unit.names
    else:
        if callable(unit):
            rows, weight = unit(allow_missing)
        else:
            rows, names = _numbers(unit, where, allow_missing), tuple(map(str, getattr(unit, "columns", ())))
        check_finite(where, rows, allow_missing)
        if rows.ndim != 2 or not rows.shape[1]:
            raise ValueError(f"{where} must have rows and columns, got an array of shape {rows.shape}.")
        weights = None if weight is None else unit_weights(weight, len(rows), "rows", where)
        if weights is not None and not weights.all():
            rows, weights = rows[weights > 0.0], weights[weights > 0.0]
    source = ArraySource.checked(aligned(rows), aligned(weights), allow_missing)
    source.names = names
    return source


def _numbers(table: Any, where: str, allow_missing: bool) -> np.ndarray:
    """Return a block as floating-point numbers."""
    refuse_columns(where, table)
    values = table.to_numpy() if hasattr(table, "to_numpy") else table
    if allow_missing and values.dtype.kind == "O":  # pandas' NA
        values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    rows = as_numbers(where, values, allow_missing)
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)


def read_block(
    opened: Callable[[bool], Any], number: int, span: tuple[int, int] | None, allow_missing: bool
) -> tuple[np.ndarray, Array | None]:
    """Return the rows and weights of a block of files, such as a row group of Parquet.

    Parameters
    ----------
    opened : callable
        Returns the source of the files; its argument is whether missing values are NaN.
    number : int
        Index of the block.
    span : tuple of int, or None
        First row and end of the block, if the files have no row groups.
    allow_missing : bool
        Whether NaN is a missing cell, instead of an error.
    """
    source = opened(allow_missing)
    if span is None:
        rows, weights = source.block(number)
        return rows, weights
    batch = source.take(np.arange(*span))
    return batch.y, batch.weight if source.is_weighted else None


@lru_cache(maxsize=8)
def open_version(version: str, files: tuple[str, ...], columns: Any, weight: Any, allow_missing: bool) -> Any:
    """Return the source of some files, which a process opens once for each ``version`` of them."""
    return open_source(list(files), columns, weight, allow_missing=allow_missing)


def summarise_rows(source: ArraySource) -> RowSummary:
    """Return the summary of a unit."""
    y, d = source.y, source.y.shape[1]
    seen: NDArray[np.bool_] = ~np.isnan(y)
    has_missing = not seen.all()
    # Sums of differences from the first value of each column do not lose digits to an offset.
    origin, total, masses = np.zeros(d), np.zeros(d), np.zeros(d)
    if len(y):
        first = y[np.argmax(seen, axis=0), np.arange(d)]
        origin = np.where(seen.any(axis=0), first, 0.0).astype(np.float64)
    for batch in source.blocks(BLOCK):
        away = np.subtract(batch.y, origin, order="C")
        if has_missing:
            known = ~np.isnan(batch.y)
            away = np.where(known, away, 0.0)
            masses += batch.weight @ known
        total += batch.weight @ away
    divisor = np.where(masses > 0.0, masses, 1.0) if has_missing else source.total_weight or 1.0
    return RowSummary(
        source.n,
        d,
        source.total_weight,
        source.names,
        y.dtype.str,
        origin + total / divisor,
        float(np.abs(y[seen]).max(initial=0.0)) if has_missing else float(np.abs(y).max(initial=0.0)),
        masses if has_missing else None,
    )


def rows_at(source: ArraySource, index: Index) -> tuple[np.ndarray, Array | None]:
    """Return some rows of a unit, and their weights if they have any."""
    return source.y[index], None if source.weight is None else source.weight[index]


class UnitSource(UnitSamples):
    """Units of rows; their order is part of the data.

    Use :func:`swiftem.data.open_units` for files, or pass a Dask collection as data.

    Parameters
    ----------
    units : sequence
        Arrays (b, d), data frames, lazy ones (Delayed), or blocks of files.
    weights : sequence, optional
        Weights of the rows of each unit, divided like them.
    client : distributed.Client, optional
        The client whose workers read the units; by default this process does.
    token : str
        Identifies the data: it changes if they change.
    where : sequence of str, optional
        Names of the units in errors.
    names : sequence of str
        Names of the columns; by default as in data frames.
    size : float, optional
        Bytes of all rows, if known before they are read.
    allow_missing : bool
        Whether NaN is a missing cell, instead of an error.
    notes : tuple of str
        Remarks on how files were read.

    Attributes
    ----------
    n : int
        Number of units that have rows of positive weight.
    rows : int
        Number of such rows.
    total_weight : float
        Sum of their weights.
    masses : ndarray, shape (d,), or None
        Weight of the observed cells of each column; None if no cell is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.data import UnitSource
    >>> source = UnitSource([np.zeros((3, 2)), np.ones((1, 2))])
    >>> source.n, source.rows, source.mean
    (2, 4, array([0.25, 0.25]))
    """

    is_weighted: bool = False

    def __init__(
        self,
        units: Sequence[object],
        weights: Sequence[object] | None = None,
        *,
        client: Client | None = None,
        token: str = "",
        where: Sequence[str] | None = None,
        names: Sequence[str] = (),
        size: float | None = None,
        allow_missing: bool = False,
        notes: tuple[str, ...] = (),
    ) -> None:
        read = partial(read_rows, allow_missing=allow_missing)
        super().__init__(read, units, weights, where=where, client=client, token=token)
        self.allow_missing, self.notes, self.is_weighted = allow_missing, notes, weights is not None
        if size is not None:
            self.units.hold(size)
        summaries: list[RowSummary] = self._summarise(summarise_rows, "row of positive weight", "columns")
        self.names = tuple(names) or self.names
        self.rows = int(self.lengths.sum())
        self._means = np.array([unit.mean for unit in summaries])
        self.mean: Array = self.weight @ self._means / self.total_weight
        self.masses: Array | None = None
        self._observed = [unit.masses for unit in summaries if unit.masses is not None]
        if self._observed:
            every_cell = np.ones(len(self.mean))
            masses = [unit.weight * every_cell if unit.masses is None else unit.masses for unit in summaries]
            self.masses = np.sum(masses, axis=0)
            divisor = np.where(self.masses > 0, self.masses, 1.0)
            self.mean = (np.array(masses) * self._means).sum(axis=0) / divisor
        self.largest = max(unit.largest for unit in summaries)
        self.tail = self.mean.shape
        self.dtype: np.dtype = np.result_type(*{np.dtype(unit.dtype) for unit in summaries})
        if size is None:
            self.units.hold(self.rows * self.tail[0] * self.dtype.itemsize)

    @property
    def has_missing(self) -> bool:
        """Whether a cell is missing."""
        return self.masses is not None

    def bind(self, model: Model) -> BoundModel:
        """Return the model for these units: about the mean of all rows."""
        if model.missing == "error" and self.has_missing:
            raise ValueError("missing must be 'ignore' for rows with allow_missing=True, got 'error'.")
        return model.bind_units(self)

    def compute(self, bound: BoundModel, placement: Placement) -> Compute:
        """Return the E-steps of a bound model, one unit at a time."""
        from swiftem.data.units.compute import UnitCompute

        return UnitCompute(bound, self, placement)

    def fingerprint(self) -> str:
        """Return a text that changes if the division, lengths, weights or means of the units change."""
        return fingerprint(self._token, self.lengths, self.weight, self._means, *self._observed)

    def sample(self, most: int, seed: int) -> ArraySource:
        """Return at most about ``most`` rows, a random share of each unit, as an array.

        The same seed gives the same rows, wherever they are read.
        """
        parts = self.units.map(rows_at, self._drawn(most, seed))
        weights = [weight for _, weight in parts if weight is not None]
        rows = np.concatenate([y for y, _ in parts])
        return ArraySource(rows, np.concatenate(weights) if weights else None, allow_missing=self.has_missing)

    @cached_property
    def some(self) -> ArraySource:
        """Rows for starts, for evaluations of a fit and for re-initialised components."""
        return self.sample(SAMPLE, 0)

    def scaled_sample(self) -> ArraySource:
        """Return :attr:`some` with weights of the same sum as all rows, which priors depend on."""
        some = self.some
        weight = np.ones(some.n) if some.weight is None else some.weight
        weight = weight * (self.total_weight / weight.sum())
        return ArraySource(some.y, weight, allow_missing=self.has_missing)


def units_of(
    data: Any, sample_weight: object = None, *, client: Client | None = None, allow_missing: bool = False
) -> UnitSource:
    """Return a Dask collection as units: one for each chunk or partition.

    Parameters
    ----------
    data : dask array (n, d), dask data frame, Delayed or list of them
        The columns must be in one chunk; lengths may be unknown, and chunks empty.
    sample_weight : dask array (n,) or series, or list of Delayed, optional
        Chunked like the rows.
    client : distributed.Client, optional
        The client that computes; by default the current client, or this process if there is none.
    allow_missing : bool
        Whether NaN is a missing cell, instead of an error.
    """
    in_memory = ", or compute() the table and use Mixture(family='auto') for text"
    refuse_columns("data", getattr(data, "_meta", None), for_text=in_memory)
    size = data.nbytes if hasattr(data, "numblocks") else np.nan
    return UnitSource(
        parts_of("data", data),
        None if sample_weight is None else parts_of("sample_weight", sample_weight),
        client=current_client() if client is None else client,
        token=token_of(data, sample_weight),
        size=size if isfinite(size) else None,
        allow_missing=allow_missing,
    )


def token_of(*data: object) -> str:
    """Return a text that changes if the graph of a collection changes."""
    from dask.base import tokenize

    return str(tokenize(*data))


def parts_of(name: str, data: Any) -> list[Any]:
    """Return the chunks of a collection as Delayed objects."""
    if not is_planned(data):
        raise TypeError(
            f"{name} must be a Dask collection that is chunked like the rows, got {type(data).__name__}."
        )
    if isinstance(data, list | tuple):
        return list(data)
    if hasattr(data, "numblocks"):
        if any(count != 1 for count in data.numblocks[1:]):
            raise ValueError(
                f"{name} must have all its columns in one chunk, got {data.numblocks[1]} chunks of columns: "
                f"give {name}.rechunk({{1: -1}})."
            )
        if name in ("data", "X") and data.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {data.ndim}D array instead: rows must have columns, (n, d)."
            )
        return list(data.to_delayed().ravel())
    if hasattr(data, "to_delayed"):
        return list(data.to_delayed())
    return [data]


def current_client() -> Client | None:
    """Return the current client of Dask, or None if there is none."""
    try:
        from distributed import Client

        return Client.current()
    except (ImportError, ValueError):
        return None


def open_units(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    columns: Sequence[Column] | None = None,
    weight: Column | None = None,
    *,
    client: Client | None = None,
    allow_missing: bool = False,
    leave_out: bool = False,
) -> UnitSource:
    """Return the rows of files as units, which workers read: only file names are sent.

    Parameters
    ----------
    path : path, pattern such as ``"part-*.parquet"``, or sequence of them
        Parquet files, with each row group a unit, or ``.npy`` files, with units of 16 MiB. Workers must find
        them by the same names.
    columns, weight
        As in :func:`swiftem.data.open_source`.
    client : distributed.Client, optional
        The client that reads; by default the current client, or this process if there is none.
    allow_missing : bool
        Whether missing values are NaN in the rows, for models that ignore them; by default they are errors.
    leave_out : bool
        Whether columns that are no numbers are left out, as in :func:`swiftem.data.open_source`.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from swiftem.data import open_units
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in range(2):
    ...         np.save(pathlib.Path(folder, f"part-{number}.npy"), np.ones((5, 3)))
    ...     source = open_units(f"{folder}/part-*.npy")
    >>> source.n, source.rows
    (1, 10)
    """
    if not are_paths(path):
        raise TypeError(f"path must be the name of a file, a pattern or a list of them, got {shown(path)}.")
    files: list[str] = []
    for part in [path] if isinstance(path, str | PathLike) else path:
        matches = sorted(glob(str(part))) if any(sign in str(part) for sign in "*?[") else [str(part)]
        if not matches:
            raise FileNotFoundError(f"path must name files, got {shown(str(part))}, which matches none.")
        files += [str(Path(file).resolve()) for file in matches]
    chosen = None if columns is None else tuple(columns)
    source = open_source(files, chosen, weight, allow_missing=allow_missing, leave_out=leave_out)
    chosen = tuple(source.names) or chosen  # for the workers
    if source.access != "random":
        raise ValueError("path must name Parquet or .npy files for units, got text: convert it to Parquet.")
    spans: list[tuple[int, int] | None] = [None] * (len(source.layout.edges) - 1)
    if not isinstance(source, TableSource):
        step = max(1, UNIT_BYTES // source.row_bytes)
        spans = [(start, min(start + step, source.n)) for start in range(0, source.n, step)]
    written = [(status.st_size, status.st_mtime_ns) for status in map(stat, files)]
    opened = partial(open_version, fingerprint(repr(written)), tuple(files), chosen, weight)
    place = files[0] if len(files) == 1 else "the files"
    return UnitSource(
        [partial(read_block, opened, number, span) for number, span in enumerate(spans)],
        client=current_client() if client is None else client,
        token=repr((tuple(files), chosen, weight)),
        where=[f"block {number} of {place}" for number in range(len(spans))],
        names=source.names,
        size=source.n * source.row_bytes,
        allow_missing=allow_missing,
        notes=source.notes,
    )
