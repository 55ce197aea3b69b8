"""Methods of fitted topics: merging, representative documents, topics by label."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import check_int, in_numpy, shown
from swiftem.core.types import Array, Index
from swiftem.topics.queries import representative

__all__ = ["TopicRelations", "TopicsOver"]


class TopicsOver(NamedTuple):
    """Topics of groups of documents.

    Attributes
    ----------
    labels : ndarray, shape (G,)
        The different labels, sorted.
    shares : ndarray, shape (G, K)
        Shares of the topics in each group; rows sum to 1, or are NaN if the group has no tokens.
    documents : ndarray of int, shape (G,)
        Documents per group.
    tokens : ndarray, shape (G,)
        Tokens per group; without counts, documents.
    """

    labels: NDArray[Any]
    shares: Array
    documents: Index
    tokens: Array


class TopicRelations:
    """Methods of :class:`swiftem.PLSA` that merge and illustrate topics."""

    if TYPE_CHECKING:
        n_components: int
        components_: Array
        doc_topic_: Array
        topic_counts_: Array
        alpha: ArrayLike | str
        background_: int | None
        beta: ArrayLike | str
        init: Any
        _word_counts: Array

        def _counts(self, X: Any, *, reset: bool) -> Any: ...
        def _alpha(self) -> Array: ...
        def transform(self, X: Any) -> NDArray[np.float64]: ...  # noqa: D102

    def representative_documents(self, X: Any = None, n: int = 5) -> Index:
        """Return the documents that have the largest shares of each topic.

        Those of a background are the documents of which the other topics explain least.

        Parameters
        ----------
        X : array-like or sparse, shape (D, V), optional
            Counts; very short documents then count less. By default the documents of the fit.
        n : int
            Documents per topic; all of them if there are fewer.

        Returns
        -------
        ndarray of int, shape (K, n)
            Indices of documents, the most representative first.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> X = np.array([[4, 3, 0, 0], [0, 0, 2, 5], [3, 4, 0, 1]])
        >>> swiftem.PLSA(2, random_state=0).fit(X).representative_documents(X, n=1)
        array([[0],
               [1]])
        """
        shares, lengths = self._shares_of(X)
        return representative(shares, lengths, check_int("n", n, minimum=1))

    def topics_over(self, labels: ArrayLike, X: Any = None, *, background: bool = True) -> TopicsOver:
        """Return the shares of topics in groups of documents: by author, by year.

        Parameters
        ----------
        labels : array-like, shape (D,)
            The group of each document: texts, numbers or dates.
        X : array-like or sparse, shape (D, V), optional
            Counts: each document then counts as many times as it has tokens. By default the documents of the
            fit, each of which counts once.
        background : bool
            Whether the background counts. If not, its share is 0, and shares are those of the other topics.

        Returns
        -------
        TopicsOver
            ``labels`` (G,), ``shares`` (G, K), ``documents`` (G,) and ``tokens`` (G,).

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> X = np.array([[4, 3, 0, 0], [0, 0, 2, 5], [3, 4, 0, 0]])
        >>> over = swiftem.PLSA(2, random_state=0).fit(X).topics_over([1998, 1999, 1998], X)
        >>> over.labels, over.shares.round(1), over.tokens
        (array([1998, 1999]), array([[1., 0.],
               [0., 1.]]), array([14.,  7.]))
        """
        shares, lengths = self._shares_of(X)
        given = np.asarray(in_numpy(labels))
        if given.ndim != 1 or len(given) != len(shares):
            raise ValueError(
                f"labels must be one for each of the {len(shares):,} documents, got shape {given.shape}."
            )
        try:
            found, group = np.unique(given, return_inverse=True)
        except TypeError:
            raise TypeError("labels must be comparable with each other, got different types.") from None
        tokens = np.ones(len(shares)) if lengths is None else lengths
        totals: Array = np.bincount(group, weights=tokens, minlength=len(found)).astype(np.float64)
        sums = np.zeros((len(found), shares.shape[1]))
        np.add.at(sums, group, shares * tokens[:, None])
        if not background and self.background_ is not None:
            sums[:, self.background_] = 0.0
        with np.errstate(invalid="ignore"):
            of_all = sums / sums.sum(axis=1, keepdims=True)
        return TopicsOver(found, of_all, np.bincount(group), totals)

    def merge_topics(self, groups: Sequence[Sequence[int]]) -> Self:
        """Return a copy of the model in which each group of topics is one topic.

        The words of a merged topic are the mean of its members', weighted by their tokens; ``doc_topic_``,
        ``topic_counts_`` and ``alpha`` are sums. A group that has the background in it is the background. The
        copy has no ``history_``, ``log_likelihood_`` and ``stationarity_``, which are those of another model.

        Parameters
        ----------
        groups : sequence of sequences of int
            Indices of topics; each topic at most once. Topics that are not named stay as they are.

        Returns
        -------
        PLSA
            Topics are in the order of their first members.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> model = swiftem.PLSA.from_counts(np.array([[3, 1, 0, 0], [0, 0, 2, 2], [1, 3, 0, 0]]))
        >>> merged = model.merge_topics([[0, 2]])
        >>> merged.components_
        array([[0.5, 0.5, 0. , 0. ],
               [0. , 0. , 0.5, 0.5]])
        >>> merged.topic_counts_
        array([8., 4.])
        """
        check_is_fitted(self)
        members = _members(groups, len(self.components_))
        total = np.array([self.topic_counts_[group].sum() for group in members])
        made = copy(self)
        made.n_components = len(members)
        made.components_ = np.array(
            [
                np.average(
                    self.components_[group], axis=0, weights=self.topic_counts_[group] if n > 0 else None
                )
                for group, n in zip(members, total, strict=True)
            ]
        )
        made.topic_counts_ = total
        made._word_counts = np.array([self._word_counts[group].sum(axis=0) for group in members])
        made.alpha = np.array([self._alpha()[group].sum() for group in members])
        if self.background_ is not None:
            made.background_ = next(k for k, group in enumerate(members) if self.background_ in group)
        beta = np.asarray(in_numpy(self.beta))
        if beta.ndim == 2:
            made.beta = np.array([beta[group].sum(axis=0) for group in members])
        if hasattr(self, "doc_topic_"):
            made.doc_topic_ = np.stack([self.doc_topic_[:, group].sum(axis=1) for group in members], axis=1)
        if not isinstance(self.init, str):
            made.init = "auto"
        for name in ("history_", "stationarity_", "log_likelihood_", "_learned_alpha"):
            made.__dict__.pop(name, None)
        return made

    def _shares_of(self, X: Any) -> tuple[Array, Array | None]:
        """Return the topics of documents, and their lengths if they are known."""
        check_is_fitted(self)
        if X is None:
            if not hasattr(self, "doc_topic_"):
                raise ValueError("X must be counts, as the model does not have the documents of its fit.")
            return np.asarray(self.doc_topic_), None
        counts = self._counts(X, reset=False)
        return np.asarray(in_numpy(self.transform(X))), np.asarray(
            counts.sum(axis=1), dtype=np.float64
        ).ravel()


def _members(groups: Sequence[Sequence[int]], n_topics: int) -> list[list[int]]:
    """Return all topics, those of a group together, in the order of their first members."""
    if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
        raise TypeError(f"groups must be a list of lists of topics, got {shown(groups)}.")
    found: list[list[int]] = []
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Sequence | np.ndarray):
            raise TypeError(f"groups must be a list of lists of topics, got {shown(group)} in it.")
        found.append(
            sorted(check_int("a topic in groups", k, minimum=0, maximum=n_topics - 1) for k in group)
        )
    named = [k for group in found for k in group]
    twice = next((k for k in named if named.count(k) > 1), None)
    if twice is not None:
        raise ValueError(f"groups must name each topic at most once, got {twice} twice.")
    alone = [[k] for k in range(n_topics) if k not in set(named)]
    return sorted([*(group for group in found if group), *alone])
