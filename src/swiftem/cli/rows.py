"""Rows of tables: read, joined, checked and described for a fit, or those that a model in a file takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.cli.console import tell
from swiftem.cli.options import Choice
from swiftem.core.checks import shortened
from swiftem.core.types import Array, Index
from swiftem.data.columns import UnknownColumnError, Wanted, as_label, check_same_columns
from swiftem.data.tables import (
    Table,
    is_table,
    open_source,
    read_names,
    read_places,
    read_wanted,
    table_files,
)
from swiftem.show.numbers import counted

MODEL_FIRST = "the model comes first, then the table"
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
    def for_fit(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments and keywords of ``fit``."""
        if self.lengths is not None:
            return (self.X,), {"lengths": self.lengths}
        return self.data, {"sample_weight": self.weights}

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
    needed = {"missing": choice.missing == "skip", "label": choice.label, "response": choice.response}
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
    said, layout = _said(tables, source.n, source.names, d), read_places(table_files(tables[0])[0], choice)
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
    return replace(rows, said=said, layout=read_places(files[0], choice))


def read_one(path: Path, choice: Choice) -> Table:
    """Return the chosen columns of a table, and tell what was left out."""
    skips, allows = (choice.missing == what for what in ("skip", "ignore"))
    table = read_wanted(path, choice, skip_missing=skips, allow_missing=allows)
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
    from swiftem.mixture.tables.columns import FLOAT, TEXT, TableColumn, auto_family, whole_as_integers

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


def open_model(path: Path, instead: str = MODEL_FIRST) -> Any:
    """Return the model in a file; ``instead`` is the advice for a table."""
    import swiftem

    check_model_file(path, instead)
    return swiftem.load(path)


def check_model_file(path: Path, instead: str) -> None:
    """Raise an error for a folder, a file that is not there, and a table, with this advice."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} must be a model file, got a folder.")
    if not path.exists():
        raise FileNotFoundError(f"{path} must be a model file, but does not exist.")
    if is_table(path):
        raise ValueError(f"{path} is a table, not a model: {instead}.")


def names_of(model: Any) -> tuple[str, ...]:
    """Return the names of the columns that the model was fitted to; empty if they had none."""
    return tuple(str(name) for name in getattr(model, "feature_names_in_", ()))


def is_regression(model: Any) -> bool:
    """Return whether a model is a mixture of regressions."""
    return hasattr(model, "coef_")


def rows_of_model(model: Any, path: Path, choice: Choice, *, needs_response: bool = True) -> Rows:
    """Return the model's columns of a table: by name if both have names, else by position.

    Values may be missing if the model takes them. The response of a regression is the last column; it may be
    absent unless it is needed.
    """
    if not hasattr(model, "weights_"):
        raise ValueError("The model must be a mixture, got topics: use swiftem topics --apply.")
    if choice.missing is None:
        choice = replace(choice, missing=getattr(model, "missing", "ignore"))
    names, width = names_of(model), int(model.n_features_in_)
    sequence = getattr(model, "sequence_name_", None)
    if sequence is not None and not names:
        choice = replace(choice, drop=[*choice.drop, sequence])
    found = read_names(path) if names and choice.columns is None else ()
    if not names and choice.columns is None and not choice.drop:
        choice = _as_fitted(model, path, choice)
    levels = _levels(model, names)
    if hasattr(model, "family_"):
        n_columns = len(read_names(path)) or (*read_places(path, Wanted(["0"])), 1)[0]
        chosen = names if found else choice.columns or [str(j) for j in range(min(width, n_columns))]
        choice = replace(choice, text=[chosen[place] for place in levels if place < len(chosen)])
    if found:
        response = getattr(model, "response_name_", None)
        if response is not None and (needs_response or response in found):
            choice = replace(choice, response=response)
        table = _by_name(path, choice, names, found)
    else:
        widths = {width + is_regression(model)} | ({width} if not needs_response else set())
        table = _by_position(path, choice, names, widths)
    table = _with_levels(path, table, levels, names)
    rows = rows_of(table, table.values.shape[1] > width)
    if sequence is None:
        return rows
    check_sequences(choice)
    return in_sequences(rows, [path], sequence)


def check_sequences(choice: Choice) -> None:
    """Raise ValueError for what sequences cannot have."""
    skips = choice.missing == "skip" or None
    needed = {"weights": choice.weights, "response": choice.response, "missing": skips}
    for name in (name for name, value in needed.items() if value is not None):
        raise ValueError(f"{name} must be left out with sequence: all steps of a sequence count alike.")


def in_sequences(rows: Rows, paths: Sequence[Path], sequence: str) -> Rows:
    """Return rows with the numbers of steps of the sequences that a column of the files names."""
    from swiftem.hmm.read import lengths_in_files

    return replace(rows, lengths=lengths_in_files(paths, sequence))


def _levels(model: Any, names: Sequence[str]) -> dict[int, tuple[Any, ...]]:
    """Return the categories of columns of text by place."""
    places = {name: place for place, name in enumerate(names)}
    return {places.get(name, name): parts for name, parts in vars(model).get("_texts", {}).items()}


def _as_fitted(model: Any, path: Path, choice: Choice) -> Choice:
    """Return the choice with the columns that were fitted, for a table that is like the one of the fit."""
    layout = getattr(model, "_layout", ())
    columns = [str(place) for place in layout[1:]]
    if not layout or {choice.label, choice.weights} & {*columns} or read_names(path):
        return choice
    # A table without names of any other width has no such layout.
    return replace(choice, columns=columns) if read_places(path, Wanted(["0"]))[:1] == layout[:1] else choice


def _by_name(path: Path, choice: Choice, names: Sequence[str], found: Sequence[str]) -> Table:
    wanted = [*names, *([] if choice.response is None else [str(choice.response)])]
    missing = [name for name in wanted if name not in found]
    if missing:
        what = f"column {missing[0]!r} is" if len(missing) == 1 else f"columns {shortened(missing)} are"
        raise ValueError(
            f"{path} must have the columns of the model, but {what} missing: it has {shortened(found)}."
        )
    for name in ("weights", "label"):
        if (column := getattr(choice, name)) in names:
            raise ValueError(f"{name} must be another column than those of the model, got {column!r}.")
    # The columns are the model's, and none of them is left out.
    return read_one(path, replace(choice, columns=names, drop=()))


def _by_position(path: Path, choice: Choice, names: Sequence[str], widths: set[int]) -> Table:
    table = read_one(path, choice)
    got = table.values.shape[1]
    if got not in widths:
        wanted = f"{max(widths)} ({shortened(names)})" if names else str(max(widths))
        has = f"{got} ({shortened(table.names)})" if table.names else str(got)
        raise ValueError(f"{path} must have as many numeric columns as the model, {wanted}, got {has}.")
    return table


def _with_levels(path: Path, table: Table, levels: dict[int, tuple[Any, ...]], names: Sequence[str]) -> Table:
    """Return a table with the model's categories in place of their text."""
    texts = dict(table.texts)
    for place, known in levels.items():
        by_label: dict[str | None, Any] = {as_label(level): level for level in known} | {None: None}
        unseen = list(dict.fromkeys(cell for cell in texts[place].tolist() if cell not in by_label))
        if unseen:
            raise ValueError(
                f"{path} must have the categories of the model in column "
                f"{names[place] if names else f'column {place}'!r} "
                f"({shortened([as_label(level) for level in known])}), got {shortened(unseen)}: correct "
                "them, or leave out such rows."
            )
        texts[place] = np.array([by_label[cell] for cell in texts[place].tolist()], dtype=object)
    return replace(table, texts=texts)
