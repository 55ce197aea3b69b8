"""Tokens as samples: pairs of a document and a word."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from swiftem._checks import as_integers, check_int
from swiftem._typing import Index
from swiftem.data.rows.array_source import ArraySource

__all__ = ["TokenSource"]


class TokenSource(ArraySource):
    """A list of tokens, each a document and a word.

    Parameters
    ----------
    documents, words : array-like of int, shape (n,)
        Document and word of each token, counted from 0.
    n_documents, n_words : int, optional
        D and V. By default one more than the largest number that occurs.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the tokens. Tokens of weight zero are ignored.

    Examples
    --------
    >>> from swiftem.data import TokenSource
    >>> source = TokenSource([0, 0, 1], [4, 2, 4])
    >>> source.n, source.n_documents, source.n_words
    (3, 2, 5)
    """

    unit: ClassVar[str] = "token"

    def __init__(
        self,
        documents: ArrayLike,
        words: ArrayLike,
        *,
        n_documents: int | None = None,
        n_words: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        document, word = _numbers("documents", documents), _numbers("words", words)
        if document.shape != word.shape:
            raise ValueError(
                f"documents and words must have the same length, got {len(document)} and {len(word)}."
            )
        if not len(document):
            raise ValueError("data must have at least one token, got none.")
        self.n_documents = _size("n_documents", n_documents, document)
        self.n_words = _size("n_words", n_words, word)
        super().__init__(np.stack([document, word], axis=1), sample_weight)

    def fingerprint(self) -> str:
        """Return a hash of the tokens and weights."""
        return f"{self.n_documents},{self.n_words},{super().fingerprint()}"


def _numbers(name: str, values: ArrayLike) -> Index:
    """Return token numbers as a one-dimensional integer array without negative entries."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (n,), one number per token, got {array.shape}.")
    if not len(array):
        return np.empty(0, dtype=np.intp)
    numbers = as_integers(name, array)
    if (numbers < 0).any():
        raise ValueError(f"{name} must count from 0, got {numbers.min()}.")
    return numbers


def _size(name: str, size: int | None, numbers: Index) -> int:
    """Return D or V, checked against the numbers that occur."""
    needed = int(numbers.max()) + 1
    if size is None:
        return needed
    if check_int(name, size, minimum=1) < needed:
        raise ValueError(
            f"{name} must exceed every number that occurs, got {size} and a number {needed - 1}."
        )
    return int(size)
