"""Counts with their columns in the order of another vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from swiftem.data.documents.corpus_counts import CorpusCounts, counted_documents
from swiftem.data.documents.texts import listed

__all__ = ["match_words"]


def match_words(corpus: CorpusCounts, words: Sequence[str], source: str = "The corpus") -> CorpusCounts:
    """Return the corpus with a column for each of ``words``; other words are left out, with a note.

    Parameters
    ----------
    corpus : CorpusCounts
        What was counted. Where its words are known only by number, there must be as many as ``words``.
    words : sequence of str, length V
        The vocabulary of a model.
    source : str
        The file, for sentences.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CorpusCounts
    >>> corpus = match_words(CorpusCounts(sp.csr_array([[1, 2]]), ("fish", "rice"), ("a",)), ("rice", "rye"))
    >>> corpus.counts.toarray().tolist(), corpus.notes
    ([[2, 0]], ("1 of 3 words (33%) ... left out, most often 'fish'.",))
    """
    import scipy.sparse as sp

    if corpus.words is None:
        if corpus.counts.shape[1] != len(words):
            raise ValueError(
                f"{source} must have {len(words):,} words, as many as are known, got "
                f"{corpus.counts.shape[1]:,} without names: give their vocabulary."
            )
        return replace(corpus, words=tuple(words))
    target = {word: place for place, word in enumerate(words)}
    place = np.array([target.get(word, -1) for word in corpus.words])
    known = np.flatnonzero(place >= 0)
    if not len(known):
        raise ValueError(
            f"{source} must have at least one of the {len(words):,} words that are known, got none."
        )
    chosen = sp.coo_array(corpus.counts[:, known])
    moved = sp.coo_array(
        (chosen.data, (chosen.row, place[known][chosen.col])), shape=(chosen.shape[0], len(words))
    )
    found = counted_documents(moved, words, corpus.names.__getitem__, source, corpus.format)
    totals = np.asarray(corpus.counts.sum(axis=0)).ravel()
    totals[known] = 0
    notes = corpus.notes
    left = float(totals.sum())
    if left:
        often = [
            f"{corpus.words[column]!r}" for column in np.argsort(-totals, kind="stable") if totals[column]
        ]
        notes += (
            f"{left:,.10g} of {corpus.n_tokens:,.10g} words ({left / corpus.n_tokens:.0%}) are not among the "
            f"{len(words):,} known ones and were left out, most often {listed(often)}.",
        )
    return replace(found, notes=notes + found.notes)
