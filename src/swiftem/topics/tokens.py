"""The paper's topic model, probabilistic latent semantic analysis, section 4.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import STRONGEST, as_floats, check_int, check_real, check_simplex
from swiftem.core.compute import Compute, Placement, choose
from swiftem.core.model import BoundModel, Model
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array
from swiftem.topics.compute import TOKENS, numpy


class PLSATheta(NamedTuple):
    """Parameters of pLSA.

    Attributes
    ----------
    doc_topic : ndarray, shape (D, K)
        Topic probabilities of each document.
    topic_word : ndarray, shape (K, V)
        Word probabilities of each topic.
    topic_scale : ndarray, shape (K,)
        E-steps use ``topic_word`` times this. It is 1, except after sem-vr or fiem took an entry of the
        statistics below zero: reported topics are then divided by Σ_v max(s_kv, 0), but E-steps use Σ_v s_kv.
        With it θ is complete: E-steps, anchors and resumed runs need nothing else.
    """

    doc_topic: Array
    topic_word: Array
    topic_scale: Array


class PLSAStatistics(NamedTuple):
    """Statistics, means over tokens: ``doc_topic`` (D, K) and ``topic_word`` (K, V)."""

    doc_topic: Array
    topic_word: Array


@dataclass(frozen=True)
class PLSAModel(Model):
    r"""Topics of documents and words of topics, equation (comp_like_plsa); a sample is a token.

    The penalty is :math:`-\alpha' \sum_{d,k} \log \theta_{dk} - \beta' \sum_{k,v} \log \theta_{kv}`. It is
    relative to means over tokens: the pseudo-counts are n·α' and n·β' (:meth:`from_counts`).

    Parameters
    ----------
    n_topics : int
        K.
    alpha, beta : float
        α' and β'; zero switches the penalty off.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, swiftem
    >>> from swiftem import models, methods
    >>> counts = sp.csr_array([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]])
    >>> model = models.PLSAModel(n_topics=2, alpha=1e-4, beta=1e-4)
    >>> result = swiftem.run(model, counts, methods.EM(), n_iter=100, seed=0)
    >>> sorted(result.theta.topic_word.argmax(axis=1) // 2)
    [np.int64(0), np.int64(1)]
    """

    n_topics: int
    alpha: float = 1e-6
    beta: float = 1e-6

    def __post_init__(self) -> None:
        check_int("n_topics", self.n_topics, minimum=1)
        check_real("alpha", self.alpha, minimum=0.0, maximum=STRONGEST)
        check_real("beta", self.beta, minimum=0.0, maximum=STRONGEST)

    @classmethod
    def from_counts(cls, n_topics: int, data: Any, *, alpha: float = 0.1, beta: float = 0.05) -> PLSAModel:
        """Return the model with α and β in counts, as in :class:`swiftem.PLSA`, for given data.

        Parameters
        ----------
        n_topics : int
            K.
        data : sparse, shape (D, V), tuple (documents, words) of integers, or Source
            The training data: n is its number of tokens, or the sum of its weights.
        alpha, beta : float
            Counts added to each document's topics and to each topic's words: n·α' and n·β'.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from swiftem import models
        >>> counts = sp.csr_array([[3, 2, 0, 0], [0, 0, 4, 1]])
        >>> models.PLSAModel.from_counts(2, counts, alpha=0.1, beta=0.05)
        PLSAModel(n_topics=2, alpha=0.01, beta=0.005)
        """
        from swiftem.data.as_source import as_source

        total = as_source(data).total_weight
        for name, value in (("alpha", alpha), ("beta", beta)):
            check_real(name, value, minimum=0.0, maximum=STRONGEST)
        return cls(n_topics, alpha=alpha / total, beta=beta / total)

    def theta(self, *, doc_topic: ArrayLike, topic_word: ArrayLike) -> PLSATheta:
        """Return validated parameters for this model.

        Parameters
        ----------
        doc_topic : array-like, shape (D, K)
            Topic probabilities of each document.
        topic_word : array-like, shape (K, V)
            Word probabilities of each topic.
        """
        return self._checked(doc_topic, topic_word)

    def _checked(self, doc_topic: ArrayLike, topic_word: ArrayLike, prefix: str = "") -> PLSATheta:
        by_document = as_floats(f"{prefix}doc_topic", doc_topic, shape=(None, self.n_topics)).copy()
        by_topic = as_floats(f"{prefix}topic_word", topic_word, shape=(self.n_topics, None)).copy()
        check_simplex(f"{prefix}doc_topic", by_document)
        check_simplex(f"{prefix}topic_word", by_topic)
        return PLSATheta(by_document, by_topic, np.ones(self.n_topics))

    def unpack(self, s: Array, *, n_words: int) -> PLSAStatistics:
        """Return named views of flat statistics; D follows from their size and ``n_words``."""
        n_documents = np.size(s) // self.n_topics - check_int("n_words", n_words, minimum=1)
        if np.ndim(s) != 1 or n_documents < 1 or np.size(s) % self.n_topics:
            raise ValueError(
                f"s must have shape (K·(D + V),) with K = {self.n_topics}, V = {n_words}, got {np.shape(s)}."
            )
        split = n_documents * self.n_topics
        return PLSAStatistics(
            s[:split].reshape(n_documents, self.n_topics), s[split:].reshape(self.n_topics, n_words)
        )

    def bind(self, source: Source) -> BoundPLSA:
        """Return the model for these tokens."""
        if source.samples != "tokens":
            raise TypeError(
                "data must be a SciPy sparse matrix of counts or a tuple (documents, words) of integers "
                "for pLSA, got an array: wrap a dense matrix of counts in scipy.sparse.csr_array."
            )
        if source.n < self.n_topics:
            raise ValueError(f"data must have at least n_topics={self.n_topics} tokens, got {source.n}.")
        return BoundPLSA(self, source.n_documents, source.n_words)


@dataclass(frozen=True)
class BoundPLSA(BoundModel):
    """A :class:`PLSAModel` for D documents and V words."""

    model: PLSAModel
    n_documents: int
    n_words: int

    @property
    def size(self) -> int:  # type: ignore[override]
        """q, the length of the statistics."""
        return self.model.n_topics * (self.n_documents + self.n_words)

    @property
    def row_length(self) -> int:  # type: ignore[override]
        """Number of topics."""
        return self.model.n_topics

    def certificate_factors(self, s: Array) -> Array:
        """Return ones for the statistics of words, which determine the topics, and zeros for others."""
        factors = np.ones_like(s)
        self.unpack(factors).doc_topic[...] = 0.0
        return factors

    def compute(self, source: Source, placement: Placement) -> Compute:
        """Return the E-steps in the first technology that can be used."""
        # A subclass may differ from what is compiled.
        return choose(TOKENS if type(self) is BoundPLSA else (), self, source, placement)

    def initial_theta(self, rng: np.random.Generator) -> PLSATheta:
        """Return random topics (flat Dirichlet) and uniform documents."""
        shape = (self.n_documents, self.model.n_topics)
        topics = rng.dirichlet(np.ones(self.n_words), size=self.model.n_topics)
        return PLSATheta(np.full(shape, 1.0 / self.model.n_topics), topics, np.ones(self.model.n_topics))

    def check_theta(self, theta: Any, name: str = "theta0") -> PLSATheta:
        """Return ``theta``, checked against model and data."""
        if not isinstance(theta, PLSATheta):
            raise TypeError(
                f"{name} must be made by model.theta(doc_topic=, topic_word=), got {type(theta).__name__}."
            )
        checked = self.model._checked(theta.doc_topic, theta.topic_word, f"{name}.")
        for part, have, want in (
            ("doc_topic", checked.doc_topic, (self.n_documents, self.model.n_topics)),
            ("topic_word", checked.topic_word, (self.model.n_topics, self.n_words)),
        ):
            if have.shape != want:
                raise ValueError(f"{name}.{part} must have shape {want} for these data, got {have.shape}.")
        scale = as_floats(f"{name}.topic_scale", theta.topic_scale, shape=(self.model.n_topics,))
        if not (scale > 0).all():
            raise ValueError(f"{name}.topic_scale must be positive, got {scale.min():g}.")
        return checked._replace(topic_scale=scale.copy())

    def posterior(self, batch: Batch, theta: PLSATheta) -> tuple[Array, Array]:
        """E-step: topic probabilities of the tokens (b, K) and log-likelihood (b,)."""
        return numpy.posterior(batch.y, theta.doc_topic, theta.topic_word, theta.topic_scale)

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the tokens' statistics, shape (K·(D + V),)."""
        return numpy.statistics(batch.y, rows, weight, self.n_documents, self.n_words)

    def m_step(self, s: Array) -> PLSATheta:
        """Equation (mstep_plsa), with negative entries read as zero; see :class:`PLSATheta`."""
        by_document, by_topic = self.unpack(s)
        documents = np.maximum(by_document, 0.0) + self.model.alpha
        tokens = documents.sum(axis=1, keepdims=True)
        uniform = np.full_like(documents, 1.0 / self.model.n_topics)
        doc_topic = np.divide(documents, tokens, out=uniform, where=tokens > 0)
        topics = np.maximum(by_topic, 0.0) + self.model.beta
        reported = topics.sum(axis=1)
        working = by_topic.sum(axis=1) + self.model.beta * self.n_words
        return PLSATheta(doc_topic, topics / reported[:, None], reported / working)

    def penalty(self, theta: PLSATheta) -> float:
        """Return −α' Σ log doc_topic − β' Σ log topic_word."""
        value = 0.0
        for strength, part in ((self.model.alpha, theta.doc_topic), (self.model.beta, theta.topic_word)):
            if strength > 0:
                with np.errstate(divide="ignore"):
                    value -= strength * float(np.log(part).sum())
        return value

    def in_domain(self, s: Array) -> bool:
        """Return whether Σ_v s_kv + β'V > 0 for all k."""
        totals = self.unpack(s).topic_word.sum(axis=1)
        return bool((totals + self.model.beta * self.n_words > 0).all())

    def unpack(self, s: Array) -> PLSAStatistics:
        """Return named views of flat statistics of shape (K·(D + V),)."""
        if np.shape(s) != (self.size,):
            raise ValueError(f"s must have shape ({self.size},), got {np.shape(s)}.")
        return self.model.unpack(s, n_words=self.n_words)
