"""Summary of fitted topics, and what the explorer shows, as JSON: packed numbers, a page below 3 MB."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.types import Array, Index
from swiftem.data.documents.counts import CorpusCounts
from swiftem.topics.explorer.groups import DocumentGroups, tokens_by_group
from swiftem.topics.quality import LAMBDA, relevance_of, representative

if TYPE_CHECKING:
    from swiftem.topics.plsa import PLSA

WORD = re.compile(r"[^\W\d_]+")

LEAST = 1e-5
"""Words below this probability in every topic are not in the page."""
LOWEST = -12.0
"""Logarithm of a probability that is packed as 0; 65535 is probability 1."""
ENTRIES = 180_000
"""Pairs of topic and word, at most, of which the likeliest are kept: 1 MB."""
DOCUMENTS = 10_000
"""Documents that can be searched, at most."""
NAMES, TEXTS, PASSAGES = 400_000, 500_000, 300_000
"""Bytes of documents' names, of beginnings of documents, and of passages of those that are typical."""
NAME, TEXT, PASSAGE = 80, 120, 320
"""Characters of one of them, at most."""
TYPICAL, WITH_WORD, SHOWN_TOPICS = 8, 4, 5
"""Typical documents per topic, documents per word, topics per document."""
HEIGHT = 0.72
"""Height of the map; its width is 1."""
FILLED, LARGEST, SMALLEST = 0.4, 0.12, 0.012
"""Share of the map that circles cover, and bounds of their radii."""
GAP = 0.006
"""Minimum distance between circles."""
NEAREST = 4
"""Neighbours that a topic is linked with to measure distances along the map."""
COLOURS = 8


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
        Of the corpus, by completion.
    """

    topics: tuple[Topic, ...]
    n_documents: int
    n_words: int
    n_tokens: float
    perplexity: float


def summarise_topics(
    model: PLSA, corpus: CorpusCounts, *, n_words: int = 12, given: Sequence[str] | None = None
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
    perplexity = model.perplexity(corpus.counts)
    return TopicSummary(tuple(topics), len(corpus), corpus.counts.shape[1], corpus.n_tokens, perplexity)


def explorer_content(
    model: PLSA,
    corpus: CorpusCounts,
    shares: Array,
    summary: TopicSummary,
    *,
    title: str,
    names: Sequence[str] | None = None,
    by: tuple[str, DocumentGroups] | None = None,
) -> dict[str, Any]:
    """Return the content of the page, for :func:`as_json`.

    Parameters
    ----------
    model : PLSA
        Fitted to ``corpus.counts`` (D, V).
    corpus : CorpusCounts
        The documents.
    shares : ndarray, shape (D, K)
        The documents' topics.
    summary : TopicSummary
        The topics' shares and coherence.
    title : str
        Name of the corpus.
    names : sequence of str, length K, optional
        Names of topics; an empty one is made of words.
    by : tuple of str and DocumentGroups, optional
        Name of a column, and the groups of documents by its values.
    """
    components, prevalence = np.asarray(model.components_), np.asarray(model.topic_prevalence())
    similarity = model.topic_similarity(measure="hellinger")
    place = topic_map(similarity, prevalence)
    by_number = sorted(summary.topics, key=lambda topic: topic.number)
    kept = np.flatnonzero(components.max(axis=0) >= LEAST)
    typical = _typical(corpus, shares)
    chosen, inverse = _searched(len(corpus), typical)
    content: dict[str, Any] = {
        "title": title,
        "lambda": LAMBDA,
        "height": HEIGHT,
        "totals": [summary.n_documents, summary.n_tokens, summary.n_words],
        "topics": [
            {
                "name": names[topic.number] if names else "",
                "share": round(topic.prevalence, 6),
                "coherence": round(topic.coherence, 3) if isfinite(topic.coherence) else None,
                "x": round(float(place.x[k]), 4),
                "y": round(float(place.y[k]), 4),
                "r": round(float(place.radius[k]), 4),
                "colour": int(place.colour[k]),
                "documents": inverse[typical[k]].tolist(),
                **({"background": True} if topic.is_background else {}),
            }
            for k, topic in enumerate(by_number)
        ],
        "similarity": _packed(np.rint(255 * similarity), np.uint8),
        "words": [corpus.word_names()[v] for v in kept.tolist()],
        "entries": _entries(components[:, kept]),
        "documents": _documents(corpus, components, prevalence, shares, chosen, typical),
    }
    content |= _of_words(corpus, (prevalence @ components)[kept], kept, inverse)
    if by is not None:
        content["by"] = _groups(corpus, shares, chosen, *by)
    content["key"] = sha256(as_json(content).encode("utf-8", "replace")).hexdigest()[:16]
    return content


def as_json(content: Any) -> str:
    r"""Return JSON that can stand in a script element: no text in it can end the element.

    >>> as_json({"word": "</script>"})
    '{"word":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _packed(values: Any, dtype: Any) -> str:
    """Return numbers as base64, little-endian."""
    array = np.ascontiguousarray(values, dtype=np.dtype(dtype).newbyteorder("<"))
    return b64encode(array.tobytes()).decode()


def _whole(counts: NDArray[Any]) -> NDArray[Any]:
    """Return counts as whole numbers that fit into 32 bits."""
    found: NDArray[Any] = np.minimum(np.rint(counts), 2**32 - 1)
    return found


def _entries(components: Array) -> dict[str, str]:
    """Return probabilities of words in topics: where each topic begins, words, and logarithms as uint16."""
    least = LEAST
    if (components >= least).sum() > ENTRIES:
        least = max(least, float(np.partition(components.ravel(), -ENTRIES)[-ENTRIES]))
    topic, word = np.nonzero(components >= least)
    logarithm = np.log(components[topic, word])
    return {
        "start": _packed(np.searchsorted(topic, np.arange(len(components) + 1)), np.uint32),
        "word": _packed(word, np.uint32 if components.shape[1] > 65535 else np.uint16),
        "p": _packed(np.rint(65535 * (1 - np.maximum(logarithm, LOWEST) / LOWEST)), np.uint16),
    }


def _typical(corpus: CorpusCounts, shares: Array) -> list[Index]:
    """Return typical documents of each topic; equal texts are there once."""
    lengths = np.asarray(corpus.counts.sum(axis=1), dtype=np.float64).ravel()
    found = []
    for k, row in enumerate(representative(shares, lengths, 4 * TYPICAL)):
        texts: dict[Any, int] = {}
        for document in row.tolist():
            if shares[document, k] >= 0.1 or not texts:
                texts.setdefault(corpus.texts[document] if corpus.texts else document, document)
        found.append(np.array(list(texts.values())[:TYPICAL], dtype=np.intp))
    return found


def _searched(n: int, typical: Sequence[Index]) -> tuple[Index, Index]:
    """Return the documents of the page, and the index of each document among them, or −1."""
    chosen = np.zeros(n, dtype=bool)
    chosen[np.concatenate(list(typical))] = True
    others = np.flatnonzero(~chosen)
    room = max(0, DOCUMENTS - int(chosen.sum()))
    if room < len(others):
        others = others[np.linspace(0, len(others) - 1, room).astype(np.intp)] if room else others[:0]
    chosen[others] = True
    found = np.flatnonzero(chosen)
    inverse = np.full(n, -1, dtype=np.intp)
    inverse[found] = np.arange(len(found))
    return found, inverse


def _documents(
    corpus: CorpusCounts,
    components: Array,
    prevalence: Array,
    shares: Array,
    chosen: Index,
    typical: Sequence[Index],
) -> dict[str, Any]:
    """Return names, lengths, topics and texts of documents."""
    names = corpus.word_names()
    topics_of: dict[int, int] = {}
    for k, documents in enumerate(typical):
        for document in documents.tolist():
            if shares[document, k] >= shares[document, topics_of.get(document, k)]:
                topics_of[document] = k
    weights: list[dict[str, float]] = []
    for k, row in enumerate(relevance_of(components, prevalence @ components)):
        likeliest = np.argsort(-row, kind="stable")[:200].tolist()
        weights.append({part: float(components[k, v]) for v in likeliest for part in names[v].split()})
    beginnings = corpus.texts or ()
    short = _room(beginnings, TEXT, TEXTS, len(chosen) - len(topics_of))
    long = _room(beginnings, PASSAGE, PASSAGES, len(topics_of))
    texts = []
    for document in chosen.tolist() if beginnings else []:
        of = topics_of.get(document)
        words, length = ({}, short) if of is None else (weights[of], long)
        texts.append(passage(beginnings[document], words, length))
    room = _room(corpus.names, NAME, NAMES, len(chosen))
    most = min(SHOWN_TOPICS, shares.shape[1])
    top = np.argsort(-shares[chosen], axis=1, kind="stable")[:, :most]
    return {
        "names": [_shortened(corpus.names[document], room) for document in chosen.tolist()],
        "lengths": _packed(_whole(np.asarray(corpus.counts.sum(axis=1)).ravel()[chosen]), np.uint32),
        "topics": _packed(top, np.uint16),
        "shares": _packed(np.rint(65535 * np.take_along_axis(shares[chosen], top, axis=1)), np.uint16),
        "each": most,
        "texts": texts,
    }


def _room(texts: Sequence[str], length: int, size: int, count: int) -> int:
    """Return how many characters of each of ``count`` texts can be shown in ``size`` bytes."""
    some = [text[:length] for text in texts[:: max(1, len(texts) // 1000)]]
    characters, used = sum(map(len, some)), sum(len(text.encode("utf-8", "replace")) for text in some)
    if not count or not used or used / len(some) * count <= size:
        return length
    return min(length, int(size / count * characters / used))


def _shortened(name: str, length: int) -> str:
    return name if len(name) <= length else name[: max(1, length - 1)] + "…"


def _of_words(corpus: CorpusCounts, marginal: Array, kept: Index, inverse: Index) -> dict[str, str]:
    """Return probabilities, counts and documents of words: those in which a word is most frequent."""
    counts = corpus.counts[:, kept].tocsc()
    found = np.full((len(kept), WITH_WORD), 0xFFFFFFFF, dtype=np.uint32)
    length = np.sqrt(np.maximum(np.asarray(corpus.counts.sum(axis=1), dtype=np.float64).ravel(), 1.0))
    for v in range(len(kept)):
        part = slice(counts.indptr[v], counts.indptr[v + 1])
        rows: NDArray[Any] = counts.indices[part]
        there = inverse[rows] >= 0
        rows, value = rows[there], counts.data[part][there] / length[rows[there]]
        if len(rows) > 10 * WITH_WORD:
            first = np.argpartition(-value, WITH_WORD)[: 2 * WITH_WORD]
            rows, value = rows[first], value[first]
        best = inverse[rows[np.argsort(-value, kind="stable")[:WITH_WORD]]]
        found[v, : len(best)] = best
    return {
        "marginal": _packed(np.maximum(marginal, 1e-30), np.float32),
        "counts": _packed(_whole(np.asarray(counts.sum(axis=0)).ravel()), np.uint32),
        "found": _packed(found, np.uint32),
    }


def _groups(
    corpus: CorpusCounts, shares: Array, chosen: Index, column: str, groups: DocumentGroups
) -> dict[str, Any]:
    """Return the topics' shares by group, and the groups of documents."""
    sums, documents = tokens_by_group(groups, corpus, shares)
    return {
        "column": column,
        "kind": groups.kind,
        "unit": groups.unit,
        "labels": groups.labels,
        "documents": documents.tolist(),
        "tokens": _packed(sums, np.float32),
        "group": _packed(groups.group[chosen] & 0xFFFF, np.uint16),
    }


def passage(text: str, weights: Mapping[str, float], length: int = 240) -> str:
    """Return the part of a text that has most of a topic's words, with ellipses if it was cut.

    Parameters
    ----------
    text : str
        One line.
    weights : mapping of str to float
        Weights of words in lower case; others have none.
    length : int
        Maximum number of characters.

    Examples
    --------
    >>> text = "We went there by train. " * 9 + "The fish in the pond eat other fish."
    >>> passage(text, {"fish": 1.0, "pond": 1.0}, 40)
    '… The fish in the pond eat other fish.'
    >>> passage("Short.", {}, 40)
    'Short.'
    >>> passage("unbreakable" * 9, {"unbreakable" * 9: 1.0}, 12)
    'unbreaka …'
    """
    if len(text) <= length:
        return text
    room, start = max(length, 8) - 4, 0
    hits = [(word.start(), word.end(), word.group().lower()) for word in WORD.finditer(text)]
    hits = [hit for hit in hits if weights.get(hit[2], 0.0) > 0.0]

    def inside(first: int) -> list[tuple[int, int, str]]:
        begin = hits[first][0]
        return [hit for hit in hits[first : first + room] if hit[1] - begin <= room]

    def value(first: int) -> float:
        words = [word for _, _, word in inside(first)]  # a word that is repeated says little more
        return sum(0.9 * weights[word] for word in dict.fromkeys(words)) + sum(
            0.1 * weights[word] for word in words
        )

    best = inside(max(range(len(hits)), key=value)) if hits else []
    if best:
        start, spare = best[0][0], room - (best[-1][1] - best[0][0])
        # From the beginning of a sentence, if one is near.
        sentence = max(text.rfind(mark, max(0, start - spare - 2), start) for mark in (". ", "? ", "! "))
        start = 0 if start <= spare else sentence + 2 if sentence >= 0 else start
    part = text[start : start + room]
    if start + room < len(text):
        part = (part.rpartition(" ")[0] or part).rstrip(" .,;:…") + " …"
    return ("… " if start else "") + part


class TopicMap(NamedTuple):
    """Positions of topics.

    Attributes
    ----------
    x, y : ndarray, shape (K,)
        Centres, within [0, 1] × [0, HEIGHT].
    radius : ndarray, shape (K,)
        Radii; areas are proportional to shares, unless a topic is very small or large.
    colour : ndarray of int, shape (K,)
        Groups of neighbours on the map, from 0 to at most 7.
    """

    x: Array
    y: Array
    radius: Array
    colour: Index


def topic_map(similarity: Array, shares: Array) -> TopicMap:
    """Return the map.

    Distances are √(1 − similarity), summed along links between near topics: topics of different subjects
    share hardly a word, so that direct distances are almost equal. Multidimensional scaling gives positions;
    then circles are moved apart.

    Parameters
    ----------
    similarity : ndarray, shape (K, K)
        From 0 to 1.
    shares : ndarray, shape (K,)
        Sizes.

    Examples
    --------
    >>> similarity = np.array([[1, 0.8, 0.1], [0.8, 1, 0.1], [0.1, 0.1, 1]])
    >>> found = topic_map(similarity, np.array([0.5, 0.3, 0.2]))
    >>> apart = np.hypot(found.x - found.x[0], found.y - found.y[0])
    >>> bool(apart[1] < apart[2]), bool((apart[1:] > found.radius[0] + found.radius[1:]).all())
    (True, True)
    """
    radius = _radii(shares)
    distance = np.sqrt(np.maximum(1.0 - 0.5 * (similarity + similarity.T), 0.0))
    np.fill_diagonal(distance, 0.0)
    place = _scaled(_along_links(distance))
    place = _apart(_into_map(place, radius), radius)
    colour = _colours(place)
    return TopicMap(place[:, 0], place[:, 1], radius, colour)


def _radii(shares: Array) -> Array:
    total = max(float(shares.sum()), 1e-300)
    radius = np.sqrt(FILLED * HEIGHT * np.maximum(shares, 0.0) / total / np.pi)
    return np.clip(radius, SMALLEST, LARGEST)


def _along_links(distance: Array) -> Array:
    """Return the lengths of shortest paths over links between neighbours; all topics are connected."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

    n = len(distance)
    if n <= NEAREST + 1:
        return distance
    distance = np.maximum(distance, 1e-9)  # a link of length 0 would be none
    links = np.zeros((n, n))
    near = np.argsort(distance + 10.0 * np.eye(n), axis=1, kind="stable")[:, :NEAREST]
    rows = np.repeat(np.arange(n), NEAREST)
    links[rows, near.ravel()] = distance[rows, near.ravel()]
    links = np.maximum(links, minimum_spanning_tree(csr_array(distance)).toarray())
    return np.asarray(shortest_path(csr_array(links), directed=False))


def _scaled(distance: Array) -> Array:
    """Return points in the plane, shape (K, 2), with about these distances; the long side is the width."""
    from sklearn.decomposition import PCA, KernelPCA
    from sklearn.manifold import smacof

    n = len(distance)
    if n == 1:
        return np.zeros((1, 2))
    classical = KernelPCA(2, kernel="precomputed", eigen_solver="dense").fit_transform(-0.5 * distance**2)
    start = np.zeros((n, 2))
    start[:, : classical.shape[1]] = classical
    start += 1e-6 * np.stack([np.cos(np.arange(n)), np.sin(np.arange(n))], axis=1)  # equal topics
    rounds = _rounds(300, n)
    place, _ = smacof(distance, init=start, n_init=1, max_iter=rounds, normalized_stress=False)
    return np.asarray(PCA(2, svd_solver="full").fit_transform(place))


def _distances(place: Array) -> tuple[Array, Array, Array]:
    """Return differences of x and of y, and distances, shape (K, K)."""
    dx, dy = (place[:, i, None] - place[:, i] for i in (0, 1))
    return dx, dy, np.sqrt(dx * dx + dy * dy)


def _rounds(most: int, n_topics: int) -> int:
    """Return the number of rounds, each of which costs K² operations: fewer for more than 200 topics."""
    return min(most, max(40, most * 40_000 // n_topics**2))


def _into_map(place: Array, radius: Array) -> Array:
    """Return the points moved and stretched so that all circles are within the map."""
    size = np.array([1.0, HEIGHT])
    if len(place) == 1:
        return (size / 2)[None, :]
    low, high = place.min(axis=0), place.max(axis=0)
    unit = (place - low) / np.maximum(high - low, 1e-12)
    unit[:, high - low < 1e-9] = 0.5
    room = size - 2 * radius[:, None] - 2 * GAP
    return np.asarray(radius[:, None] + GAP + unit * room)


def _apart(place: Array, radius: Array) -> Array:
    """Return the points moved apart until circles do not overlap."""
    place, home = place.copy(), place.copy()
    size = np.array([1.0, HEIGHT])
    wanted = radius[:, None] + radius + GAP
    np.fill_diagonal(wanted, 0.0)
    rounds = _rounds(600, len(place))
    for step in range(rounds):
        dx, dy, apart = _distances(place)
        np.fill_diagonal(apart, 1.0)
        overlap = np.maximum(wanted - apart, 0.0)
        if 2 * step >= rounds and overlap.max() < 1e-4:
            break
        share = 0.5 * overlap / np.maximum(apart, 1e-9)
        place += np.stack([(dx * share).sum(axis=1), (dy * share).sum(axis=1)], axis=1)
        if 2 * step < rounds:  # towards where they belong, if there is room
            place += 0.04 * (1 - 2 * step / rounds) * (home - place)
        place = np.clip(place, radius[:, None] + GAP, size - radius[:, None] - GAP)
    return place


def _colours(place: Array) -> Index:
    """Return groups of neighbours, numbered from left to right; few topics have a group each."""
    from scipy.cluster.hierarchy import fcluster, ward

    n = len(place)
    found = np.arange(n) if n <= COLOURS else fcluster(ward(place), COLOURS, criterion="maxclust") - 1
    middle = [place[found == group, 0].mean() for group in range(int(found.max()) + 1)]
    return np.asarray(np.argsort(np.argsort(middle, kind="stable"), kind="stable")[found], dtype=np.intp)
