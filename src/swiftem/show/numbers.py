"""Numbers as text, in pages and commands; names and styles of methods."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple


def signed(value: float, digits: int) -> str:
    """Return a number that may be negative, with this number of digits and a true minus.

    >>> signed(-0.256, 2), signed(0.668, 2), signed(float("nan"), 2)
    ('−0.26', '0.67', 'none')
    """
    return f"{value:z.{digits}f}".replace("-", "−") if isfinite(value) else "none"


def counted(number: int, thing: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "epoch"), counted(5000, "pass")
    ('1 epoch', '5,000 passes')
    """
    plural = "es" if thing.endswith("s") else "s"
    return f"{number:,} {thing}" + ("" if number == 1 else plural)


def number_text(value: float, digits: int = 4) -> str:
    """Return a number in few digits.

    >>> number_text(57061.3), number_text(0.012345), number_text(-123.456, 2), number_text(1e12)
    ('57,061', '0.01234', '-123', '1e+12')
    >>> number_text(-0.0)
    '0'
    """
    is_long = 10.0**digits <= abs(value) < 1e7
    return f"{value:z,.0f}" if is_long else f"{value:z.{digits}g}"


def share_text(share: float) -> str:
    """Return the share of a topic, formatted for tables and pages.

    >>> share_text(0.12345)
    '12.3%'
    """
    return f"{share:.1%}"


def seconds_text(seconds: float) -> str:
    """Return a duration with two or three digits.

    >>> seconds_text(0.0213), seconds_text(0.284), seconds_text(3.14), seconds_text(75.0)
    ('21 ms', '284 ms', '3.1 s', '75 s')
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms" if seconds >= 0.00995 else f"{1000 * seconds:.2g} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


class Style(NamedTuple):
    """The paper's name of a method, its colour, and its line style."""

    label: str
    colour: str
    line: str


# Colours of Okabe and Ito, distinguishable with every kind of colour vision; the line style repeats the
# information, for print and for overlapping curves.
STYLES: dict[str, Style] = {
    "em": Style("EM", "#000000", "-"),
    "sem": Style("sEM", "#E69F00", "-"),
    "iem": Style("iEM", "#009E73", "--"),
    "sem-vr": Style("sEM-VR", "#0072B2", "-"),
    "fiem": Style("fiEM", "#D55E00", "--"),
    "em+squarem": Style("EM, SQUAREM", "#8B6C5C", "--"),
    "em+anderson": Style("EM, Anderson", "#7B3F9E", ":"),
    "fiem-shuffled": Style("fiEM, shuffled j", "#CC79A7", "-."),
    "iem-cyclic": Style("iEM, cyclic", "#009E73", "--"),
    "opt-fiem": Style("opt-fiem", "#56B4E9", "-"),
    "spider": Style("spider", "#B8A000", "-."),
}
"""By the name that users write."""

OTHER = "#777777"
"""Colour of a method that is not the library's."""


def style_of(method: str) -> Style:
    """Return the style of ``method``; one that is not in the paper keeps its own name.

    >>> style_of("sem-vr").label, style_of("mine").label
    ('sEM-VR', 'mine')
    """
    return STYLES.get(method, Style(method, OTHER, "-."))


def mean_text(value: float) -> str:
    """Return a mean log-likelihood as text.

    >>> mean_text(-4.4836336)
    '-4.483634'
    """
    return f"{value:z.6f}"


def criterion_text(value: float) -> str:
    """Return BIC, AIC or ICL as text.

    >>> criterion_text(9084.699032)
    '9084.70'
    """
    return f"{value:z.2f}"
