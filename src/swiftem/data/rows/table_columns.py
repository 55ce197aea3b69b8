"""The choice of columns for data and weights; the first cell that is not a finite number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._checks import TEXTS, in_columns, shortened
from swiftem.data.documents.formats.lines import whole_number

__all__ = [
    "Column", "Columns", "UnknownColumnError", "Wanted", "as_label", "check_same_columns", "choose_columns",
    "first_bad_cell", "label", "left_out_of", "what_helps", "what_it_is",
]  # fmt: skip

Column = str | int
"""A column by its name, or by its index from 0."""
CELLS = 1 << 20
"""Numbers checked at a time, so that a memory-mapped file of any size needs little memory."""


INDEX = ("an index", "no name")
"""Why columns are no data of anybody: tools write row numbers as such columns."""


class UnknownColumnError(ValueError):
    """A requested column does not exist, or has two purposes.

    ``argument`` is the argument that named it: columns, weights, drop or label.
    """

    def __init__(self, sentence: str, argument: str) -> None:
        super().__init__(sentence)
        self.argument = argument


@dataclass(frozen=True)
class Wanted:
    """The user's choice of columns of a table.

    Attributes
    ----------
    columns : sequence of names or numbers, or None
        The columns of data; None for all numeric ones.
    weights, label : name or number, or None
        The columns of weights and of labels, which are not data.
    drop : sequence of names or numbers
        Columns that are not data.
    response : name or number, or None
        A numeric column that becomes the last one of the data.
    text : sequence of names or numbers, or None
        None: columns of text are no data. Otherwise those in ``columns``, or all of them, are; these columns
        are read as text whatever they hold.
    leave_out : bool
        Whether columns that are no numbers are left out if they are not named; otherwise they are an error.
    """

    columns: Sequence[Column] | None = None
    weights: Column | None = None
    drop: Sequence[Column] = ()
    label: Column | None = None
    response: Column | None = None
    text: Sequence[Column] | None = None
    leave_out: bool = True

    def __post_init__(self) -> None:
        for name in ("columns", "drop", "text"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise TypeError(f"{name} must be a sequence of names or numbers, got the string {given!r}.")


@dataclass(frozen=True)
class Columns:
    """The choice.

    Attributes
    ----------
    data : tuple of int
        Indices of the columns that are data, in order.
    names : tuple of str
        Their names; empty if the table has no names.
    weights : int or None
        Index of the column of weights.
    left_out : dict of str to str
        Columns that were not requested by name and cannot be data, with the reason.
    label : int or None
        Index of the column of labels.
    text : dict of int to int
        Columns of text among the data: their places in ``names``, and their indices.
    """

    data: tuple[int, ...]
    names: tuple[str, ...]
    weights: int | None
    left_out: dict[str, str]
    label: int | None = None
    text: dict[int, int] = field(default_factory=dict)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Indices of all columns of the data, in order."""
        rest = iter(self.data)
        count = len(self.data) + len(self.text)
        return tuple(self.text[place] if place in self.text else next(rest) for place in range(count))

    @property
    def all(self) -> tuple[int, ...]:
        """Indices of all columns that must be read as numbers, the weights last."""
        return self.data if self.weights is None else (*self.data, self.weights)


def label(names: Sequence[str], number: int) -> str:
    """Return the label of a column: its name, or its number if it has none.

    >>> label(["a", ""], 0), label(["a", ""], 1)
    ('a', 'column 1')
    """
    return names[number] if number < len(names) and names[number] else f"column {number}"


def as_label(cell: Any) -> str:
    """Return a cell of a column of labels as text; whole numbers without a point.

    >>> as_label(2.0), as_label(0.25), as_label("red")
    ('2', '0.25', 'red')
    """
    return f"{cell:.12g}" if isinstance(cell, float) else str(cell)


def left_out_of(files: Sequence[Path], choices: Sequence[Columns]) -> tuple[str, ...]:
    """Return a note on what was left out of each file; if that is the same for all, only for the first.

    >>> from pathlib import Path
    >>> one, two = Columns((0,), ("a",), None, {"b": "text"}), Columns((0,), ("a",), None, {})
    >>> left_out_of([Path("1.csv"), Path("2.csv")], [one, one])
    ('Left out of 1.csv: b (text).',)
    >>> left_out_of([Path("1.csv"), Path("2.csv")], [two, one])
    ('Left out of 2.csv: b (text).',)
    """
    left = [chosen.left_out for chosen in choices]
    said = left[:1] if all(part == left[0] for part in left) else left
    return tuple(
        f"Left out of {file}: {shortened([f'{name} ({why})' for name, why in part.items()])}."
        for file, part in zip(files, said, strict=False)
        if part
    )


def check_same_columns(first: Path, columns: Sequence[str], file: Path, others: Sequence[str]) -> None:
    """Raise ValueError for a file whose columns are not those of the first."""
    if tuple(columns) != tuple(others):
        raise ValueError(
            f"{file} must have the columns of {first}, {shortened(columns)}, got {shortened(others)}."
        )


def choose_columns(file: Path, names: Sequence[str], unfit: Sequence[str], wanted: Wanted) -> Columns:
    """Return the choice, or raise an error.

    Parameters
    ----------
    file : Path
        For messages.
    names : sequence of str
        Names of all columns, or empty if the table has none.
    unfit : sequence of str, one for each column
        Why a column cannot be data; empty if it can.
    wanted : Wanted
        The user's choice.
    """

    def find(column: Column, argument: str) -> int:
        return _find(file, names, len(unfit), column, argument)

    columns = wanted.columns
    weight = None if wanted.weights is None else find(wanted.weights, "weights")
    labels = None if wanted.label is None else find(wanted.label, "label")
    dropped = [find(column, "drop") for column in wanted.drop]
    response = None if wanted.response is None else find(wanted.response, "response")
    as_text = {find(column, "columns") for column in wanted.text or ()}
    allowed = () if wanted.text is None else TEXTS
    left_out: dict[str, str] = {}
    if response is not None and response in (weight, labels, *dropped):
        raise UnknownColumnError(
            f"response must not be a column of weights or labels, or a dropped one, got "
            f"{label(names, response)!r}.",
            "response",
        )
    if weight is not None and labels == weight:
        raise UnknownColumnError(
            f"label must not be the column of the weights, got {label(names, weight)!r}.", "label"
        )
    if columns is None:
        rest = [number for number in range(len(unfit)) if number not in (weight, labels, response, *dropped)]
        data = [number for number in rest if not unfit[number] or unfit[number] in allowed]
        left_out = {label(names, number): unfit[number] for number in rest if number not in data}
        if not wanted.leave_out:
            _refuse(file, {name: why for name, why in left_out.items() if why not in INDEX})
        if not data:
            found = shortened([f"{name} ({why})" for name, why in left_out.items()])
            others = ["the weights"] * (weight is not None) + ["the labels"] * (labels is not None)
            others += ["dropped columns"] * bool(dropped) + ["the response"] * (response is not None)
            got = f"got {found}" if left_out else f"got none except {' and '.join(others)}"
            raise ValueError(f"{file} must have a numeric column, {got}.")
    else:
        data = [find(column, "columns") for column in columns]
        if not data:
            raise UnknownColumnError("columns must name at least one column, got none.", "columns")
        if len(set(data)) < len(data):
            twice = next(number for number in data if data.count(number) > 1)
            raise UnknownColumnError(
                f"columns must be distinct, got {label(names, twice)!r} twice.", "columns"
            )
        taken = {weight: "the weights", labels: "the labels", response: "the response"} | dict.fromkeys(
            dropped, "dropped columns"
        )
        for number, what in taken.items():
            if number is not None and number in data:
                raise UnknownColumnError(
                    f"columns must not include {what}, got {label(names, number)!r}.", "columns"
                )
    if response is not None:
        if not names and columns is None and max(data) > response:
            raise UnknownColumnError(
                f"response must be the last column of {file}, which has no names, got {response}: choose the "
                "columns before it with columns.",
                "response",
            )
        data.append(response)
    labelled = tuple(label(names, number) for number in data)
    if len(set(labelled)) < len(labelled):
        twice_named = next(name for name in labelled if labelled.count(name) > 1)
        raise ValueError(
            f"{file} must have distinct names for its columns, got {twice_named!r} twice: rename one."
        )
    text = {
        place: number
        for place, number in enumerate(data)
        if wanted.text is not None and (number in as_text or unfit[number] in TEXTS)
    }
    numeric = tuple(number for number in data if number not in text.values())
    return Columns(numeric, labelled if names else (), weight, left_out, labels, text)


def _refuse(file: Path, found: dict[str, str]) -> None:
    """Raise ValueError for columns that are no numbers."""
    if not found:
        return
    has_text = any(why in TEXTS for why in found.values())
    instead = ', or read the table into memory and use Mixture(family="auto") for text' if has_text else ""
    raise ValueError(
        f"{file} must have numbers in every column, got {in_columns(found)}: leave out such columns with "
        f"open_source(path, drop=[...]), or name the others with columns=[...]{instead}."
    )


def _find(file: Path, names: Sequence[str], width: int, column: Column, argument: str) -> int:
    """Return a column's index; a string of digits is an index if no column has that name."""
    if isinstance(column, str):
        found = [number for number in range(width) if names and label(names, number) == column]
        if len(found) > 1:
            raise UnknownColumnError(
                f"{argument} must name one column, but {file} has {len(found)} of name {column!r}.",
                argument,
            )
        if found:
            return found[0]
        if not (column.isascii() and column.isdigit()):
            raise UnknownColumnError(_unknown(file, names, width, column), argument)
        column = whole_number(column)
    elif isinstance(column, bool) or not isinstance(column, int):
        raise TypeError(f"{argument} must be names or numbers of columns, got {column!r}.")
    if not 0 <= column < width:
        wanted = "must be 0" if width == 1 else f"must be from 0 to {width - 1}"
        raise UnknownColumnError(
            f"The number of a column of {file} {wanted}, got {column} in {argument}.", argument
        )
    return column


def _unknown(file: Path, names: Sequence[str], width: int, column: str) -> str:
    if not names:
        numbers = "its one column is number 0" if width == 1 else f"choose by number, 0 to {width - 1}"
        return f"{file} has no names of columns, got {column!r}: {numbers}."
    all_names = [label(names, number) for number in range(width)]
    lower = {name.lower(): name for name in all_names}
    close = get_close_matches(column.lower(), lower, n=1)
    if close:
        return f"{file} has no column {column!r}: did you mean {lower[close[0]]!r}?"
    return f"{file} has no column {column!r}: it has {shortened(all_names)}."


def first_bad_cell(values: NDArray[Any], allow_missing: bool = False) -> tuple[int, int] | None:
    """Return row and column of the first NaN or infinity, or None; with ``allow_missing`` of an infinity.

    >>> import numpy as np
    >>> first_bad_cell(np.array([[0.0, 1.0], [2.0, np.nan]]))
    (1, 1)
    """
    if values.dtype.kind != "f":
        return None
    rows = max(1, CELLS // max(1, values.shape[1]))
    for start in range(0, len(values), rows):
        here = values[start : start + rows]
        bad = np.isinf(here) if allow_missing else ~np.isfinite(here)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            return start + int(row), int(column)
    return None


def what_it_is(value: Any) -> str:
    """Return a word for a number that is not finite.

    >>> what_it_is(float("inf"))
    'an infinity'
    """
    return "NaN" if np.isnan(value) else "an infinity"


def what_helps(value: float | None, what: str = "rows") -> str:
    """Return the advice for rows or lines with a number that is not finite; None is a missing value.

    >>> what_helps(float("inf"))
    'remove or replace such rows.'
    >>> what_helps(None, "lines")
    'fill in such lines, or skip them (read_table has skip_missing=True).'
    """
    if value is None or np.isnan(value):
        return f"fill in such {what}, or skip them (read_table has skip_missing=True)."
    return f"remove or replace such {what}."
