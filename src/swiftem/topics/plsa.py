"""``swiftem.PLSA``: topics of texts, as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checkpoint import check_form
from swiftem.core.checks import (
    as_floats,
    check_choice,
    check_int,
    check_real,
    check_simplex,
    extent_of,
    in_numpy,
    is_tensor,
    shown,
)
from swiftem.core.types import Array, Index
from swiftem.data.as_source import is_planned, like
from swiftem.data.documents.counts import canonical
from swiftem.fit.config import budget
from swiftem.fit.estimator import Estimator
from swiftem.fit.history import History
from swiftem.fit.model_file import LARGEST, ModelContent
from swiftem.fit.parameters import (
    ARRAY,
    AT_LEAST_ONE,
    BOOLEAN,
    COMMON,
    NOT_NEGATIVE,
    Allowed,
    CallbackSupportMixin,
    instance_of,
    one_of,
    with_callbacks,
)
from swiftem.fit.validated import chunk_by_chunk
from swiftem.methods import Method
from swiftem.show.table import Table
from swiftem.topics import quality, read
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.documents import counts_after
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.documents import m_step
from swiftem.topics.fit import TopicFit, fit_topics, fitted_attributes, memory_allocator, starts_of
from swiftem.topics.quality import LAMBDA
from swiftem.topics.read import AnyDocuments
from swiftem.topics.resolve import INITS, LEARN, METHOD_NAMES, beta_of, first_alpha, resolve, table_type

if TYPE_CHECKING:
    from swiftem.data.documents.counts import Counts

Corpora = TypeVar("Corpora", bound=AnyDocuments)
OF_FIT = ("history_", "stationarity_", "log_likelihood_")
"""Attributes of a fit that other ways to a model do not have."""
START = 2000.0
"""Weight of the initial topics of a stream, in tokens."""
POWER = 2.0
"""How fast a stream that begins with ``partial_fit`` forgets old documents: 1 would weigh all alike, also the
initial topics. After a ``fit`` it is 1: every token counts once."""
LEAST_PRIOR = 1e-3
"""Smallest parameter of a Dirichlet prior in scikit-learn, which does not take 0."""
OPTIONAL = ("background_", "log_likelihood_", "stationarity_")
"""Results that a model may be without."""
FOLD_IN: dict[str, Any] = {"max_iter": 200, "tol": 1e-4}
"""When documents that are folded in have converged."""


@dataclass(eq=False, repr=False)
class PLSA(
    CallbackSupportMixin,  # type: ignore[misc]
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    Estimator,
):
    r"""Probabilistic latent semantic analysis: documents as mixtures of topics, topics as mixtures of words.

    The probability of word v in document d is :math:`\sum_k \theta_{dk} \theta_{kv}`.

    Parameters
    ----------
    n_components : int
        Number of topics, K.
    alpha : float, array-like of shape (K,) or "learn"
        Counts added to each document's topics. "learn" learns one for each topic from the documents, after
        each of em's passes; see :mod:`swiftem.topics.fit`.
    beta : float, array-like of shape (V,) or (K, V), or "auto"
        Counts added to each topic's words; "auto" is the smaller of 0.05 and 1/K. One row per topic makes
        seed words: a large number draws a word into a topic.
    background : bool or "auto"
        Whether topic 0 is a background: it starts at the corpus' word frequencies, or at the first of given
        topics, and words that are common to many topics move to it. "auto" is True for method="auto" if there
        are at least 500 documents, 8 topics, and neither seed words nor given topics.
    decorrelation : float or "auto"
        How strongly topics other than the background repel each other: larger values make topics more
        distinct, and predictions a little worse; see :mod:`swiftem.topics.fit`. "auto" is 30
        with the same conditions as ``background``, else 0. Both are for em's passes.
    method : "auto", a name in :data:`swiftem.methods.METHODS`, or a Method
        How to fit. "auto" reads each document once by sem and continues with em, whose passes leave each
        token out of the counts that explain it, so that short documents are not overfitted. "em" climbs the
        penalised likelihood. "sem" and "sem-vr" draw batches of documents, others tokens, as in the paper.
        What an object such as ``methods.OnlineEM(batch_size=64)`` leaves out is chosen for the data. See
        :mod:`swiftem.topics.resolve`.
    init : {"auto", "random", "k-means"} or array-like of shape (K, V)
        Initial topics: random ones, the words of clusters of documents, or given ones. "auto" is clusters for
        "auto", sem and sem-vr by documents if there are at least 500 documents, else random.
    n_init : int or "auto"
        Number of starts; the best one after ten passes over at most 2,000 documents is used. "auto" is 2 to 6
        for clusters with method="auto", fewer for many topics, else 1.
    max_iter : int
        Maximum number of passes over the data, in E-steps of entries: sem goes over a document up to six
        times per reading. Documents are read at least once, an epoch that has begun is finished, and passes
        that compare starts do not count, here and in ``history_``.
    tol : float
        A fit ends when the mean log-likelihood per token gains less than this per pass, twice in a row; with
        momentum (method="auto") a pass counts as two. A stochastic method ends when two epochs gain less,
        or when their gain cannot be distinguished from noise.
    device : str
        What computes em, sem and sem-vr by documents, and :meth:`transform`: "cpu", "cuda", "cuda:1", ..., or
        "auto": the GPU if X is there, else the CPU. See ``docs/gpu.md``.
    random_state : int, RandomState or None
        For initial topics and batches. Documents start uniform.
    verbose, verbose_interval : int
        Whether, and how often, to show progress.

    Attributes
    ----------
    components_ : ndarray, shape (K, V)
        Probabilities of words in topics; rows sum to 1.
    background_ : int or None
        The topic that is a background, or None.
    alpha_ : ndarray, shape (K,)
        ``alpha`` of each topic, as given or learned.
    doc_topic_ : ndarray, shape (D, K)
        Topics of the training documents; rows sum to 1. :meth:`transform` may return others: it folds
        documents in until convergence. A fit to a Dask collection does not set it.
    topic_counts_ : ndarray, shape (K,)
        Expected number of training tokens per topic.
    converged_, n_iter_, method_
        Whether the fit converged, its passes, and the method used.
    log_likelihood_ : float
        Mean log-likelihood per training token.
    history_ : History
        Passes, seconds, objective (minus the mean log-likelihood per token) and step size: of em, at the
        beginning of each pass; of the others at the end of each epoch, on at most 500 documents, folded in.
    stationarity_ : float
        Relative change of the expected counts in one more E-step: 0 at a stationary point.
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

    _allowed: ClassVar[dict[str, Sequence[Allowed]]] = {
        **COMMON,
        "alpha": [NOT_NEGATIVE, ARRAY, one_of([LEARN])],
        "beta": [NOT_NEGATIVE, ARRAY, one_of(["auto"])],
        "background": [one_of(["auto"]), BOOLEAN],
        "decorrelation": [one_of(["auto"]), NOT_NEGATIVE],
        "method": [one_of(METHOD_NAMES), instance_of(Method)],
        "init": [one_of(INITS), ARRAY],
        "n_init": [one_of(["auto"]), AT_LEAST_ONE],
        "max_iter": [AT_LEAST_ONE],
    }
    _results: ClassVar[Mapping[str, type]] = {
        "converged_": bool,
        "n_iter_": int,
        "log_likelihood_": float,
        "stationarity_": float,
        "method_": str,
        "n_features_in_": int,
        "background_": int,
        "_is_stream": bool,
    }

    n_components: int = 10
    _: KW_ONLY
    alpha: ArrayLike | str = 0.1
    beta: ArrayLike | str = "auto"
    background: bool | str = "auto"
    decorrelation: float | str = "auto"
    method: str | Method = "auto"
    init: Any = "auto"
    n_init: int | str = "auto"
    max_iter: int = 200
    tol: float = 1e-4
    device: str = "auto"
    random_state: Any = None
    verbose: int = 0
    verbose_interval: int = 10

    alpha_: Array = field(init=False)
    background_: int | None = field(init=False)
    components_: Array = field(init=False)
    converged_: bool = field(init=False)
    doc_topic_: Array = field(init=False)
    feature_names_in_: NDArray[Any] = field(init=False)
    history_: History = field(init=False)
    method_: str = field(init=False)
    n_features_in_: int = field(init=False)
    n_iter_: int = field(init=False)
    topic_counts_: Array = field(init=False)
    _word_counts: Array = field(init=False)
    _is_stream: bool = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the topics.

        Parameters
        ----------
        X : array-like or sparse, shape (D, V), path, DocumentSource, or Dask collection
            Non-negative counts; fractions are allowed. Nothing is normalised. Files of counts, and sources
            from :func:`swiftem.data.open_documents`, are read block by block in every pass and never loaded
            as a whole; em, and sem and sem-vr by documents, support this. Chunks of a Dask array, or Delayed
            blocks, stay with the workers of the current client; em and sem support this.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (D,), optional
            Weights of documents: an integer weight is equivalent to repeating the document.

        Returns
        -------
        self
            Ctrl-C leaves a fitted model, with a warning.
        """
        self._validate_params()
        every = self._documents(X, sample_weight, reset=True)
        documents, numbers = read.of_positive_weight(every)
        if not documents.total > 0:
            raise ValueError("X must have at least one token in a document of positive weight, got none.")
        spec, limits = resolve(self.get_params(deep=False), read.facts_of(documents)), budget()
        read.prepare(documents, spec, limits)
        # Of documents in blocks only their topics are stored.
        limits = limits if spec.draws == "tokens" else limits._replace(limit=None)

        def make() -> tuple[list[Array], int]:
            random_state = check_random_state(self.random_state)
            starts = starts_of(documents, spec, self.init, random_state)
            return starts, int(random_state.randint(np.iinfo(np.int32).max))

        def check(made: tuple[list[Array], int]) -> None:
            starts, seed = made
            for topics in starts:
                check_form("a start", topics, np.empty((self.n_components, documents.n_words)))
            if not starts or type(seed) is not int:
                raise ValueError("there is no start, or no seed")

        checkpoint = self._checkpoint_of(documents)
        if spec.draws == "tokens":
            checkpoint.allocate = memory_allocator(documents, spec, limits)
        title = f"{self.n_components} topics"
        with checkpoint, self._watcher(1, X, y, sample_weight, title=title) as watcher:
            starts, seed = checkpoint.starts(make, check)
            keeper = checkpoint.of_start(0)
            (fit,) = watcher.map(
                lambda _, watch: fit_topics(documents, spec, starts, seed, limits, watch, keeper)
            )
            self._forget("doc_topic_")
            self.__dict__.update(fitted_attributes(fit))
            if numbers is not None and isinstance(
                every, Documents
            ):  # documents of weight zero have topics, too
                every.dtype = spec.dtype
                shares = every.fold_in(self.components_, self.alpha_)[0]
                shares[numbers] = self.doc_topic_
                self.doc_topic_ = shares
            watcher.is_fitted = True
        sentence = f"The fit did not converge in {self.n_iter_} passes. Increase max_iter or tol."
        self._warn_of_end(fit, sentence)
        return self

    def attributes_of(self, fit: TopicFit) -> dict[str, Any]:
        """Return the attributes of a fit that would stop now, for callbacks."""
        fit.fetch()
        return {"alpha_": fit.alpha, "components_": fit.topics, "doc_topic_": fit.doc_topic}

    def _documents(self, X: Any, sample_weight: ArrayLike | None, *, reset: bool) -> AnyDocuments:
        """Return validated documents; before a fit (``reset``) the columns of X are the model's."""
        documents: AnyDocuments
        if read.is_elsewhere(X):
            documents, names = read.documents_elsewhere(X, sample_weight, self.n_components, self.device)
            if reset:
                self._forget("feature_names_in_")
                self.n_features_in_ = documents.n_words
                if names:
                    self.feature_names_in_ = np.array(names, dtype=object)
            elif documents.n_words != self.n_features_in_:
                raise ValueError(
                    f"X must have the {self.n_features_in_} words that the model was fitted with, "
                    f"got {documents.n_words}."
                )
        else:
            counts = self._counts(X, reset=reset)
            weight = read.weights_of(sample_weight, counts)
            documents = read.documents_in_memory(counts, weight, self.n_components, self.device, X)
        return documents if reset else self._typed(documents)

    def _typed(self, documents: Corpora) -> Corpora:
        """Return documents whose passes compute in what a fitted model needs."""
        if not isinstance(documents, UnitDocuments):
            priors = extent_of(self.alpha_, self._beta(documents.n_words))
            documents.dtype = table_type(self.tol, documents.extent, priors)
        return documents

    def _counts(self, X: Any, *, reset: bool = False) -> Counts:
        """Return validated counts as a CSR array of float64; a file or a source is loaded."""
        raw = read.counts_in_memory(X)
        options = {"accept_sparse": "csr", "dtype": np.float64, "order": "C", "reset": reset}
        checked = {"ensure_non_negative": True, "ensure_all_finite": "allow-nan"}
        return canonical("X", self._validated(raw, **options, **checked))

    def _forget(self, *names: str) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    def _beta(self, n_words: int) -> Array:
        return beta_of(self.beta, self.n_components, n_words)

    def _relevance(self, weight: float) -> Array:
        """Return what words are ordered by, shape (K, V): their probabilities for a weight of 1."""
        weight = check_real("relevance", weight, minimum=0.0, maximum=1.0)
        if weight == 1.0:
            return self.components_
        return quality.relevance_of(self.components_, self.topic_prevalence() @ self.components_, weight)

    def _words(self, names: Any) -> Sequence[str]:
        """Return the columns' words: as given, from a vectorizer, from X, or their numbers."""
        own = getattr(self, "feature_names_in_", None)
        return quality.words_of(own if names is None else names, self.components_.shape[1])

    def _shares_of(self, X: Any) -> tuple[Array, Array | None]:
        """Return the topics of documents, and their lengths if they are known."""
        check_is_fitted(self)
        if X is not None:
            lengths = np.asarray(self._counts(X).sum(axis=1), dtype=np.float64).ravel()
            return np.asarray(in_numpy(self.transform(X))), lengths
        if not hasattr(self, "doc_topic_"):
            raise ValueError("X must be counts, as the model does not have the documents of its fit.")
        return self.doc_topic_, None

    def _fitted_arrays(self) -> dict[str, NDArray[Any]]:
        names = ("alpha_", "components_", "topic_counts_")
        return {"word_counts": self._word_counts} | {name: getattr(self, name) for name in names}

    def _read_fitted(self, content: ModelContent, d: int) -> None:
        K = self.n_components
        self.components_ = content.array("components_", (K, d))
        check_simplex("components_", self.components_)
        first_alpha(self.alpha, K)
        self.alpha_ = first_alpha(content.array("alpha_", (K,)), K)
        self.topic_counts_ = content.array("topic_counts_", (K,))
        if not self.topic_counts_.sum() > 0:
            raise ValueError("topic_counts_ must have a positive sum")
        self._word_counts = content.array("word_counts", (K, d))
        _check_word_counts(self._word_counts, np.broadcast_to(self._beta(d), (K, d)))

    def _read_state(self, content: ModelContent, d: int) -> None:
        missing = {name for name in self._results if getattr(self, name) is None}
        if not missing <= {*OPTIONAL}:
            raise ValueError(f"{min(missing - {*OPTIONAL})} is missing")
        self._forget(*(missing - {"background_"}), "lower_bounds_")
        if self.background_ is not None and self.background_ >= self.n_components:
            raise ValueError(f"background_ must be one of the topics, got {self.background_}")

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update the model with more documents, by online EM, in any number of calls.

        ``doc_topic_`` has the topics of the documents of this call. After ``fit``, also if the model was
        saved and loaded, every token counts once, also in the fit. A model that begins with
        ``partial_fit`` forgets its first documents slowly, as their topics were poor. Neither follows topics
        that change: for this, fit again.
        """
        self._validate_params()
        is_first = not hasattr(self, "components_")
        counts = self._counts(X, reset=is_first)
        weight = read.weights_of(sample_weight, counts, may_be_zero=not is_first)
        if is_first:
            self._begin_stream(counts, weight)
        if len(self.components_) != self.n_components:
            raise ValueError(
                f"n_components must stay {len(self.components_)} while documents are added, "
                f"got {self.n_components}."
            )
        documents = self._typed(read.documents_for(counts, weight, self.n_components))
        beta, power = self._beta(documents.n_words), POWER if self._is_stream else 1.0
        self._word_counts = counts_after(self._word_counts, documents, self.alpha_, beta, power)
        self.components_ = np.ascontiguousarray(m_step(self._word_counts, beta))
        self.doc_topic_ = documents.fold_in(self.components_, self.alpha_)[0]
        self.topic_counts_ = self._word_counts.sum(axis=1)
        self._forget(*OF_FIT)
        self.method_, self.converged_, self.n_iter_ = "sem", False, self.n_iter_ + 1
        return self

    def _begin_stream(self, counts: Counts, weight: Array | None) -> None:
        """Begin a model from initial topics."""
        if isinstance(self.alpha, str):
            raise ValueError(
                f"alpha must be numbers for partial_fit of a new model, got {self.alpha!r}: fit learns it."
            )
        documents = read.documents_for(counts, weight, self.n_components)
        parameters = self.get_params(deep=False) | {"n_init": 1}
        spec = resolve(parameters, read.facts_of(documents))
        (topics,) = starts_of(documents, spec, self.init, check_random_state(self.random_state))
        self._word_counts = topics * (START / len(topics))
        self.components_, self.alpha_ = topics, spec.alpha
        self.background_, self._is_stream, self.n_iter_ = None, True, 0

    def add_words(self, words: int | Sequence[str]) -> Self:
        """Add words that the model has not seen, as further columns after the existing ones.

        Topics learn them in the next ``partial_fit``, whose X must have these columns, too.

        Parameters
        ----------
        words : int or sequence of str
            How many; or their names, if the columns have names.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> model = swiftem.PLSA(2, random_state=0).fit(np.array([[4, 3, 0, 0], [0, 0, 2, 5]]))
        >>> model = model.add_words(1).partial_fit(np.array([[3, 2, 0, 0, 4], [0, 0, 3, 3, 0]] * 9))
        >>> model.components_.shape, model.components_[:, 4].argmax() == model.components_[:, 0].argmax()
        ((2, 5), np.True_)
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        count, new = _new_words(words, names)
        if np.ndim(self.beta):
            raise ValueError(
                f"beta must be a number if words are added, got shape {np.shape(self.beta)}: set it again."
            )
        self._word_counts = np.pad(self._word_counts, ((0, 0), (0, count)))
        self.n_features_in_ += count
        if names is not None:
            self.feature_names_in_ = np.append(names, np.array(new, dtype=object))
        self.components_ = np.ascontiguousarray(m_step(self._word_counts, self._beta(self.n_features_in_)))
        return self

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
            return chunk_by_chunk(self.transform, X, columns=len(self.components_), dtype=np.float64)
        documents = self._documents(X, None, reset=False)
        assert not isinstance(documents, UnitDocuments)
        shares, _ = documents.fold_in(self.components_, self.alpha_, **FOLD_IN, likelihood=False)
        return cast("NDArray[np.float64]", like(X, shares))

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood per token of documents, which are folded in."""
        check_is_fitted(self)
        documents = self._documents(X, sample_weight, reset=False)
        return quality.mean_likelihood(documents, self.components_, self.alpha_, **FOLD_IN)

    def perplexity(self, X: Any, *, random_state: int = 0) -> float:
        """Return the perplexity of new documents by completion; lower is better.

        The tokens of each document are divided in two at random. One half is folded in, and the other half is
        predicted from the resulting topics: exp of minus its mean log-likelihood. No token is used for both,
        so that more topics do not look better than they are. The token of a document with one token is
        predicted from nothing. A word that is in no topic counts with probability 1e-12.
        """
        check_is_fitted(self)
        seen, hidden = quality.split_counts(self._counts(X), random_state)
        if not hidden.nnz:
            raise ValueError("X must have at least one token, got none.")
        documents = self._typed(read.documents_in_memory(seen, None, self.n_components, self.device, X))
        shares, _ = documents.fold_in(self.components_, self.alpha_, **FOLD_IN, likelihood=False)
        return quality.perplexity_of(hidden, shares, self.components_)

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
        words, count = self._words(names), check_int("n", n, minimum=0)
        order = np.argsort(-self._relevance(relevance), axis=1, kind="stable")[:, :count]
        return [[str(words[v]) for v in row] for row in order]

    def coherence(self, X: Any, *, measure: str = "npmi", n: int = 10, relevance: float = 1.0) -> Array:
        """Return how often each topic's top words occur together in documents, shape (K,).

        Parameters
        ----------
        X : array-like or sparse, shape (D, V)
            Counts of the documents to evaluate.
        measure : {"npmi", "umass"}
            Normalised pointwise mutual information, from −1 to 1, or the measure of Mimno et al. (2011).
        n : int
            Number of words per topic.
        relevance : float
            Which words these are, as in :meth:`top_words`: by default the most likely ones.
        """
        check_is_fitted(self)
        check_choice("measure", measure, ("npmi", "umass"))
        check_int("n", n, minimum=1)
        return quality.coherence_of(self._counts(X), self._relevance(relevance), measure, n)

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
        if other is not None and not hasattr(other, "components_"):
            raise TypeError(f"other must be a fitted PLSA, got {shown(other)}.")
        topics = self.components_ if other is None else np.asarray(other.components_)
        return quality.similarity(self.components_, topics, measure)

    def topic_prevalence(self) -> Array:
        """Return each topic's share of the training tokens, shape (K,)."""
        check_is_fitted(self)
        return np.asarray(self.topic_counts_ / self.topic_counts_.sum())

    def summary(self, n: int = 10) -> Table:
        """Return the topics with their shares and their ``n`` most relevant words, the most prevalent first.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> words = ["ape", "bee", "cod", "dog"]
        >>> swiftem.PLSA.from_counts([[4, 3, 0, 0], [0, 0, 2, 5]], names=words).summary(n=2)
        2 topics
        <BLANKLINE>
        topic  share  words
            0  50.0%  ape, bee
            1  50.0%  dog, cod
        """
        check_is_fitted(self)
        return quality.topic_table(self, n_words=check_int("n", n, minimum=0))

    def sorted_topics(self) -> Sequence[int]:
        """Return the topics' indices, the most prevalent first."""
        return [int(k) for k in np.argsort(-self.topic_prevalence(), kind="stable")]

    def representative_documents(self, X: Any = None, n: int = 5) -> Index:
        """Return the documents that have the largest shares of each topic.

        A background has the documents of which the other topics explain least.

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
        return quality.representative(shares, lengths, check_int("n", n, minimum=1))

    def topics_over(self, labels: ArrayLike, X: Any = None, *, background: bool = True) -> quality.TopicsOver:
        """Return the shares of topics in groups of documents: by author, by year.

        Parameters
        ----------
        labels : array-like, shape (D,)
            The group of each document: texts, numbers or dates.
        X : array-like or sparse, shape (D, V), optional
            Counts: each document then counts as many times as it has tokens. By default the documents of the
            fit, each of which counts once.
        background : bool
            Whether the background counts. If not, its share is 0, and the other topics' shares sum to 1.

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
        return quality.shares_by_label(labels, shares, lengths, None if background else self.background_)

    def merge_topics(self, groups: Sequence[Sequence[int]]) -> Self:
        """Return a copy of the model in which each group of topics is one topic.

        The words of a merged topic are the mean of its members', weighted by their tokens; ``doc_topic_``,
        ``topic_counts_`` and ``alpha`` are sums. A group that has the background in it is the background. The
        copy has no ``history_``, ``log_likelihood_`` and ``stationarity_``.

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
        members = quality.members_of(groups, len(self.components_))
        made = copy(self)
        made.n_components = len(members)
        made.components_ = quality.merged_topics(self.components_, self.topic_counts_, members)
        made.topic_counts_ = quality.sums(self.topic_counts_, members)
        made._word_counts = quality.sums(self._word_counts, members)
        made.alpha = made.alpha_ = quality.sums(self.alpha_, members)
        if self.background_ is not None:
            made.background_ = next(k for k, group in enumerate(members) if self.background_ in group)
        if np.ndim(self.beta) == 2:
            made.beta = quality.sums(np.asarray(in_numpy(self.beta)), members)
        if hasattr(self, "doc_topic_"):
            made.doc_topic_ = quality.sums(self.doc_topic_.T, members).T
        if not isinstance(self.init, str):
            made.init = "auto"
        made._forget(*OF_FIT)
        return made

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
        made.alpha_ = first_alpha(alpha, len(table))
        added = table + made._beta(table.shape[1])
        empty = np.flatnonzero(added.sum(axis=1) <= 0)
        if len(empty):
            raise ValueError(
                f"counts must have a positive entry in each row if beta is 0, got none in row {empty[0]}."
            )
        made.components_ = added / added.sum(axis=1, keepdims=True)
        made._word_counts, made._is_stream = table.copy(), False
        made.topic_counts_ = table.sum(axis=1) if table.any() else np.ones(len(table))
        made.n_features_in_, made.n_iter_ = table.shape[1], 0
        made.method_, made.converged_, made.history_ = "given", True, History()
        made.background_ = None
        if names is not None:
            made.feature_names_in_ = np.array([str(name) for name in made._words(names)], dtype=object)
        return made

    @classmethod
    def from_sklearn(cls, model: Any, names: Any = None) -> Self:
        """Return the topics of scikit-learn's ``LatentDirichletAllocation``, fitted.

        Parameters
        ----------
        model : LatentDirichletAllocation
            Its ``components_`` (K, V) without the prior are the counts; its priors become alpha and beta.
        names : sequence of str, or a fitted vectorizer, optional
            The words of the columns; by default the names that the model has, if any.

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
        from scipy.special import psi
        from sklearn.decomposition import LatentDirichletAllocation

        check_is_fitted(self)
        beta = np.broadcast_to(self._beta(self.components_.shape[1]), self.components_.shape)
        counts = self.components_ * (self.topic_counts_ + beta.sum(axis=1))[:, None]
        alpha_0, beta_0 = max(float(np.mean(self.alpha_)), LEAST_PRIOR), max(float(beta.mean()), LEAST_PRIOR)
        made = LatentDirichletAllocation(len(counts), doc_topic_prior=alpha_0, topic_word_prior=beta_0)
        made.components_ = np.maximum(counts, LEAST_PRIOR)
        expected_log = psi(made.components_) - psi(made.components_.sum(axis=1))[:, None]
        made.exp_dirichlet_component_ = np.exp(expected_log)
        made.doc_topic_prior_, made.topic_word_prior_ = alpha_0, beta_0
        made.n_features_in_, made.n_batch_iter_, made.n_iter_ = counts.shape[1], 1, self.n_iter_
        made.random_state_, made.bound_ = np.random.RandomState(0), float("nan")
        if hasattr(self, "feature_names_in_"):
            made.feature_names_in_ = self.feature_names_in_
        return made

    def to_pyldavis(self, X: Any, names: Any = None) -> dict[str, Any]:
        """Return the arguments of ``pyLDAvis.prepare``: ``prepare(**model.to_pyldavis(X))``.

        Parameters
        ----------
        X : array-like or sparse, shape (D, V)
            Counts of the documents to show. Documents without words, and words in none of them, are left out.
        names : sequence of str, or a fitted vectorizer, optional
            As in :meth:`top_words`.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> X = np.array([[4, 3, 0, 0], [0, 0, 2, 5]])
        >>> sorted(swiftem.PLSA(2, random_state=0).fit(X).to_pyldavis(X))
        ['doc_lengths', 'doc_topic_dists', 'term_frequency', 'topic_term_dists', 'vocab']
        """
        check_is_fitted(self)
        counts, words = self._counts(X), self._words(names)
        lengths, frequency = (np.asarray(counts.sum(axis=axis)).ravel() for axis in (1, 0))
        used = np.flatnonzero(frequency)
        if not len(used):
            raise ValueError("X must have at least one token, got none.")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")  # X may have had
            documents = np.asarray(self.transform(counts[lengths > 0]))  # a frame after set_output
        topics = self.components_[:, used]
        return {
            "topic_term_dists": topics / topics.sum(axis=1, keepdims=True),
            "doc_topic_dists": documents / documents.sum(axis=1, keepdims=True),
            "doc_lengths": lengths[lengths > 0],
            "vocab": [str(words[v]) for v in used.tolist()],
            "term_frequency": frequency[used],
        }


def _check_word_counts(counts: Array, beta: Array) -> None:
    """Raise ValueError if running counts are too large to add to, or to divide a topic's counts by.

    sem-vr may leave some of them, even a topic's total, below zero: these are read as zero.
    """
    totals = counts.sum(axis=1) + beta.sum(axis=1)
    least = LARGEST ** -(2 / 3) * np.abs(counts).max(axis=1)
    if not 1 / LARGEST <= counts.sum() <= LARGEST or ((totals > 0) & (totals < least)).any():
        raise ValueError("word_counts must have a positive sum, and totals that they can be divided by")


def _new_words(words: int | Sequence[str], names: ArrayLike | None) -> tuple[int, list[str]]:
    """Return the number of new words, and their names if the columns have names."""
    given = isinstance(words, Sequence | np.ndarray) and not isinstance(words, str | bytes | bytearray)
    new = [str(word) for word in np.ravel(np.asarray(words, dtype=object))] if given else []
    if isinstance(words, str | bytes | bytearray) or (given and not new):
        raise ValueError(f"words must be a positive number or a list of words, got {shown(words)}.")
    count = len(new) if given else check_int("words", words, minimum=1)
    if names is not None and not new:
        raise ValueError("words must be names, as the columns that the model was fitted with have names.")
    known = set() if names is None else set(np.asarray(names))
    twice = [word for number, word in enumerate(new) if word in known or word in new[:number]]
    if twice:
        raise ValueError(
            f"words must be new and distinct, got {shown(twice[0])}: already in the vocabulary or given "
            "twice."
        )
    return count, new
