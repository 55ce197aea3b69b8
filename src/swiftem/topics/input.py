"""Validated input of :class:`swiftem.PLSA`: counts or files of counts, weights, priors and starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import MemoryLimitError, check_int, check_not_lazy, check_real, in_numpy, is_tensor
from swiftem.core.files import in_words, scratch_array
from swiftem.core.problem import BASE
from swiftem.core.types import Array, Index
from swiftem.data.as_source import DEVICE_KERNELS, counts_of_tensor, is_planned, kernels_of
from swiftem.data.documents.corpus import open_documents
from swiftem.data.documents.counts import DocumentSource, checked_sparse, is_sparse
from swiftem.data.units.source import current_client, parts_of, token_of
from swiftem.data.weights import check_weights, extent_of
from swiftem.fit.config import budget, device_memory_limit
from swiftem.fit.validated import read_weights, validated
from swiftem.topics.compute.corpus import PIECES, Documents
from swiftem.topics.compute.device_documents import DeviceDocuments
from swiftem.topics.compute.streamed import BLOCK, StreamedDocuments
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.first_topics import CLUSTERED, FEW, clustered_topics, random_topics
from swiftem.topics.learned_alpha import FIRST
from swiftem.topics.plan import (
    SMALL,
    TopicPlan,
    beta_for,
    documents_for,
    is_small,
    starts_for,
    table_type,
)
from swiftem.topics.queries import as_strength

__all__ = ["TopicInput"]

MOST_TOPICS = 10**6
"""A larger number is a mistake, and would not fit into memory."""
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
        method: str
        acceleration: str | None
        leave_one_out: bool | str
        precision: str
        tol: float
        sampling: str
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
        if self.precision != "auto":
            return np.float32 if self.precision == "float32" else np.float64
        if self.acceleration is not None:
            return np.float64
        priors = extent_of(self._alpha(), self._beta(documents.n_words))
        (least, most), tol = documents.extent, check_real("tol", self.tol, minimum=0.0)
        return table_type(tol, (min(least, priors[0]), max(most, priors[1])))

    def _units(self, X: Any, sample_weight: Any, *, reset: bool) -> UnitDocuments:
        """Return a Dask collection as units of documents."""
        if self.method not in ("auto", "em", "sem") or self.sampling == "tokens":
            raise ValueError(
                "method must be 'auto', 'em' or 'sem', by documents, for a Dask collection, "
                f"got method={self.method!r} with sampling={self.sampling!r}."
            )
        if reset and self._learns_alpha:
            raise ValueError(
                f"alpha must be numbers for a Dask collection, got {self.alpha!r}: the topics of documents, "
                "which it is learned from, stay with the workers."
            )
        if self.acceleration is not None:
            raise ValueError(
                f"acceleration must be None for a Dask collection, got {self.acceleration!r}: leave it out."
            )
        weights = None if sample_weight is None else parts_of("sample_weight", sample_weight)
        if self.precision == "float32":
            raise ValueError(
                "precision must be 'auto' or 'float64' for a Dask collection, got 'float32': leave it out."
            )
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

    def _check_memory(self, documents: Any, plan: TopicPlan) -> None:
        """Put the documents' topics into a scratch file if they do not fit; raise an error if that fails."""
        limit, scratch, _ = budget()
        if isinstance(documents, DeviceDocuments) and plan.by_tokens is not None:
            raise ValueError(
                "method must be 'auto', 'em', or 'sem' or 'sem-vr' by documents, for "
                f"device={self.device!r}, got {self.method!r} with sampling={self.sampling!r}: tokens are "
                "drawn on the CPU, with device='cpu'."
            )
        if not isinstance(documents, StreamedDocuments):
            return
        if self.acceleration is not None:
            raise ValueError(
                f"acceleration must be None for documents read in blocks, got {self.acceleration!r}: "
                "it keeps several copies of their topics; load the counts with read_corpus."
            )
        if plan.by_tokens is not None:
            raise ValueError(
                f"X can only be read in order, and {plan.name} draws tokens by index: use em, sem or sem-vr "
                "with sampling='documents', or load the counts with read_corpus."
            )
        if limit is None:
            return
        needed = (
            BASE
            + START
            + TABLES * 8 * documents.n_words * self.n_components
            + BLOCKS * documents.largest
            + 6 * 8 * documents.n
        )
        if needed > limit:
            raise MemoryLimitError(
                f"memory_limit must be at least {in_words(needed)} for {self.n_components} topics of "
                f"{documents.n_words:,} words, got {in_words(limit)}."
            )
        copies = 3 if plan.name == "sem-vr" else 2
        if needed + copies * 8 * documents.n * self.n_components > limit:
            documents.allocate = lambda shape: scratch_array(shape, np.float64, scratch)

    def _leaves_one_out(self, name: str) -> bool:
        """Return whether passes leave tokens out, for the planned method; raise ValueError if it cannot."""
        if self.leave_one_out == "auto":
            return self.method == "auto" and self.acceleration is None
        if self.leave_one_out and name != "em":
            raise ValueError(
                f"leave_one_out must be False for method={self.method!r}, got True: only em's passes do so."
            )
        if self.leave_one_out and self.acceleration is not None:
            raise ValueError(
                f"leave_one_out must be False for acceleration={self.acceleration!r}, got True: the "
                "likelihood decides about larger steps, and these passes do not climb it."
            )
        return bool(self.leave_one_out)

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
        n_components = check_int("n_components", self.n_components, minimum=1, maximum=MOST_TOPICS)
        given = as_strength("alpha", FIRST if self._learns_alpha else self.alpha, [(n_components,)])
        return np.array(np.broadcast_to(given, (n_components,)))  # writable, as PyTorch wants it

    def _beta(self, n_words: int) -> Array:
        given = as_strength(
            "beta", beta_for(self.beta, self.n_components), [(n_words,), (self.n_components, n_words)]
        )
        return given.reshape((1, 1) if given.ndim == 0 else (-1, n_words))

    def _starts(
        self,
        documents: Documents | StreamedDocuments | UnitDocuments,
        beta: Array,
        random_state: np.random.RandomState,
    ) -> list[Array]:
        """Return the candidate starts, topics (K, V)."""
        documents = documents.few if isinstance(documents, UnitDocuments) else documents
        if not isinstance(self.init, str):
            return [self._given_topics(documents.n_words)]
        by_documents = self.method in ("auto", "sem", "sem-vr") and self.sampling != "tokens"
        enough = int((documents.length * documents.weight > 0).sum())
        clustered = self.init == "k-means" or (
            self.init == "auto" and by_documents and enough >= SMALL and len(beta) == 1
        )
        if self.init == "k-means" and enough < self.n_components:
            raise ValueError(
                f"init must be 'random' if there are fewer documents with words than topics, "
                f"got 'k-means' with {enough} documents and n_components={self.n_components}."
            )
        if self.n_init == "auto":
            several = starts_for(self.n_components) if clustered and self.method == "auto" else 1
        else:
            several = int(self.n_init)
        if clustered and enough >= self.n_components:
            most = FEW if self.method in ("sem", "sem-vr") else CLUSTERED
            return [
                clustered_topics(documents, self.n_components, random_state, most) for _ in range(several)
            ]
        return [
            random_topics(self.n_components, documents.n_words, beta, random_state) for _ in range(several)
        ]

    def _given_topics(self, n_words: int) -> Array:
        """Return the topics given by ``init``, normalised."""
        topics = as_strength("init", self.init, [(self.n_components, n_words)])
        if topics.ndim == 0 or not (topics.sum(axis=1) > 0).all():
            raise ValueError(
                f"init must have shape ({self.n_components}, {n_words}) and a positive entry in each row, "
                f"got shape {topics.shape}."
            )
        return np.asarray(topics / topics.sum(axis=1, keepdims=True))
