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
from swiftem.core.checks import check_real
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
    one_of,
    with_callbacks,
)
from swiftem.fit.stopping import MOST_PASSES
from swiftem.fit.watch import NoStart, VerboseLines, Watcher
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.file import TopicFile
from swiftem.topics.first_topics import INITS
from swiftem.topics.fit import TopicFit, TopicFitting
from swiftem.topics.input import TopicInput
from swiftem.topics.learned_alpha import LEARN
from swiftem.topics.plan import METHODS, SAMPLING, contrast_for, plan_topics
from swiftem.topics.queries import TopicQueries
from swiftem.topics.relations import TopicRelations
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
    method : "auto" or a name in :data:`swiftem.methods.METHODS`
        How to fit. "auto" reads each document once by sem and continues with leave-one-out em; see
        :mod:`swiftem.topics.plan`.
    init : {"auto", "random", "k-means"} or array-like of shape (K, V)
        Initial topics: random ones, the words of clusters of documents, or given ones. "auto" is clusters for
        "auto", sem and sem-vr by documents if there are at least 500 documents, else random.
    n_init : int or "auto"
        Number of starts; the best one after ten passes over at most 2,000 documents is used. "auto" is 2 to 6
        for clusters with method="auto", fewer for many topics, else 1.
    leave_one_out : bool or "auto"
        Whether em leaves each token out of the counts that explain it, as CVB0 does: short documents are not
        overfitted. Fixed points are not those of the likelihood. "auto" does so for method="auto".
    precision : {"auto", "float32", "float64"}
        What passes over more than a few documents compute in; results and sums over documents are float64.
        "auto" is float32, in which a pass takes half as long, unless ``tol`` is below 1e-6, counts, weights
        or priors are below 1e-6 or above 1e6, or em is accelerated.
    sampling : {"auto", "documents", "tokens"}
        What a stochastic method draws: batches of documents (sem, sem-vr), or tokens as in the paper (all).
    batch_size : int or "auto"
        Documents or tokens per iteration of a stochastic method.
    step_size : float, callable or "auto"
        Step size of sem, sem-vr or fiem.
    acceleration : {"squarem", "anderson"} or None
        Larger steps of em (:class:`swiftem.methods.Accelerated`), for counts in memory; "auto" is then em.
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
        "method": [one_of(METHODS)],
        "init": [one_of(INITS), ARRAY],
        "n_init": [one_of(["auto"]), AT_LEAST_ONE],
        "leave_one_out": [one_of(["auto"]), BOOLEAN],
        "precision": [one_of(["auto", "float32", "float64"])],
        "sampling": [one_of(SAMPLING)],
        "max_iter": [AT_LEAST_ONE],
    }

    n_components: int = 10
    _: KW_ONLY
    alpha: ArrayLike | str = 0.1
    beta: ArrayLike | str = "auto"
    background: bool | str = "auto"
    decorrelation: float | str = "auto"
    method: str = "auto"
    init: Any = "auto"
    n_init: int | str = "auto"
    leave_one_out: bool | str = "auto"
    precision: str = "auto"
    sampling: str = "auto"
    batch_size: int | str = "auto"
    step_size: Any = "auto"
    acceleration: str | None = None
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
        alpha, beta = self._first_alpha(), self._beta(documents.n_words)
        plan = plan_topics(
            self.method,
            self.sampling,
            self.batch_size,
            self.step_size,
            n_documents=documents.n,
            acceleration=self.acceleration,
        )
        self._check_memory(documents, plan)
        if plan.by_tokens is not None and (np.ptp(alpha) or np.ptp(beta)):
            numbers = "alpha and beta must be numbers if tokens are drawn: use sampling='documents' or em."
            raise ValueError(numbers)
        leave_one_out, passes = self._leaves_one_out(plan.name), min(int(self.max_iter), MOST_PASSES)
        tol = check_real("tol", self.tol, minimum=0.0)
        background, decorrelation = contrast_for(
            self.background,
            self.decorrelation,
            self.method,
            plan,
            n_components=len(alpha),
            given=len(beta) > 1 or not isinstance(self.init, str),
            learns_alpha=self._learns_alpha,
            acceleration=self.acceleration,
        )
        # Of documents in blocks only their topics are stored, see _check_memory.
        limits = budget()
        fitting = TopicFitting(
            documents,
            alpha,
            beta,
            plan,
            passes,
            tol,
            leave_one_out,
            self.acceleration,
            background,
            decorrelation,
            self._learns_alpha,
            isinstance(self.init, str),
            limits if plan.by_tokens is not None else limits._replace(limit=None),
        )

        def make() -> tuple[list[Array], int]:
            random_state = check_random_state(self.random_state)
            starts = self._starts(documents, beta, random_state)
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
        if kept is not None and plan.by_tokens is not None:
            size = len(alpha) * (documents.n + documents.n_words)
            kept.allocate = fitting.budget.reserve(
                fitting.tokens, plan.by_tokens, statistics=size
            ).make_memory
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
        self.method_, self.history_ = fitting.plan.name, History(fit.moments)
        self.converged_, self.n_iter_ = fit.converged, int(np.ceil(fit.passes - fit.tried - 1e-9))
        self.components_ = np.ascontiguousarray(fit.topics)
        self._learned_alpha, self.background_ = fit.alpha, 0 if fit.has_background else None
        ahead = documents.allocate(fit.doc_topic.shape)
        for rows in row_blocks(ahead, fit.doc_topic):
            ahead[rows] = fit.doc_topic[rows]
        after, value = fitting.e_step(fit, ahead)
        # Batches leave documents in the state of their last reading.
        self.doc_topic_ = fit.doc_topic if fitting.plan.by_documents is None else ahead
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
