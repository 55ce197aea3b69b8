"""``swiftem.PLSA``: topics of texts, as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import exp
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from swiftem._typing import Array
from swiftem.estimators.documents import Documents
from swiftem.estimators.fit_topics import TopicFit, TopicFitting
from swiftem.estimators.history import History, Moment
from swiftem.estimators.persistence import Persistent
from swiftem.estimators.plan import METHOD_NAMES
from swiftem.estimators.plan_topics import SAMPLING, plan_topics
from swiftem.estimators.running_counts import RunningCounts, m_step
from swiftem.estimators.topic_queries import TopicQueries, as_strength, split_counts
from swiftem.estimators.watch import Watcher

__all__ = ["PLSA"]

FOLD_IN_PASSES, FOLD_IN_TOLERANCE = 200, 1e-4
STREAM_BATCH, STREAM_ROUNDS, STREAM_START, STREAM_POWER = 128, (10, 1e-2), 2000.0, 2.0
"""``partial_fit``: documents a step, how long they are folded in, tokens that the first topics are worth, and
the power with which old documents are forgotten (1 would weigh all alike, those of the first topics too)."""
PLAIN = ("n_components", "method", "sampling", "max_iter", "tol", "verbose", "verbose_interval")
RESULTS = ("converged_", "n_iter_", "log_likelihood_", "stationarity_", "method_", "n_features_in_")


class PLSA(  # type: ignore[misc]
    Persistent,
    TopicQueries,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Probabilistic latent semantic analysis: documents as mixtures of topics, topics as mixtures of words.

    The probability of word v in document d is :math:`\sum_k \theta_{dk} \theta_{kv}`.

    Parameters
    ----------
    n_components : int
        Number of topics, K.
    alpha : float or array-like of shape (K,)
        Counts that are added to each document's topics.
    beta : float or array-like of shape (V,) or (K, V)
        Counts that are added to each topic's words. One row a topic makes seed words: a large number draws a
        word into a topic.
    method : {"auto", "em", "sem", "iem", "sem-vr", "fiem"}
        How to fit. "auto" reads each document once by sem and goes on with em; see
        :mod:`swiftem.estimators.plan_topics`.
    sampling : {"auto", "documents", "tokens"}
        What a stochastic method draws: batches of documents (sem, sem-vr), or tokens as in the paper (all).
    batch_size : int or "auto"
        Documents or tokens an iteration.
    step_size : float, callable or "auto"
        Step of a stochastic method.
    max_iter : int
        Most passes over the data, in E-steps of entries: a document that is read by sem is gone over up to six
        times. Documents are read at least once, and an epoch that has begun is finished.
    tol : float
        A fit ends when a pass gains less in the mean log-likelihood of a token, twice in a row; of a stochastic
        method, when two epochs do, or when their gain cannot be told from noise.
    random_state : int, RandomState or None
        Draws the topics to start from, and batches. Documents start uniform.
    verbose, verbose_interval : int
        Whether, and how often, to show progress.

    Attributes
    ----------
    components_ : ndarray, shape (K, V)
        Words of topics; rows sum to 1.
    doc_topic_ : ndarray, shape (D, K)
        Topics of the training documents; rows sum to 1. Those that :meth:`transform` finds may differ: it folds
        documents in to the end.
    topic_counts_ : ndarray, shape (K,)
        Expected training tokens of each topic.
    converged_, n_iter_, method_
        Whether the fit came to rest, its passes, and the method used.
    log_likelihood_ : float
        Mean log-likelihood of a training token.
    history_ : History
        Passes, seconds, objective (minus the mean log-likelihood of a token), step, by look: of em, at the
        beginning of each pass; of the others at the end of each epoch, on at most 500 documents, folded in.
    stationarity_ : float
        Distance of the expected counts from those of a further E-step, over their size: 0 at rest.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> X = np.array([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]])
    >>> topics = swiftem.PLSA(n_components=2, random_state=0)
    >>> topics.fit_transform(X).argmax(axis=1)
    array([0, 0, 1, 1])
    >>> topics.get_feature_names_out()
    array(['plsa0', 'plsa1'], dtype=object)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0.0, None, closed="left"), "array-like"],
        "beta": [Interval(Real, 0.0, None, closed="left"), "array-like"],
        "method": [StrOptions(set(METHOD_NAMES))],
        "sampling": [StrOptions(set(SAMPLING))],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "step_size": [StrOptions({"auto"}), Interval(Real, 0.0, 1.0, closed="right"), callable, object],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha: ArrayLike = 0.1,
        beta: ArrayLike = 0.05,
        method: str = "auto",
        sampling: str = "auto",
        batch_size: int | str = "auto",
        step_size: Any = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.beta = beta
        self.method = method
        self.sampling = sampling
        self.batch_size = batch_size
        self.step_size = step_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the topics.

        Parameters
        ----------
        X : array-like or sparse, shape (D, V)
            Counts, not negative; fractions mean what they say. Nothing is normalised.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (D,), optional
            Weights of documents: an integer is as good as repeating the document.

        Returns
        -------
        self
            Ctrl-C leaves a fitted model, with a warning.
        """
        X = self._counts(X, reset=True)
        weight = self._weights(sample_weight, X)
        there = None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
        documents = Documents(X, weight) if there is None else Documents(X[there], weight[there])
        if not documents.total > 0:
            raise ValueError("X must have at least one token in a document of positive weight, got none.")
        alpha, beta = self._alpha(), self._beta(X.shape[1])
        plan = plan_topics(
            self.method, self.sampling, self.batch_size, self.step_size, n_documents=documents.n
        )
        if plan.by_tokens is not None and (np.ptp(alpha) or np.ptp(beta)):
            raise ValueError(
                "alpha and beta must be numbers where tokens are drawn: use sampling='documents' or em."
            )
        random_state = check_random_state(self.random_state)
        topics = self._first_topics(X.shape[1], beta, random_state)
        seed = int(random_state.randint(np.iinfo(np.int32).max))
        fitting = TopicFitting(documents, alpha, beta, plan, self.max_iter, self.tol)
        with Watcher(self, 1, X) as watcher:
            fit = fitting.fit(topics, seed, watcher.watch(0))
        self._keep(fit, fitting)
        if there is not None:
            found = Documents(X).fold_in(self.components_, alpha)[0]
            found[there] = self.doc_topic_
            self.doc_topic_ = found
        return self

    def _first_topics(self, n_words: int, beta: Array, random_state: np.random.RandomState) -> Array:
        """Return random topics (flat Dirichlet); where β has seed words, they count for more than chance."""
        seeds = len(beta) > 1
        topics = random_state.dirichlet(np.full(n_words, 25.0 if seeds else 1.0), size=self.n_components)
        return 0.5 * (topics + m_step(np.zeros_like(topics), beta)) if seeds else np.asarray(topics)

    def _keep(self, fit: TopicFit, fitting: TopicFitting) -> None:
        """Set the attributes, certify by one more pass, and say what there is to say."""
        documents = fitting.documents
        self.method_, self.history_ = fitting.plan.name, History(fit.moments)
        self.converged_, self.n_iter_ = fit.converged, int(np.ceil(fit.passes - 1e-9))
        self.components_ = fit.topics
        ahead = fit.doc_topic.copy()
        after, value = documents.em_pass(ahead, fit.topics, fitting.alpha)
        # Batches leave documents where they were when they were last read.
        self.doc_topic_ = fit.doc_topic if fitting.plan.by_documents is None else ahead
        self.log_likelihood_ = value / documents.total
        counts = after if fit.counts is None else fit.counts
        self.stationarity_ = float(np.linalg.norm(counts - after) / np.linalg.norm(counts))
        self.topic_counts_ = after.sum(axis=1)
        self._word_counts = counts
        if fit.interrupted:
            warnings.warn(
                f"The fit was interrupted after {fit.passes:.1f} passes; the model is as it was then.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not fit.converged:
            warnings.warn(
                f"The fit did not come to rest in {self.n_iter_} passes. Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _counts(self, X: Any, *, reset: bool) -> Any:
        """Return counts as a CSR array of float64, checked."""
        from scipy.sparse import csr_array

        if not hasattr(X, "dtype") and isinstance(X, Sequence) and len(X) and isinstance(X[0], str):
            raise ValueError("X must be counts of words, got texts: count them with CountVectorizer first.")
        X = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=reset, ensure_non_negative=True, order="C"
        )
        matrix = csr_array(X)
        if not matrix.has_canonical_format or not matrix.data.all():
            matrix = matrix.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
        return matrix

    def _weights(self, sample_weight: ArrayLike | None, X: Any) -> Array | None:
        if sample_weight is None:
            return None
        return np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))

    def _alpha(self) -> Array:
        given = as_strength("alpha", self.alpha, [(self.n_components,)])
        return np.ascontiguousarray(np.broadcast_to(given, (self.n_components,)))

    def _beta(self, n_words: int) -> Array:
        given = as_strength("beta", self.beta, [(n_words,), (self.n_components, n_words)])
        return given.reshape((1, 1) if given.ndim == 0 else (-1, n_words))

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Fit, and return the documents' topics as :meth:`transform` finds them, shape (D, K)."""
        return np.asarray(self.fit(X, y, sample_weight).transform(X))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the topics of documents, shape (D, K), by folding them in: the topics' words stay.

        Each document starts uniform and stops by itself when its topics have come to rest.
        """
        check_is_fitted(self)
        documents = Documents(self._counts(X, reset=False))
        return documents.fold_in(
            self.components_, self._alpha(), max_iter=FOLD_IN_PASSES, tol=FOLD_IN_TOLERANCE
        )[0]

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Go on with more documents, by online EM: they may come in any number of calls.

        ``doc_topic_`` holds the topics of the documents of this call.
        """
        first = not hasattr(self, "components_")
        X = self._counts(X, reset=first)
        if not first and len(self.components_) != self.n_components:
            raise ValueError(
                f"n_components must stay {len(self.components_)} while documents are added, got {self.n_components}."
            )
        documents = Documents(X, self._weights(sample_weight, X))
        alpha, beta = self._alpha(), self._beta(X.shape[1])
        if first:
            topics = self._first_topics(X.shape[1], beta, check_random_state(self.random_state))
            self._word_counts, self.n_iter_ = topics * (STREAM_START / len(topics)), 0
        seen = float(self._word_counts.sum())
        running = RunningCounts(self._word_counts, beta)
        for start in range(0, documents.n, STREAM_BATCH):
            batch, words = documents.batch(np.arange(start, min(start + STREAM_BATCH, documents.n)))
            if batch.total > 0:
                uniform = np.full((batch.n, len(alpha)), 1.0 / len(alpha))
                change, _ = batch.sums(running.topics_at(words), alpha, uniform, *STREAM_ROUNDS)
                gamma = 1.0 - (seen / (seen + batch.total)) ** STREAM_POWER
                running.step(words, change * (seen / batch.total), gamma)
                grown = (seen + batch.total) / seen
                running.grow(grown)
                seen += batch.total
        self._word_counts = running.counts()
        self.components_ = m_step(self._word_counts, beta)
        self.doc_topic_ = documents.fold_in(self.components_, alpha)[0]
        self.topic_counts_ = self._word_counts.sum(axis=1)
        for name in ("history_", "stationarity_", "log_likelihood_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self.method_, self.converged_, self.n_iter_ = "sem", False, self.n_iter_ + 1
        return self

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of a token of documents that are folded in."""
        check_is_fitted(self)
        X = self._counts(X, reset=False)
        documents = Documents(X, self._weights(sample_weight, X))
        if not documents.total > 0:
            raise ValueError("X must have at least one token, got none.")
        _, found = documents.fold_in(
            self.components_, self._alpha(), max_iter=FOLD_IN_PASSES, tol=FOLD_IN_TOLERANCE
        )
        return float(documents.weight @ found / documents.total)

    def perplexity(self, X: Any, *, random_state: int = 0) -> float:
        """Return the perplexity of new documents by completion: the lower the better.

        The tokens of each document are divided in two at random. One half is folded in, and the other half is
        predicted from the topics found: exp of minus its mean log-likelihood. No token is used for both, so
        that more topics do not look better than they are. Of a document with one token, that token is predicted
        from nothing. A word that no topic has counts with probability 1e-12.
        """
        check_is_fitted(self)
        seen, hidden = split_counts(self._counts(X, reset=False), random_state)
        if not hidden.nnz:
            raise ValueError("X must have at least one token, got none.")
        topics, _ = Documents(seen).fold_in(
            self.components_, self._alpha(), max_iter=FOLD_IN_PASSES, tol=FOLD_IN_TOLERANCE
        )
        total = 0.0
        rows = np.repeat(np.arange(hidden.shape[0]), np.diff(hidden.indptr))
        for start in range(0, hidden.nnz, 1 << 18):
            part = slice(start, start + (1 << 18))
            p = np.einsum("ek,ke->e", topics[rows[part]], self.components_[:, hidden.indices[part]])
            total += float(hidden.data[part] @ np.log(np.maximum(p, 1e-12)))
        return exp(-total / hidden.data.sum())

    def attributes_of(self, fit: TopicFit) -> dict[str, Any]:
        """Return the attributes that a fit would give if it stopped now, for callbacks."""
        return {"components_": fit.topics, "doc_topic_": fit.doc_topic}

    def _print_verbose_msg_init_beg(self, number: int) -> None:
        print(f"{self.n_components} topics")

    def _print_verbose_msg_iter_end(self, passes: int, gain: float) -> None:
        if passes % self.verbose_interval == 0:
            print(f"  Pass {passes}\t gain of the mean log-likelihood {gain:.5f}")

    def _to_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        check_is_fitted(self)
        parameters = {name: getattr(self, name) for name in PLAIN}
        for name in ("batch_size", "step_size"):
            value = getattr(self, name)
            parameters[name] = value if isinstance(value, int | float | str) else "auto"
        parameters["random_state"] = self.random_state if isinstance(self.random_state, int) else None
        header: dict[str, Any] = {"parameters": parameters}
        for name in RESULTS:
            value = getattr(self, name, None)
            header[name] = value.item() if isinstance(value, np.generic) else value
        if hasattr(self, "feature_names_in_"):
            header["feature_names_in_"] = [str(name) for name in self.feature_names_in_]
        header["history"] = [list(moment) for moment in getattr(self, "history_", [])]
        arrays = {
            "alpha": np.asarray(self.alpha, dtype=np.float64), "beta": np.asarray(self.beta, dtype=np.float64),
            "components_": self.components_, "topic_counts_": self.topic_counts_, "word_counts": self._word_counts,
        }  # fmt: skip
        return header, arrays

    @classmethod
    def _from_file(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        made = cls(**header["parameters"])
        made.alpha, made.beta = (a.item() if a.ndim == 0 else a for a in (arrays["alpha"], arrays["beta"]))
        made.components_, made.topic_counts_ = arrays["components_"], arrays["topic_counts_"]
        made._word_counts = arrays["word_counts"]
        for name in RESULTS:
            if header[name] is not None:
                setattr(made, name, header[name])
        if "feature_names_in_" in header:
            made.feature_names_in_ = np.array(header["feature_names_in_"], dtype=object)
        made.history_ = History([Moment(*moment) for moment in header["history"]])
        return made
