"""Topics from counts, from and to scikit-learn's LDA, and for pyLDAvis."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import as_floats, shown
from swiftem.core.types import Array
from swiftem.fit.history import History

__all__ = ["TopicExchange"]


class TopicExchange:
    """Conversions of :class:`swiftem.PLSA`."""

    if TYPE_CHECKING:
        components_: Array
        topic_counts_: Array
        converged_: bool
        n_iter_: int
        method_: str
        n_features_in_: int
        background_: int | None
        feature_names_in_: NDArray[Any]
        history_: History
        _word_counts: Array

        def __init__(self, n_components: int = 10, **parameters: Any) -> None: ...
        def _alpha(self) -> Array: ...
        def _beta(self, n_words: int) -> Array: ...
        def _words(self, names: Any) -> Sequence[str]: ...
        def _counts(self, X: Any, *, reset: bool) -> Any: ...

    @classmethod
    def from_counts(
        cls, counts: ArrayLike, *, names: Any = None, alpha: ArrayLike = 0.1, beta: ArrayLike = 0.0
    ) -> Self:
        """Return a fitted estimator from counts of words in topics.

        Its :meth:`transform`, :meth:`save` and all other methods of a fitted model work; ``partial_fit``
        continues from the counts.

        Parameters
        ----------
        counts : array-like, shape (K, V)
            Number of tokens of each word in each topic; probabilities work too, but then
            :meth:`topic_prevalence` is the same for all topics. Row sums are the topics' tokens.
        names : sequence of str, or a fitted vectorizer, optional
            The words of the columns.
        alpha, beta
            As of :class:`swiftem.PLSA`; ``beta`` is added to the counts.

        Returns
        -------
        PLSA
            ``components_`` (K, V) are the rows of counts + beta, normalised.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> model = swiftem.PLSA.from_counts(np.array([[8, 2, 0], [0, 1, 4]]))
        >>> model.components_
        array([[0.8, 0.2, 0. ],
               [0. , 0.2, 0.8]])
        >>> model.top_words(["ape", "bee", "cod"], n=1), model.transform(np.array([[3, 0, 0]])).round(2)
        ([['ape'], ['cod']], array([[0.97, 0.03]]))
        """
        table = as_floats("counts", counts, shape=(None, None))
        if not table.size or (table < 0).any():
            raise ValueError(
                f"counts must have a row per topic and no entry below 0, got {shown(np.asarray(counts))}."
            )
        made = cls(len(table), alpha=alpha, beta=beta)
        made._alpha()
        added = table + made._beta(table.shape[1])
        empty = np.flatnonzero(added.sum(axis=1) <= 0)
        if len(empty):
            raise ValueError(
                f"counts must have a positive entry in each row if beta is 0, got none in row {empty[0]}."
            )
        made.components_ = added / added.sum(axis=1, keepdims=True)
        made._word_counts = table.copy()
        made.topic_counts_ = table.sum(axis=1) if table.any() else np.ones(len(table))
        made.n_features_in_, made.n_iter_ = table.shape[1], 0
        made.method_, made.converged_, made.history_ = "given", True, History()
        made.background_ = None
        if names is not None:
            made.feature_names_in_ = np.array([str(name) for name in made._words(names)], dtype=object)
        return made

    def _parameters(self) -> tuple[Array, Array, Array]:
        """Return counts with β (K, V), whose rows are proportional to ``components_``, α (K,) and β (V,)."""
        check_is_fitted(self)
        beta = np.broadcast_to(self._beta(self.components_.shape[1]), self.components_.shape)
        total = self.topic_counts_ + beta.sum(axis=1)
        return self.components_ * total[:, None], self._alpha(), np.asarray(beta.mean(axis=0))

    @classmethod
    def from_sklearn(cls, model: Any, names: Any = None) -> Self:
        """Return the topics of scikit-learn's ``LatentDirichletAllocation``, fitted.

        Parameters
        ----------
        model : LatentDirichletAllocation
            Its ``components_`` (K, V) without the prior are the counts; its priors become alpha and beta.
        names : sequence of str, or a fitted vectorizer, optional
            The words of the columns; by default those of the model, if it has them.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> from sklearn.decomposition import LatentDirichletAllocation
        >>> X = np.array([[3, 2, 0, 0], [0, 0, 4, 1]])
        >>> lda = LatentDirichletAllocation(2, random_state=0).fit(X)
        >>> model = swiftem.PLSA.from_sklearn(lda)
        >>> np.allclose(model.components_, lda.components_ / lda.components_.sum(axis=1, keepdims=True))
        True
        """
        check_is_fitted(model, ["components_", "doc_topic_prior_", "topic_word_prior_"])
        beta = float(model.topic_word_prior_)
        counts = np.maximum(np.asarray(model.components_, dtype=np.float64) - beta, 0.0)
        names = getattr(model, "feature_names_in_", None) if names is None else names
        return cls.from_counts(counts, names=names, alpha=float(model.doc_topic_prior_), beta=beta)

    def to_sklearn(self) -> Any:
        """Return scikit-learn's ``LatentDirichletAllocation`` with these topics, fitted.

        ``components_`` (K, V) are counts plus beta; the prior of documents is the mean of alpha. Priors of 0,
        which LDA does not have, become 1e-3.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> X = np.array([[3, 2, 0, 0], [0, 0, 4, 1]])
        >>> model = swiftem.PLSA(2, random_state=0).fit(X)
        >>> model.to_sklearn().transform(X).argmax(axis=1) == model.transform(X).argmax(axis=1)
        array([ True,  True])
        """
        from sklearn.decomposition import LatentDirichletAllocation

        counts, alpha, beta = self._parameters()
        priors = [max(float(np.mean(values)), LEAST) for values in (alpha, beta)]
        made = LatentDirichletAllocation(len(counts), doc_topic_prior=priors[0], topic_word_prior=priors[1])
        made.components_ = np.maximum(counts, LEAST)
        made.exp_dirichlet_component_ = np.exp(_expected_log(made.components_))
        made.doc_topic_prior_, made.topic_word_prior_ = priors
        made.n_features_in_, made.n_iter_, made.n_batch_iter_ = counts.shape[1], self.n_iter_, 1
        made.random_state_ = np.random.RandomState(0)
        made.bound_ = float("nan")
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_
        return made

    def to_pyldavis(self, X: Any, names: Any = None) -> dict[str, Any]:
        """Return the arguments of ``pyLDAvis.prepare``: ``prepare(**model.to_pyldavis(X))``.

        Parameters
        ----------
        X : array-like or sparse, shape (D, V)
            Counts of the documents to show.
        names : sequence of str, or a fitted vectorizer, optional
            As in :meth:`top_words`.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> X = np.array([[4, 3, 0, 0], [0, 0, 2, 5]])
        >>> sorted(swiftem.PLSA(2, random_state=0).fit(X).to_pyldavis(X))
        ['doc_lengths', 'doc_topic_dists', 'term_frequency', 'topic_term_dists', 'vocab']
        """
        from swiftem.report.pyldavis import pyldavis_data

        check_is_fitted(self)
        counts = self._counts(X, reset=False)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")  # X may have had
            return pyldavis_data(self, counts, self._words(names))


LEAST = 1e-3
"""Smallest parameter of a Dirichlet prior in scikit-learn, which does not take 0."""


def _expected_log(counts: Array) -> Array:
    """Return E log p of Dirichlet distributions with these parameters, shape (K, V)."""
    from scipy.special import psi

    return np.asarray(psi(counts) - psi(counts.sum(axis=1))[:, None])
