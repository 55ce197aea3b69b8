r"""Units as samples: stochastic methods draw them, and store the statistics of each.

A unit u of rows with weights w has the mean statistics :math:`\bar s_u(\theta) = W_u^{-1} \sum_i w_i
s_i(\theta)` and the weight :math:`W_u = \sum_i w_i`. Their weighted mean is that of all rows, so that em is
exact, and iem, sem-vr and fiem run on Algorithm 1 with n = number of units: their memory is P × q numbers,
however many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from glob import glob
from hashlib import blake2b
from math import isfinite
from os import PathLike, stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import refuse_columns, shown
from swiftem.core.source import Access, Batch, Source
from swiftem.core.types import Array, Index
from swiftem.data.array import ArraySource
from swiftem.data.columns import Column
from swiftem.data.foreign import is_planned
from swiftem.data.open_source import are_paths, open_source
from swiftem.data.parquet import ParquetSource
from swiftem.data.units.pool import LocalPool, Pool
from swiftem.data.units.unit import FileBlock, Place, UnitSummary, prepare, sample, summarise

if TYPE_CHECKING:
    from swiftem.core.compute import Compute, Placement
    from swiftem.core.model import BoundModel, Model

__all__ = [
    "NEEDS_DASK",
    "UnitSamples",
    "UnitSource",
    "current_pool",
    "open_units",
    "parts_of",
    "token_of",
    "units_of",
]

SAMPLE = 50_000
"""Approximate maximum number of rows kept at the client."""
UNIT_BYTES = 16 * 2**20
"""Size of a unit of files without row groups."""
NEEDS_DASK = "Clusters need Dask: install it with pip install 'swiftem[dask]'."


class UnitSamples(Source):
    """Units as samples of a source: batches have their indices, as the content is not moved."""

    n: int = 0
    total_weight: float = 0.0
    weight: Array

    def take(self, index: Index) -> Batch:
        """Return units by index: ``y`` has the indices."""
        index = np.asarray(index)
        return Batch(index, self.weight[index], index)

    def blocks(self, rows: int) -> Iterator[Batch]:
        """Yield the indices of all units in order, at most ``rows`` at a time."""
        for start in range(0, self.n, rows):
            yield self.take(np.arange(start, min(start + rows, self.n)))


class UnitSource(UnitSamples):
    """Units of rows; their order is part of the data.

    Use :func:`swiftem.data.open_units` for files, or pass a Dask collection as data.

    Parameters
    ----------
    units : sequence
        Arrays (b, d), data frames, lazy ones (Delayed), or blocks of files.
    weights : sequence, optional
        Weights of the rows of each unit, divided like them.
    pool : Pool, optional
        Executor that reads the units; by default this process.
    token : str
        Identifies the data: it changes if they change.
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

    access: ClassVar[Access] = "random"
    is_weighted: bool = False

    def __init__(
        self,
        units: Sequence[Any],
        weights: Sequence[Any] | None = None,
        *,
        pool: Pool | None = None,
        token: str = "",
        where: Sequence[str] | None = None,
        names: Sequence[str] = (),
        size: float | None = None,
        allow_missing: bool = False,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.allow_missing, self.notes = allow_missing, notes
        self.pool: Pool = pool or LocalPool()
        self._token = token
        said = where or [f"unit {number} of data" for number in range(len(units))]
        places = [Place(name, allow_missing) for name in said]
        all_weights = [None] * len(units) if weights is None else list(weights)
        if len(all_weights) != len(units):
            raise ValueError(
                f"sample_weight must be chunked like the rows, in {len(units)} units, got {len(all_weights)}."
            )
        self.is_weighted = weights is not None
        #: Arguments of a task for each unit: the unit, its weights, and its place.
        self.work = list(zip(units, all_weights, places, strict=True))
        if size is not None:
            self.work = self.pool.hold(prepare, self.work, size)
        self._summarise(names)
        if size is None:
            self.work = self.pool.hold(prepare, self.work, self.rows * self.tail[0] * self.dtype.itemsize)

    def _summarise(self, names: Sequence[str]) -> None:
        """Make the first pass: lengths, weights, means."""
        every: list[UnitSummary] = self.pool.map(summarise, None, self.work, name="look-at")
        filled = [number for number, unit in enumerate(every) if unit.rows]
        if not filled:
            raise ValueError("data must have at least one row of positive weight, got none.")
        first = every[filled[0]]
        for number in filled:
            if _columns(every[number]) != _columns(first):
                raise ValueError(
                    f"data must have the same columns in all units, got {_columns(every[number])} in "
                    f"{self.work[number][2]} and {_columns(first)} before."
                )
        self.work, units = [self.work[number] for number in filled], [every[number] for number in filled]
        self.n = len(units)
        self.lengths = np.array([unit.rows for unit in units])
        self.rows = int(self.lengths.sum())
        self.weight: Array = np.array([unit.weight for unit in units])
        self.total_weight = float(self.weight.sum())
        self._means = np.array([unit.mean for unit in units])
        self.mean: Array = self.weight @ self._means / self.total_weight
        self.masses: Array | None = None
        if any(unit.masses is not None for unit in units):
            every_cell = np.ones(len(self.mean))
            masses = [unit.weight * every_cell if unit.masses is None else unit.masses for unit in units]
            self.masses = np.sum(masses, axis=0)
            below = np.where(self.masses > 0, self.masses, 1.0)
            self.mean = (np.array(masses) * self._means).sum(axis=0) / below
        self._observed = [unit.masses for unit in units if unit.masses is not None]
        self.largest = max(unit.largest for unit in units)
        self.tail = self.mean.shape
        self.names = tuple(names) or first.names
        self.dtype: np.dtype[Any] = np.result_type(*{np.dtype(unit.dtype) for unit in units})

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
        digest = blake2b(self._token.encode(), digest_size=16)
        for part in (self.lengths, self.weight, self._means, *self._observed):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    def sample(self, most: int, seed: int) -> ArraySource:
        """Return at most about ``most`` rows, a random share of each unit, as an array.

        The same seed gives the same rows, wherever they are read.
        """
        wanted = np.minimum(self.lengths, np.ceil(most * (self.lengths / self.rows)).astype(int))
        work = [(*self.work[number], number, int(wanted[number])) for number in range(self.n)]
        parts = self.pool.map(sample, seed, work, name="sample-of")
        weights: NDArray[Any] | None = None
        if parts[0][1] is not None:
            weights = np.concatenate([weight for _, weight in parts])
        rows = np.concatenate([y for y, _ in parts])
        return ArraySource(rows, weights, allow_missing=self.masses is not None)

    @cached_property
    def some(self) -> ArraySource:
        """Rows for starts, for evaluations of a fit and for re-initialised components."""
        return self.sample(SAMPLE, 0)

    def scaled_sample(self) -> ArraySource:
        """Return :attr:`some` with weights that sum to those of all rows, which priors depend on."""
        some = self.some
        weight = np.ones(some.n) if some.weight is None else some.weight
        weight = weight * (self.total_weight / weight.sum())
        return ArraySource(some.y, weight, allow_missing=self.masses is not None)


def _columns(unit: UnitSummary) -> str:
    return f"{0 if unit.mean is None else len(unit.mean)} columns"


def units_of(
    data: Any, sample_weight: Any = None, *, client: Any = None, allow_missing: bool = False
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
    pool = current_pool(client)
    names = tuple(map(str, getattr(data, "columns", ())))
    units = parts_of("data", data)
    weights = None if sample_weight is None else parts_of("sample_weight", sample_weight)
    size = data.nbytes if hasattr(data, "numblocks") else None
    return UnitSource(
        units,
        weights,
        pool=pool,
        token=token_of(data, sample_weight),
        names=names,
        size=size if size is not None and isfinite(size) else None,
        allow_missing=allow_missing,
    )


def token_of(*data: Any) -> str:
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


def current_pool(client: Any = None) -> Pool:
    """Return the executor of the tasks: a given or the current client, else this process."""
    if client is None:
        try:
            from distributed import Client

            client = Client.current()
        except (ImportError, ValueError):
            return LocalPool()
    from swiftem.data.units.cluster import DaskPool

    return DaskPool(client)


def open_units(
    path: Any,
    columns: Sequence[Column] | None = None,
    weight: Column | None = None,
    *,
    client: Any = None,
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
    files: list[str] = []
    if not are_paths(path):
        raise TypeError(f"path must be the name of a file, a pattern or a list of them, got {shown(path)}.")
    for part in [path] if isinstance(path, str | PathLike) else path:
        found = sorted(glob(str(part))) if any(sign in str(part) for sign in "*?[") else [str(part)]
        if not found:
            raise FileNotFoundError(f"path must name files, got {shown(str(part))}, which matches none.")
        files += found
    names = tuple(str(Path(file).resolve()) for file in files)
    chosen = None if columns is None else tuple(columns)
    source = open_source(list(names), chosen, weight, allow_missing=allow_missing, leave_out=leave_out)
    chosen = tuple(source.names) or chosen  # for the workers
    if source.access != "random":
        raise ValueError("path must name Parquet or .npy files for units, got text: convert it to Parquet.")
    spans: list[tuple[int, int] | None] = [None] * (len(source.layout.edges) - 1)
    if not isinstance(source, ParquetSource):
        step = max(1, UNIT_BYTES // source.row_bytes)
        spans = [(start, min(start + step, source.n)) for start in range(0, source.n, step)]
    written = [(status.st_size, status.st_mtime_ns) for status in map(stat, names)]
    version = blake2b(repr(written).encode(), digest_size=8).hexdigest()
    units = [FileBlock(names, chosen, weight, number, span, version) for number, span in enumerate(spans)]
    where = [
        f"block {number} of {names[0] if len(names) == 1 else 'the files'}" for number in range(len(units))
    ]
    return UnitSource(
        units,
        pool=current_pool(client),
        token=repr((names, chosen, weight)),
        where=where,
        names=source.names,
        size=source.n * source.row_bytes,
        allow_missing=allow_missing,
        notes=source.notes,
    )
