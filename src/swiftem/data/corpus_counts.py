"""Word counts of a corpus, with what is needed to show them to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["CorpusCounts", "beginning", "counted_documents"]

SHOWN = 200
"""Characters that are kept of a document's text."""


@dataclass(frozen=True)
class CorpusCounts:
    """How often each word is in each document, and what documents and words are called.

    Attributes
    ----------
    counts : scipy.sparse.csr_array of int or float, shape (D, V)
        A row per document; every one has at least one word.
    words : tuple of str, length V, or None
        The words; None where the file had only their numbers.
    names : tuple of str, length D
        Titles of the documents, names of their files, or where they are in the file.
    texts : tuple of str, length D, or None
        The beginning of each document, in one line; None where only counts are known.
    format : str
        What was read, such as ``"folder"``.
    notes : tuple of str
        Sentences on what was left out or guessed; empty where there is nothing to say.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CorpusCounts
    >>> CorpusCounts(sp.csr_array([[1, 2], [0, 3]]), ("fish", "rice"), ("a.txt", "b.txt"))
    CorpusCounts of 2 documents, 2 words and 6 tokens
    """

    counts: sp.csr_array[Any, tuple[int, int]]
    words: tuple[str, ...] | None
    names: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    format: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n_documents, n_words = self.counts.shape
        for name, given, wanted in (
            ("words", self.words, n_words),
            ("names", self.names, n_documents),
            ("texts", self.texts, n_documents),
        ):
            if given is not None and len(given) != wanted:
                raise ValueError(f"{name} must have {wanted} entries, as counts have, got {len(given)}.")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        # The default one would print every text.
        n_documents, n_words = self.counts.shape
        return (
            f"CorpusCounts of {n_documents:,} documents, {n_words:,} words and {self.n_tokens:,.10g} tokens"
        )

    @property
    def n_tokens(self) -> float:
        """Sum of all counts."""
        return float(self.counts.sum())

    def word_names(self) -> tuple[str, ...]:
        """Return the words; where they are not known ``word 0``, ``word 1``, ...

        >>> import scipy.sparse as sp
        >>> CorpusCounts(sp.csr_array([[1, 2]]), None, ("0",)).word_names()
        ('word 0', 'word 1')
        """
        if self.words is not None:
            return self.words
        return tuple(f"word {number}" for number in range(self.counts.shape[1]))


def beginning(text: str) -> str:
    r"""Return the first 200 characters of a text in one line, with an ellipsis where there are more.

    >>> beginning(" Rice\n  and maize. ")
    'Rice and maize.'
    >>> len(beginning("rice " * 100))
    199
    """
    # Only so much of a long text is looked at: white space rarely is more than nine tenths of it.
    line = " ".join(text[: 10 * SHOWN].split())
    if len(line) <= SHOWN and len(text) <= 10 * SHOWN:
        return line
    return line[: SHOWN - 2].rstrip(" .,;:") + "…"


def counted_documents(
    counts: Any, words: Sequence[str] | None, names: Sequence[str], source: str, format: str
) -> CorpusCounts:
    """Return the corpus of a matrix of counts, without the documents that have no word.

    Parameters
    ----------
    counts : sparse, shape (D, V)
        Non-negative; duplicates are added up.
    words, names : sequences of length V and D
        ``words`` may be None.
    source : str
        The file, for sentences.
    format : str
        Its format.

    Raises
    ------
    ValueError
        When nothing was counted.
    """
    import scipy.sparse as sp

    matrix = sp.csr_array(counts)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    kept = np.flatnonzero(np.diff(matrix.indptr))
    if not len(kept):
        raise ValueError(f"{source} must have at least one document with a word in it, got none.")
    empty = matrix.shape[0] - len(kept)
    if empty:
        matrix = matrix[kept]
    return CorpusCounts(
        matrix,
        None if words is None else tuple(words),
        tuple(names[place] for place in kept.tolist()),
        None,
        format,
        (f"{empty:,} of {empty + len(kept):,} documents have no words and were left out.",) if empty else (),
    )
