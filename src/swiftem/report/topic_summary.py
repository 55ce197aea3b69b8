"""What there is to show of fitted topics: their words, prevalence, coherence and typical documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array
from swiftem.data.documents.corpus_counts import CorpusCounts

__all__ = ["Topic", "TopicSummary", "TopicWord", "TypicalDocument", "summarise_topics"]

LAMBDA = 0.6
SHORT = 0.1
"""Documents of this share of the median length have half the weight when typical ones are looked for."""


class TopicWord(NamedTuple):
    """A word of a topic.

    Attributes
    ----------
    word : str
        The word.
    probability : float
        Share of the topic's tokens that are this word.
    lift : float
        How much likelier the word is in the topic than in the corpus.
    share : float
        Share of the word's tokens that are of this topic: 1 when it is used nowhere else.
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
        Share of the corpus' tokens that are of this topic.
    coherence : float
        NPMI of its first ten words, from −1 to 1; NaN where it was not computed.
    words : tuple of TopicWord
        The likeliest, in order.
    documents : tuple of TypicalDocument
        The most typical, in order.
    own_words : tuple of str
        Words that tell the topic from others: the most relevant in the sense of Sievert and Shirley (2014),
        λ log p(w | k) + (1 − λ) log lift with their λ = 0.6. In a corpus about forests every topic's
        likeliest word is "forest".
    """

    number: int
    prevalence: float
    coherence: float
    words: tuple[TopicWord, ...]
    documents: tuple[TypicalDocument, ...]
    own_words: tuple[str, ...] = ()

    def label(self, n: int = 3) -> str:
        """Return the topic's likeliest words."""
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
        Of the corpus, by completion; NaN where it could not be computed.
    """

    topics: tuple[Topic, ...]
    n_documents: int
    n_words: int
    n_tokens: float
    perplexity: float


def summarise_topics(
    model: Any, corpus: CorpusCounts, shares: Array | None = None, *, n_words: int = 12, n_documents: int = 3
) -> TopicSummary:
    """Return what there is to show of a model that was fitted to a corpus.

    Parameters
    ----------
    model : PLSA
        Fitted to ``corpus.counts``.
    corpus : CorpusCounts
        The documents.
    shares : ndarray, shape (D, K), optional
        The documents' topics; by default those that the model's ``transform`` finds.
    n_words, n_documents : int
        Words and typical documents of each topic.

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
    """Return documents with much of a topic; a few words prove little, and the same text is shown once."""
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
