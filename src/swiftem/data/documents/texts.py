"""Texts as they are read, before words are counted."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Texts", "listed"]


class Texts(NamedTuple):
    """Documents, what they are called, and what there is to say about the reading.

    Attributes
    ----------
    texts, names : lists of str, length D
        The documents; names of their files, titles, or where they are in the file.
    notes : list of str
        Sentences on what was left out or guessed.
    """

    texts: list[str]
    names: list[str]
    notes: list[str]


def listed(names: list[str], most: int = 3) -> str:
    """Return the first names, and how many more there are.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    >>> listed(["a", "b"])
    'a, b'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
