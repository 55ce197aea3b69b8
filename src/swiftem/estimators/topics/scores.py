"""Topics of documents for a fitted model, and how well it predicts them."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin  # wraps transform where it is defined: set_output
from sklearn.utils.validation import check_is_fitted

from swiftem._typing import Array, Index
from swiftem.data.foreign import is_planned, is_tensor, like
from swiftem.engine.units.documents import UnitDocuments
from swiftem.estimators.topics.queries import mean_likelihood, split_counts
from swiftem.estimators.validated import chunk_by_chunk

__all__ = ["TopicScores"]

FOLD_IN_PASSES, FOLD_IN_TOLERANCE = 200, 1e-4


class TopicScores(TransformerMixin):  # type: ignore[misc]
    """``transform``, ``score`` and ``perplexity`` of :class:`swiftem.PLSA`."""

    if TYPE_CHECKING:
        components_: Array

        fit: Callable[..., Any]

        def _documents(self, X: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Index | None]: ...
        def _table_type(self, documents: Any) -> type: ...
        def _counts(self, X: Any, *, reset: bool) -> Any: ...
        def _in_memory(self, counts: Any, weight: Array | None, X: Any) -> Any: ...
        def _alpha(self) -> Array: ...

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Fit, and return the documents' topics as :meth:`transform` finds them, shape (D, K)."""
        found = self.fit(X, y, sample_weight).transform(X)
        return cast("NDArray[np.float64]", found if is_tensor(found) else np.asarray(found))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the topics of documents, shape (D, K), by folding them in: the topics' words are fixed.

        Each document starts uniform and stops when its topics have converged. The result for a Dask
        collection is a lazy Dask array.
        """
        check_is_fitted(self)
        if is_planned(X):
            return chunk_by_chunk(self, "transform", X, columns=len(self.components_), dtype=np.float64)
        documents, _ = self._documents(X, None, reset=False)
        assert not isinstance(documents, UnitDocuments)
        found: Array = documents.fold_in(
            self.components_, self._alpha(), max_iter=FOLD_IN_PASSES, tol=FOLD_IN_TOLERANCE, likelihood=False
        )[0]
        return cast("NDArray[np.float64]", like(X, found))

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood per token of documents, which are folded in."""
        check_is_fitted(self)
        documents, _ = self._documents(X, sample_weight, reset=False)
        return mean_likelihood(
            documents, self.components_, self._alpha(), max_iter=FOLD_IN_PASSES, tol=FOLD_IN_TOLERANCE
        )

    def perplexity(self, X: Any, *, random_state: int = 0) -> float:
        """Return the perplexity of new documents by completion; lower is better.

        The tokens of each document are divided in two at random. One half is folded in, and the other half is
        predicted from the resulting topics: exp of minus its mean log-likelihood. No token is used for both,
        so that more topics do not look better than they are. The token of a document with one token is
        predicted from nothing. A word that is in no topic counts with probability 1e-12.
        """
        check_is_fitted(self)
        seen, hidden = split_counts(self._counts(X, reset=False), random_state)
        if not hidden.nnz:
            raise ValueError("X must have at least one token, got none.")
        documents = self._in_memory(seen, None, X)
        documents.dtype = self._table_type(documents)
        topics, _ = documents.fold_in(
            self.components_, self._alpha(), max_iter=FOLD_IN_PASSES, tol=FOLD_IN_TOLERANCE, likelihood=False
        )
        total = 0.0
        rows = np.repeat(np.arange(hidden.shape[0]), np.diff(hidden.indptr))
        for start in range(0, hidden.nnz, 1 << 18):
            part = slice(start, start + (1 << 18))
            p = np.einsum("ek,ke->e", topics[rows[part]], self.components_[:, hidden.indices[part]])
            total += float(hidden.data[part] @ np.log(np.maximum(p, 1e-12)))
        return exp(-total / hidden.data.sum())
