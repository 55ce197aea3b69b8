"""What a fit of topics does: its parameters and a few facts about the data become one specification.

``method="auto"`` starts from clusters of documents, the best of a few; reads every document once by sem, in
batches, but on a device; and continues with em, whose passes leave each token out of its own explanation and
have momentum.
A small corpus is fitted by em alone, from random topics. sem and sem-vr draw batches of documents, other
stochastic methods tokens: by documents they would need a memory of K numbers for each entry. Measurements
behind the constants are in ``benchmarks/DECISIONS.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import STRONGEST, as_numbers, check_int, check_real, extent_of, in_numpy, shown
from swiftem.core.schedules import StepSize, power, sample_size
from swiftem.core.types import Array
from swiftem.fit.stopping import MOST_PASSES
from swiftem.methods import EM, METHODS, Accelerated, Averaged, Method, OnlineEM, VarianceReducedEM

INITS = ("auto", "random", "k-means")
METHOD_NAMES = ("auto", *METHODS)
LEARN, FIRST = "learn", 0.1
"""The name of an α that is learned, and its first value, the same for all topics."""
MOST_TOPICS = 10**6
"""A larger number is a mistake, and would not fit into memory."""
SMALL = 500
"""Number of documents below which "auto" is em alone."""
LEAST_TOPICS = 8
"""Number of topics from which one of them is a background: of a few, each is needed."""
DECORRELATION = 30.0
MOMENTUM = 0.95
WORTH = 2.0
"""A pass with momentum ends the fit if it gains less than this many times ``tol``: it goes as far as several
passes of em."""
MOST_BETA = 0.05
SINGLE = 1e-6, 1e6
"""Range of counts, weights and priors that loops in float32 are for."""
LEAST_TOLERANCE = 1e-6
"""Smaller gains of the mean log-likelihood are within the rounding errors of float32."""
BATCH = 256
LEAST_BATCHES = 20
BY_DOCUMENTS = power(1.0, 0.7, 10.0)
CLUSTERED, FEW = 5_000, 2_000
"""Maximum number of documents to cluster: for a fit, and for a single reading, which must be quick."""

Place = Literal["memory", "device", "blocks", "units"]
"""Where documents are: in memory, on a device, read in blocks, or with the workers of a cluster."""
Draws = Literal["documents", "tokens"]


class Facts(NamedTuple):
    """What a fit depends on of its data.

    Attributes
    ----------
    place : Place
        Where the documents are.
    documents : int
        Samples: documents, or units of them.
    with_words : int
        Documents that have words and a positive weight.
    n_words : int
        V.
    extent : (float, float)
        The smallest and the largest of all positive counts and weights.
    """

    place: Place
    documents: int
    with_words: int
    n_words: int
    extent: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True, eq=False)
class TopicSpec:
    """The specification of a fit.

    Attributes
    ----------
    alpha : ndarray, shape (K,)
        Added to documents' counts of topics, at the beginning.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to topics' counts of words.
    method : Method
        em, or a stochastic method with all of its fields.
    draws : {"documents", "tokens"}
        What a stochastic method draws.
    first : Method or None
        The method of the first reading, before em.
    leaves_one_out : bool
        Whether em leaves each token out of the counts that explain it.
    momentum : float
        Strength of em's momentum, see :mod:`swiftem.topics.fit`.
    background, decorrelation : bool and float
        Whether topic 0 is a background, and how strongly topics repel each other; see
        :mod:`swiftem.topics.fit`.
    adds_background : bool
        Whether the background takes the place of another topic, instead of being the first of given ones.
    learns_alpha : bool
        Whether α is learned; see :mod:`swiftem.topics.fit`.
    clustered : int
        Maximum number of documents that are clustered for a start; 0 for random topics.
    n_starts : int
        Number of starts that are compared.
    dtype : type
        What compiled loops compute in: float32 or float64.
    max_passes, tol : int and float
        When to stop.
    """

    alpha: Array
    beta: Array
    method: Method
    draws: Draws
    first: Method | None
    leaves_one_out: bool
    momentum: float
    background: bool
    decorrelation: float
    adds_background: bool
    learns_alpha: bool
    clustered: int
    n_starts: int
    dtype: type
    max_passes: int
    tol: float

    @property
    def is_em(self) -> bool:
        """Whether the fit ends with em."""
        return isinstance(self.method, EM)

    @property
    def gain(self) -> float:
        """Gain per pass below which em has converged."""
        return self.tol * (WORTH if self.momentum else 1.0)


def resolve(parameters: Mapping[str, Any], facts: Facts) -> TopicSpec:
    """Return the specification of a fit, or raise ValueError for parameters that do not go together.

    Parameters
    ----------
    parameters : mapping
        The parameters of :class:`swiftem.PLSA`.
    facts : Facts
        The data.

    Examples
    --------
    >>> from swiftem import PLSA
    >>> spec = resolve(PLSA(50).get_params(), Facts("memory", 10_000, 10_000, 5_000))
    >>> spec.method, spec.first.batch_size, spec.background, spec.n_starts
    (EM(), 256, True, 2)
    """
    n_components = parameters["n_components"]
    alpha = first_alpha(parameters["alpha"], n_components)
    beta = beta_of(parameters["beta"], n_components, facts.n_words)
    background, decorrelation = parameters["background"], parameters["decorrelation"]
    is_auto, is_open = _is(parameters["method"], "auto"), isinstance(parameters["init"], str)
    method, draws = _method(parameters["method"], facts.documents)
    is_large = is_auto and facts.documents >= SMALL
    # A device makes passes in less time than the CPU reads all documents.
    first = _by_documents(OnlineEM(), facts.documents) if is_large and facts.place != "device" else None
    contrasts = is_large and len(alpha) >= LEAST_TOPICS and len(beta) == 1 and is_open
    by_documents = is_auto or (draws == "documents" and not isinstance(method, EM))
    clustered, n_starts = _starts(parameters, facts, by_documents and len(beta) == 1)
    tol = check_real("tol", parameters["tol"], minimum=0.0)
    spec = TopicSpec(
        alpha=alpha,
        beta=beta,
        method=method,
        draws=draws,
        first=first,
        leaves_one_out=is_auto,
        momentum=MOMENTUM if is_large and facts.place != "units" else 0.0,
        background=contrasts if _is(background, "auto") else bool(background),
        decorrelation=DECORRELATION * contrasts if _is(decorrelation, "auto") else float(decorrelation),
        adds_background=is_open,
        learns_alpha=_is(parameters["alpha"], LEARN),
        clustered=min(clustered, FEW if by_documents and not is_auto else CLUSTERED),
        n_starts=n_starts,
        dtype=table_type(tol, facts.extent, extent_of(alpha, beta)),
        max_passes=min(int(parameters["max_iter"]), MOST_PASSES),
        tol=tol,
    )
    _check_method(parameters, facts, spec)
    return spec


def _method(given: str | Method, n_documents: int) -> tuple[Method, Draws]:
    """Return the method, with all of its fields, and what it draws."""
    method: Method = given if isinstance(given, Method) else EM() if given == "auto" else METHODS[given]()
    if isinstance(method, Averaged):
        averaged, draws = _method(method.method, n_documents)
        return replace(method, method=averaged), draws
    if isinstance(method, OnlineEM | VarianceReducedEM):
        return _by_documents(method, n_documents), "documents"
    if isinstance(method, EM):
        return method, "documents"
    step = sample_size(10, exponent=1)
    return method.resolved(batch_size=1, step_size=step, memory_dtype="float32"), "tokens"


def _by_documents(method: OnlineEM | VarianceReducedEM, n_documents: int) -> Method:
    """Return the method for batches of documents."""
    size = min(BATCH, max(1, n_documents // LEAST_BATCHES))
    if "batch_size" not in method.left_out:
        size = min(method.batch_size, n_documents)
    step: StepSize = BY_DOCUMENTS if isinstance(method, OnlineEM) else min(0.5, 4.0 * size / n_documents)
    if "step_size" not in method.left_out:
        step = method.step_size
    return replace(method, batch_size=size, step_size=step)


def _check_method(parameters: Mapping[str, Any], facts: Facts, spec: TopicSpec) -> None:
    """Raise ValueError for a method that does not go together with the data or another parameter."""
    place, given = facts.place, shown(parameters["method"])
    if isinstance(spec.method, Accelerated):
        raise ValueError(f"method must not be accelerated for PLSA, got {given}: use 'auto' or 'em'.")
    if place == "units" and spec.learns_alpha:
        raise ValueError(
            f"alpha must be numbers for a Dask collection, got {LEARN!r}: the topics of documents, which it "
            "is learned from, stay with the workers."
        )
    if place == "units" and not (spec.is_em or isinstance(spec.method, OnlineEM)):
        raise ValueError(f"method must be 'auto', 'em' or 'sem' for a Dask collection, got {given}.")
    if spec.draws == "tokens" and place != "memory":
        where = "documents read in blocks" if place == "blocks" else "a GPU"
        raise ValueError(
            f"method must be 'auto', 'em', 'sem' or 'sem-vr' for {where}, got {given}: it draws tokens."
        )
    if spec.draws == "tokens" and (np.ptp(spec.alpha) or np.ptp(spec.beta)):
        raise ValueError(f"alpha and beta must be numbers for method={given}, which draws tokens.")
    for name, value, allowed in (
        ("background", spec.background, "'auto' or False"),
        ("decorrelation", spec.decorrelation, "'auto' or 0"),
        ("alpha", spec.learns_alpha, "numbers"),
    ):
        if value and not spec.is_em:
            raise ValueError(f"{name} must be {allowed} for method={given}, got {parameters[name]!r}.")


def _starts(parameters: Mapping[str, Any], facts: Facts, prefers_clusters: bool) -> tuple[int, int]:
    """Return how many documents are clustered for a start at most, 0 for none, and the number of starts."""
    init, n_init, n_components = (parameters[name] for name in ("init", "n_init", "n_components"))
    if not isinstance(init, str):
        return 0, 1
    if init == "k-means" and facts.with_words < n_components:
        raise ValueError(
            f"init must be 'random' if there are fewer documents with words than topics, got 'k-means' with "
            f"{facts.with_words} documents and n_components={n_components}."
        )
    is_clustered = init == "k-means" or (init == "auto" and prefers_clusters and facts.with_words >= SMALL)
    n_starts = 1
    if not _is(n_init, "auto"):
        n_starts = int(n_init)
    elif is_clustered and _is(parameters["method"], "auto"):
        n_starts = starts_for(n_components)
    return facts.with_words if is_clustered and facts.with_words >= n_components else 0, n_starts


def starts_for(n_components: int) -> int:
    """Return how many starts are compared: with many topics a start costs more and matters less.

    >>> [starts_for(k) for k in (5, 20, 50, 1000)]
    [6, 6, 2, 2]
    """
    return max(2, min(6, 120 // n_components))


def table_type(tol: float, *extents: tuple[float, float]) -> type:
    """Return the type of tables of words: float32 unless numbers are extreme, or ``tol`` asks for more.

    >>> table_type(1e-4, (0.05, 300.0)).__name__, table_type(1e-9, (0.05, 300.0)).__name__
    ('float32', 'float64')
    """
    is_usual = all(SINGLE[0] <= least and most <= SINGLE[1] for least, most in extents)
    return np.float32 if tol >= LEAST_TOLERANCE and is_usual else np.float64


def first_alpha(alpha: ArrayLike | str, n_components: int) -> Array:
    """Return α (K,) at the beginning of a fit."""
    check_int("n_components", n_components, minimum=1, maximum=MOST_TOPICS)
    given = as_strength("alpha", FIRST if _is(alpha, LEARN) else alpha, [(n_components,)])
    return np.array(np.broadcast_to(given, (n_components,)))  # writable, as PyTorch wants it


def beta_of(beta: ArrayLike | str, n_components: int, n_words: int) -> Array:
    """Return β of shape (1, 1), (1, V) or (K, V); "auto" adds at most one count of each word to K topics.

    >>> [beta_of("auto", k, 1000).item() for k in (10, 50, 200)]
    [0.05, 0.02, 0.005]
    """
    number = min(MOST_BETA, 1.0 / n_components) if _is(beta, "auto") else beta
    given = as_strength("beta", number, [(n_words,), (n_components, n_words)])
    return given.reshape((1, 1) if given.ndim == 0 else (-1, n_words))


def as_strength(name: str, value: ArrayLike, shapes: Sequence[tuple[int, ...]]) -> Array:
    """Return the strength of a prior as a validated array; ``shapes`` are allowed in addition to a number."""
    array = as_numbers(name, in_numpy(value)).astype(np.float64)
    if array.ndim and array.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(f"{name} must be a number or an array of shape {allowed}, got shape {array.shape}.")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"{name} must be finite and not negative, got {shown(value)}.")
    if (array > STRONGEST).any():
        raise ValueError(f"{name} must be at most {STRONGEST:g}, got {array.max():g}.")
    return array


def given_topics(init: ArrayLike, n_components: int, n_words: int) -> Array:
    """Return the topics (K, V) that are given as ``init``, normalised."""
    topics = as_strength("init", init, [(n_components, n_words)])
    if topics.ndim == 0 or not (topics.sum(axis=1) > 0).all():
        raise ValueError(
            f"init must have shape ({n_components}, {n_words}) and a positive entry in each row, "
            f"got shape {topics.shape}."
        )
    return np.asarray(topics / topics.sum(axis=1, keepdims=True))


def _is(value: Any, name: str) -> bool:
    """Return whether a parameter, which may be an array, is a name."""
    return isinstance(value, str) and value == name
