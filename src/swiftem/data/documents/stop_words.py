"""Stop words of many languages, and the language of texts, guessed from them.

English ones are scikit-learn's; those of other languages come from the package ``stopwordsiso``, which the
extra ``languages`` installs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

from swiftem._checks import shown
from swiftem.data.documents.words import words_in

__all__ = ["StopWords", "choose_stop_words", "stop_word_set"]

ENGLISH = "en"
LETTERS = re.compile(r"[^\W\d_]+")
DOCUMENTS, CHARACTERS = 500, 1000
"""How much of the texts the guess is from."""
FEW = 0.2
"""Share of stop words below which texts are probably in another language: it is mostly 0.3 to 0.5."""
MARGIN = 1.5
"""How many times the share of English stop words another language needs: its list is longer."""
EXTRA = "pip install 'swiftem[languages]'"


class StopWords(NamedTuple):
    """Words to leave out, the code of their language if it was guessed, and notes on the guess."""

    words: frozenset[str]
    language: str = ""
    notes: tuple[str, ...] = ()


def choose_stop_words(stop_words: str | Iterable[str] | None, texts: Sequence[str]) -> StopWords:
    """Return the words to leave out of texts; for "auto" those of their language, which is guessed.

    >>> choose_stop_words("auto", ["The rice and the fish are in the pond."]).language
    'en'
    """
    if not (isinstance(stop_words, str) and stop_words == "auto"):
        return StopWords(stop_word_set(stop_words))
    shares = _shares(texts)
    language = max(shares, key=lambda code: shares[code] * (MARGIN if code == ENGLISH else 1.0))
    if shares[language] < FEW and shares[language] < FEW / MARGIN:
        language = ENGLISH
    notes: tuple[str, ...] = ()
    if language != ENGLISH:
        notes = (
            f"The texts seem to be in {language!r}: {shares[language]:.0%} of the words are its stop words, "
            "which were left out. Name another language with stop_words.",
        )
    elif shares[ENGLISH] < FEW and find_spec("stopwordsiso") is None:
        notes = (
            f"Only {shares[ENGLISH]:.0%} of the words are English stop words: for texts in another language "
            f"install the stop words of more languages with {EXTRA}, or give stop_words.",
        )
    return StopWords(_of_language(language), language, notes)


def stop_word_set(stop_words: str | Iterable[str] | None) -> frozenset[str]:
    """Return the words to leave out, found as in documents, so that "L'eau" leaves out "eau".

    >>> sorted(stop_word_set(["Rice", "l'eau"]))
    ['eau', 'rice']
    """
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        if stop_words == "english":
            return _of_language(ENGLISH)
        codes = _codes()
        if stop_words in codes:
            return _of_language(stop_words)
        known = (
            f"one of the languages {', '.join(sorted(codes))}"
            if len(codes) > 1
            else f"a language (with {EXTRA})"
        )
        raise ValueError(
            f"stop_words must be 'auto', 'english', {known}, None or a list of words, got "
            f"{shown(stop_words)}."
        )
    given = list(stop_words) if isinstance(stop_words, Iterable) else [stop_words]
    for word in given:
        if not isinstance(word, str):
            raise TypeError(
                f"stop_words must be 'auto', a language, None or a list of words, got {shown(word)}."
            )
    return frozenset(part for word in given for part in words_in(word))


def _shares(texts: Sequence[str]) -> dict[str, float]:
    """Return the share of each language's stop words in the texts."""
    step = max(1, len(texts) // DOCUMENTS)
    counts = Counter(word for text in texts[::step] for word in LETTERS.findall(text[:CHARACTERS].lower()))
    total = max(1, counts.total())
    return {
        code: sum(counts[word] for word in _of_language(code)) / total
        for code in [ENGLISH, *sorted(_codes())]
    }


def _codes() -> frozenset[str]:
    if find_spec("stopwordsiso") is None:
        return frozenset((ENGLISH,))
    import stopwordsiso

    return frozenset(stopwordsiso.langs())


@cache
def _of_language(code: str) -> frozenset[str]:
    if code == ENGLISH:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    import stopwordsiso

    return frozenset(word.lower() for word in stopwordsiso.stopwords(code))
