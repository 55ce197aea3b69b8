"""Rows of tables for a fit: read, joined, checked and described."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from swiftem.cli.cross_table import check_labels
from swiftem.cli.failures import INTERRUPTED, tell, writing
from swiftem.cli.model_file import read
from swiftem.cli.table_options import TableChoice
from swiftem.core.checks import shortened
from swiftem.core.process import uninterrupted
from swiftem.core.types import Array
from swiftem.data.columns import UnknownColumnError, Wanted, check_same_columns
from swiftem.data.tables import Table, open_source, read_places, table_files
from swiftem.data.units.source import NEEDS_DASK, open_units

__all__ = [
    "Rows",
    "check_rows",
    "check_text",
    "chosen_family",
    "name_of",
    "numbered",
    "on_cluster",
    "read_rows",
    "read_units",
    "said_of",
    "saved",
]

FEW_LEVELS, ALMOST = 10, 0.8
"""Columns of text with more levels than these, and than this share of the rows, are ids."""
CONNECT = "5s"
"""How long to wait for a scheduler."""


@dataclass(frozen=True)
class Rows:
    """Rows for the estimator, with their weights, names, notes, numbers and labels.

    ``numbers`` are the indices of the columns in the file; empty if they are 0, 1, ....
    """

    X: Any
    weights: Array | None
    names: tuple[str, ...]
    notes: tuple[str, ...]
    n: int
    d: int
    labels: NDArray[Any] | None = None
    y: Array | None = None
    response: str | None = None
    texts: dict[int, NDArray[Any]] = field(default_factory=dict)
    layout: tuple[int, ...] = ()
    """Of a file without names: its number of columns, and the numbers of those fitted, if not all are."""
    numbers: tuple[int, ...] = ()

    @property
    def data(self) -> tuple[Any, ...]:
        """What the methods of the estimator take: X, or X and y."""
        return (self.X,) if self.y is None else (self.X, self.y)


def read_rows(
    tables: Sequence[Path],
    choice: TableChoice,
    memory_limit: str | None = None,
    family: Any = None,
    *,
    at_once: bool = False,
) -> Rows:
    """Return the rows of tables; several tables, or any with a memory limit, are read on demand.

    Skipping rows and comparing labels needs all rows in memory, as with ``at_once``. If ``family`` is a dict
    of blocks, their columns are read by default.
    """
    if takes_text(family) and memory_limit is None:
        choice = replace(choice, text=())
    if isinstance(family, dict) and choice.columns is None:
        columns = [column for columns in family.values() for column in columns]
        if all(column.isdigit() for column in columns):  # a model without names is applied by position
            columns = sorted(columns, key=int)
        wanted = replace(choice, columns=columns)
        try:
            return read_rows(tables, wanted, memory_limit, at_once=at_once)
        except UnknownColumnError as error:
            raise UnknownColumnError(str(error), "family") from None
    at_once = at_once or family == "auto" or choice.response is not None or choice.text is not None
    is_one = len(tables) == 1 and not tables[0].is_dir()
    if memory_limit is None and (at_once or is_one or choice.skip_missing or choice.label is not None):
        rows = _in_memory(tables, choice)
        is_free = family is not None and not isinstance(family, dict) and choice.columns is None
        return _without_ids(tables, rows) if is_free else rows
    source = open_source(
        list(tables),
        choice.columns,
        choice.weights,
        drop=choice.drop,
        allow_missing=choice.ignore_missing,
        leave_out=True,
    )
    d = int(np.prod(source.tail, dtype=int))
    layout = _layout(table_files(tables[0]), choice)
    return Rows(source, None, source.names, source.notes, source.n, d, layout=layout, numbers=source.numbers)


@contextmanager
def on_cluster(address: str | None) -> Iterator[Any]:
    """Context with a client of the Dask scheduler at an address; None without an address."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(NEEDS_DASK) from None
    try:
        client = Client(address, timeout=CONNECT)
    except (OSError, ValueError, TimeoutError):
        raise ValueError(
            f"--scheduler must be the address of a Dask scheduler, got {address!r}: use one such as "
            "tcp://host:8786."
        ) from None
    with client:
        yield client


def read_units(tables: Sequence[Path], choice: TableChoice, client: Any) -> Rows:
    """Return rows that the workers of a cluster read; file names may be patterns."""
    source = open_units(
        [str(table) for table in tables],
        choice.columns,
        choice.weights,
        client=client,
        allow_missing=choice.ignore_missing,
        leave_out=True,
    )
    numbers = tuple(map(int, choice.columns)) if choice.columns and not source.names else ()
    return Rows(source, None, source.names, source.notes, source.rows, source.tail[0], numbers=numbers)


def takes_text(family: Any) -> bool:
    """Tell whether columns of text may be data: of categories.

    >>> takes_text("auto"), takes_text({"poisson": ["a"]}), takes_text({"categorical": ["a"]})
    (True, False, True)
    """
    given = family if isinstance(family, dict) else [family]
    return any(isinstance(name, str) and (name == "auto" or is_categorical(name)) for name in given)


def is_categorical(name: str) -> bool:
    """Tell whether a family, with or without options, is that of categories."""
    return name.partition("(")[0].strip() == "categorical"


def _without_ids(tables: Sequence[Path], rows: Rows) -> Rows:
    """Return rows without columns of text that are different in almost all rows, with a note."""
    heads = rows.names or [f"column {j}" for j in range(rows.d)]
    gone, said = set(), []
    for place, cells in rows.texts.items():
        known = [cell for cell in cells.tolist() if cell is not None]
        levels = len(set(known))
        if levels > FEW_LEVELS and levels > ALMOST * len(known):
            gone.add(place)
            said.append(f"{heads[place]} ({levels:,} different texts in {len(known):,} rows)")
    if not gone:
        return rows
    keep = [place for place in range(rows.d) if place not in gone]
    if not keep:
        raise ValueError(
            f"{name_of(tables)} must have a column that is not an id, got {shortened(said)}: take one with "
            "--columns."
        )
    note = f"Left out of {name_of(tables)}, like an id: {shortened(said)}; --columns takes it if it is named."
    return replace(
        rows,
        X=_narrow(rows.X[:, keep], bool(set(rows.texts) - gone)),
        d=len(keep),
        names=tuple(rows.names[place] for place in keep) if rows.names else (),
        texts={keep.index(place): part for place, part in rows.texts.items() if place not in gone},
        numbers=tuple(rows.numbers[place] for place in keep),
        notes=(*rows.notes, note),
    )


def _narrow(X: NDArray[Any], has_text: bool) -> NDArray[Any]:
    """Return rows as numbers if no column has text."""
    return X if has_text else X.astype(np.float64)


def check_text(family: Any, rows: Rows, names: Sequence[str]) -> None:
    """Raise ValueError for text in columns of a family of numbers."""
    coded = {place for name, places in family.items() if is_categorical(str(name)) for place in places}
    for place in rows.texts:
        if place not in coded:
            column = names[place] if names else f"column {place}"
            raise ValueError(
                f"--family must give column {column!r}, which has text, to categorical: it has no numbers."
            )


def numbered(family: dict[str, list[str]], rows: Rows) -> dict[str, list[int]]:
    """Return the places in the rows of the columns of each family, given by name or by number in the file.

    >>> rows = Rows(None, None, ("c", "b"), (), 9, 2, numbers=(2, 1))
    >>> numbered({"poisson": ["b"], "bernoulli": ["2"]}, rows)
    {'poisson': [1], 'bernoulli': [0]}
    """
    numbers = list(rows.numbers or range(rows.d))

    def place(column: str) -> int:
        if column in rows.names:
            return rows.names.index(column)
        if column.isdigit() and int(column) in numbers:
            return numbers.index(int(column))
        have = shortened(rows.names or [str(number) for number in numbers])
        raise UnknownColumnError(f"family must have columns of the data, {have}, got {column!r}.", "family")

    return {name: [place(column) for column in columns] for name, columns in family.items()}


def chosen_family(family: Any, rows: Rows) -> Any:
    """Return a family as given, or, for "auto", the columns of each family, chosen by their values.

    Formats differ in their types, so a column of whole numbers counts as integers.
    """
    from swiftem.mixture.tables.auto import AUTO, auto_family, whole_as_integers
    from swiftem.mixture.tables.columns import FLOAT, TEXT, TableColumn

    if family != AUTO:
        return family
    if not isinstance(rows.X, np.ndarray):
        raise ValueError("--family auto must read all rows: leave out --memory-limit and --scheduler.")
    heads = rows.names or [str(number) for number in rows.numbers or range(rows.d)]
    columns = [
        TableColumn(place, TEXT, rows.texts[place])
        if place in rows.texts
        else TableColumn(place, FLOAT, rows.X[:, place].astype(np.float64))
        for place in range(rows.d)
    ]
    chosen = auto_family(whole_as_integers(columns))
    return {name: [heads[column] for column in columns] for name, columns in chosen.items()}


def _in_memory(paths: Sequence[Path], choice: TableChoice) -> Rows:
    """Return the rows of files and folders as one table."""
    files = [file for path in paths for file in table_files(path)]
    tables = [read(file, choice) for file in files]
    first = tables[0]
    for file, table in zip(files, tables, strict=True):
        check_same_columns(files[0], _heads(first), file, _heads(table))
    values, weights, labels = (
        getattr(first, name)
        if len(tables) == 1 or getattr(first, name) is None
        else np.concatenate([getattr(table, name) for table in tables])
        for name in ("values", "weights", "labels")
    )
    texts: dict[int, NDArray[Any]] = {}
    if any(table.texts for table in tables):
        for file, table in zip(files, tables, strict=True):
            if set(table.texts) != set(first.texts):
                raise ValueError(f"{file} must have text in the same columns as {files[0]}.")
        texts = {place: np.concatenate([table.texts[place] for table in tables]) for place in first.texts}
        values = Table(values, texts=texts).cells
    check_labels(labels, choice.label)
    n = len(values) if weights is None else int(np.count_nonzero(weights))
    notes = tuple(note for table in tables for note in table.notes)
    layout = _layout(files, choice)
    if choice.response is None:
        d = values.shape[1]
        return Rows(
            values,
            weights,
            first.names,
            notes,
            n,
            d,
            labels,
            texts=texts,
            layout=layout,
            numbers=first.numbers,
        )
    X, y = np.ascontiguousarray(values[:, :-1]), np.asarray(values[:, -1], dtype=np.float64)
    return Rows(
        X,
        weights,
        first.names[:-1],
        notes,
        n,
        X.shape[1],
        labels,
        y,
        first.names[-1] if first.names else None,
        layout=layout,
    )


def _heads(table: Table) -> Sequence[str]:
    return table.names or [f"column {j}" for j in range(table.values.shape[1])]


def _layout(files: Sequence[Path], choice: TableChoice) -> tuple[int, ...]:
    wanted = Wanted(choice.columns, choice.weights, choice.drop, choice.label, choice.response)
    return read_places(files[0], wanted)


def name_of(tables: Sequence[Path]) -> str:
    """Return the name of the data in messages."""
    more = len(tables) - 1
    return f"{tables[0]}" + (f" and {more} more" if more else "")


def said_of(tables: Sequence[Path], rows: Rows) -> str:
    """Return a sentence with the files, the number of rows and the columns.

    >>> said_of([Path("a.csv")], Rows(None, None, ("x", "y"), (), 1000, 2))
    'a.csv: 1,000 rows of x, y'
    """
    n = rows.n if rows.weights is None else len(rows.X)
    columns = shortened(rows.names) if rows.names else ("1 column" if rows.d == 1 else f"{rows.d} columns")
    return f"{name_of(tables)}: {n:,} rows of {columns}"


def check_rows(tables: Sequence[Path], choice: TableChoice, rows: Rows, components: int) -> None:
    """Raise BadParameter if there are fewer rows than components, or fewer than two."""
    if rows.n >= max(components, 2):
        return
    what = "row" if rows.n == 1 else "rows"
    having = " of positive weight" if choice.weights is not None else ""
    if components <= 2:
        raise ValueError(f"{name_of(tables)} must have at least two rows, got {rows.n} {what}{having}.")
    raise typer.BadParameter(
        f"{components} components need as many rows, but {name_of(tables)} has {rows.n} {what}{having}.",
        param_hint="'--components'",
    )


@contextmanager
def saved(mixture: Any, names: Sequence[str], out: Path | None) -> Iterator[None]:
    """Write a model with the names of its columns, if ``out`` is a file, and then show it in the context.

    Ctrl-C does not interrupt the writing. In the context it ends the program and says where the model is.
    """
    is_written = False
    try:
        if out is not None:
            with uninterrupted():
                _save(mixture, names, out)
                is_written = True
        yield
    except KeyboardInterrupt:
        tell(f"Interrupted; the model is in {out}." if is_written else "Interrupted; nothing was written.")
        raise typer.Exit(INTERRUPTED) from None


def _save(mixture: Any, names: Sequence[str], out: Path) -> None:
    if names:
        mixture.feature_names_in_ = np.array(names, dtype=object)
    with writing(out):
        mixture.save(out)
    # scikit-learn would warn of the array, which has no names, in what follows.
    mixture.__dict__.pop("feature_names_in_", None)
