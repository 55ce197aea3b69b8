"""Methods of fitted topics: their words, coherence, similarity and predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin  # wraps transform where it is defined: set_output
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import (
    check_choice,
    check_int,
    check_real,
    is_tensor,
    shown,
)
from swiftem.core.types import Array, Index
from swiftem.data.as_source import is_planned, like
from swiftem.fit.validated import chunk_by_chunk
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.exchange import TopicExchange

__all__ = [
    "LAMBDA",
    "TopicQueries",
    "coherence_of",
    "mean_likelihood",
    "relevance_of",
    "representative",
    "split_counts",
]

FOLD_IN_PASSES, FOLD_IN_TOLERANCE = 200, 1e-4

SHORT = 0.1
"""Documents of this share of the median length have half the weight in the search for representative ones."""
MEASURES = ("jensen-shannon", "hellinger", "cosine")

LAMBDA = 0.5
"""λ of the relevance by which words are shown. On the docstrings of 20 packages that are in no benchmark:
distinct words among the first 25 of 50 topics, and NPMI of the first ten: λ = 1 gave 0.63, 0.249;
0.6, which Sievert and Shirley (2014) propose, 0.87, 0.282; 0.5 gave 0.92, 0.270; 0.3 gave 0.99, 0.245. Of ten
topics: 0.70, 0.244; 0.92, 0.277; 0.95, 0.282; 1.00, 0.267. The benchmark's docstrings and the FAO texts, on
which 0.6 gave 0.83 and 0.82 with 50 topics, decided for 0.5."""


def relevance_of(components: Array, marginal: Array, weight: float = LAMBDA) -> Array:
    """Return the relevance of words as defined by Sievert and Shirley (2014), shape (K, V).

    Parameters
    ----------
    components : ndarray, shape (K, V)
        Probabilities of words in topics.
    marginal : ndarray, shape (V,)
        Probabilities of words in the corpus.
    weight : float
        Their λ: 1 orders words by probability, 0 by lift.

    Examples
    --------
    >>> relevance_of(np.array([[0.5, 0.5]]), np.array([0.5, 0.25]), 0.0).round(2)
    array([[0.  , 0.69]])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(components) - (1 - weight) * np.log(marginal)
    return np.asarray(np.nan_to_num(found, nan=-np.inf, neginf=-np.inf))


def split_counts(X: Any, random_state: int = 0) -> tuple[Any, Any]:
    """Divide the tokens of each document into two halves: one to fold in, one to predict.

    Each token goes to either half with probability one half, drawn from ``random_state``; the remainder of a
    fractional count is halved. If nothing would be left to predict, the whole document is predicted.

    Parameters
    ----------
    X : CSR array, shape (D, V)
        Counts.
    random_state : int
        Seed.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> one, other = split_counts(sp.csr_array(np.array([[4.0, 1.0]])))
    >>> (one + other).toarray()
    array([[4., 1.]])
    """
    if random_state is not None:
        check_int("random_state", random_state, minimum=0)
    whole = np.floor(X.data)
    if len(whole) and whole.max() >= 2.0**62:
        raise ValueError(f"X must have counts below 2^62 to be split in two, got {whole.max():g}.")
    first = np.random.default_rng(random_state).binomial(whole.astype(np.int64), 0.5) + (X.data - whole) / 2.0
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    left = np.bincount(row, weights=X.data - first, minlength=X.shape[0])
    first = np.where(left[row] > 0, first, 0.0)
    one, other = X.copy(), X.copy()
    one.data, other.data = first, X.data - first
    one.eliminate_zeros()
    other.eliminate_zeros()
    return one, other


def coherence_of(X: Any, topics: Array, measure: str, n: int) -> Array:
    """Return the coherence of each topic's first ``n`` words, shape (K,), from the documents' counts.

    ``"npmi"``: mean over pairs of log(p_ij / p_i p_j) / −log p_ij, from −1 to 1, where p are shares of
    documents in which words occur; a pair that never occurs together counts −1. ``"umass"``: mean of
    log((D_ij + 1) / D_j), where j is the more likely word of the two.
    """
    n = min(n, topics.shape[1])
    words = np.argsort(-topics, axis=1, kind="stable")[:, :n]
    used, place = np.unique(words, return_inverse=True)
    occurs = X[:, used]
    occurs.data = np.ones_like(occurs.data, dtype=np.float64)
    together = (occurs.T @ occurs).toarray()
    alone, total = np.diagonal(together).copy(), X.shape[0]
    i, j = np.triu_indices(n, 1)
    found = np.empty(len(topics))
    for k, row in enumerate(place.reshape(words.shape)):
        a, b = row[i], row[j]
        both = together[a, b]
        if measure == "umass":
            values = np.log((both + 1.0) / np.maximum(alone[a], 1.0))
        else:
            p = np.maximum(both, 1e-300) / total
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log(p * total**2 / (alone[a] * alone[b])) / -np.log(p)
            values = np.where(both > 0, np.where(both < total, values, 1.0), -1.0)
        found[k] = values.mean() if len(values) else 0.0
    return found


def mean_likelihood(documents: Any, topics: Array, alpha: Array, *, max_iter: int, tol: float) -> float:
    """Return the mean log-likelihood per token of documents, which are folded in."""
    if not documents.total > 0:
        raise ValueError("X must have at least one token, got none.")
    if isinstance(documents, UnitDocuments):
        return documents.log_likelihood(topics, alpha, max_iter, tol) / documents.total
    _, found = documents.fold_in(topics, alpha, max_iter=max_iter, tol=tol)
    return float((documents.weight * found).sum() / documents.total)


def representative(shares: Array, lengths: Array | None, n: int) -> Index:
    """Return the documents with the largest shares of each topic, shape (K, n); short ones count less."""
    weight = np.ones(len(shares))
    if lengths is not None:
        weight = lengths / np.maximum(lengths + SHORT * float(np.median(lengths)), np.finfo(np.float64).tiny)
    return np.argsort(-shares * weight[:, None], axis=0, kind="stable")[:n].T


class TopicQueries(TopicExchange, TransformerMixin):  # type: ignore[misc]
    """Methods of :class:`swiftem.PLSA` that need a fitted model."""

    if TYPE_CHECKING:
        components_: Array
        doc_topic_: Array
        n_features_in_: int
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
            total += float((hidden.data[part] * np.log(np.maximum(p, 1e-12))).sum())
        return exp(-total / hidden.data.sum())

    def top_words(self, names: Any = None, n: int = 10, *, relevance: float = LAMBDA) -> list[list[str]]:
        """Return the most relevant words of each topic.

        Parameters
        ----------
        names : sequence of str, or a fitted vectorizer, optional
            The words of the columns; by default the columns' names, if X had them, or their numbers.
        n : int
            Number of words.
        relevance : float
            λ of Sievert and Shirley (2014), from 0 to 1: words are in the order of λ log p + (1 − λ) log
            lift, where lift is the word's probability in the topic divided by that in all topics. 1 orders by
            probability; less puts words first that distinguish the topic.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> X = np.array([[4, 3, 0, 0], [0, 0, 2, 5]])
        >>> swiftem.PLSA(2, random_state=0).fit(X).top_words(["ape", "bee", "cod", "dog"], n=1)
        [['ape'], ['dog']]
        """
        check_is_fitted(self)
        names = self._words(names)
        count = check_int("n", n, minimum=0)
        order = np.argsort(-self._relevance(relevance), axis=1, kind="stable")[:, :count]
        return [[str(names[v]) for v in row] for row in order]

    def _words(self, names: Any) -> Sequence[str]:
        """Return the columns' words: as given, from a vectorizer, from X, or their numbers."""
        if hasattr(names, "get_feature_names_out"):
            names = names.get_feature_names_out()
        if names is None:
            names = getattr(self, "feature_names_in_", [str(v) for v in range(self.components_.shape[1])])
        is_sequence = isinstance(names, Sequence) or np.ndim(names) == 1
        if not is_sequence or isinstance(names, str):
            raise TypeError(f"names must be a sequence of words or a fitted vectorizer, got {shown(names)}.")
        if len(names) != self.components_.shape[1]:
            raise ValueError(
                f"names must be one for each of the {self.components_.shape[1]} columns, got {len(names)}."
            )
        found: Sequence[str] = names
        return found

    def _relevance(self, weight: float) -> Array:
        """Return what words are ordered by, shape (K, V): their probabilities for a weight of 1."""
        weight = check_real("relevance", weight, minimum=0.0, maximum=1.0)
        if weight == 1.0:
            return self.components_
        return relevance_of(self.components_, self.topic_prevalence() @ self.components_, weight)

    def coherence(self, X: Any, *, measure: str = "npmi", n: int = 10, relevance: float = 1.0) -> Array:
        """Return how often each topic's top words occur together in documents, shape (K,).

        Parameters
        ----------
        X : array-like or sparse, shape (D, V)
            Counts of the documents to evaluate.
        measure : {"npmi", "umass"}
            Normalised pointwise mutual information, from −1 to 1, or that of Mimno et al. (2011).
        n : int
            Number of words per topic.
        relevance : float
            Which words these are, as in :meth:`top_words`: by default the most likely ones.
        """
        check_is_fitted(self)
        check_choice("measure", measure, ("npmi", "umass"))
        check_int("n", n, minimum=1)
        return coherence_of(self._counts(X, reset=False), self._relevance(relevance), measure, n)

    def diversity(self, n: int = 25, *, relevance: float = LAMBDA) -> float:
        """Return the share of different words among the first ``n`` words of all topics, from 1/K to 1.

        Parameters
        ----------
        n : int
            Number of words per topic.
        relevance : float
            Which words these are, as in :meth:`top_words`: by default those that are shown.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> model = swiftem.PLSA(2, random_state=0).fit(np.array([[4, 3, 0, 0], [0, 0, 2, 5]]))
        >>> model.diversity(n=2), model.diversity(n=4)
        (1.0, 0.5)
        """
        check_is_fitted(self)
        count = check_int("n", n, minimum=1)
        words = np.argsort(-self._relevance(relevance), axis=1, kind="stable")[:, :count]
        return len(np.unique(words)) / words.size

    def topic_similarity(self, other: Any = None, *, measure: str = "jensen-shannon") -> Array:
        """Return how similar topics are by their words: 1 for equal ones, 0 if they share no word.

        Parameters
        ----------
        other : PLSA, optional
            Another fitted model of the same words; by default this one.
        measure : {"jensen-shannon", "hellinger", "cosine"}
            One minus the Jensen–Shannon divergence in bits; Σ_v √(p_v q_v), which is one minus the square of
            the Hellinger distance; or the cosine of the angle between the rows.

        Returns
        -------
        ndarray, shape (K, K) or (K, number of topics of other)
            Similarities.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> model = swiftem.PLSA.from_counts(np.array([[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 1]]))
        >>> model.topic_similarity().round(2)
        array([[1.  , 0.95, 0.  ],
               [0.95, 1.  , 0.  ],
               [0.  , 0.  , 1.  ]])
        """
        check_is_fitted(self)
        check_choice("measure", measure, MEASURES)
        if other is not None and not hasattr(other, "components_"):
            raise TypeError(f"other must be a fitted PLSA, got {shown(other)}.")
        p = self.components_
        q = p if other is None else np.asarray(other.components_)
        if p.shape[1] != q.shape[1]:
            raise ValueError(
                f"other must be a model of the same {p.shape[1]:,} words, got one of {q.shape[1]:,}."
            )
        if measure == "cosine":
            lengths = np.sqrt((p * p).sum(axis=1))[:, None] * np.sqrt((q * q).sum(axis=1))
            return np.asarray(np.clip(p @ q.T / lengths, 0.0, 1.0))
        if measure == "hellinger":
            return np.asarray(np.clip(np.sqrt(p) @ np.sqrt(q).T, 0.0, 1.0))
        return np.array([_jensen_shannon(row, q) for row in p])

    def topic_prevalence(self) -> Array:
        """Return each topic's share of the training tokens, shape (K,)."""
        check_is_fitted(self)
        return np.asarray(self.topic_counts_ / self.topic_counts_.sum())

    topic_counts_: NDArray[np.float64]

    def sorted_topics(self) -> Sequence[int]:
        """Return the topics' indices, the most prevalent first."""
        return [int(k) for k in np.argsort(-self.topic_prevalence(), kind="stable")]


def _jensen_shannon(p: Array, q: Array) -> Array:
    """Return one minus the Jensen–Shannon divergence in bits, between p (V,) and the rows of q (K, V)."""
    from scipy.special import entr

    divergence = entr(0.5 * (p + q)).sum(axis=1) - 0.5 * (entr(p).sum() + entr(q).sum(axis=1))
    return np.asarray(np.clip(1.0 - divergence / np.log(2.0), 0.0, 1.0))
