"""The choice of method for topics, if the user leaves it open.

The rule: ``"auto"`` starts from clusters of documents, the best of a few; reads every document once by sem,
in batches; and continues with em, which has the fastest passes and here leaves each token out of its own
explanation. A small corpus is fitted by em alone, from random topics. sem and sem-vr draw batches of
documents, iem and fiem tokens: by documents they would need a memory of K numbers for each entry.

How it was chosen: on one split (seed 1) of docstrings, the FAO texts and manual pages, K = 10 and 50, by
document completion. The candidates were: starts (random, k-means, mixtures of unigrams, each with and without
one to five readings by sem), α from 0.02 to 0.5 and estimated, β from 0.01 to 1, leaving out one token, the
whole entry or nothing, updates of topics 8 and 32 times per pass, 1 to 6 starts, and in sem's reading 2, 3
and 5 rounds, batches of 64 to 512 and six steps. What mattered: clusters (FAO, K = 50: 1254 after 100 passes
from random topics, 968 after 5 from clusters), leaving one out (1075 with, 906 without the token itself,
after 60 passes), and several starts if topics are few (2 % on average).
``benchmarks/topics.py`` measures the result on another split.

The background and the decorrelation τ were chosen on the docstrings of 20 packages that are in no benchmark,
one split, K = 10 and 50. Perplexity, NPMI of ten words, and the share of distinct words among the first 25 of
all topics: τ = 0 gave 782, 0.227, 0.67 and 537, 0.239, 0.59; τ = 100 gave 789, 0.265, 0.81 and 545, 0.241,
0.69; τ = 1000 gave 586, 0.251, 0.89 with 50 topics. 100 costs 1 to 2 % of perplexity, 1000 costs 9 %. Tried
with 50 topics, too: a background of a fixed share (0.3: 547, 0.247, 0.64), α learned from counts by a fixed
point (543, 0.244, 0.64), β = 0.01 (535, 0.240, 0.59), and differences for divisions (567, 0.246, 0.82).
τ = 30 was then chosen on the docstrings of NumPy and SciPy, two seeds: without background and decorrelation
543, 0.210, 0.57 and 376, 0.242, 0.48; τ = 10 gave 544, 0.218, 0.61 and 378, 0.255, 0.50; τ = 30 gave 547,
0.237, 0.65 and 380, 0.270, 0.53; τ = 100 gave 560, 0.268, 0.80 and 385, 0.278, 0.60. 30 costs less than 1 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from swiftem.core.checks import shown
from swiftem.core.schedules import power, sample_size
from swiftem.core.types import Array
from swiftem.methods import METHODS as ALL
from swiftem.methods import Method, OnlineEM, has_field, make_method
from swiftem.topics.compute.corpus import Documents, SmallDocuments
from swiftem.topics.learned_alpha import LEARN

__all__ = [
    "METHODS",
    "SAMPLING",
    "SMALL",
    "TopicPlan",
    "beta_for",
    "contrast_for",
    "documents_for",
    "is_small",
    "plan_topics",
    "starts_for",
    "table_type",
]

METHODS = ("auto", *ALL)
OF_DOCUMENTS = ("sem", "sem-vr")
"""Methods of batches of documents; all others draw tokens."""
SAMPLING = ("auto", "documents", "tokens")
SMALL = 500
"""Number of documents below which "auto" is em alone."""
FEW_ENTRIES = 1 << 19
"""Entries times topics up to which nothing is compiled, so that a first fit does not wait. It is a rule of
sizes, not of what was compiled before: the same data give the same bits."""
FEW_DOCUMENTS = 5_000
"""Passes by NumPy take three times as long: half a second in a fit of 1,000 documents, and not of more."""
LEAST_TOPICS = 8
"""Number of topics from which one of them is a background: of a few, each is needed."""
DECORRELATION = 30.0
MOMENTUM = 0.95
"""Chosen on docstrings of seven packages that are in no benchmark (sympy, networkx, pandas, matplotlib,
pyspark, sphinx, dask), on windows of 55 words of READMEs, and on comments of Python modules, 50 topics; among
these modules are some of SciPy and scikit-learn, whose docstrings a benchmark has.
Perplexity after 50 passes: without momentum 400.9, 575.9, 855.8; 0.8: 395.6, 566.4, 844.0; 0.9: 394.4, 565.0,
843.0; 0.95: 393.4, 563.6, 842.5. Momentum of the counts alone gains half as much."""
WORTH = 2.0
"""A pass with momentum ends the fit if it gains less than this many times ``tol``: it goes as far as several
passes of em. On the same texts, em without momentum is at 395.8, 567.6 and 843.8 after 130 passes. 0.8 and 1
take 80, 92 and 106 passes to 393.6, 564.4, 839.3; 0.95 and 2 take 65, 69 and 78 to 392.1, 561.4, 841.6; 0.95
and 3 take 55, 55 and 51 to 393.6, 564.0, 843.8, but with 10 topics of long texts stop at 800, 2 at 779."""
MOST_BETA = 0.05
"""With 5,000 words, 0.05 adds 250 tokens to each topic: too many, if there are many topics. On the same
texts, β = 0.05, 0.02, 0.01, 0.005 gave: windows of READMEs (300,000 tokens) with 200 topics 565, 531, 526,
526, with 50 topics 564, 560, 564, 566, with 10 topics 714, 721, 723, 724; docstrings with 200 topics 314,
308, 308, 307, with 10 topics 603, 603, 604, 604. NPMI was the same or better. β in proportion to the
frequencies of words was no better (windows: 563, 539, 529 with 200 topics, 563, 562, 564 with 50)."""
SINGLE = 1e-6, 1e6
"""Range of counts, weights and priors that loops in float32 are for."""
LEAST_TOLERANCE = 1e-6
"""Smaller gains of the mean log-likelihood are within the rounding errors of float32."""
BATCH = 256
LEAST_BATCHES = 20
BY_DOCUMENTS = power(1.0, 0.7, 10.0)


def beta_for(beta: Any, n_components: int) -> Any:
    """Return β as given, or what "auto" is: added to K topics, it is at most one count of each word.

    >>> [beta_for("auto", k) for k in (10, 50, 200)]
    [0.05, 0.02, 0.005]
    """
    return min(MOST_BETA, 1.0 / n_components) if isinstance(beta, str) else beta


def contrast_for(
    background: Any,
    decorrelation: Any,
    name: str,
    plan: TopicPlan,
    *,
    n_components: int,
    given: bool,
    acceleration: str | None = None,
    learns_alpha: bool = False,
) -> tuple[bool, float]:
    """Return whether there is a background topic, and how strongly topics repel each other.

    These, and an α that is learned, raise ValueError for anything but em.

    Parameters
    ----------
    background, decorrelation
        As given by the user: "auto", or a value.
    name, plan : str and TopicPlan
        The method as given, and what it means here.
    n_components : int
        Number of topics.
    given : bool
        Whether the user says what the topics are, by seed words in β or by initial topics.
    acceleration : str or None
        Of em.
    learns_alpha : bool
        Whether α is learned.

    Examples
    --------
    >>> plan = plan_topics("auto", "auto", "auto", "auto", n_documents=10_000)
    >>> contrast_for("auto", "auto", "auto", plan, n_components=50, given=False)
    (True, 30.0)
    """
    is_em = plan.by_documents is None and plan.by_tokens is None and acceleration is None
    wanted = (
        ("background", background != "auto" and background, "'auto' or False"),
        ("decorrelation", decorrelation != "auto" and decorrelation, "'auto' or 0"),
        ("alpha", learns_alpha and LEARN, "numbers"),
    )
    for argument, value, allowed in wanted:
        if value and not is_em:
            how = f"method={name!r}" if acceleration is None else f"acceleration={acceleration!r}"
            raise ValueError(
                f"{argument} must be {allowed} for {how}, got {value!r}: it is for em without acceleration."
            )
    usual = name == "auto" and plan.first is not None and n_components >= LEAST_TOPICS and not given
    auto = usual and is_em
    strength = DECORRELATION if auto else 0.0
    return (
        auto if isinstance(background, str) else bool(background),
        strength if isinstance(decorrelation, str) else float(decorrelation),
    )


def documents_for(X: Any, weight: Array | None, n_components: int) -> Documents:
    """Return the counts X (D, V) as documents: a small corpus without compiled code.

    >>> from scipy.sparse import csr_array
    >>> type(documents_for(csr_array([[1.0, 2.0]]), None, 5)).__name__
    'SmallDocuments'
    """
    small = is_small(X.nnz, X.shape[0], n_components)
    return (SmallDocuments if small else Documents)(X, weight)


def is_small(entries: int, documents: int, n_components: int) -> bool:
    """Tell whether a corpus is fitted without compiled code."""
    return entries * n_components <= FEW_ENTRIES and documents <= FEW_DOCUMENTS


def table_type(tol: float, extent: tuple[float, float]) -> type:
    """Return the type of tables of words: float32 unless numbers are extreme, or ``tol`` asks for more.

    >>> table_type(1e-4, (0.05, 300.0)).__name__, table_type(1e-9, (0.05, 300.0)).__name__
    ('float32', 'float64')
    """
    is_usual = SINGLE[0] <= extent[0] and extent[1] <= SINGLE[1]
    return np.float32 if tol >= LEAST_TOLERANCE and is_usual else np.float64


def starts_for(n_components: int) -> int:
    """Return how many starts are compared: with many topics a start costs more and matters less.

    >>> [starts_for(k) for k in (5, 20, 50, 1000)]
    [6, 6, 2, 2]
    """
    return max(2, min(6, 120 // n_components))


@dataclass(frozen=True)
class TopicPlan:
    """The phases: ``first`` and ``by_documents`` by documents, or ``by_tokens``; em if all are None.

    ``momentum`` is that of em's passes, see :mod:`swiftem.topics.momentum`.
    """

    name: str
    first: Method | None = None
    by_documents: Method | None = None
    by_tokens: Method | None = None
    momentum: float = 0.0

    @property
    def worth(self) -> float:
        """The number of em's passes that one pass counts as."""
        return WORTH if self.momentum > 0.0 else 1.0


def plan_topics(
    name: str,
    sampling: str,
    batch_size: Any,
    step_size: Any,
    *,
    n_documents: int,
    acceleration: str | None = None,
) -> TopicPlan:
    """Return the plan; with an acceleration, "auto" is em alone.

    >>> plan_topics("auto", "auto", "auto", "auto", n_documents=10_000).first.batch_size
    256
    >>> plan_topics("fiem", "auto", "auto", "auto", n_documents=10_000).by_tokens.name
    'fiem'
    """
    auto = min(BATCH, max(1, n_documents // LEAST_BATCHES))
    if acceleration is not None:
        if name not in ("auto", "em"):
            raise ValueError(
                f"acceleration must be None for method={name!r}, got {acceleration!r}: only em's passes are "
                "accelerated."
            )
        name = "em"
    _refuse_unused(name, sampling=sampling, batch_size=batch_size, step_size=step_size)
    if name in ("auto", "em"):
        first = None
        if name == "auto" and n_documents >= SMALL:
            first = OnlineEM(step_size=BY_DOCUMENTS, batch_size=auto)
        return TopicPlan("em", first=first, momentum=0.0 if first is None else MOMENTUM)
    by_tokens = sampling == "tokens" or (sampling == "auto" and name not in OF_DOCUMENTS)
    if not by_tokens:
        if name not in OF_DOCUMENTS:
            reason = "by documents it would need a memory of n_components numbers per entry of X"
            if not ALL[name].remembers:
                reason = f"batches of documents are for {' and '.join(OF_DOCUMENTS)}"
            raise ValueError(f"sampling must be 'tokens' for method={name!r}, got 'documents': {reason}.")
        b = auto if batch_size == "auto" else min(int(batch_size), n_documents)
        step = (
            step_size
            if step_size != "auto"
            else BY_DOCUMENTS
            if name == "sem"
            else min(0.5, 4.0 * b / n_documents)
        )
        return TopicPlan(name, by_documents=make_method(name, step_size=step, batch_size=b))
    b = 1 if batch_size == "auto" else int(batch_size)
    step = step_size
    if step_size == "auto":
        step = power(1.0, 0.8) if name == "sem" else sample_size(10, exponent=1)
    return TopicPlan(name, by_tokens=make_method(name, step_size=step, batch_size=b, memory_dtype="float32"))


def _refuse_unused(name: str, **given: Any) -> None:
    """Raise ValueError for arguments of stochastic methods that this method would not use."""
    is_drawn = name not in ("auto", "em")
    for argument in given:
        if is_drawn and (argument == "sampling" or has_field(name, argument)):
            continue
        if not (isinstance(given[argument], str) and given[argument] == "auto"):
            raise ValueError(
                f"{argument} must be 'auto' for method={name!r}, which has none, got "
                f"{shown(given[argument])}: choose sem, sem-vr or fiem."
            )
