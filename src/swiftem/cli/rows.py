"""Rows of tables for a fit: read, joined, checked and described."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.cli.failures import tell
from swiftem.cli.options import Choice
from swiftem.core.checks import shortened
from swiftem.core.types import Array, Index
from swiftem.data.columns import UnknownColumnError, Wanted, check_same_columns
from swiftem.data.tables import (
    Table,
    open_source,
    read_places,
    read_table,
    table_files,
)
from swiftem.show.numbers import counted

FEW_LEVELS, ALMOST = 10, 0.8
"""Columns of text with more levels than these, and than this share of the rows, are ids."""
AUTO = "auto"
"""The family that is chosen by the values of each column."""


@dataclass(frozen=True)
class Rows:
    """Rows for an estimator.

    Attributes
    ----------
    X, y : array or source, and the responses of regressions
        What is fitted.
    d : int
        Number of columns of X.
    lengths : ndarray of int, or None
        Numbers of steps, if the rows are the steps of sequences.
    weights, labels, index
        As in :class:`swiftem.data.tables.Table`.
    names, response : names of the columns
        Empty, or None, if the file has none.
    numbers : sequence of int
        The columns by their numbers in the file.
    texts : mapping
        Columns of text by place.
    layout : tuple of int
        Of a file without names: its number of columns, and the numbers of those fitted, if not all are.
    said : str
        The file, the number of rows and the columns, for messages.
    """

    X: Any
    d: int
    said: str
    names: tuple[str, ...] = ()
    y: Array | None = None
    response: str | None = None
    weights: Array | None = None
    labels: NDArray[Any] | None = None
    index: Index | None = None
    numbers: Sequence[int] = ()
    texts: dict[int, NDArray[Any]] = field(default_factory=dict)
    layout: tuple[int, ...] = ()
    lengths: Index | None = None

    @property
    def data(self) -> tuple[Any, ...]:
        """What the methods of the estimator take: X, or X and y, or an array for each sequence."""
        if self.lengths is not None and isinstance(self.X, np.ndarray):
            return (np.split(self.X, np.cumsum(self.lengths)[:-1]),)
        return (self.X,) if self.y is None else (self.X, self.y)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        if isinstance(self.X, np.ndarray):
            return float(len(self.X) if self.weights is None else self.weights.sum())
        return float(self.X.total_weight)

    @property
    def n_missing(self) -> int:
        """Number of missing cells."""
        parts = self.data if self.lengths is None else (self.X,)
        return sum(int(((part != part) | (part == None)).sum()) for part in parts)  # noqa: E711

    def check_enough(self, n_components: int) -> None:
        """Raise ValueError if there are fewer rows of positive weight than components, or fewer than two."""
        n = self.X.n if not isinstance(self.X, np.ndarray) else len(self.X)
        n = n if self.weights is None else int(np.count_nonzero(self.weights))
        if n < max(n_components, 2):
            what = counted(n, "row") + ("" if self.weights is None else " of positive weight")
            file = self.said.partition(": ")[0]
            if n_components <= 2:
                raise ValueError(f"{file} must have at least two rows, got {what}.")
            raise ValueError(f"n_components must be at most the number of rows, but {file} has {what}.")

    def name(self, mixture: Any) -> None:
        """Give a fitted model the names and the layout of the file."""
        if self.names:
            mixture.feature_names_in_ = np.array(self.names, dtype=object)
        if self.y is not None:
            mixture.response_name_ = self.response
        mixture._layout = self.layout


def read_rows(
    tables: Sequence[Path],
    choice: Choice,
    family: Any = None,
    memory_limit: int | str | None = None,
    *,
    at_once: bool = False,
) -> Rows:
    """Return the rows of tables; several tables, or any with a memory limit, are read on demand.

    Skipping rows, labels, responses and text need all rows in memory, as with ``at_once``. If ``family`` is a
    dict of blocks, their columns are read by default.
    """
    if takes_text(family) and memory_limit is None:
        choice = replace(choice, text=())
    is_blocks, is_free = isinstance(family, dict), choice.columns is None and family is not None
    if is_blocks and is_free:
        columns = [column for columns in family.values() for column in columns]
        if all(column.isdigit() for column in columns):  # a model without names is applied by position
            columns = sorted(columns, key=int)
        choice = replace(choice, columns=columns)
    needed = {"missing": choice.skips, "label": choice.label, "response": choice.response}
    for name in (name for name, value in needed.items() if value and memory_limit is not None):
        raise ValueError(f"memory_limit must be left out with --{name}, which needs all rows in memory.")
    at_once = at_once or any(needed.values()) or family == AUTO or choice.text is not None
    try:
        if memory_limit is not None or (not at_once and (len(tables) > 1 or tables[0].is_dir())):
            return _stored(tables, choice)
        rows = _in_memory(tables, choice)
    except UnknownColumnError as error:
        is_of_family = is_blocks and is_free and error.argument == "columns"
        raise UnknownColumnError(str(error), "family" if is_of_family else error.argument) from None
    return _without_ids(rows) if is_free and not is_blocks else rows


def takes_text(family: Any) -> bool:
    """Return whether columns of text may be data: of categories.

    >>> takes_text("auto"), takes_text({"poisson": ["a"]}), takes_text({"categorical": ["a"]})
    (True, False, True)
    """
    return family == AUTO or any(map(is_categorical, family if isinstance(family, dict) else [family]))


def is_categorical(name: Any) -> bool:
    """Return whether a family, with or without options, has categories."""
    return isinstance(name, str) and name.partition("(")[0].strip() == "categorical"


def _stored(tables: Sequence[Path], choice: Choice) -> Rows:
    """Return rows that are read from files on demand."""
    source = open_source(
        list(tables),
        choice.columns,
        choice.weights,
        drop=choice.drop,
        allow_missing=choice.missing == "ignore",
        leave_out=True,
    )
    d = int(np.prod(source.tail, dtype=int))
    said, layout = _said(tables, source.n, source.names, d), _layout(table_files(tables[0])[0], choice)
    _tell(source.notes)
    return Rows(source, d, said, source.names, numbers=source.numbers, layout=layout)


def _in_memory(paths: Sequence[Path], choice: Choice) -> Rows:
    """Return the rows of files and folders as one table."""
    files = [file for path in paths for file in table_files(path)]
    tables = [read_one(file, choice) for file in files]
    first = tables[0]
    for file, table in zip(files, tables, strict=True):
        check_same_columns(files[0], _heads(first), file, _heads(table))
        if set(table.texts) != set(first.texts):
            raise ValueError(f"{file} must have text in the same columns as {files[0]}.")
    if len(tables) > 1:
        texts = {place: np.concatenate([table.texts[place] for table in tables]) for place in first.texts}
        parts: dict[str, Any] = {
            name: None if getattr(first, name) is None else np.concatenate([getattr(t, name) for t in tables])
            for name in ("values", "weights", "labels")
        }
        first = replace(first, **parts, texts=texts)
    rows = rows_of(first, choice.response is not None)
    said = _said(paths, len(rows.X), rows.names, rows.d)
    return replace(rows, said=said, layout=_layout(files[0], choice))


def read_one(path: Path, choice: Choice) -> Table:
    """Return the chosen columns of a table, and tell what was left out."""
    table = read_table(
        path,
        choice.columns,
        choice.weights,
        drop=choice.drop,
        label=choice.label,
        skip_missing=choice.skips,
        allow_missing=choice.missing == "ignore",
        response=choice.response,
        text=choice.text,
    )
    _tell(table.notes)
    return table


def rows_of(table: Table, has_response: bool) -> Rows:
    """Return the rows of a table; the response is its last column."""
    X, names = table.cells, table.names
    d = X.shape[1] - has_response
    y = np.asarray(X[:, d], dtype=np.float64) if has_response else None
    return Rows(
        np.ascontiguousarray(X[:, :d]) if has_response else X,
        d,
        "",
        names[:d],
        y,
        names[d] if names and has_response else None,
        table.weights,
        table.labels,
        table.rows,
        table.numbers[:d],
        table.texts,
    )


def _tell(notes: Sequence[str]) -> None:
    for note in notes:
        tell(note)


def _said(tables: Sequence[Path], n: int, names: Sequence[str], d: int) -> str:
    more = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
    columns = shortened(names) if names else counted(d, "column")
    return f"{tables[0]}{more}: {counted(n, 'row')} of {columns}"


def _heads(table: Table) -> Sequence[str]:
    return table.names or [f"column {j}" for j in range(table.values.shape[1])]


def _layout(file: Path, choice: Choice) -> tuple[int, ...]:
    wanted = Wanted(choice.columns, choice.weights, choice.drop, choice.label, choice.response)
    return read_places(file, wanted)


def _without_ids(rows: Rows) -> Rows:
    """Return rows without columns of text that are different in almost all rows, with a message."""
    heads = rows.names or [f"column {j}" for j in range(rows.d)]
    file, is_id = rows.said.partition(": ")[0], {}
    for place, cells in rows.texts.items():
        known = [cell for cell in cells.tolist() if cell is not None]
        levels = len(set(known))
        if levels > max(FEW_LEVELS, ALMOST * len(known)):
            is_id[place] = f"{heads[place]} ({levels:,} different texts in {len(known):,} rows)"
    if not is_id:
        return rows
    ids = shortened(list(is_id.values()))
    keep = [place for place in range(rows.d) if place not in is_id]
    if not keep:
        raise ValueError(f"{file} must have a column that is not an ID, got {ids}: see --columns.")
    tell(f"Ignored ID-like columns of {file}: {ids}; use --columns to include them.")
    texts = {keep.index(place): part for place, part in rows.texts.items() if place in keep}
    names = tuple(rows.names[place] for place in keep) if rows.names else ()
    return replace(
        rows,
        X=rows.X[:, keep] if texts else rows.X[:, keep].astype(np.float64),
        d=len(keep),
        said=_said([Path(file)], len(rows.X), names, len(keep)),
        names=names,
        numbers=[rows.numbers[place] for place in keep],
        texts=texts,
    )


def family_of(family: Any, rows: Rows) -> tuple[Any, str]:
    """Return a family for the estimator, and its description: columns by place, "auto" chosen by values."""
    if family == AUTO:
        family = _chosen_family(rows)
    if not isinstance(family, dict):
        return family, str(family)
    places = {name: [_place(column, rows) for column in columns] for name, columns in family.items()}
    coded = {place for name in places if is_categorical(name) for place in places[name]}
    for place in rows.texts:
        if place not in coded:
            head = rows.names[place] if rows.names else f"column {place}"
            raise ValueError(f"family must be categorical for column {head!r}, which has text.")
    return places, "; ".join(f"{name} for {shortened(columns)}" for name, columns in family.items())


def _place(column: str, rows: Rows) -> int:
    """Return the place in the rows of a column, given by name or by number in the file.

    >>> rows = Rows(None, 2, "", ("c", "b"), numbers=(2, 1))
    >>> _place("b", rows), _place("2", rows)
    (1, 0)
    """
    if column in rows.names:
        return rows.names.index(column)
    if column.isdigit() and int(column) in rows.numbers:
        return rows.numbers.index(int(column))
    have = shortened(rows.names or [str(number) for number in rows.numbers])
    raise UnknownColumnError(f"family must have columns of the data, {have}, got {column!r}.", "family")


def _chosen_family(rows: Rows) -> dict[str, list[str]]:
    """Return the columns of each family, chosen by their values.

    Formats differ in their types, so a column of whole numbers counts as integers.
    """
    from swiftem.mixture.tables.auto import auto_family, whole_as_integers
    from swiftem.mixture.tables.columns import FLOAT, TEXT, TableColumn

    if not isinstance(rows.X, np.ndarray):
        raise ValueError("family must be given with --memory-limit, got 'auto', which reads all rows.")
    heads = rows.names or [str(number) for number in rows.numbers]
    columns = [
        TableColumn(place, TEXT, rows.texts[place])
        if place in rows.texts
        else TableColumn(place, FLOAT, rows.X[:, place].astype(np.float64))
        for place in range(rows.d)
    ]
    chosen = auto_family(whole_as_integers(columns))
    return {name: [heads[column] for column in places] for name, places in chosen.items()}
