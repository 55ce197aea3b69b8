"""Documents in units: a task folds the documents of a unit in and returns their K × V sums.

Workers hold no state: documents start uniform in every pass, and their topics stay where they are. Sums are
added pairwise in the order of the units, in groups that depend on the data alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from swiftem.core.checks import as_numbers
from swiftem.core.files import fingerprint
from swiftem.core.source import Samples
from swiftem.core.types import Array, Index, Theta
from swiftem.data.documents.counts import canonical, checked_sparse, is_sparse, stacked
from swiftem.data.units.compute import UnitCompute, pairwise_sum
from swiftem.data.units.source import UnitSamples, aligned, unit_weights
from swiftem.topics.compute.corpus import Between, Documents, LeftOut, SmallDocuments, nothing
from swiftem.topics.documents import BoundDocuments

if TYPE_CHECKING:
    from distributed import Client

ROUNDS, TOLERANCE = 50, 1e-3
"""When the E-step of a document ends."""
SAMPLE = 5_000
"""Approximate maximum number of documents at the client, for starts and evaluations."""
MOST_BYTES = 1 << 29
"""Maximum size of the sums that are at the client at a time."""


class CountSummary(NamedTuple):
    """Summary of a unit: documents (0 without tokens), words, sum of weights, names, entries, tokens."""

    n: int
    columns: int
    weight: float
    names: tuple[str, ...]
    entries: int
    tokens: float


def read_documents(unit: Any, weight: Any, where: str, *, small: bool = False) -> Documents:
    """Return the documents of a unit with positive weight; invalid counts raise ValueError.

    Parameters
    ----------
    unit : array-like or sparse, shape (D, V), or Documents
        Counts; documents are the result of an earlier call.
    weight : array-like, shape (D,), or None
        Weights of the documents.
    where : str
        Name of the unit in errors.
    small : bool
        Whether nothing is compiled.
    """
    from scipy.sparse import csr_array

    if isinstance(unit, Documents):
        matrix, weight, names = unit.matrix(), aligned(unit.weight), unit.names
    else:
        names = tuple(map(str, getattr(unit, "columns", ())))
        if is_sparse(unit):
            counts = checked_sparse(where, unit)
        else:
            counts = as_numbers(where, unit.to_numpy() if hasattr(unit, "to_numpy") else unit)
        if len(counts.shape) != 2 or not counts.shape[1]:
            raise ValueError(f"{where} must have documents and words, got an array of shape {counts.shape}.")
        matrix = canonical(where, counts)
        if weight is not None:
            weight = unit_weights(weight, matrix.shape[0], "documents", where)
            if not weight.all():
                matrix, weight = matrix[weight > 0.0], weight[weight > 0.0]
    parts = (aligned(matrix.data), aligned(matrix.indices), aligned(matrix.indptr))
    documents = (SmallDocuments if small else Documents)(csr_array(parts, shape=matrix.shape), weight)
    documents.names = names
    return documents


def summarise_documents(documents: Documents) -> CountSummary:
    """Return the summary of a unit."""
    return CountSummary(
        documents.n if documents.total > 0.0 else 0,
        documents.n_words,
        documents.total_weight,
        documents.names,
        documents.n_entries,
        documents.total,
    )


def unit_counts(
    topics: Array,
    alpha: Array,
    left_out: LeftOut | None,
    documents: Documents,
) -> tuple[Array, float]:
    """Return the expected counts of words in topics (V, K) of a unit, and its log-likelihood.

    Parameters
    ----------
    topics : ndarray, shape (K, V)
        Words of topics.
    alpha : ndarray, shape (K,)
        Added to documents' counts of topics.
    left_out : tuple or None
        Sums of counts and β over each topic's words (K,), and β: each token is left out of the counts that
        explain it. None: it is not.
    documents : Documents
        The unit.
    """
    places, _ = documents.fold_in(topics, alpha, max_iter=ROUNDS, tol=TOLERANCE)
    counts, value = documents.em_pass(places, topics, alpha, left_out)
    return np.ascontiguousarray(counts.T), float(value)


def _unit_likelihood(topics: Array, alpha: Array, max_iter: int, tol: float, documents: Documents) -> float:
    """Return the log-likelihood of the documents of a unit, which are folded in."""
    _, values = documents.fold_in(topics, alpha, max_iter=max_iter, tol=tol)
    return float((documents.weight * values).sum())


class UnitDocuments(UnitSamples):
    """Documents in units; as :class:`swiftem.topics.compute.corpus.Documents`, with units as samples.

    Parameters
    ----------
    units : sequence
        Blocks of counts (D, V), sparse or dense, or lazy ones.
    weights : sequence, optional
        Weights of the documents of each unit.
    client : distributed.Client, optional
        The client whose workers read the units; by default this process does.
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

    samples: ClassVar[Samples] = "documents"
    named: ClassVar[str] = "X"
    doc_topic: Array | None = None

    def __init__(
        self,
        units: Sequence[object],
        weights: Sequence[object] | None,
        *,
        is_small: Callable[[int, int], bool],
        client: Client | None = None,
        token: str = "",
    ) -> None:
        super().__init__(read_documents, units, weights, client=client, token=token)
        self.summaries: list[CountSummary] = self._summarise(
            summarise_documents, "token in a document of positive weight", "words"
        )
        self.n_words, self.n_documents = self.summaries[0].columns, int(self.lengths.sum())
        self.n_entries = sum(unit.entries for unit in self.summaries)
        self.total = float(sum(unit.tokens for unit in self.summaries))
        self.small = is_small(self.n_entries, self.n_documents)
        self.units.read = partial(read_documents, small=self.small)
        self.units.hold(12.0 * self.n_entries + 16.0 * self.n_documents)

    def allocate(self, shape: tuple[int, int]) -> Array:
        """Return no places: the topics of documents are not kept."""
        return np.empty((0, shape[1]))

    def fingerprint(self) -> str:
        """Return a text that changes if the division, or the summaries of units, change."""
        return fingerprint(repr((self._token, self.summaries)))

    @cached_property
    def few(self) -> Documents:
        """A random share of the documents of each unit: for starts and evaluations."""
        parts = self.units.map(Documents.some, self._drawn(SAMPLE, 0))
        matrix = stacked(part.matrix() for part in parts)
        return read_documents(matrix, np.concatenate([part.weight for part in parts]), "X", small=self.small)

    def em_pass(
        self,
        doc_topic: object,
        topics: Array,
        alpha: Array,
        left_out: LeftOut | None = None,
        between: Between = nothing,
    ) -> tuple[Array, float]:
        """As :meth:`Documents.em_pass`, with documents that are folded in; ``doc_topic`` is not used."""
        task = partial(unit_counts, np.asarray(topics), alpha, left_out)
        sums, value = [], 0.0
        most = max(1, MOST_BYTES // (8 * self.n_words * len(alpha)))
        for first in range(0, self.n, most):
            results = self.units.map(task, self.units.every()[first : first + most], check=between)
            sums.append(pairwise_sum(np.array([counts for counts, _ in results])))
            value += float(sum(one for _, one in results))
        return pairwise_sum(np.array(sums)).T, value

    def log_likelihood(self, topics: Array, alpha: Array, max_iter: int, tol: float) -> float:
        """Return the log-likelihood of all documents, which are folded in."""
        return float(sum(self.units.map(partial(_unit_likelihood, topics, alpha, max_iter, tol))))


class UnitDocumentsCompute(UnitCompute):
    """E-steps of units of documents: rows are their mean statistics, (b, V·K)."""

    _model: BoundDocuments
    _source: UnitDocuments  # type: ignore[assignment]

    def _sums(self, numbers: Index, theta: Theta) -> list[tuple[Array, float]]:
        task = partial(unit_counts, np.ascontiguousarray(theta.T), self._model.model.alpha, None)
        results = self._source.units.map(task, numbers[:, None].tolist(), check=self._between_blocks)
        weights = self._source.weight[numbers]
        return [
            (counts.ravel() / weight, value / weight)
            for (counts, value), weight in zip(results, weights, strict=True)
        ]

    def full(self, theta: Theta) -> Array:
        """Return the mean statistics of all documents, (V·K,)."""
        topics, alpha = np.ascontiguousarray(theta.T), self._model.model.alpha
        by_topic, _ = self._source.em_pass(None, topics, alpha, between=self._between_blocks)
        self.evaluations += self.n
        return by_topic.T.ravel() / self._source.total_weight

    def remember(self, theta: Theta) -> tuple[Array, Array]:
        """Raise ValueError: a memory would have K · V numbers for each unit."""
        raise ValueError("method must be em or sem for documents in units.")
