"""Passages of texts that show what a topic is about."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["passage"]

WORD = re.compile(r"[^\W\d_]+")


def passage(text: str, weights: Mapping[str, float], length: int = 240) -> str:
    """Return the part of a text that has most of a topic's words, with ellipses if it was cut.

    Parameters
    ----------
    text : str
        One line.
    weights : mapping of str to float
        Weights of words in lower case; others have none.
    length : int
        Maximum number of characters.

    Examples
    --------
    >>> text = "We went there by train. " * 9 + "The fish in the pond eat other fish."
    >>> passage(text, {"fish": 1.0, "pond": 1.0}, 40)
    '… The fish in the pond eat other fish.'
    >>> passage("Short.", {}, 40)
    'Short.'
    >>> passage("unbreakable" * 9, {"unbreakable" * 9: 1.0}, 12)
    'unbreaka …'
    """
    if len(text) <= length:
        return text
    length = max(length, 8)
    words = WORD.finditer(text) if weights else ()
    found = [(word.start(), word.end(), weights.get(word.group().lower(), 0.0)) for word in words]
    room = length - 4
    best, value, total, first = (0, 0), 0.0, 0.0, 0
    seen: dict[str, int] = {}
    for place, (start, end, weight) in enumerate(found):
        word = text[start:end].lower()
        # A word that is repeated says little more.
        total += weight if not seen.get(word) else 0.1 * weight
        seen[word] = seen.get(word, 0) + 1
        while first < place and end - found[first][0] > room:
            a, b, lost = found[first]
            word = text[a:b].lower()
            seen[word] -= 1
            total -= lost if not seen[word] else 0.1 * lost
            first += 1
        if total > value + 1e-12:
            best, value = (first, place), total
    start = 0
    if value > 0:
        inside = [part for part in found[best[0] : best[1] + 1] if part[2] > 0]
        start, spare = inside[0][0], room - (inside[-1][1] - inside[0][0])
        # From the beginning of a sentence, if one is near.
        sentence = max(text.rfind(mark, max(0, start - spare - 2), start) for mark in (". ", "? ", "! "))
        start = 0 if start <= spare else sentence + 2 if sentence >= 0 else start
    part = text[start : start + room]
    if start + room < len(text):
        part = (part.rpartition(" ")[0] or part).rstrip(" .,;:…") + " …"
    return ("… " if start else "") + part
