"""Words of a text, pairs of words that are one term, and stop words.

A word is a run of at least three letters, in any script, in lower case. Numbers, and names with digits or
``_``, are not words. Words with an apostrophe are whole: "farmer's" is "farmer", "l'eau" is "eau", "don't"
and "we'll" are left out like the words that they stand for, and "aujourd'hui" is one word.

English stop words are scikit-learn's; those of other languages come from the package ``stopwordsiso``, which
the extra ``languages`` installs. The language of texts is guessed from them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from math import log
from typing import NamedTuple

from swiftem._checks import shown

__all__ = ["StopWords", "choose_stop_words", "find_phrases", "phrases_among", "stop_word_set", "words_in"]

WORD = re.compile(r"\b[^\W\d_]+(?:['’][^\W\d_]+)+\b|\b[^\W\d_]{3,}\b")
LEAST = 3
"""Letters of a word."""
ENDINGS = frozenset(("ll", "re", "ve", "d", "m"))
"""Of English contractions, beside "n't"."""
ELISIONS = frozenset((
    "c", "d", "j", "l", "m", "n", "s", "t", "qu", "jusqu", "lorsqu", "puisqu", "quelqu", "quoiqu",
    "un", "all", "dall", "dell", "nell", "sull", "coll", "quell", "quest",
))  # fmt: skip
"""French and Italian words that lose their last vowel before an apostrophe."""
BETWEEN = re.compile(r"\s*-?\s*")
"""What may stand between the two words of a phrase."""
COUNT, NPMI = 10, 0.5
"""Minimum number of times, and normalised pointwise mutual information, of a phrase. Chosen on docstrings."""


def words_in(text: str, phrases: Collection[tuple[str, str]] = ()) -> list[str]:
    """Return the words of a text in order; a phrase is one word, with a space.

    >>> words_in("The farmer's rice: don't eat l'eau!")
    ['the', 'farmer', 'rice', 'eat', 'eau']
    >>> words_in("A hard drive, hard by the drive", {("hard", "drive")})
    ['hard drive', 'hard', 'the', 'drive']
    """
    text = _normalised(text)
    if phrases:
        return _joined(_placed(text), phrases)
    if "'" not in text and "’" not in text:
        return WORD.findall(text)
    return [word for word in map(_whole, WORD.findall(text)) if word]


def _normalised(text: str) -> str:
    # Composed first: an accent as a separate character would end the word.
    return unicodedata.normalize("NFC", text).lower()


def _whole(word: str) -> str:
    """Return a word that may have apostrophes as one word; empty if it is none."""
    if "'" not in word and "’" not in word:
        return word
    parts = word.replace("’", "'").split("'")
    if parts[-1] in ENDINGS or (parts[-1] == "t" and parts[-2].endswith("n")):
        return ""
    if parts[-1] == "s":
        parts.pop()
    while len(parts) > 1 and parts[0] in ELISIONS:
        parts.pop(0)
    return "'".join(parts) if sum(map(len, parts)) >= LEAST else ""


def _placed(text: str) -> list[tuple[str, bool]]:
    """Return the words, and whether each directly follows the one before."""
    found, end = [], -1
    for match in WORD.finditer(text):
        word = _whole(match.group())
        follows = end >= 0 and BETWEEN.fullmatch(text, end, match.start()) is not None
        if word:
            found.append((word, follows))
        end = match.end() if word else -1
    return found


def _joined(words: list[tuple[str, bool]], phrases: Collection[tuple[str, str]]) -> list[str]:
    found: list[str] = []
    last = ""
    for word, follows in words:
        if last and follows and (last, word) in phrases:
            found[-1] = f"{last} {word}"
            last = ""  # a word is in one phrase
        else:
            found.append(word)
            last = word
    return found


def find_phrases(texts: Iterable[str], left_out: Collection[str] = ()) -> frozenset[tuple[str, str]]:
    r"""Return the pairs of neighbouring words that are one term.

    For words a and b with frequencies p of all words, and the pair's p(ab), the normalised pointwise mutual
    information :math:`\log(p(ab) / (p(a) p(b))) / (-\log p(ab))` is at least 0.5, and the pair occurs ten
    times or more.

    Parameters
    ----------
    texts : iterable of str
        The documents.
    left_out : collection of str
        Words that are in no phrase.

    Examples
    --------
    >>> sorted(find_phrases(["rice in New York", "new rice of new york"] * 10))
    [('new', 'york')]
    """
    words: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for text in texts:
        last = ""
        for word, follows in _placed(_normalised(text)):
            words[word] += 1
            if last and follows and word not in left_out:
                pairs[last, word] += 1
            last = "" if word in left_out else word
    total = words.total()
    return frozenset(
        pair
        for pair, count in pairs.items()
        if count >= COUNT
        and pair[0] != pair[1]
        and log(count * total / (words[pair[0]] * words[pair[1]])) >= NPMI * log(total / count)
    )


def phrases_among(words: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Return the phrases of a vocabulary.

    >>> phrases_among(["rice", "new york"])
    frozenset({('new', 'york')})
    """
    pairs = (word.split(" ") for word in words if " " in word)
    return frozenset((pair[0], pair[1]) for pair in pairs if len(pair) == 2)


ENGLISH = "en"
LETTERS = re.compile(r"[^\W\d_]+")
DOCUMENTS, CHARACTERS = 500, 1000
"""How much of the texts the guess is from."""
FEW = 0.2
"""Share of stop words below which texts are probably in another language: it is mostly 0.3 to 0.5."""
SOME = 0.04
"""Share of English stop words, without those that the language has too, from which a part of the texts, a
tenth or more, is in English."""
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
    step = max(1, len(texts) // DOCUMENTS)
    counts = Counter(word for text in texts[::step] for word in LETTERS.findall(text[:CHARACTERS].lower()))
    shares = {code: _share(_of_language(code), counts) for code in [ENGLISH, *sorted(_codes())]}
    language = max(shares, key=lambda code: shares[code] * (MARGIN if code == ENGLISH else 1.0))
    if shares[language] < FEW and shares[language] < FEW / MARGIN:
        language = ENGLISH
    notes: tuple[str, ...] = ()
    if language != ENGLISH:
        notes = (
            f"The texts seem to be in {language!r}: {shares[language]:.0%} of the words are its stop words, "
            "which were left out. Name another language with stop_words.",
        )
        english = _share(_of_language(ENGLISH) - _of_language(language), counts)
        if english > SOME:
            notes += (
                f"{english:.0%} of the words are English stop words: some texts seem to be in English. Leave "
                f"out both with stop_words='{language},{ENGLISH}'.",
            )
    elif shares[ENGLISH] < FEW and find_spec("stopwordsiso") is None:
        notes = (
            f"Only {shares[ENGLISH]:.0%} of the words are English stop words: for texts in another language "
            f"install the stop words of more languages with {EXTRA}, or give stop_words.",
        )
    return StopWords(_of_language(language), language, notes)


def stop_word_set(stop_words: str | Iterable[str] | None) -> frozenset[str]:
    """Return the words to leave out, found as in documents, so that "L'eau" leaves out "eau".

    Languages are named by their codes, several with commas: "de,en".

    >>> sorted(stop_word_set(["Rice", "l'eau"]))
    ['eau', 'rice']
    """
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        codes = _codes()
        named = [ENGLISH if name.strip() == "english" else name.strip() for name in stop_words.split(",")]
        if codes.issuperset(named):
            return frozenset().union(*map(_of_language, named))
        known = (
            f"one or several of the languages {', '.join(sorted(codes))} (as in 'de,en')"
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


def _share(words: frozenset[str], counts: Counter[str]) -> float:
    """Return the share of these words in the texts."""
    return sum(counts[word] for word in words) / max(1, counts.total())


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
