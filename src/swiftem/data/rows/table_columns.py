"""The choice of columns for data and weights; the first cell that is not a finite number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.data.documents.formats.lines import whole_number

__all__ = [
    "Column", "Columns", "UnknownColumnError", "check_same_columns", "choose_columns", "first_bad_cell",
    "label", "left_out_of", "shortened", "what_it_is",
]  # fmt: skip

Column = str | int
"""A column by its name, or by its index from 0."""
LISTED = 10
"""Maximum number of columns listed in a message."""
CELLS = 1 << 20
"""Numbers checked at a time, so that a memory-mapped file of any size needs little memory."""


class UnknownColumnError(ValueError):
    """A requested column does not exist; ``argument`` is its argument: columns or weights."""

    def __init__(self, sentence: str, argument: str) -> None:
        super().__init__(sentence)
        self.argument = argument


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
    """

    data: tuple[int, ...]
    names: tuple[str, ...]
    weights: int | None
    left_out: dict[str, str]

    @property
    def all(self) -> tuple[int, ...]:
        """Indices of all columns that must be read, the weights last."""
        return self.data if self.weights is None else (*self.data, self.weights)


def label(names: Sequence[str], number: int) -> str:
    """Return the label of a column: its name, or its number if it has none.

    >>> label(["a", ""], 0), label(["a", ""], 1)
    ('a', 'column 1')
    """
    return names[number] if number < len(names) and names[number] else f"column {number}"


def shortened(words: Sequence[str], most: int = LISTED) -> str:
    """Return words separated by commas, at most the first ``most``.

    >>> shortened([str(i) for i in range(12)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more'
    """
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more:,} more" if more > 0 else "")


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


def choose_columns(
    file: Path,
    names: Sequence[str],
    unfit: Sequence[str],
    columns: Sequence[Column] | None,
    weights: Column | None,
) -> Columns:
    """Return the choice, or raise an error.

    Parameters
    ----------
    file : Path
        For messages.
    names : sequence of str
        Names of all columns, or empty if the table has none.
    unfit : sequence of str, one for each column
        Why a column cannot be data; empty if it can.
    columns : sequence of names or numbers, optional
        The columns to use; by default all that can be data.
    weights : name or number, optional
        The column of weights.
    """
    weight = None if weights is None else _find(file, names, len(unfit), weights, "weights")
    left_out: dict[str, str] = {}
    if columns is None:
        others = [number for number in range(len(unfit)) if number != weight]
        data = [number for number in others if not unfit[number]]
        left_out = {label(names, number): unfit[number] for number in others if unfit[number]}
        if not data:
            found = shortened([f"{name} ({why})" for name, why in left_out.items()])
            got = f"got {found}" if left_out else "got none except the weights"
            raise ValueError(f"{file} must have a numeric column, {got}.")
    else:
        data = [_find(file, names, len(unfit), column, "columns") for column in columns]
        if not data:
            raise UnknownColumnError("columns must name at least one column, got none.", "columns")
        if len(set(data)) < len(data):
            twice = next(number for number in data if data.count(number) > 1)
            raise UnknownColumnError(
                f"columns must be distinct, got {label(names, twice)!r} twice.", "columns"
            )
        if weight in data:
            raise UnknownColumnError(
                f"columns must not include the weights, got {label(names, data[data.index(weight)])!r}.",
                "columns",
            )
    labels = tuple(label(names, number) for number in data)
    if len(set(labels)) < len(labels):
        twice_named = next(name for name in labels if labels.count(name) > 1)
        raise ValueError(
            f"{file} must have distinct names for its columns, got {twice_named!r} twice: rename one."
        )
    return Columns(tuple(data), labels if names else (), weight, left_out)


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


def first_bad_cell(values: NDArray[Any]) -> tuple[int, int] | None:
    """Return row and column of the first NaN or infinity, or None.

    >>> import numpy as np
    >>> first_bad_cell(np.array([[0.0, 1.0], [2.0, np.nan]]))
    (1, 1)
    """
    if values.dtype.kind != "f":
        return None
    rows = max(1, CELLS // max(1, values.shape[1]))
    for start in range(0, len(values), rows):
        finite = np.isfinite(values[start : start + rows])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            return start + int(row), int(column)
    return None


def what_it_is(value: Any) -> str:
    """Return a word for a number that is not finite.

    >>> what_it_is(float("inf"))
    'an infinity'
    """
    return "NaN" if np.isnan(value) else "an infinity"
