"""Full passes of pLSA in compiled code, on all cores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.data.documents.count_source import CountSource
from swiftem.data.documents.token_source import TokenSource
from swiftem.data.source import Source
from swiftem.engine.expectation import Expectation
from swiftem.engine.threads import in_order, part_ends
from swiftem.models.plsa import BoundPLSA, PLSATheta

__all__ = ["PLSAExpectation", "Tokens", "is_unrolled", "read_tokens", "token_bytes"]

BLOCK = 1 << 16
"""Tokens read at once."""

MOST_TOKENS = 2_000_000_000
"""Maximum number of tokens that are expanded."""
FEW_TOKENS, PER_ENTRY = 1 << 20, 8
"""Tokens of counts are expanded if there are at most so many, or so many per entry on average."""
BYTES_PER_ENTRY, BYTES_PER_TOKEN = 96, 48
"""Bytes of a run for each entry of a matrix of counts, and for each token that is given as such."""

Numbers = NDArray[np.uint32]


class Tokens(NamedTuple):
    """``place`` (n, 2): document and word of each token; ``weight`` (n,), or (0,) if all are equal."""

    place: Numbers
    weight: Array


class Entries(NamedTuple):
    """The input of a pass: equal tokens of a document are one entry if the source has them so.

    Attributes
    ----------
    document, word : ndarray of uint32, shape (m,)
    factor : ndarray, shape (m,)
        Count times weight.
    begin : ndarray of int, shape (m + 1,) or (0,)
        Entry e is tokens ``begin[e]`` to ``begin[e + 1]`` − 1; empty if it is token e.
    """

    document: Numbers
    word: Numbers
    factor: Array
    begin: NDArray[np.intp]


def is_unrolled(source: Source) -> bool:
    """Return whether tokens are kept one by one: repeated ones of large counts are not."""
    return type(source) is not CountSource or source.n <= max(FEW_TOKENS, PER_ENTRY * source.n_entries)


def is_readable(source: Source) -> bool:
    """Return whether compiled code can have the tokens of a source."""
    return source.access == "random" and not (is_unrolled(source) and source.n > MOST_TOKENS)


def token_bytes(source: CountSource | TokenSource) -> int:
    """Return an upper bound on the bytes of the tokens of a run, without the data that are given."""
    if isinstance(source, TokenSource):
        return BYTES_PER_TOKEN * source.n
    return BYTES_PER_ENTRY * source.n_entries + (16 * source.n if is_unrolled(source) else 0)


def read_tokens(source: Source) -> Tokens:
    """Return all tokens of a source, expanded."""
    if type(source) is CountSource:
        document, word, count, weight = source.entries()
        place = np.stack([document.astype(np.uint32), word.astype(np.uint32)], axis=1)
        if count is not None:
            place = np.repeat(place, count, axis=0)
            weight = None if weight is None else np.repeat(weight, count)
        return Tokens(place, _unless_ones(weight))
    if type(source) is TokenSource:
        return Tokens(source.y.astype(np.uint32), _unless_ones(source.weight))
    place = np.empty((source.n, 2), dtype=np.uint32)
    weight = np.empty(source.n)
    for batch in source.blocks(BLOCK):
        place[batch.index] = batch.y
        weight[batch.index] = batch.weight
    return Tokens(place, _unless_ones(weight))


def _unless_ones(weight: Array | None) -> Array:
    return np.empty(0) if weight is None or (weight == 1).all() else weight


class PLSAExpectation(Expectation):
    """E-steps of pLSA whose full passes are compiled and use all cores.

    Results do not depend on the number of threads: parts are fixed, and their sums are added in order.
    """

    _model: BoundPLSA

    @classmethod
    def of(cls, model: Any, source: Source) -> PLSAExpectation | None:
        """Return one if model and source are of the supported kinds."""
        if type(model) is not BoundPLSA or not is_readable(source):
            return None
        return cls(model, source)

    @cached_property
    def tokens(self) -> Tokens:
        """All tokens, expanded."""
        return read_tokens(self._source)

    @cached_property
    def _entries(self) -> Entries:
        if type(self._source) is CountSource:
            document, word, count, weight = self._source.entries()
            factor = np.ones(len(word)) if weight is None else weight
            begin = np.empty(0, dtype=np.intp)
            if count is not None:
                factor, begin = factor * count, np.concatenate([[0], np.cumsum(count)])
            return Entries(document.astype(np.uint32), word.astype(np.uint32), factor, begin)
        place, given = self.tokens
        factor = given if len(given) else np.ones(len(place))
        return Entries(place[:, 0].copy(), place[:, 1].copy(), factor, np.empty(0, dtype=np.intp))

    @cached_property
    def _parts(self) -> list[tuple[int, int]]:
        """Parts of the entries, each with more entries than rows in its sums."""
        document, word = self._entries[:2]
        rows = self._model.n_words
        if not (document[1:] >= document[:-1]).all():  # then a part may have every document
            rows += self._model.n_documents
        return part_ends(len(word), least_rows=max(4096, rows))

    def _pass(self, theta: PLSATheta, remember: bool) -> tuple[Array, Array | None]:
        from swiftem.engine.numba import plsa_pass

        document, word, factor, begin = self._entries
        arguments = (document, word, factor, *_working(theta))
        work: list[tuple[Any, ...]]
        if not remember:
            work = [(*arguments, *ends) for ends in self._parts]
            return self._sum(in_order(plsa_pass.statistics, work)), None
        memory = self.allocate((self.n, theta.doc_topic.shape[1]), self.memory_dtype)
        work = [(*arguments, begin, memory, *ends) for ends in self._parts]
        return self._sum(in_order(plsa_pass.remember, work)), memory

    def objective(self, theta: PLSATheta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`, equation (em_motivate); nothing is counted."""
        from swiftem.engine.numba.plsa_pass import log_likelihood

        document, word, factor, _ = self._entries
        arguments = (document, word, factor, *_reported(theta))
        work = [(*arguments, *ends) for ends in self._parts]
        total = float(sum(in_order(log_likelihood, work)))
        return self._model.penalty(theta) - total / self._source.total_weight

    def _sum(self, parts: Iterator[tuple[int, Array, Array]]) -> Array:
        """Return the statistics from those of the parts."""
        by_word: Array | None = None
        for first, of_documents, of_words in parts:
            self._between_blocks()
            if by_word is None:
                by_document = np.zeros((self._model.n_documents, of_words.shape[1]))
                by_word = of_words
            else:
                by_word += of_words
            by_document[first : first + len(of_documents)] += of_documents
        assert by_word is not None, "a source has at least one token"
        self.evaluations += self.n
        s = np.concatenate([by_document.ravel(), by_word.T.ravel()])
        s /= self._source.total_weight
        return s


def _reported(theta: PLSATheta) -> tuple[Array, Array]:
    """Return doc_topic (D, K) and topic_word (V, K)."""
    return np.ascontiguousarray(theta.doc_topic), np.ascontiguousarray(theta.topic_word.T)


def _working(theta: PLSATheta) -> tuple[Array, Array]:
    """Return doc_topic (D, K) and topic_word times topic_scale (V, K)."""
    return np.ascontiguousarray(theta.doc_topic), np.ascontiguousarray(
        (theta.topic_word * theta.topic_scale[:, None]).T
    )
