"""``swiftem.PLSA``: topics of texts, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from swiftem.core.checkpoint import check_form
from swiftem.core.files import row_blocks
from swiftem.core.messages import warn
from swiftem.core.problem import relative_change
from swiftem.core.types import Array
from swiftem.fit.checkpoint import FitCheckpoint, place_of
from swiftem.fit.config import budget
from swiftem.fit.estimator import Estimator
from swiftem.fit.history import History
from swiftem.fit.interrupted import InterruptedWarning
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
from swiftem.fit.watch import NoStart, VerboseLines, Watcher
from swiftem.methods import Method
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.streamed import StreamedDocuments
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.file import TopicFile
from swiftem.topics.fit import TopicFit, TopicFitting
from swiftem.topics.input import TopicInput, facts_of, fit_into_memory
from swiftem.topics.learned_alpha import LEARN
from swiftem.topics.queries import TopicQueries
from swiftem.topics.relations import TopicRelations
from swiftem.topics.resolve import INITS, METHOD_NAMES, resolve
from swiftem.topics.stream import TopicStream

__all__ = ["PLSA"]


@dataclass(eq=False, repr=False)
class PLSA(
    VerboseLines,
    TopicInput,
    TopicStream,
    TopicFile,
    TopicRelations,
    TopicQueries,
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
        each of em's passes; see :mod:`swiftem.topics.learned_alpha`.
    beta : float, array-like of shape (V,) or (K, V), or "auto"
        Counts added to each topic's words; "auto" is the smaller of 0.05 and 1/K. One row per topic makes
        seed words: a large number draws a word into a topic.
    background : bool or "auto"
        Whether topic 0 is a background: it starts at the corpus' word frequencies, or at the first of given
        topics, and words that are common to many topics move to it. "auto" is True for method="auto" if there
        are at least 500 documents, 8 topics, and neither seed words nor given topics.
    decorrelation : float or "auto"
        How strongly topics other than the background repel each other: larger values make topics more
        distinct, and predictions a little worse; see :mod:`swiftem.topics.contrast`. "auto" is 30
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
        Topics of the training documents; rows sum to 1. Those of :meth:`transform` may differ: it folds
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
        Relative distance of the expected counts from those of one more E-step: 0 at a stationary point.
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def alpha_(self) -> Array:
        """α of each topic, shape (K,), as given or learned."""
        if not hasattr(self, "components_"):
            raise AttributeError("alpha_ is known after a fit.")
        return self._alpha()

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

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
        documents, there = self._documents(X, sample_weight, reset=True)
        spec = resolve(self.get_params(deep=False), facts_of(documents))
        limits = budget()
        if isinstance(documents, StreamedDocuments):
            fit_into_memory(documents, spec, limits)
        if not isinstance(documents, UnitDocuments):
            documents.dtype = spec.dtype
        draws_tokens = spec.draws == "tokens"
        # Of documents in blocks only their topics are stored.
        fitting = TopicFitting(documents, spec, limits if draws_tokens else limits._replace(limit=None))

        def make() -> tuple[list[Array], int]:
            random_state = check_random_state(self.random_state)
            starts = self._starts(documents, spec, random_state)
            return starts, int(random_state.randint(np.iinfo(np.int32).max))

        def check(made: Any) -> None:
            found, seed_of = made
            for topics in found:
                check_form("a start", topics, np.empty((self.n_components, documents.n_words)))
            if not found or type(seed_of) is not int:
                raise ValueError("there is no start, or no seed")

        place, kept = place_of(self), None
        if place is not None:
            kept = FitCheckpoint(place, type(self).__name__, self.get_params(deep=False), documents)
        if kept is not None and draws_tokens:
            size = len(spec.alpha) * (documents.n + documents.n_words)
            kept.allocate = fitting.budget.reserve(fitting.tokens, spec.method, statistics=size).make_memory
        with kept or nullcontext(), Watcher(self, 1, X, y, sample_weight) as watcher:
            starts, seed = make() if kept is None else kept.starts(make, check)
            keeper = NoStart() if kept is None else kept.of_start(0)
            (fit,) = watcher.map(lambda number, watch: fitting.fit(starts, seed, watch, keeper))
            self._keep(fit, fitting)
            if isinstance(documents, UnitDocuments):  # they stay where they are
                del self.doc_topic_
            if there is not None:
                assert isinstance(documents, Documents)
                counts = self._counts(X, reset=False)
                every = self._in_memory(counts, None, X)
                every.dtype = documents.dtype
                found = every.fold_in(self.components_, self._alpha())[0]
                found[there] = self.doc_topic_
                self.doc_topic_ = found
            watcher.is_fitted = True
        return self

    def _keep(self, fit: TopicFit, fitting: TopicFitting) -> None:
        """Set the attributes, certify them by one more pass, and issue warnings."""
        documents = fitting.documents
        self.method_, self.history_ = fitting.spec.method.name, History(fit.moments)
        self.converged_, self.n_iter_ = fit.converged, int(np.ceil(fit.passes - fit.tried - 1e-9))
        self.components_ = np.ascontiguousarray(fit.topics)
        self._learned_alpha, self.background_ = fit.alpha, 0 if fit.has_background else None
        ahead = documents.allocate(fit.doc_topic.shape)
        for rows in row_blocks(ahead, fit.doc_topic):
            ahead[rows] = fit.doc_topic[rows]
        after, value = fitting.e_step(fit, ahead)
        by_batches = fitting.spec.draws == "documents" and not fitting.spec.is_em
        # Batches leave documents in the state of their last reading.
        self.doc_topic_ = ahead if by_batches else fit.doc_topic
        self.log_likelihood_ = value / documents.total
        counts = after if fit.counts is None else fit.counts
        self.stationarity_ = relative_change(counts, fitting.contrasted(after))
        self.topic_counts_ = after.sum(axis=1)
        self._word_counts, self._is_stream = np.ascontiguousarray(counts), False
        if fit.interrupted:
            warn(
                f"The fit was interrupted after {fit.passes:.1f} passes; the model is as it was then.",
                InterruptedWarning,
            )
        elif not fit.converged:
            unfinished = f"The fit did not converge in {self.n_iter_} passes. Increase max_iter or tol."
            warn(unfinished, ConvergenceWarning)

    def attributes_of(self, fit: TopicFit) -> dict[str, Any]:
        """Return the attributes of a fit that would stop now, for callbacks."""
        fit.fetch()
        return {"components_": fit.topics, "doc_topic_": fit.doc_topic}

    def _print_verbose_msg_init_beg(self, number: int) -> None:
        print(f"{self.n_components} topics")
