"""What fitted topics say: words, coherence, similarity, predictions, groups, and a table to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import check_choice, check_int, in_numpy, shown
from swiftem.core.types import Array, Index
from swiftem.show.numbers import counted, share_text
from swiftem.show.table import Table
from swiftem.topics.compute.units import UnitDocuments

if TYPE_CHECKING:
    from swiftem.data.documents.counts import Counts
    from swiftem.topics.compute.corpus import Documents, StreamedDocuments
    from swiftem.topics.plsa import PLSA

LAMBDA = 0.5
"""λ of the relevance by which words are shown."""
SHORT = 0.1
"""Documents of this share of the median length have half the weight in the search for representative ones."""
LEAST_SHARE = 1e-12
"""Probability of a word that is in no topic."""


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


def relevance_of(components: Array, marginal: Array, weight: float = LAMBDA) -> Array:
    """Return the relevance of words as defined by Sievert and Shirley (2014), shape (K, V).

    Parameters
    ----------
    components : ndarray, shape (K, V)
        Probabilities of words in topics.
    marginal : ndarray, shape (V,)
        Probabilities of words in the corpus.
    weight : float
        Their λ: 1 orders words by probability, 0 by lift.

    Examples
    --------
    >>> relevance_of(np.array([[0.5, 0.5]]), np.array([0.5, 0.25]), 0.0).round(2)
    array([[0.  , 0.69]])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(components) - (1 - weight) * np.log(marginal)
    return np.asarray(np.nan_to_num(found, nan=-np.inf, neginf=-np.inf))


def words_of(names: Any, n_words: int) -> Sequence[str]:
    """Return the words of the columns, from a sequence or a fitted vectorizer; by default their numbers."""
    if hasattr(names, "get_feature_names_out"):
        names = names.get_feature_names_out()
    if names is None:
        return [str(v) for v in range(n_words)]
    is_sequence = isinstance(names, Sequence) or np.ndim(names) == 1
    if not is_sequence or isinstance(names, str):
        raise TypeError(f"names must be a sequence of words or a fitted vectorizer, got {shown(names)}.")
    if len(names) != n_words:
        raise ValueError(f"names must be one for each of the {n_words} columns, got {len(names)}.")
    words: Sequence[str] = names
    return words


def split_counts(X: Counts, random_state: int = 0) -> tuple[Counts, Counts]:
    """Divide the tokens of each document into two halves: one to fold in, one to predict.

    Each token goes to either half with probability one half, drawn from ``random_state``; the remainder of a
    fractional count is halved. If nothing would be left to predict, the whole document is predicted.

    Parameters
    ----------
    X : CSR array, shape (D, V)
        Counts.
    random_state : int
        Seed.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> one, other = split_counts(sp.csr_array(np.array([[4.0, 1.0]])))
    >>> (one + other).toarray()
    array([[4., 1.]])
    """
    if random_state is not None:
        check_int("random_state", random_state, minimum=0)
    whole = np.floor(X.data)
    if len(whole) and whole.max() >= 2.0**62:
        raise ValueError(f"X must have counts below 2^62 to be split in two, got {whole.max():g}.")
    first = np.random.default_rng(random_state).binomial(whole.astype(np.int64), 0.5) + (X.data - whole) / 2.0
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    left = np.bincount(row, weights=X.data - first, minlength=X.shape[0])
    first = np.where(left[row] > 0, first, 0.0)
    one, other = X.copy(), X.copy()
    one.data, other.data = first, X.data - first
    one.eliminate_zeros()
    other.eliminate_zeros()
    return one, other


def perplexity_of(hidden: Counts, shares: Array, components: Array) -> float:
    """Return exp of minus the mean log-probability of tokens.

    Parameters
    ----------
    hidden : CSR array, shape (D, V)
        Counts of the tokens.
    shares : ndarray, shape (D, K)
        Topics of the documents.
    components : ndarray, shape (K, V)
        Probabilities of words in topics.
    """
    total = 0.0
    rows = np.repeat(np.arange(hidden.shape[0]), np.diff(hidden.indptr))
    for start in range(0, hidden.nnz, 1 << 18):
        part = slice(start, start + (1 << 18))
        p = np.einsum("ek,ke->e", shares[rows[part]], components[:, hidden.indices[part]])
        total += float((hidden.data[part] * np.log(np.maximum(p, LEAST_SHARE))).sum())
    return exp(-total / hidden.data.sum())


def coherence_of(X: Counts, topics: Array, measure: str, n: int) -> Array:
    """Return the coherence of each topic's first ``n`` words, shape (K,), from the documents' counts.

    ``"npmi"``: mean over pairs of log(p_ij / p_i p_j) / −log p_ij, from −1 to 1, where p are shares of
    documents in which words occur; a pair that never occurs together counts −1. ``"umass"``: mean of
    log((D_ij + 1) / D_j), where j is the more likely word of the two.
    """
    n = min(n, topics.shape[1])
    words = np.argsort(-topics, axis=1, kind="stable")[:, :n]
    used, place = np.unique(words, return_inverse=True)
    occurs = X[:, used]
    occurs.data = np.ones_like(occurs.data, dtype=np.float64)
    together = (occurs.T @ occurs).toarray()
    alone, total = np.diagonal(together).copy(), X.shape[0]
    i, j = np.triu_indices(n, 1)
    coherence = np.empty(len(topics))
    for k, row in enumerate(place.reshape(words.shape)):
        a, b = row[i], row[j]
        both = together[a, b]
        if measure == "umass":
            values = np.log((both + 1.0) / np.maximum(alone[a], 1.0))
        else:
            p = np.maximum(both, 1e-300) / total
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log(p * total**2 / (alone[a] * alone[b])) / -np.log(p)
            values = np.where(both > 0, np.where(both < total, values, 1.0), -1.0)
        coherence[k] = values.mean() if len(values) else 0.0
    return coherence


def mean_likelihood(
    documents: Documents | StreamedDocuments | UnitDocuments,
    topics: Array,
    alpha: Array,
    *,
    max_iter: int,
    tol: float,
) -> float:
    """Return the mean log-likelihood per token of documents, which are folded in."""
    if not documents.total > 0:
        raise ValueError("X must have at least one token, got none.")
    if isinstance(documents, UnitDocuments):
        return documents.log_likelihood(topics, alpha, max_iter, tol) / documents.total
    _, found = documents.fold_in(topics, alpha, max_iter=max_iter, tol=tol)
    return float((documents.weight * found).sum() / documents.total)


def representative(shares: Array, lengths: Array | None, n: int) -> Index:
    """Return the documents with the largest shares of each topic, shape (K, n); short ones count less."""
    weight = np.ones(len(shares))
    if lengths is not None:
        weight = lengths / np.maximum(lengths + SHORT * float(np.median(lengths)), np.finfo(np.float64).tiny)
    return np.argsort(-shares * weight[:, None], axis=0, kind="stable")[:n].T


def similarity(p: Array, q: Array, measure: str) -> Array:
    """Return how similar the rows of p (K, V) and q (L, V) are, shape (K, L)."""
    check_choice("measure", measure, tuple(MEASURES))
    if p.shape[1] != q.shape[1]:
        raise ValueError(
            f"other must be a model of the same {p.shape[1]:,} words, got one of {q.shape[1]:,}."
        )
    return np.clip(MEASURES[measure](p, q), 0.0, 1.0)


def _jensen_shannon(p: Array, q: Array) -> Array:
    """Return one minus the Jensen–Shannon divergence in bits."""
    from scipy.special import entr

    def bits(row: Array) -> Array:
        divergence = entr(0.5 * (row + q)).sum(axis=1) - 0.5 * (entr(row).sum() + entr(q).sum(axis=1))
        return np.asarray(1.0 - divergence / np.log(2.0))

    return np.array([bits(row) for row in p])


def _cosine(p: Array, q: Array) -> Array:
    lengths = np.sqrt((p * p).sum(axis=1))[:, None] * np.sqrt((q * q).sum(axis=1))
    return np.asarray(p @ q.T / lengths)


MEASURES: dict[str, Callable[[Array, Array], Array]] = {
    "jensen-shannon": _jensen_shannon,
    "hellinger": lambda p, q: np.asarray(np.sqrt(p) @ np.sqrt(q).T),
    "cosine": _cosine,
}


def shares_by_label(
    labels: ArrayLike, shares: Array, lengths: Array | None, left_out: int | None
) -> TopicsOver:
    """Return the shares of topics in groups of documents.

    Parameters
    ----------
    labels : array-like, shape (D,)
        The group of each document.
    shares : ndarray, shape (D, K)
        Topics of the documents.
    lengths : ndarray, shape (D,), or None
        How many times each document counts; by default once.
    left_out : int or None
        A topic that does not count.
    """
    given = np.asarray(in_numpy(labels))
    if given.ndim != 1 or len(given) != len(shares):
        raise ValueError(
            f"labels must be one for each of the {len(shares):,} documents, got shape {given.shape}."
        )
    try:
        different, group = np.unique(given, return_inverse=True)
    except TypeError:
        raise TypeError("labels must be comparable with each other, got different types.") from None
    tokens = np.ones(len(shares)) if lengths is None else lengths
    totals = np.bincount(group, weights=tokens, minlength=len(different)).astype(np.float64)
    sums = np.zeros((len(different), shares.shape[1]))
    np.add.at(sums, group, shares * tokens[:, None])
    if left_out is not None:
        sums[:, left_out] = 0.0
    with np.errstate(invalid="ignore"):
        of_all = sums / sums.sum(axis=1, keepdims=True)
    return TopicsOver(different, of_all, np.bincount(group), totals)


def members_of(groups: Sequence[Sequence[int]], n_topics: int) -> list[list[int]]:
    """Return all topics in groups, some of one topic, in the order of their first members."""
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


def sums(rows: Array, members: Sequence[Sequence[int]]) -> Array:
    """Return the sum of each group's entries or rows."""
    return np.array([rows[group].sum(axis=0) for group in members])


def merged_topics(components: Array, tokens: Array, members: Sequence[Sequence[int]]) -> Array:
    """Return the mean of each group's topics (K, V), weighted by their tokens (K,)."""
    means = []
    for group in members:
        weights = tokens[group] if tokens[group].sum() > 0 else None
        means.append(np.average(components[group], axis=0, weights=weights))
    return np.array(means)


def topic_table(
    model: PLSA,
    names: Sequence[str] = (),
    coherence: ArrayLike | None = None,
    shares: ArrayLike | None = None,
    n_words: int = 10,
) -> Table:
    """Return the topics with their words, the most prevalent first.

    Parameters
    ----------
    model : PLSA
        Fitted.
    names : sequence of str, length K
        Names that somebody gave to topics, or nothing.
    coherence : array-like, shape (K,), optional
        A further column.
    shares : array-like, shape (K,), optional
        Shares of the topics; by default of the corpus that was fitted.
    n_words : int
        Number of words of a topic.
    """
    heads = None
    if not hasattr(model, "feature_names_in_"):
        heads = [f"word {v}" for v in range(model.n_features_in_)]
    words = model.top_words(heads, n=n_words)
    prevalence = np.asarray(model.topic_prevalence() if shares is None else shares)
    columns: dict[str, list[object]] = {"topic": [], "share": [], "coherence": [], "words": []}
    for k in np.argsort(-prevalence, kind="stable").tolist():
        name = (names[k] if names else "") or ("background" if k == model.background_ else "")
        columns["topic"].append(k)
        columns["share"].append(share_text(prevalence[k]))
        columns["coherence"] += [] if coherence is None else [np.asarray(coherence)[k]]
        columns["words"].append(f"{name}: {', '.join(words[k])}" if name else ", ".join(words[k]))
    shown = {head: cells for head, cells in columns.items() if cells}
    rows = list(zip(*shown.values(), strict=True))
    formats = {"coherence": lambda value: f"{value:z.2f}"}
    return Table(counted(len(words), "topic"), list(shown), rows, formats=formats, n_index=2)
