"""How many topics: fits with more and more topics, compared on documents that were not fitted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from math import inf, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from swiftem.core.checks import check_real
from swiftem.core.process import clock
from swiftem.core.types import Array
from swiftem.data.as_source import DEVICE_KERNELS, kernels_of
from swiftem.fit.estimator import InterruptedWarning
from swiftem.fit.selection import Selection, read_numbers, teller
from swiftem.show.table import Table
from swiftem.topics.plsa import PLSA
from swiftem.topics.resolve import Facts, resolve

if TYPE_CHECKING:
    from swiftem.data.documents.counts import Counts

GROUPS = 10
"""Groups of held-out documents, from which the standard error of a difference is estimated."""
SPREAD = 0.3
"""Standard deviation of the logarithm of what the words of a topic's two parts are multiplied by."""
LEAST_DOCUMENTS = 50
TOPICS = "topics"
"""Key of the models of a selection."""
CURVES = {
    "perplexity of new documents": "perplexity",
    "coherence (NPMI)": "coherence",
    "stability": "stability",
}
"""What is drawn, and its label."""


class NumberOfTopics(NamedTuple):
    """Fits with one number of topics.

    Attributes
    ----------
    n_components : int
        Number of topics, K.
    perplexity : float
        Of the held-out documents, by completion; lower is better.
    worse : float
        How much lower their mean log-likelihood per token is than the best one's, in standard errors of the
        difference.
    coherence : float
        Mean NPMI of the topics on the documents that were fitted.
    stability : float
        Mean similarity of topics that were fitted to one half of the documents and topics that were fitted to
        the other half, each paired with the most similar: 1 if they are the same.
    converged : bool
        Whether the fit converged.
    seconds : float
        Time of the three fits.
    """

    n_components: int
    perplexity: float
    worse: float
    coherence: float
    stability: float
    converged: bool
    seconds: float


def select_topics(
    X: Any,
    n_components: int | Iterable[int],
    *,
    held_out: float = 0.2,
    random_state: Any = 0,
    verbose: bool | Callable[[str], None] = False,
    **parameters: Any,
) -> Selection[PLSA, NumberOfTopics]:
    """Compare numbers of topics, and fit the chosen one to all documents.

    The documents are divided in those that are fitted and those held out. The fit with the fewest topics
    starts as usual; each further one from the topics of the one before, of which the largest are split.
    The choice is the smallest number whose held-out log-likelihood is at most one standard error below the
    best; the standard error is estimated from the differences in ten groups of documents.

    Parameters
    ----------
    X : array-like or sparse, shape (D, V), path, DocumentSource, or Dask collection
        Counts, as in ``PLSA.fit``; files and collections are loaded. At least 50 documents must have words.
    n_components : int or iterable of int
        Numbers of topics.
    held_out : float
        Share of the documents that are held out.
    random_state : int, RandomState or None
        For the division of documents and the fits.
    verbose : bool or callable
        Whether to print a line per number, or what to call with it.
    **parameters
        Of :class:`swiftem.PLSA`.

    Returns
    -------
    Selection
        ``best`` is fitted to all documents; ``table`` has a :class:`NumberOfTopics` for each number. Ctrl-C
        ends it with what is complete.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.estimators import select_topics
    >>> rng = np.random.default_rng(0)
    >>> words = np.kron(np.eye(3), np.ones((1, 10)))[rng.integers(3, size=300)]
    >>> select_topics(rng.poisson(3 * words), [2, 3, 4]).best.components_.shape
    (3, 30)
    """
    numbers, say = read_numbers(n_components), teller(verbose)
    check_real("held_out", held_out, minimum=0.0, maximum=0.9)
    usual = PLSA(**parameters)
    counts, kernels = usual._counts(X, reset=True), kernels_of(usual.device, X)
    if kernels is not None:  # counts are on the CPU now
        parameters["device"] = kernels.removeprefix(DEVICE_KERNELS)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    parts = _divided(counts, numbers[0], held_out, rng)
    compared: list[_Compared] = []
    interrupted = False
    try:
        for number in numbers:
            compared.append(_compared(parts, number, compared[-1:], rng, parameters))
            row = compared[-1].row
            say(f"{number} topics: perplexity {row.perplexity:.4g}, coherence {row.coherence:.3f}.")
    except KeyboardInterrupt:
        if not compared:
            raise
        interrupted = True
    best = min(range(len(compared)), key=lambda place: compared[place].row.perplexity)
    table = [
        row._replace(worse=_standard_errors(compared[best].likelihoods - likelihoods))
        for row, likelihoods, _ in compared
    ]
    chosen = next(place for place, row in enumerate(table) if row.worse <= 1.0)
    model = compared[chosen].fits[0]
    if not interrupted:
        model = _fit(counts, table[chosen].n_components, model, rng, parameters)
    if hasattr(usual, "feature_names_in_"):
        model.feature_names_in_ = usual.feature_names_in_
    reason = _reason(table, chosen, best)
    models = {(TOPICS, row.n_components): fits[0] for row, _, fits in compared}
    return Selection(
        best=model,
        table=table,
        ranking=sorted(table, key=lambda row: (row is not table[chosen], row.perplexity)),
        criterion="perplexity",
        reason=reason,
        models=models | {(TOPICS, table[chosen].n_components): model},
        interrupted=interrupted,
        shown=_shown(table, chosen, reason),
        curves={
            label: {TOPICS: {row.n_components: getattr(row, name) for row in table}}
            for label, name in CURVES.items()
        },
    )


class _Parts(NamedTuple):
    """Documents that are fitted, all and in two halves, and groups of held-out ones."""

    fitted: tuple[Counts, ...]
    groups: list[Counts]


class _Compared(NamedTuple):
    """A row of the table, mean held-out log-likelihoods by group, and the fits to :class:`_Parts`."""

    row: NumberOfTopics
    likelihoods: Array
    fits: tuple[PLSA, ...]


def _divided(counts: Counts, least: int, held_out: float, rng: np.random.Generator) -> _Parts:
    """Return the documents divided at random; nothing can be predicted of a document without words."""
    there = np.flatnonzero(np.diff(counts.indptr))
    wanted = max(LEAST_DOCUMENTS, 2 * least)
    if len(there) < wanted:
        raise ValueError(
            f"X must have at least {wanted} documents with words to compare numbers of topics, got "
            f"{len(there)}."
        )
    order = there[rng.permutation(len(there))]
    n_held = max(GROUPS, round(held_out * len(order)))
    held, used = order[:n_held], order[n_held:]
    half = len(used) // 2
    fitted = tuple(counts[np.sort(part)] for part in (used, used[:half], used[half:]))
    return _Parts(fitted, [counts[np.sort(held[group::GROUPS])] for group in range(GROUPS)])


def _compared(
    parts: _Parts,
    number: int,
    before: Sequence[_Compared],
    rng: np.random.Generator,
    parameters: dict[str, Any],
) -> _Compared:
    """Return fits with a number of topics, from the last ones ``before``, and what they say."""
    began = clock()
    last = before[0].fits if before else (None, None, None)
    fits = tuple(
        _fit(part, number, fit, rng, parameters) for part, fit in zip(parts.fitted, last, strict=True)
    )
    model, one, other = fits
    likelihoods = np.array([-log(model.perplexity(group)) for group in parts.groups])
    row = NumberOfTopics(
        number,
        _perplexity(likelihoods, parts.groups),
        0.0,
        float(np.mean(model.coherence(parts.fitted[0]))),
        _stability(one, other),
        bool(model.converged_),
        clock() - began,
    )
    return _Compared(row, likelihoods, fits)


def _shown(table: Sequence[NumberOfTopics], chosen: int, reason: str) -> Table:
    rows = [
        [row.n_components, row.perplexity, row.coherence, row.stability, "chosen" if place == chosen else ""]
        for place, row in enumerate(table)
    ]
    columns = ["topics", "perplexity", "coherence", "stability", ""]
    return Table(reason, columns, rows, formats={"coherence": "{:.3f}".format, "stability": "{:.3f}".format})


def split_topics(components: Array, shares: Array, number: int, rng: np.random.Generator) -> Array:
    """Return more topics: the largest are replaced by two, of randomly different words, again and again.

    Parameters
    ----------
    components : ndarray, shape (K, V)
        Probabilities of words in topics.
    shares : ndarray, shape (K,)
        Shares of the tokens.
    number : int
        Number of topics wanted, at least K.

    Examples
    --------
    >>> topics = np.array([[0.5, 0.5], [1.0, 0.0]])
    >>> found = split_topics(topics, np.array([3.0, 1.0]), 3, np.random.default_rng(0))
    >>> found.shape, found.sum(axis=1).round(12).tolist()
    ((3, 2), [1.0, 1.0, 1.0])
    """
    topics, sizes = list(components), [float(share) for share in shares]
    while len(topics) < number:
        k = int(np.argmax(sizes))
        noise = SPREAD * rng.normal(size=components.shape[1])
        parts = [topics[k] * np.exp(sign * noise) for sign in (1.0, -1.0)]
        topics[k], added = (part / part.sum() for part in parts)
        topics.append(added)
        sizes[k] /= 2.0
        sizes.append(sizes[k])
    return np.array(topics)


def _fit(
    counts: Counts, number: int, last: PLSA | None, rng: np.random.Generator, parameters: dict[str, Any]
) -> PLSA:
    """Return a fit with a number of topics, from the last one; raise KeyboardInterrupt after Ctrl-C."""
    given = parameters if last is None else parameters | _start_from(last, counts, number, rng, parameters)
    model = PLSA(number, **{"random_state": int(rng.integers(2**31 - 1))} | given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        warnings.simplefilter("error", InterruptedWarning)
        try:
            model.fit(counts)
        except InterruptedWarning:
            raise KeyboardInterrupt from None
    return model


def _start_from(
    last: PLSA, counts: Counts, number: int, rng: np.random.Generator, parameters: dict[str, Any]
) -> dict[str, Any]:
    """Return the start of a fit: the last one's topics, of which the largest are split.

    A background is not split. If the last fit had none, the new one is the frequencies of words; if there is
    no room for it, the smallest topic is left out.
    """
    D, V = counts.shape
    usual = PLSA(number, **parameters).get_params(deep=False) | {"init": "auto", "n_init": 1}
    spec = resolve(usual, Facts("memory", D, D, V))
    by_size = [k for k in last.sorted_topics() if k != last.background_]
    if not by_size:  # one topic, the background: there is nothing to split
        return {}
    own = sorted(by_size[: number - spec.background])
    topics = split_topics(last.components_[own], last.topic_counts_[own], number - spec.background, rng)
    if spec.background:
        words = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
        first = words / words.sum() if last.background_ is None else last.components_[last.background_]
        topics = np.concatenate([first[None], topics])
    return {"init": topics, "background": spec.background, "decorrelation": spec.decorrelation}


def _perplexity(likelihoods: Array, groups: Sequence[Counts]) -> float:
    """Return the perplexity of all groups from their mean log-likelihoods."""
    tokens = np.array([float(group.sum()) for group in groups])
    return float(np.exp(-(tokens @ likelihoods) / tokens.sum()))


def _standard_errors(differences: Array) -> float:
    """Return the mean of differences by group, in its standard errors."""
    error = float(np.std(differences, ddof=1)) / sqrt(len(differences))
    mean = float(np.mean(differences))
    return mean / error if error > 0 else (0.0 if mean <= 0 else inf)


def _stability(one: PLSA, other: PLSA) -> float:
    from scipy.optimize import linear_sum_assignment

    similarity = one.topic_similarity(other)
    rows, columns = linear_sum_assignment(-similarity)
    return float(similarity[rows, columns].mean())


def _reason(table: Sequence[NumberOfTopics], chosen: int, best: int) -> str:
    row, lowest = table[chosen], table[best]
    if chosen != best:
        text = (
            f"{row.n_components} topics: {lowest.n_components} have the lowest perplexity of new documents "
            f"({lowest.perplexity:.4g}, against {row.perplexity:.4g}), but by less than its standard error."
        )
    else:
        text = (
            f"{row.n_components} topics have the lowest perplexity of new documents ({row.perplexity:.4g}); "
            "fewer are worse by more than the standard error."
        )
    if len(table) > 1 and chosen == len(table) - 1:
        text += " It is the largest number that was tried: more may be better."
    return text
