"""Summary of fitted topics: their words, prevalence, coherence and typical documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from swiftem.data.documents.counts import CorpusCounts
from swiftem.topics.quality import relevance_of


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
    words : tuple of str
        The most likely words, in order.
    own_words : tuple of str
        Words that distinguish the topic: the most relevant ones as defined by Sievert and Shirley (2014), λ
        log p(w | k) + (1 − λ) log lift with λ = 0.5. In a corpus about forests "forest" is every
        topic's most likely word.
    given : str
        The name that somebody gave to the topic, or nothing.
    is_background : bool
        Whether it is the background, of words that are common to many topics.
    """

    number: int
    prevalence: float
    coherence: float
    words: tuple[str, ...]
    own_words: tuple[str, ...] = ()
    given: str = ""
    is_background: bool = False

    def label(self, n: int = 3) -> str:
        """Return the topic's most relevant words."""
        return ", ".join((self.own_words or self.words)[:n])

    def name(self, n: int = 3) -> str:
        """Return the given name, or words that are frequent in the topic and rare elsewhere."""
        return self.given or self.label(n)


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
    model: Any, corpus: CorpusCounts, *, n_words: int = 12, given: Sequence[str] | None = None
) -> TopicSummary:
    """Return the summary of a model that was fitted to a corpus.

    Parameters
    ----------
    model : PLSA
        Fitted to ``corpus.counts``.
    corpus : CorpusCounts
        The documents.
    n_words : int
        Words per topic.
    given : sequence of str, length K, optional
        Names of topics; an empty one is none.

    Examples
    --------
    >>> import swiftem
    >>> from swiftem.data.documents.corpus import count_texts
    >>> from swiftem.data.documents.counts import Texts
    >>> corpus = count_texts(Texts(["rice maize rice", "fish pond fish"] * 3, list("abcdef"), []))
    >>> model = swiftem.PLSA(2, random_state=0).fit(corpus.counts)
    >>> summary = summarise_topics(model, corpus, n_words=1)
    >>> sorted(topic.label() for topic in summary.topics)
    ['fish', 'rice']
    """
    components = np.asarray(model.components_)
    prevalence = np.asarray(model.topic_prevalence())
    coherence = np.asarray(model.coherence(corpus.counts, measure="npmi"))
    names = corpus.word_names()
    specific = relevance_of(components, prevalence @ components)
    topics = []
    for k in np.argsort(-prevalence, kind="stable").tolist():
        words, own = (
            tuple(names[v] for v in np.argsort(-values[k], kind="stable")[:n_words].tolist())
            for values in (components, specific)
        )
        name = given[k] if given else ""
        is_background = k == model.background_
        topics.append(Topic(k, float(prevalence[k]), float(coherence[k]), words, own, name, is_background))
    try:
        perplexity = float(model.perplexity(corpus.counts))
    except ValueError:  # no document has two tokens
        perplexity = float("nan")
    return TopicSummary(tuple(topics), len(corpus), corpus.counts.shape[1], corpus.n_tokens, perplexity)
