"""Validated input of :class:`swiftem.PLSA`: counts or files of counts, weights, priors and starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import MemoryLimitError, check_not_lazy, in_numpy, is_tensor
from swiftem.core.files import in_words, scratch_array
from swiftem.core.problem import BASE, Budget
from swiftem.core.types import Array, Index
from swiftem.data.as_source import DEVICE_KERNELS, counts_of_tensor, is_planned, kernels_of
from swiftem.data.documents.corpus import open_documents
from swiftem.data.documents.counts import DocumentSource, checked_sparse, is_sparse
from swiftem.data.units.source import current_client, parts_of, token_of
from swiftem.data.weights import check_weights, extent_of
from swiftem.fit.config import budget, device_memory_limit
from swiftem.fit.validated import read_weights, validated
from swiftem.methods import VarianceReducedEM
from swiftem.topics.compute.corpus import PIECES, Documents, SmallDocuments
from swiftem.topics.compute.device_documents import DeviceDocuments
from swiftem.topics.compute.streamed import BLOCK, StreamedDocuments
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.first_topics import clustered_topics, random_topics
from swiftem.topics.resolve import (
    Facts,
    Place,
    TopicSpec,
    beta_of,
    first_alpha,
    given_topics,
    table_type,
)

__all__ = ["TopicInput", "documents_for", "facts_of", "fit_into_memory", "is_small"]

FEW_ENTRIES = 1 << 19
"""Entries times topics up to which nothing is compiled, so that a first fit does not wait. It is a rule of
sizes, not of what was compiled before: the same data give the same bits."""
FEW_DOCUMENTS = 5_000
"""Passes by NumPy take three times as long: half a second in a fit of 1,000 documents, and not of more."""
BLOCKS = 8
"""Blocks of documents in memory: read ahead, in use, kept for batches, and parts copied out of them."""
TABLES = PIECES + 8
"""Arrays (V, K) in memory: partial sums, counts, topics and their transposes."""
MOST_WORDS = 2**31 - 1
"""Word indices are int32 in the loops over documents."""
START = 60 * 10**6
"""For the documents that are clustered or evaluated, and for k-means."""


def _is_read(X: Any) -> bool:
    """Return whether documents are in a file or a source, which are read in blocks."""
    return isinstance(X, str | os.PathLike | DocumentSource)


def _computed(X: Any) -> Any:
    """Return the counts of a Dask collection, or of a list of Delayed blocks, in memory."""
    if hasattr(X, "compute"):
        return X.compute()
    import dask
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([csr_array(block) for block in dask.compute(*X)], format="csr"))


class TopicInput:
    """Validates the arguments of :class:`swiftem.PLSA`."""

    if TYPE_CHECKING:
        n_components: int
        tol: float
        alpha: ArrayLike | str
        beta: ArrayLike | str
        init: Any
        n_init: int | str
        device: str
        n_features_in_: int

    def _documents(
        self, X: Any, sample_weight: ArrayLike | None, *, reset: bool
    ) -> tuple[Documents | StreamedDocuments | UnitDocuments, Index | None]:
        """Return the documents, and their indices among the user's if those of weight zero are left out.

        Before a fit (``reset``) there must be a token; documents of a file keep weights of zero.
        """
        there: Index | None = None
        documents: Documents | StreamedDocuments | UnitDocuments
        is_read = _is_read(X)
        if (is_planned(X) or is_read) and kernels_of(self.device) is not None:
            raise ValueError(
                f"device must be 'cpu' for {'documents read in blocks' if is_read else 'a Dask collection'}, "
                f"got {self.device!r}: on a GPU counts must be in memory (read_corpus loads them)."
            )
        if is_planned(X):
            documents = self._units(X, sample_weight, reset=reset)
        elif is_read:
            source = open_documents(X)
            if not reset and source.n_words != self.n_features_in_:
                raise ValueError(
                    f"X must have the {self.n_features_in_} words that the model was fitted with, "
                    f"got {source.n_words}."
                )
            documents = StreamedDocuments(source, in_numpy(sample_weight), budget().scratch)
            if reset:
                self.__dict__.pop("feature_names_in_", None)
                self.n_features_in_ = source.n_words
        else:
            counts = self._counts(X, reset=reset)
            weight = self._weights(sample_weight, counts)
            documents = self._in_memory(counts, weight, X)
            if reset and weight is not None and not (weight > 0).all():
                there = np.flatnonzero(weight > 0)
                documents = documents.some(there)
        if reset and not documents.total > 0:
            raise ValueError("X must have at least one token in a document of positive weight, got none.")
        if not isinstance(documents, UnitDocuments):
            documents.dtype = self._table_type(documents)
        return documents, there

    def _in_memory(self, counts: Any, weight: Array | None, X: Any) -> Documents:
        """Return counts as documents, on the device that is given or that X is on."""
        kernels = kernels_of(self.device, X)
        if kernels is None:
            return documents_for(counts, weight, self.n_components)
        device, limit = kernels.removeprefix(DEVICE_KERNELS), device_memory_limit()
        return DeviceDocuments(counts, weight, device=device, limit=limit)

    def _table_type(self, documents: Documents | StreamedDocuments) -> type:
        """Return what loops over these documents compute in."""
        priors = extent_of(self._alpha(), self._beta(documents.n_words))
        return table_type(self.tol, documents.extent, priors)

    def _units(self, X: Any, sample_weight: Any, *, reset: bool) -> UnitDocuments:
        """Return a Dask collection as units of documents."""
        weights = None if sample_weight is None else parts_of("sample_weight", sample_weight)
        units = UnitDocuments(
            parts_of("X", X),
            weights,
            client=current_client(),
            token=token_of(X, sample_weight),
            is_small=lambda entries, documents: is_small(entries, documents, self.n_components),
        )
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = units.n_words
            if units.names:
                self.feature_names_in_ = np.array(units.names, dtype=object)
        elif units.n_words != self.n_features_in_:
            raise ValueError(
                f"X must have the {self.n_features_in_} words that the model was fitted with, "
                f"got {units.n_words}."
            )
        return units

    def _counts(self, X: Any, *, reset: bool) -> Any:
        """Return validated counts as a CSR array of float64; those of a file or source are loaded."""
        from scipy.sparse import csr_array, vstack

        if _is_read(X):
            X = csr_array(vstack([block for _, block in open_documents(X).blocks(BLOCK)], format="csr"))
        if not hasattr(X, "dtype") and isinstance(X, Sequence) and len(X) and isinstance(X[0], str):
            raise ValueError("X must be counts of words, got texts: count them with CountVectorizer first.")
        check_not_lazy("X", X)
        if is_planned(X):
            X = _computed(X)
        X = counts_of_tensor(X) if is_tensor(X) else X
        if isinstance(X, np.matrix):
            X = np.asarray(X)
        if is_sparse(X) and len(X.shape) == 2:
            X = checked_sparse("X", X)  # scikit-learn's conversion of an invalid matrix may crash
            if X.shape[1] > MOST_WORDS:
                raise ValueError(f"X must have at most {MOST_WORDS:,} words, got {X.shape[1]:,}.")
        try:
            X = validated(
                self,
                X,
                accept_sparse="csr",
                dtype=np.float64,
                reset=reset,
                ensure_non_negative=True,
                order="C",
            )
        except ValueError as error:
            if not str(error).startswith("Input X contains NaN"):
                raise
            raise ValueError(
                "X must be counts, got NaN: put 0 where a document does not have a word, or leave the "
                "document out."
            ) from None
        matrix = csr_array(X)
        if not matrix.has_canonical_format or not matrix.data.all():
            matrix = matrix.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
        check_weights("X", matrix.data, "entry", "counts")
        return matrix

    def _weights(self, sample_weight: ArrayLike | None, X: Any, *, may_be_zero: bool = False) -> Array | None:
        if is_planned(sample_weight):
            import dask

            parts = parts_of("sample_weight", sample_weight)
            sample_weight = np.concatenate([np.asarray(part) for part in dask.compute(*parts)])
        return read_weights(sample_weight, X, may_be_zero=may_be_zero)

    def _alpha(self) -> Array:
        """Return α (K,): as given or, of a fitted model, as learned."""
        learned = getattr(self, "_learned_alpha", None)
        return self._first_alpha() if learned is None or not self._learns_alpha else learned

    @property
    def _learns_alpha(self) -> bool:
        return isinstance(self.alpha, str)

    def _first_alpha(self) -> Array:
        """Return α (K,) at the beginning of a fit."""
        return first_alpha(self.alpha, self.n_components)

    def _beta(self, n_words: int) -> Array:
        return beta_of(self.beta, self.n_components, n_words)

    def _starts(
        self,
        documents: Documents | StreamedDocuments | UnitDocuments,
        spec: TopicSpec,
        random_state: np.random.RandomState,
    ) -> list[Array]:
        """Return the candidate starts, topics (K, V)."""
        n_words = documents.n_words
        if not isinstance(self.init, str):
            return [given_topics(self.init, self.n_components, n_words)]
        if spec.clustered:
            few = documents.few if isinstance(documents, UnitDocuments) else documents
            return [
                clustered_topics(few, self.n_components, random_state, spec.clustered)
                for _ in range(spec.n_starts)
            ]
        return [
            random_topics(self.n_components, n_words, spec.beta, random_state) for _ in range(spec.n_starts)
        ]


def documents_for(X: Any, weight: Array | None, n_components: int) -> Documents:
    """Return the counts X (D, V) as documents: a small corpus without compiled code.

    >>> from scipy.sparse import csr_array
    >>> type(documents_for(csr_array([[1.0, 2.0]]), None, 5)).__name__
    'SmallDocuments'
    """
    small = is_small(X.nnz, X.shape[0], n_components)
    return (SmallDocuments if small else Documents)(X, weight)


def is_small(entries: int, documents: int, n_components: int) -> bool:
    """Return whether a corpus is fitted without compiled code."""
    return entries * n_components <= FEW_ENTRIES and documents <= FEW_DOCUMENTS


def facts_of(documents: Documents | StreamedDocuments | UnitDocuments) -> Facts:
    """Return what a fit depends on of its documents."""
    if isinstance(documents, UnitDocuments):
        return Facts("units", documents.n, documents.few.with_words, documents.n_words)
    place: Place = "memory"
    if isinstance(documents, DeviceDocuments):
        place = "device"
    elif isinstance(documents, StreamedDocuments):
        place = "blocks"
    return Facts(place, documents.n, documents.with_words, documents.n_words, documents.extent)


def fit_into_memory(documents: StreamedDocuments, spec: TopicSpec, limits: Budget) -> None:
    """Let the documents' topics be in a scratch file if they do not fit; raise an error if that fails."""
    limit, scratch, _ = limits
    if limit is None:
        return
    n_components, n_words = len(spec.alpha), documents.n_words
    needed = (
        BASE + START + TABLES * 8 * n_words * n_components + BLOCKS * documents.largest + 6 * 8 * documents.n
    )
    if needed > limit:
        raise MemoryLimitError(
            f"memory_limit must be at least {in_words(needed)} for {n_components} topics of "
            f"{n_words:,} words, got {in_words(limit)}."
        )
    copies = 3 if isinstance(spec.method, VarianceReducedEM) else 2
    if needed + copies * 8 * documents.n * n_components > limit:
        documents.allocate = lambda shape: scratch_array(shape, np.float64, scratch)
