"""Groups of documents by a label or a date."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import NamedTuple

import numpy as np

from swiftem.core.types import Array, Index
from swiftem.data.documents.counts import CorpusCounts
from swiftem.show.numbers import counted

MOST_LABELS = 100
"""A column of more different values is no column of groups."""
MOST_PERIODS = 48
DATED = 0.9
"""Share of the values that must be dates, so that the others are missing ones."""
TRIED = 1_000
"""Different values that decide how dates are read."""


class DocumentGroups(NamedTuple):
    """Groups of documents.

    Attributes
    ----------
    kind : str
        ``"date"`` or ``"label"``.
    unit : str
        The period of dates: ``"day"``, ``"week"``, ``"month"``, ``"quarter"``, ``"year"`` or ``"decade"``.
    labels : list of str, length G
        The groups, in order; periods without documents are there, too.
    group : ndarray of int, shape (D,)
        The group of each document; −1 if its value is missing.
    notes : list of str
        Sentences on what was left out or guessed.
    """

    kind: str
    unit: str
    labels: list[str]
    group: Index
    notes: list[str]


def group_documents(values: Sequence[str], column: str) -> DocumentGroups:
    """Return the groups of documents by the values of a column.

    Values are dates if nine tenths of them are: they are counted by the finest period of which there are at
    most 48. Otherwise they are labels.

    Parameters
    ----------
    values : sequence of str, length D
        The values; an empty text is a missing one.
    column : str
        Name of the column, for messages.

    Raises
    ------
    ValueError
        If there are more than 100 different values, or none.

    Examples
    --------
    >>> found = group_documents(["2021-03-04", "2021-03-20", "", "2021-05-01"], "day")
    >>> found.unit, found.labels[:3], len(found.labels)
    ('week', ['2021-W09', '2021-W10', '2021-W11'], 9)
    >>> group_documents(["red", "blue", "red"], "colour").labels
    ['blue', 'red']
    """
    given = [value for value in values if value]
    if not given:
        raise ValueError(f"column {column!r} must have a value for some documents, got none.")
    dates, how = _dates(values)
    missing = len(values) - sum(day is not None for day in dates)
    if missing <= (1 - DATED) * len(given) + (len(values) - len(given)):
        unit, labels, group = _periods(dates)
        notes = [f"{how}."] if how else []
    else:
        unit, labels = "", _sorted(set(given))
        if len(labels) > MOST_LABELS:
            raise ValueError(
                f"column {column!r} must have dates, or at most {MOST_LABELS} different values, got "
                f"{len(labels):,}: name a column of groups."
            )
        place = {label: number for number, label in enumerate(labels)}
        group = np.array([place.get(value, -1) for value in values], dtype=np.intp)
        notes, missing = [], len(values) - len(given)
    if missing:
        have = "has" if missing == 1 else "have"
        what = "date" if unit else "value"
        notes.append(f"{counted(missing, 'document')} {have} no {what} in column {column!r}.")
    return DocumentGroups("date" if unit else "label", unit, labels, group, notes)


def tokens_by_group(groups: DocumentGroups, corpus: CorpusCounts, shares: Array) -> tuple[Array, Index]:
    """Return the expected tokens of each topic in each group, shape (G, K), and documents per group (G,).

    Parameters
    ----------
    groups : DocumentGroups
        The groups of D documents.
    corpus : CorpusCounts
        The documents.
    shares : ndarray, shape (D, K)
        Their topics.
    """
    lengths = np.asarray(corpus.counts.sum(axis=1), dtype=np.float64).ravel()
    there = groups.group >= 0
    sums = np.zeros((len(groups.labels), shares.shape[1]))
    np.add.at(sums, groups.group[there], (shares * lengths[:, None])[there])
    return sums, np.bincount(groups.group[there], minlength=len(groups.labels))


def _dates(values: Sequence[str]) -> tuple[list[date | None], str]:
    """Return the dates, None for other values, and how they were read if that was guessed."""
    given = list(dict.fromkeys(filter(None, values)))
    found = {how: sum(_read(how, value) is not None for value in given[:TRIED]) for how in READERS}
    best = max(found, key=found.__getitem__)
    guess = "Dates such as 3/4/2021 are read as month/day/year" if best == "%m/%d/%Y" else ""
    dates = {value: _read(best, value) for value in given}
    return [dates.get(value) for value in values], guess


def _read(how: str, text: str) -> date | None:
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        return READERS[how](text)
    return None


def _iso(text: str) -> date:
    return datetime.fromisoformat(text).date()


def _year(text: str) -> date:
    if not re.fullmatch(r"1[5-9]\d\d|20\d\d|21\d\d", text):
        raise ValueError(text)
    return date(int(text), 1, 1)


def _mail(text: str) -> date:
    return parsedate_to_datetime(text).date()


def _formatted(format: str, text: str) -> date:
    """Return a date whose parts are separated by spaces, dots, commas or hyphens, or by slashes."""
    return datetime.strptime(re.sub(r"[\s.,-]+", "-", text), format).date()


FORMATS = "%Y-%m %Y-%m-%d %d-%m-%Y %d-%B-%Y %d-%b-%Y %B-%d-%Y %b-%d-%Y %B-%Y %b-%Y"
SLASHES = "%Y/%m/%d %Y/%m %m/%d/%Y %d/%m/%Y %m/%d/%y"
READERS: dict[str, Callable[[str], date]] = {
    "ISO": _iso,
    "year": _year,
    "mail": _mail,
    **{format: partial(_formatted, format) for format in f"{FORMATS} {SLASHES}".split()},
}
"""What reads dates, by name or format; of those that read equally many, the first."""


UNITS: dict[str, Callable[[date], int]] = {
    "day": date.toordinal,
    "week": lambda day: (day.toordinal() - 1) // 7,
    "month": lambda day: 12 * day.year + day.month - 1,
    "quarter": lambda day: (12 * day.year + day.month - 1) // 3,
    "year": lambda day: day.year,
    "decade": lambda day: day.year // 10,
}
"""The number of a date's period, counted from the year 1."""


def _periods(dates: Sequence[date | None]) -> tuple[str, list[str], Index]:
    """Return the period, the labels of all periods from first to last, and the period of each date."""
    known = [day for day in dates if day is not None]
    only_months = all(day.day == 1 for day in known)
    only_years = only_months and all(day.month == 1 for day in known)
    units = list(UNITS)[4 if only_years else 2 if only_months else 0 :]
    for unit in units:
        start, stop = (UNITS[unit](day) for day in (min(known), max(known)))
        if stop - start < MOST_PERIODS or unit == units[-1]:
            break
    labels = [_label(unit, number) for number in range(start, stop + 1)]
    group = [-1 if day is None else UNITS[unit](day) - start for day in dates]
    return unit, labels, np.array(group, dtype=np.intp)


def _label(unit: str, number: int) -> str:
    """Return a period's name.

    >>> [_label(unit, UNITS[unit](date(2021, 3, 4))) for unit in UNITS]
    ['2021-03-04', '2021-W09', '2021-03', '2021 Q1', '2021', '2020s']
    """
    if unit == "day":
        return date.fromordinal(number).isoformat()
    if unit == "week":
        year, week, _ = (date.fromordinal(7 * number + 1) + timedelta(3)).isocalendar()
        return f"{year}-W{week:02}"
    if unit == "month":
        return f"{number // 12}-{number % 12 + 1:02}"
    if unit == "quarter":
        return f"{number // 4} Q{number % 4 + 1}"
    return str(number) if unit == "year" else f"{10 * number}s"


def _sorted(labels: set[str]) -> list[str]:
    """Return labels in the order of their numbers, if all are numbers, else of the alphabet."""
    with suppress(ValueError):
        return sorted(labels, key=float)
    return sorted(labels)
