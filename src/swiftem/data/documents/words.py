"""Words of texts, phrases and stop words, and counts of words in documents.

A word is a run of at least three letters, in any script, in lower case. Numbers, and names with digits or
``_``, are not words. Words with an apostrophe are whole: "farmer's" is "farmer", "l'eau" is "eau", "don't"
and "we'll" are left out like the words that they stand for, and "aujourd'hui" is one word.

English stop words are scikit-learn's; stop words of other languages come from the package ``stopwordsiso``,
which the extra ``languages`` installs.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from itertools import count as count_from
from math import log
from typing import NamedTuple

import numpy as np

from swiftem.core.checks import check_int, check_real, shortened, shown
from swiftem.core.types import Array, Index
from swiftem.data.documents.counts import Counts

Phrases = Collection[tuple[str, ...]]
"""Pairs of words."""
WORD = re.compile(r"\b[^\W\d_]+(?:['’][^\W\d_]+)+\b|\b[^\W\d_]{3,}\b")
LEAST = 3
"""Letters of a word."""
ENDINGS = frozenset(("ll", "re", "ve", "d", "m"))
"""Suffixes of English contractions other than "n't"."""
ELISIONS = re.compile(r"[cdjlmnst]|(?:jus|lors|puis|quel|quoi)?qu|un|d?all|[dn]ell|sull|coll|quell|quest")
"""French and Italian words that lose their last vowel before an apostrophe."""
BETWEEN = re.compile(r"\s*-?\s*")
"""What may stand between the two words of a phrase."""
COUNT, NPMI = 10, 0.5
"""Minimum number of times, and normalised pointwise mutual information, of a phrase. Chosen on docstrings."""
EXTRA = "pip install 'swiftem[languages]'"
COMMON = 0.3
"""Share of the documents from which words are reported."""
FEW = 20
"""Number of documents below which nothing is reported."""
SHOWN = 8


def words_in(text: str, phrases: Phrases = ()) -> list[str]:
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
    while len(parts) > 1 and ELISIONS.fullmatch(parts[0]):
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


def _joined(words: list[tuple[str, bool]], phrases: Phrases) -> list[str]:
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


def stop_word_set(stop_words: str | Iterable[str] | None) -> frozenset[str]:
    """Return the words to leave out, found as in documents, so that "L'eau" leaves out "eau".

    Languages are named by their codes, several with commas: "de,en".

    >>> sorted(stop_word_set(["Rice", "l'eau"]))
    ['eau', 'rice']
    """
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        lists = [_stop_words(name.strip()) for name in stop_words.split(",")]
        if None in lists:
            languages = f"one or several languages (as in 'de,en'; {EXTRA})"
            got = f"None or a list of words, got {shown(stop_words)}"
            raise ValueError(f"stop_words must be 'english', {languages}, {got}.")
        return frozenset().union(*filter(None, lists))
    given = list(stop_words) if isinstance(stop_words, Iterable) else [stop_words]
    for word in given:
        if not isinstance(word, str):
            raise TypeError(f"stop_words must be a language, None or a list of words, got {shown(word)}.")
    return frozenset(part for word in given for part in words_in(word))


def _stop_words(language: str) -> frozenset[str] | None:
    """Return the stop words of a language, None if it is unknown."""
    if language in ("english", "en"):
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return frozenset(ENGLISH_STOP_WORDS)
    if find_spec("stopwordsiso") is None:
        return None
    import stopwordsiso

    return frozenset(map(str.lower, stopwordsiso.stopwords(language))) or None


class WordCounts(NamedTuple):
    """Counts of words in documents.

    Attributes
    ----------
    counts : scipy.sparse.csr_array of int, shape (D, V)
        A row per document that has at least one of the words.
    words : tuple of str, length V
        The words, in alphabetical order.
    kept : ndarray of int, shape (D,)
        Indices of the rows' documents in the given list, from 0.
    """

    counts: Counts
    words: tuple[str, ...]
    kept: Index


def count_words(
    documents: Iterable[str],
    n_words: int = 300,
    stop_words: str | Iterable[str] | None = "english",
    *,
    phrases: bool = False,
    drop_common: float | None = None,
) -> WordCounts:
    """Count the most frequent content words of each document.

    A word is a run of at least three letters, in lower case; "farmer's" is "farmer", and contractions such as
    "don't" are left out. Ties in frequency are broken alphabetically. Documents that have none of the words
    are dropped.

    Parameters
    ----------
    documents : iterable of str
        The texts.
    n_words : int
        Number of words to count; fewer if the documents do not have as many.
    stop_words : str, iterable of str, or None
        Words to leave out: ``"english"``, scikit-learn's; the code of a language such as ``"de"``, or of
        several, ``"de,en"``, with the extra ``languages``; your own; or none. Case is ignored.
    phrases : bool
        Whether pairs of words such as "new york", which are together more often than by chance, are words.
    drop_common : float, optional
        Leave out words that are in more than this share of the documents.

    Returns
    -------
    WordCounts
        ``counts`` (D, V), which is data for ``PLSAModel``, ``words`` (V,) and ``kept`` (D,).

    Examples
    --------
    >>> from swiftem.data import count_words
    >>> counts, words, kept = count_words(["Fish and rice", "Rice, rice", "It is 1998"])
    >>> words
    ('fish', 'rice')
    >>> counts.toarray()
    array([[1, 1],
           [0, 2]])
    >>> kept
    array([0, 1])
    """
    texts = texts_in(documents)
    check_int("n_words", n_words, minimum=1)
    if drop_common is not None:
        check_real("drop_common", drop_common, minimum=0.0, maximum=1.0)
    left_out = stop_word_set(stop_words)
    counts, column = _count(texts, find_phrases(texts, left_out) if phrases else ())
    words = sorted(word for word in column if word not in left_out)
    if not words:
        raise ValueError(
            "documents must have at least one word of three letters that is not a stop word, got none."
        )
    counts = counts[:, [column[word] for word in words]]
    totals = counts.sum(axis=0)
    if drop_common is not None:
        totals[document_shares(counts) > drop_common] = 0
        if not totals.any():
            raise ValueError(f"drop_common must leave at least one word, got {drop_common}.")
    often = np.argsort(-totals, kind="stable")[:n_words]
    chosen = np.sort(often[totals[often] > 0])
    counts, kept = _without_empty(counts[:, chosen])
    return WordCounts(counts, tuple(words[place] for place in chosen), kept)


def count_known_words(
    documents: Iterable[str], words: Sequence[str], stop_words: str | Iterable[str] | None = "english"
) -> tuple[Counts, Index, Counter[str]]:
    """Count the words of a vocabulary in each document; :func:`count_words` defines words.

    Parameters
    ----------
    documents : iterable of str
        The texts.
    words : sequence of str, length V
        The vocabulary; words with a space are phrases.
    stop_words : str, iterable of str, or None
        Words that are not reported as unknown.

    Returns
    -------
    counts : scipy.sparse.csr_array of int, shape (D, V)
        A row per document that has at least one of the words; columns in the order of the vocabulary.
    kept : ndarray of int, shape (D,)
        Indices of the rows' documents in the given list, from 0.
    unknown : Counter of str
        Words that are neither in the vocabulary nor stop words, with their counts.

    Examples
    --------
    >>> from swiftem.data import count_known_words
    >>> counts, kept, unknown = count_known_words(["Rice and rye, rice", "It is 1998"], ["fish", "rice"])
    >>> counts.toarray(), kept, unknown
    (array([[0, 2]]), array([0]), Counter({'rye': 1}))
    """
    phrases = {tuple(word.split(" ")) for word in words if word.count(" ") == 1}
    counts, column = _count(texts_in(documents), phrases, words)
    totals, left_out = counts.sum(axis=0), stop_word_set(stop_words)
    unknown = {
        word: int(totals[place])
        for word, place in column.items()
        if place >= len(words) and word not in left_out
    }
    counts, kept = _without_empty(counts[:, : len(words)])
    return counts, kept, Counter(unknown)


def _count(texts: list[str], phrases: Phrases, words: Sequence[str] = ()) -> tuple[Counts, dict[str, int]]:
    """Return the counts of all words in the texts, and their columns; the first ones are for ``words``."""
    import scipy.sparse as sp

    column = defaultdict(count_from(len(words)).__next__, {word: place for place, word in enumerate(words)})
    columns, values, ends = list[int](), list[int](), [0]
    for text in texts:
        counted = Counter(words_in(text, phrases))
        columns += map(column.__getitem__, counted)
        values += counted.values()
        ends.append(len(columns))
    parts = (np.array(part, dtype=np.int64) for part in (values, columns, ends))
    n_columns = max(column.values(), default=-1) + 1
    return sp.csr_array(tuple(parts), shape=(len(texts), n_columns)), column


def _without_empty(counts: Counts) -> tuple[Counts, Index]:
    """Return the rows that have entries, sorted, and their indices."""
    kept = np.flatnonzero(np.diff(counts.indptr))
    counts = counts[kept]
    counts.sort_indices()
    return counts, kept


def texts_in(documents: Iterable[str]) -> list[str]:
    """Return the documents as a list, if they are strings."""
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable):
        what = "one string" if isinstance(documents, str) else type(documents).__name__
        raise TypeError(f"documents must be a list of strings, one per document, got {what}.")
    texts = list(documents)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"documents must hold strings, got {type(text).__name__} at position {place}.")
    if not texts:
        raise ValueError("documents must have at least one document, got none.")
    return texts


def document_shares(counts: Counts) -> Array:
    """Return the share of the documents that have each word, (V,), of counts (D, V)."""
    found: Array = np.bincount(counts.indices, minlength=counts.shape[1]) / counts.shape[0]
    return found


def note_on_common(counts: Counts, words: Sequence[str]) -> list[str]:
    """Return a sentence on words that are in many documents, if there are any."""
    shares = document_shares(counts)
    common = [int(place) for place in np.argsort(-shares, kind="stable") if shares[place] > COMMON]
    if counts.shape[0] < FEW or not common:
        return []
    which = shortened([words[place] for place in common], SHOWN)
    subject = "1 word is" if len(common) == 1 else f"{len(common)} words are"
    return [
        f"{subject} in over {COMMON:.0%} of the documents: {which}. If they say nothing of a topic, leave "
        f"them out as stop words, or with drop_common={COMMON} in Python."
    ]
