"""Names and styles of the methods in all tables and figures."""

from __future__ import annotations

from typing import NamedTuple

from swiftem.methods import METHODS

__all__ = ["OTHER", "STYLES", "Style", "style_of"]


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
}
"""By the name that users write."""

LATER = (("#56B4E9", "-"), ("#B8A000", "-."), ("#4B5320", ":"))
"""Colours and lines of the library's methods that are not in the paper, in their order."""
OTHER = "#777777"
"""Colour of a method that is not the library's."""


def style_of(method: str) -> Style:
    """Return the style of ``method``; one that is not in the paper keeps its own name.

    >>> style_of("sem-vr").label, style_of("mine").label
    ('sEM-VR', 'mine')
    """
    later = [name for name in METHODS if name not in STYLES]
    if method in later[: len(LATER)]:
        return Style(method, *LATER[later.index(method)])
    return STYLES.get(method, Style(method, OTHER, "-."))
