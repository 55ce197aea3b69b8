"""The choice of columns of a table for data, weights and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from swiftem.core.checks import TEXTS, in_columns, shortened

Column = str | int
"""A column by its name, or by its index from 0."""
INDEX = ("an index", "no name")
"""Reasons of columns that are left out without asking, because tools write row numbers as such columns."""
DROPPED = "dropped columns"
PURPOSES = {"weights": "the weights", "label": "the labels", "response": "the response"}
TEXT_ADVICE = ', or read the table into memory and use Mixture(family="auto") for text'


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
        for name, given in (("columns", self.columns), ("drop", self.drop), ("text", self.text)):
            if isinstance(given, str):
                raise TypeError(f"{name} must be a sequence of names or numbers, got the string {given!r}.")


class Columns(NamedTuple):
    """The chosen columns, by their indices in the file.

    Attributes
    ----------
    data : tuple of int
        Columns of the data, in order.
    names : tuple of str
        Their names; empty if the table has no names.
    text : tuple of int
        Columns of the data that have text.
    weights, label : int or None
        The columns of weights and of labels.
    left_out : dict of str to str
        Columns that were not requested by name and cannot be data, with the reason.
    """

    data: tuple[int, ...]
    names: tuple[str, ...]
    text: tuple[int, ...]
    weights: int | None
    label: int | None
    left_out: dict[str, str]

    @property
    def numeric(self) -> tuple[int, ...]:
        """Columns of the data that have numbers."""
        return tuple(number for number in self.data if number not in self.text)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Columns that must be read as numbers, the weights last."""
        return self.numeric if self.weights is None else (*self.numeric, self.weights)

    @property
    def others(self) -> tuple[int, ...]:
        """Columns that are read as they are, the labels last."""
        return self.text if self.label is None else (*self.text, self.label)


class Header(NamedTuple):
    """The columns of a table in a file.

    Attributes
    ----------
    file : Path
        The file, for messages.
    names : sequence of str
        Names of all columns, or empty if the table has none.
    unfit : sequence of str
        For each column, why it cannot be data; empty if it can.
    """

    file: Path
    names: Sequence[str]
    unfit: Sequence[str]

    def label(self, number: int) -> str:
        """Return the name of a column, or its number if it has none.

        >>> header = Header(Path("a.csv"), ["a", ""], ["", "text"])
        >>> header.label(0), header.label(1)
        ('a', 'column 1')
        """
        named = number < len(self.names) and self.names[number]
        return self.names[number] if named else f"column {number}"

    def find(self, column: Column, argument: str) -> int:
        """Return a column's index; a string of digits is an index if no column has that name."""
        width = len(self.unfit)
        numbers = "0" if width == 1 else f"from 0 to {width - 1}"
        if isinstance(column, str):
            places = [number for number in range(len(self.names)) if self.label(number) == column]
            if len(places) > 1:
                raise UnknownColumnError(
                    f"{argument} must name one column, but {self.file} has {len(places)} of name {column!r}.",
                    argument,
                )
            if places:
                return places[0]
            if not (column.isascii() and column.isdigit()):
                instead = self._nearest(column) if self.names else f"choose by number, {numbers}."
                what = "column" if self.names else "names of columns, got"
                raise UnknownColumnError(f"{self.file} has no {what} {column!r}: {instead}", argument)
            column = int(column) if len(column) < 20 else width
        elif isinstance(column, bool) or not isinstance(column, int):
            raise TypeError(f"{argument} must be names or numbers of columns, got {column!r}.")
        if not 0 <= column < width:
            raise UnknownColumnError(
                f"The number of a column of {self.file} must be {numbers}, got {column} in {argument}.",
                argument,
            )
        return column

    def _nearest(self, column: str) -> str:
        """Return the question for the name that is most like ``column``, or all names."""
        labels = [self.label(number) for number in range(len(self.unfit))]
        close = get_close_matches(column.lower(), [label.lower() for label in labels], n=1)
        same = [label for label in labels if label.lower() in close]
        return f"did you mean {same[-1]!r}?" if same else f"it has {shortened(labels)}."


def as_label(cell: object) -> str:
    """Return a cell of a column of labels as text; whole numbers without a point.

    >>> as_label(2.0), as_label(0.25), as_label("red")
    ('2', '0.25', 'red')
    """
    return f"{cell:.12g}" if isinstance(cell, float) else str(cell)


def left_out_of(files: Sequence[Path], choices: Sequence[Columns]) -> tuple[str, ...]:
    """Return a note on what was left out of each file; if that is the same for all, only for the first.

    >>> from pathlib import Path
    >>> one, two = (Columns((0,), ("a",), (), None, None, out) for out in ({"b": "text"}, {}))
    >>> left_out_of([Path("1.csv"), Path("2.csv")], [one, one])
    ('Left out of 1.csv: b (text).',)
    >>> left_out_of([Path("1.csv"), Path("2.csv")], [two, one])
    ('Left out of 2.csv: b (text).',)
    """
    left = [_with_reasons(choice.left_out) for choice in choices]
    if len(set(left)) == 1:
        left = left[:1]
    return tuple(f"Left out of {file}: {what}." for file, what in zip(files, left, strict=False) if what)


def _with_reasons(left_out: dict[str, str]) -> str:
    return shortened([f"{name} ({why})" for name, why in left_out.items()])


def check_same_columns(first: Path, columns: Sequence[str], file: Path, others: Sequence[str]) -> None:
    """Raise ValueError for a file with other columns than the first."""
    if tuple(columns) != tuple(others):
        raise ValueError(
            f"{file} must have the columns of {first}, {shortened(columns)}, got {shortened(others)}."
        )


def choose_columns(header: Header, wanted: Wanted) -> Columns:
    """Return the columns of a table that the user's choice selects, or raise an error."""
    purposes = {header.find(column, "drop"): DROPPED for column in wanted.drop}
    places: dict[str, int | None] = dict.fromkeys(("weights", "label", "response"))
    for argument in places:
        column = getattr(wanted, argument)
        if column is None:
            continue
        number = places[argument] = header.find(column, argument)
        before = purposes.get(number)
        # Weights and labels may be dropped columns, which are no data either.
        if before is not None and (before != DROPPED or argument == "response"):
            raise UnknownColumnError(
                f"{argument} must not be the column of {before}, got {header.label(number)!r}.", argument
            )
        purposes[number] = PURPOSES[argument]
    if wanted.columns is None:
        data, left_out = _all_columns(header, wanted, purposes)
    else:
        data, left_out = _named_columns(header, wanted.columns, purposes), {}
    response = places["response"]
    if response is not None:
        if not header.names and wanted.columns is None and max(data) > response:
            raise UnknownColumnError(
                f"response must be the last column of {header.file}, which has no names, got {response}: "
                "choose the columns before it with columns.",
                "response",
            )
        data.append(response)
    names = tuple(header.label(number) for number in data)
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise ValueError(
            f"{header.file} must have distinct names for its columns, got {name!r} twice: rename one."
        )
    text: tuple[int, ...] = ()
    if wanted.text is not None:
        as_text = {header.find(column, "columns") for column in wanted.text}
        text = tuple(number for number in data if number in as_text or header.unfit[number] in TEXTS)
    if not header.names:
        names = ()
    return Columns(tuple(data), names, text, places["weights"], places["label"], left_out)


def _named_columns(header: Header, columns: Sequence[Column], purposes: dict[int, str]) -> list[int]:
    """Return the indices of columns that were requested as data."""
    data: list[int] = []
    for column in columns:
        number = header.find(column, "columns")
        if number in data:
            raise UnknownColumnError(
                f"columns must be distinct, got {header.label(number)!r} twice.", "columns"
            )
        if number in purposes:
            raise UnknownColumnError(
                f"columns must not include {purposes[number]}, got {header.label(number)!r}.", "columns"
            )
        data.append(number)
    if not data:
        raise UnknownColumnError("columns must name at least one column, got none.", "columns")
    return data


def _all_columns(
    header: Header, wanted: Wanted, purposes: dict[int, str]
) -> tuple[list[int], dict[str, str]]:
    """Return the columns that can be data, and the labels of the others with the reason."""
    allowed = ("",) if wanted.text is None else ("", *TEXTS)
    rest = [number for number in range(len(header.unfit)) if number not in purposes]
    data = [number for number in rest if header.unfit[number] in allowed]
    left_out = {header.label(number): header.unfit[number] for number in rest if number not in data}
    refused = {name: why for name, why in left_out.items() if why not in INDEX}
    if refused and not wanted.leave_out:
        instead = "" if set(TEXTS).isdisjoint(refused.values()) else TEXT_ADVICE
        raise ValueError(
            f"{header.file} must have numbers in every column, got {in_columns(refused)}: leave out such "
            f"columns with open_source(path, drop=[...]), or name the others with columns=[...]{instead}."
        )
    if not data:
        others = " and ".join(dict.fromkeys(purposes.values()))
        got = _with_reasons(left_out) if left_out else f"none except {others}"
        raise ValueError(f"{header.file} must have a numeric column, got {got}.")
    return data, left_out
