"""Documents in units: a task folds the documents of a unit in and returns their K × V sums.

Workers hold no state: documents start uniform in every pass, and their topics stay where they are. Sums are
added pairwise in the order of the units, in groups that depend on the data alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import as_numbers
from swiftem.core.compute import Compute
from swiftem.core.source import Access, Batch, Samples
from swiftem.core.types import Array, Index, Theta
from swiftem.data.documents.counts import without_zeros
from swiftem.data.documents.sparse import checked_sparse, is_sparse
from swiftem.data.units.compute import pairwise_sum
from swiftem.data.units.pool import Pool
from swiftem.data.units.source import UnitSamples
from swiftem.data.units.unit import aligned
from swiftem.data.weights import check_weights
from swiftem.topics.compute.corpus import Documents, SmallDocuments
from swiftem.topics.documents import BoundDocuments, DocumentTheta

__all__ = ["DocumentTask", "UnitDocuments", "UnitDocumentsCompute", "prepare_counts", "unit_counts"]

ROUNDS, TOLERANCE = 50, 1e-3
"""When the E-step of a document ends."""
SAMPLE = 5_000
"""Approximate maximum number of documents at the client, for starts and evaluations."""
MOST_BYTES = 1 << 29
"""Maximum size of the sums that are at the client at a time."""


class Counts(NamedTuple):
    """Documents of positive weight in CSR form.

    Attributes
    ----------
    indptr, indices, data : ndarray
        Rows, words and positive counts of the entries, as in SciPy.
    shape : tuple of int
        (D, V).
    weight : ndarray, shape (D,)
        Weights of the documents.
    names : tuple of str
        Names of the words, if there are any.
    """

    indptr: Index
    indices: NDArray[np.int32]
    data: Array
    shape: tuple[int, int]
    weight: Array
    names: tuple[str, ...]


class CountSummary(NamedTuple):
    """Summary of a unit: documents, words, entries, tokens (weighted), weights of documents, and names."""

    documents: int
    words: int
    entries: int
    tokens: float
    weight: float
    names: tuple[str, ...]


def prepare_counts(unit: Any, weight: Any, where: str) -> Counts:
    """Return the documents of a unit; invalid counts raise ValueError.

    Parameters
    ----------
    unit : array-like or sparse, shape (D, V), or Counts
        Counts.
    weight : array-like, shape (D,), or None
        Weights of the documents.
    where : str
        Name of the unit in errors.
    """
    from scipy.sparse import csr_array

    if isinstance(unit, Counts):
        return unit._replace(
            **{name: aligned(getattr(unit, name)) for name in ("indptr", "indices", "data", "weight")}
        )
    names = tuple(map(str, getattr(unit, "columns", ())))
    if is_sparse(unit):
        found = checked_sparse(where, unit)
    else:
        found = as_numbers(where, unit.to_numpy() if hasattr(unit, "to_numpy") else unit)
    if len(found.shape) != 2 or not found.shape[1]:
        raise ValueError(f"{where} must have documents and words, got an array of shape {found.shape}.")
    matrix = csr_array(found, dtype=np.float64)
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = without_zeros(matrix.copy())
    check_weights(where, matrix.data, "entry", "counts")
    of = np.ones(matrix.shape[0])
    if weight is not None:
        of = aligned(np.asarray(weight, dtype=np.float64).reshape(-1))
        if len(of) != matrix.shape[0]:
            raise ValueError(
                f"sample_weight must be chunked like the documents: {matrix.shape[0]} documents "
                f"and {len(of)} weights in {where}."
            )
        check_weights(f"sample_weight of {where}", of, "document")
        if not of.all():
            matrix, of = matrix[of > 0.0], of[of > 0.0]
    indices = aligned(matrix.indices.astype(np.int32, copy=False))
    begin = aligned(matrix.indptr.astype(np.int64, copy=False))
    return Counts(begin, indices, aligned(matrix.data), matrix.shape, of, names)


def summarise_counts(common: None, unit: Any, weight: Any, where: str) -> CountSummary:
    """Return the summary of a unit."""
    found = prepare_counts(unit, weight, where)
    by_document = np.repeat(found.weight, np.diff(found.indptr))
    return CountSummary(
        found.shape[0],
        found.shape[1],
        len(found.data),
        float((by_document * found.data).sum()),
        float(found.weight.sum()),
        found.names,
    )


def sample_counts(seed: int, unit: Any, weight: Any, where: str, number: int, count: int) -> Counts:
    """Return ``count`` distinct documents of a unit, drawn at random."""
    from scipy.sparse import csr_array

    found = prepare_counts(unit, weight, where)
    index = np.sort(np.random.default_rng((seed, number)).choice(found.shape[0], count, replace=False))
    some = csr_array((found.data, found.indices, found.indptr), shape=found.shape)[index]
    return Counts(
        some.indptr.astype(np.int64), some.indices, some.data, some.shape, found.weight[index], found.names
    )


class DocumentTask(NamedTuple):
    """Common arguments of all units of a pass.

    Attributes
    ----------
    topics : ndarray, shape (K, V)
        Words of topics.
    alpha : ndarray, shape (K,)
        Added to documents' counts of topics.
    left_out : tuple or None
        Sums of counts and β over each topic's words (K,), and β: each token is left out of the counts that
        explain it. None: it is not.
    small : bool
        Whether nothing is compiled.
    rounds, tolerance : int and float
        When the E-step of a document ends.
    """

    topics: Array
    alpha: Array
    left_out: tuple[Array, Array] | None
    small: bool
    rounds: int = ROUNDS
    tolerance: float = TOLERANCE


def _documents(unit: Any, weight: Any, where: str, small: bool) -> Documents:
    found = prepare_counts(unit, weight, where)
    return (SmallDocuments if small else Documents)(found, found.weight)


def unit_counts(given: DocumentTask, unit: Any, weight: Any, where: str) -> tuple[Array, float]:
    """Return the expected counts of words in topics (V, K) of a unit, and its log-likelihood."""
    documents = _documents(unit, weight, where, given.small)
    places, _ = documents.fold_in(given.topics, given.alpha, max_iter=given.rounds, tol=given.tolerance)
    if given.left_out is None:
        counts, value = documents.em_pass(places, given.topics, given.alpha)
    else:
        totals, beta = given.left_out
        counts, value = documents.leave_one_out_pass(places, given.topics, totals, given.alpha, beta)
    return np.ascontiguousarray(counts.T), float(value)


def unit_likelihood(given: DocumentTask, unit: Any, weight: Any, where: str) -> float:
    """Return the log-likelihood of the documents of a unit, which are folded in."""
    documents = _documents(unit, weight, where, given.small)
    _, found = documents.fold_in(given.topics, given.alpha, max_iter=given.rounds, tol=given.tolerance)
    return float((documents.weight * found).sum())


class UnitDocuments(UnitSamples):
    """Documents in units; as :class:`swiftem.topics.compute.corpus.Documents`, with units as samples.

    Parameters
    ----------
    units : sequence
        Blocks of counts (D, V), sparse or dense, or lazy ones.
    weights : sequence, optional
        Weights of the documents of each unit.
    pool : Pool
        Executor that reads the units.
    token : str
        Identifies the data.
    is_small : callable
        ``is_small(entries, documents)``: whether nothing is compiled.

    Attributes
    ----------
    n : int
        Number of units that have tokens.
    n_words, n_entries, n_documents : int
        Words, entries and documents of all units.
    total, total_weight : float
        Weighted number of tokens, and the sum of the documents' weights.
    """

    access: ClassVar[Access] = "random"
    samples: ClassVar[Samples] = "documents"
    doc_topic: Array | None = None

    def __init__(
        self,
        units: Sequence[Any],
        weights: Sequence[Any] | None,
        *,
        pool: Pool,
        token: str,
        is_small: Callable[[int, int], bool],
    ) -> None:
        self.pool, self._token = pool, token
        all_weights = [None] * len(units) if weights is None else list(weights)
        if len(all_weights) != len(units):
            raise ValueError(
                f"sample_weight must be chunked like the documents, in {len(units)} units, "
                f"got {len(all_weights)}."
            )
        places = [f"unit {number} of X" for number in range(len(units))]
        self.work: list[tuple[Any, ...]] = list(zip(units, all_weights, places, strict=True))
        found: list[CountSummary] = pool.map(summarise_counts, None, self.work, name="look-at-documents")
        kept = [number for number, one in enumerate(found) if one.tokens > 0.0]
        if not kept:
            raise ValueError("X must have at least one token in a document of positive weight, got none.")
        for number in kept:
            if found[number].words != found[kept[0]].words:
                raise ValueError(
                    f"X must have the same words in all units, got {found[number].words} in "
                    f"{places[number]} and {found[kept[0]].words} before."
                )
        self.work, self.summaries = [self.work[k] for k in kept], [found[k] for k in kept]
        self.n, self.n_words, self.names = len(kept), self.summaries[0].words, self.summaries[0].names
        self.n_entries = sum(unit.entries for unit in self.summaries)
        self.n_documents = sum(unit.documents for unit in self.summaries)
        self.total = float(sum(unit.tokens for unit in self.summaries))
        self.weight: Array = np.array([unit.weight for unit in self.summaries])
        self.total_weight = float(self.weight.sum())
        self.small = is_small(self.n_entries, self.n_documents)
        self.work = pool.hold(prepare_counts, self.work, 12.0 * self.n_entries + 16.0 * self.n_documents)

    def allocate(self, shape: tuple[int, int]) -> Array:
        """Return no places: the topics of documents are not kept."""
        return np.empty((0, shape[1]))

    def fingerprint(self) -> str:
        """Return a text that changes if the division, or the summaries of units, change."""
        return blake2b(repr((self._token, self.summaries)).encode(), digest_size=16).hexdigest()

    @cached_property
    def few(self) -> Documents:
        """A random share of the documents of each unit: for starts and evaluations."""
        from scipy.sparse import csr_array, vstack

        counts = np.array([unit.documents for unit in self.summaries])
        wanted = np.minimum(counts, np.ceil(SAMPLE * (counts / self.n_documents)).astype(int))
        work = [(*self.work[number], number, int(wanted[number])) for number in range(self.n)]
        found: list[Counts] = self.pool.map(sample_counts, 0, work, name="sample-of-documents")
        parts = [csr_array((one.data, one.indices, one.indptr), shape=one.shape) for one in found]
        weight = np.concatenate([one.weight for one in found])
        return (SmallDocuments if self.small else Documents)(csr_array(vstack(parts, format="csr")), weight)

    def groups(self, numbers: Index, n_topics: int) -> list[Index]:
        """Return the units in groups whose sums fit into memory together."""
        most = max(1, MOST_BYTES // (8 * self.n_words * n_topics))
        return [numbers[first : first + most] for first in range(0, len(numbers), most)]

    def counts(
        self, given: DocumentTask, numbers: Index, weight: Array, between: Callable[[], None]
    ) -> tuple[Array, float]:
        """Return the weighted sum of the units' counts (V, K), and of their log-likelihoods."""
        sums, value = [], 0.0
        for group in self.groups(np.arange(len(numbers)), len(given.alpha)):
            work = [self.work[number] for number in numbers[group]]
            found = self.pool.map(unit_counts, given, work, name="e-step-of-documents", check=between)
            parts = np.array([counts.ravel() for counts, _ in found]) * weight[group][:, None]
            sums.append(pairwise_sum(parts))
            value += float(sum(one for _, one in found))
        return pairwise_sum(np.array(sums)).reshape(self.n_words, -1), value

    def em_pass(
        self, doc_topic: Array, topics: Array, alpha: Array, between: Callable[[], None] = lambda: None
    ) -> tuple[Array, float]:
        """As :meth:`Documents.em_pass`, with documents that are folded in; ``doc_topic`` is not used."""
        return self._pass(DocumentTask(np.asarray(topics), alpha, None, self.small), between)

    def leave_one_out_pass(
        self,
        doc_topic: Array,
        topics: Array,
        totals: Array,
        alpha: Array,
        beta: Array,
        between: Callable[[], None] = lambda: None,
    ) -> tuple[Array, float]:
        """As :meth:`Documents.leave_one_out_pass`, with documents that are folded in."""
        return self._pass(DocumentTask(np.asarray(topics), alpha, (totals, beta), self.small), between)

    def _pass(self, given: DocumentTask, between: Callable[[], None]) -> tuple[Array, float]:
        by_word, value = self.counts(given, np.arange(self.n), np.ones(self.n), between)
        return by_word.T, value

    def log_likelihood(self, topics: Array, alpha: Array, max_iter: int, tol: float) -> float:
        """Return the log-likelihood of all documents, which are folded in."""
        given = DocumentTask(topics, alpha, None, self.small, max_iter, tol)
        return float(sum(self.pool.map(unit_likelihood, given, self.work, name="score-of-documents")))


class UnitDocumentsCompute(Compute):
    """E-steps of units of documents: rows are their mean statistics, (b, V·K)."""

    _model: BoundDocuments
    _source: UnitDocuments

    def _task(self, theta: DocumentTheta) -> DocumentTask:
        topics = np.ascontiguousarray(theta.word_topic.T)
        return DocumentTask(topics, self._model.model.alpha, None, self._source.small)

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        numbers, place = np.unique(batch.index, return_inverse=True)
        found = self._source.pool.map(
            unit_counts,
            self._task(theta),
            [self._source.work[number] for number in numbers],
            name="e-step-of-documents",
            check=self._between_blocks,
        )
        weight = self._source.weight[numbers]
        rows = np.array([counts.ravel() for counts, _ in found]) / weight[:, None]
        return rows[place], (np.array([value for _, value in found]) / weight)[place]

    def _statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        return pairwise_sum(rows * weight[:, None])

    def full(self, theta: Theta) -> Array:
        """Return the mean statistics of all documents, (V·K,)."""
        everyone = np.arange(self.n)
        sums, _ = self._source.counts(self._task(theta), everyone, np.ones(self.n), self._between_blocks)
        self.evaluations += self.n
        return np.asarray(sums.ravel() / self._source.total_weight)

    def remember(self, theta: Theta) -> tuple[Array, Array]:
        """Raise ValueError: a memory would have K · V numbers for each unit."""
        raise ValueError("method must be em or sem for documents in units.")
