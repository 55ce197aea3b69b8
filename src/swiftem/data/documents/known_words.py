"""Count words of a vocabulary that is given, such as a model's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from swiftem._typing import Index
from swiftem.data.documents.word_counts import stop_word_set, texts_in, words_in

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["KnownWordCounts", "count_known_words"]


class KnownWordCounts(NamedTuple):
    """How often each word of a vocabulary is in each document.

    Attributes
    ----------
    counts : scipy.sparse.csr_array of int, shape (D, V)
        A row per document that has at least one of the words; columns in the order of the vocabulary.
    kept : ndarray of int, shape (D,)
        Which documents the rows are, counted from 0 in the list that was given.
    unknown : Counter of str
        The words that are not in the vocabulary and are no stop words, and how often they are there.
    """

    counts: sp.csr_array[Any, tuple[int, int]]
    kept: Index
    unknown: Counter[str]


def count_known_words(
    documents: Iterable[str],
    words: Sequence[str],
    stop_words: Literal["english"] | Iterable[str] | None = "english",
) -> KnownWordCounts:
    """Count the words of a vocabulary in each document; what a word is, :func:`count_words` says.

    Parameters
    ----------
    documents : iterable of str
        The texts.
    words : sequence of str, length V
        The vocabulary.
    stop_words : "english", iterable of str, or None
        Words that are not mentioned as unknown.

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
    left_out = stop_word_set(stop_words)
    unknown: Counter[str] = Counter()
    columns: list[int] = []
    values: list[int] = []
    ends = [0]
    for text in texts:
        for word, count in Counter(words_in(text)).items():
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
