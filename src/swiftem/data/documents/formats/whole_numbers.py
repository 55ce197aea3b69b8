"""Whole numbers in text, of any length."""

from __future__ import annotations

__all__ = ["shortened_number", "whole_number"]

LONGEST = 40
"""Digits beyond which numbers are not told apart: Python reads no more than 4,300, in quadratic time."""


def whole_number(text: str) -> int:
    """Return the number that ASCII digits, perhaps with a sign, stand for; at most 10^40 in size.

    >>> whole_number("-007"), whole_number("9" * 5000) == 10**40
    (-7, True)
    """
    digits = text.lstrip("+-").lstrip("0")
    size = int(digits or "0") if len(digits) <= LONGEST else 10**LONGEST
    return -size if text.startswith("-") else size


def shortened_number(text: str) -> str:
    """Return a number as a sentence shows it.

    >>> shortened_number("-12"), shortened_number("9" * 5000)
    ('-12', 'a number of 5000 digits')
    """
    return text if len(text) <= LONGEST else f"a number of {len(text.lstrip('+-'))} digits"
