"""Summary of fitted topics: their words, prevalence, coherence and typical documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array
from swiftem.data.documents.corpus_counts import CorpusCounts

__all__ = ["Topic", "TopicSummary", "TopicWord", "TypicalDocument", "summarise_topics"]

LAMBDA = 0.6
SHORT = 0.1
"""Documents of this share of the median length have half the weight in the search for typical ones."""


class TopicWord(NamedTuple):
    """A word of a topic.

    Attributes
    ----------
    word : str
        The word.
    probability : float
        This word's share of the topic's tokens.
    lift : float
        Probability of the word in the topic, relative to the corpus.
    share : float
        This topic's share of the word's tokens: 1 if it is used nowhere else.
    """

    word: str
    probability: float
    lift: float
    share: float


class TypicalDocument(NamedTuple):
    """A document that is mostly of one topic: its name, its beginning (or nothing), the topic's share."""

    name: str
    text: str
    share: float


@dataclass(frozen=True)
class Topic:
    """One topic.

    Attributes
    ----------
    number : int
        Its row in ``components_``, from 0.
    prevalence : float
        The topic's share of the corpus' tokens.
    coherence : float
        NPMI of its first ten words, from −1 to 1; NaN if it was not computed.
    words : tuple of TopicWord
        The most likely words, in order.
    documents : tuple of TypicalDocument
        The most typical documents, in order.
    own_words : tuple of str
        Words that distinguish the topic: the most relevant ones as defined by Sievert and Shirley (2014), λ
        log p(w | k) + (1 − λ) log lift with their λ = 0.6. In a corpus about forests "forest" is every
        topic's most likely word.
    """

    number: int
    prevalence: float
    coherence: float
    words: tuple[TopicWord, ...]
    documents: tuple[TypicalDocument, ...]
    own_words: tuple[str, ...] = ()

    def label(self, n: int = 3) -> str:
        """Return the topic's most likely words."""
        return ", ".join(word.word for word in self.words[:n])

    def name(self, n: int = 3) -> str:
        """Return words that are frequent in the topic and rare elsewhere."""
        return ", ".join(self.own_words[:n]) or self.label(n)


@dataclass(frozen=True)
class TopicSummary:
    """All topics, the most prevalent first, and the size of the corpus.

    Attributes
    ----------
    topics : tuple of Topic
        The most prevalent first.
    n_documents, n_words : int
        Of the corpus.
    n_tokens : float
        Sum of all counts.
    perplexity : float
        Of the corpus, by completion; NaN if it could not be computed.
    """

    topics: tuple[Topic, ...]
    n_documents: int
    n_words: int
    n_tokens: float
    perplexity: float


def summarise_topics(
    model: Any, corpus: CorpusCounts, shares: Array | None = None, *, n_words: int = 12, n_documents: int = 3
) -> TopicSummary:
    """Return the summary of a model that was fitted to a corpus.

    Parameters
    ----------
    model : PLSA
        Fitted to ``corpus.counts``.
    corpus : CorpusCounts
        The documents.
    shares : ndarray, shape (D, K), optional
        The documents' topics; by default those of the model's ``transform``.
    n_words, n_documents : int
        Words and typical documents per topic.

    Examples
    --------
    >>> import swiftem
    >>> from swiftem.data.documents.read_corpus import count_texts
    >>> from swiftem.data.documents.corpus_counts import Texts
    >>> corpus = count_texts(Texts(["rice maize rice", "fish pond fish"] * 3, list("abcdef"), []))
    >>> model = swiftem.PLSA(2, random_state=0).fit(corpus.counts)
    >>> summary = summarise_topics(model, corpus, n_words=1)
    >>> sorted(topic.label() for topic in summary.topics)
    ['fish', 'rice']
    """
    lengths = np.asarray(corpus.counts.sum(axis=1), dtype=np.float64).ravel()
    doc_topic = np.asarray(model.transform(corpus.counts) if shares is None else shares)
    components = np.asarray(model.components_)
    prevalence = np.asarray(model.topic_prevalence())
    coherence = np.asarray(model.coherence(corpus.counts, measure="npmi"))
    names = corpus.word_names()
    marginal = prevalence @ components
    weight = lengths / (lengths + SHORT * float(np.median(lengths)))
    topics = []
    for k in np.argsort(-prevalence, kind="stable").tolist():
        words = []
        for v in np.argsort(-components[k], kind="stable")[:n_words].tolist():
            lift = float(components[k, v] / marginal[v]) if marginal[v] > 0 else 1.0
            words.append(TopicWord(names[v], float(components[k, v]), lift, lift * float(prevalence[k])))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p, log_all = np.log(components[k]), np.log(marginal)
            relevance = np.nan_to_num(log_p - (1 - LAMBDA) * log_all, nan=-np.inf)
        own = tuple(names[v] for v in np.argsort(-relevance, kind="stable")[:n_words].tolist())
        typical = _typical(corpus, doc_topic[:, k], weight, n_documents)
        topics.append(Topic(k, float(prevalence[k]), float(coherence[k]), tuple(words), typical, own))
    try:
        perplexity = float(model.perplexity(corpus.counts))
    except ValueError:  # no document has two tokens
        perplexity = float("nan")
    return TopicSummary(tuple(topics), len(corpus), corpus.counts.shape[1], corpus.n_tokens, perplexity)


def _typical(corpus: CorpusCounts, share: Array, weight: Array, n: int) -> tuple[TypicalDocument, ...]:
    """Return documents with a large share of a topic; short ones count less, equal texts are shown once."""
    found: list[TypicalDocument] = []
    seen: set[str] = set()
    for place in np.argsort(-share * weight, kind="stable").tolist():
        if len(found) == n or (found and share[place] < 0.1):
            break
        text = "" if corpus.texts is None else corpus.texts[place]
        if text and text in seen:
            continue
        seen.add(text)
        found.append(TypicalDocument(corpus.names[place], text, float(share[place])))
    return tuple(found)
