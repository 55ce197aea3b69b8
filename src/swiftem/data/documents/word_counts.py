"""From texts to a matrix of word counts: of the most frequent words, or of a given vocabulary.

What most documents have in common, headers of mails and words, is reported, and left out on request.

Words are found and chosen here, and counted by scikit-learn's ``CountVectorizer``. Its ``max_features``
chooses arbitrarily among equally frequent words, and its check of stop words warns of lists that are not the
user's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from swiftem._checks import check_int, check_real, shortened
from swiftem._typing import Array, Index
from swiftem.data.documents.words import choose_stop_words, find_phrases, phrases_among, words_in

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = [
    "KnownWordCounts", "WordCounts", "count_known_words", "count_words", "document_shares", "header_field",
    "note_on_common", "note_on_headers", "without_header",
]  # fmt: skip

HEADER = re.compile(r"\s*(?:[A-Za-z][\w-]*:[^\n]*(?:\n[ \t]+[^\n]+)*(?:\n|\Z)){2,}(?=\n|\Z)")
"""Two or more lines "Field: value", which may go on in lines that begin with a space, and an empty one."""
FIELD = re.compile(r"^([A-Za-z][\w-]*):", re.MULTILINE)
COMMON = 0.3
"""Share of the documents from which words, and headers, are reported."""
FEW = 20
"""Number of documents below which nothing is reported."""
SHOWN = 8


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

    counts: sp.csr_array[Any, tuple[int, int]]
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
        several, ``"de,en"``, with the extra ``languages``; ``"auto"``, those of the language of the texts,
        which is guessed; your own; or none. Case is ignored.
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
    left_out = choose_stop_words(stop_words, texts).words
    pairs = find_phrases(texts, left_out) if phrases else frozenset()

    import scipy.sparse as sp
    from sklearn.feature_extraction.text import CountVectorizer

    # Not max_features: its sort is not stable, so that ties in frequency are broken arbitrarily.
    vectorizer = CountVectorizer(
        analyzer=lambda text: [w for w in words_in(text, pairs) if w not in left_out]
    )
    try:
        every = sp.csr_array(vectorizer.fit_transform(texts))
    except ValueError:  # "empty vocabulary"
        raise ValueError(
            "documents must have at least one word of three letters that is not a stop word, got none."
        ) from None
    alphabetical = vectorizer.get_feature_names_out()
    totals = every.sum(axis=0)
    if drop_common is not None:
        totals[document_shares(every) > drop_common] = 0
        if not totals.any():
            raise ValueError(
                f"drop_common must leave at least one word, got {drop_common}, and all are in more documents."
            )
    often = np.argsort(-totals, kind="stable")[:n_words]
    chosen = np.sort(often[totals[often] > 0])
    counts = every[:, chosen]
    kept = np.flatnonzero(counts.sum(axis=1))
    counts = counts[kept]
    counts.sort_indices()
    return WordCounts(counts, tuple(str(word) for word in alphabetical[chosen]), kept)


class KnownWordCounts(NamedTuple):
    """Counts of a vocabulary's words in documents.

    Attributes
    ----------
    counts : scipy.sparse.csr_array of int, shape (D, V)
        A row per document that has at least one of the words; columns in the order of the vocabulary.
    kept : ndarray of int, shape (D,)
        Indices of the rows' documents in the given list, from 0.
    unknown : Counter of str
        Words that are neither in the vocabulary nor stop words, with their counts.
    """

    counts: sp.csr_array[Any, tuple[int, int]]
    kept: Index
    unknown: Counter[str]


def count_known_words(
    documents: Iterable[str],
    words: Sequence[str],
    stop_words: str | Iterable[str] | None = "english",
) -> KnownWordCounts:
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
    KnownWordCounts
        ``counts`` (D, V), ``kept`` (D,) and ``unknown``.

    Examples
    --------
    >>> from swiftem.data import count_known_words
    >>> counts, kept, unknown = count_known_words(["Rice and rye, rice", "It is 1998"], ["fish", "rice"])
    >>> counts.toarray(), kept, unknown
    (array([[0, 2]]), array([0]), Counter({'rye': 1}))
    """
    import scipy.sparse as sp

    texts = texts_in(documents)
    column = {word: place for place, word in enumerate(words)}
    left_out, pairs = choose_stop_words(stop_words, texts).words, phrases_among(words)
    unknown: Counter[str] = Counter()
    columns: list[int] = []
    values: list[int] = []
    ends = [0]
    for text in texts:
        for word, count in Counter(words_in(text, pairs)).items():
            place = column.get(word)
            if place is not None:
                columns.append(place)
                values.append(count)
            elif word not in left_out:
                unknown[word] += count
        ends.append(len(columns))
    counts = sp.csr_array(
        (np.array(values, dtype=np.int64), np.array(columns, dtype=np.int64), ends),
        shape=(len(texts), len(words)),
    )
    kept = np.flatnonzero(np.diff(counts.indptr))
    counts = counts[kept]
    counts.sort_indices()
    return KnownWordCounts(counts, kept, unknown)


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


def without_header(text: str) -> str:
    r"""Return a mail without its header.

    >>> without_header("From: me\nSubject: rice\n\nRice and fish.\n")
    '\nRice and fish.\n'
    >>> without_header("Rice: a crop.\n")
    'Rice: a crop.\n'
    """
    found = HEADER.match(text)
    return text if found is None else text[found.end() :]


def header_field(text: str, name: str) -> str:
    r"""Return the value of a field in the header of a mail; empty if there is none. Case is ignored.

    >>> header_field("From: me\nDate: Mon, 20 Nov 1995\n\nDate: never\n", "date")
    'Mon, 20 Nov 1995'
    >>> header_field("From: me\nSubject: rice\n\nDate: never\n", "date")
    ''
    """
    header = HEADER.match(text)
    if header is None:
        return ""
    pattern = rf"^{re.escape(name)}:[ \t]*([^\n]*(?:\n[ \t]+[^\n]+)*)"
    found = re.search(pattern, header.group(), re.IGNORECASE | re.MULTILINE)
    return "" if found is None else " ".join(found.group(1).split())


def note_on_headers(texts: Sequence[str]) -> list[str]:
    """Return a sentence if many texts begin with the header of a mail."""
    found = [match.group() for match in map(HEADER.match, texts) if match is not None]
    if len(texts) < FEW or len(found) < COMMON * len(texts):
        return []
    fields = Counter(field for header in found for field in set(FIELD.findall(header)))
    names = shortened([field for field, _ in fields.most_common()], 4)
    return [
        f"{len(found):,} of {len(texts):,} documents begin with a header ({names}), whose words count:"
        " leave headers out with drop_headers=True."
    ]


def document_shares(counts: Any) -> Array:
    """Return the share of the documents that have each word, (V,), of counts (D, V)."""
    found: Array = np.bincount(counts.indices, minlength=counts.shape[1]) / counts.shape[0]
    return found


def note_on_common(counts: Any, words: Sequence[str]) -> list[str]:
    """Return a sentence on words that are in many documents, if there are any."""
    shares = document_shares(counts)
    common = [int(place) for place in np.argsort(-shares, kind="stable") if shares[place] > COMMON]
    if counts.shape[0] < FEW or not common:
        return []
    which = shortened([words[place] for place in common], SHOWN)
    subject = "1 word is" if len(common) == 1 else f"{len(common)} words are"
    return [
        f"{subject} in over {COMMON:.0%} of the documents: {which}. If they say nothing of a topic, leave "
        f"them out with drop_common={COMMON}."
    ]
