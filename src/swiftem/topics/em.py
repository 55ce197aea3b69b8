r"""What em does after each pass over documents: a background, decorrelation, momentum, and a learned α.

**Topics that differ.** Words that are common to all documents of a corpus are likely in every topic of it,
and hide what a topic is about. There are two remedies:

- *background*: topic 0 starts at the frequencies of words in the whole corpus. It is a topic like the others,
  but does not take part in the decorrelation: words that are common to many topics move to it.
- *decorrelation*: after each pass, a topic's expected counts of a word are divided by
  :math:`1 + \tau \bar\theta_v`, where :math:`\bar\theta_v` is the mean probability of the word in the other
  topics, without the background. This is the decorrelation of Tan and Ou (2010) and Vorontsov and Potapenko
  (2015), as a division, which never makes a word impossible, instead of a difference.

Neither climbs the likelihood: predictions become a little worse, and topics easier to tell apart. How the
default was chosen is in ``benchmarks/DECISIONS.md``. Both functions take arrays and tensors.

**Momentum.** After a pass from :math:`x` to :math:`F(x)`, the next one begins at
:math:`F(x) + \mu (F(x) - F(x'))`, where :math:`F(x')` is the result of the pass before (Nesterov, 1983).
Here x are the expected counts of words in topics, and the topics of documents. No number falls below a tenth
of F(x). If the objective is worse by more than the tolerance, the next pass begins at F(x).

**Learned α.** With counts :math:`n_{dk}` of topics in documents, :math:`N_d = \sum_k n_{dk}`, weights
:math:`w_d` and :math:`A = \sum_k \alpha_k`, the fixed-point step of Minka (2000), which climbs the likelihood
of Dirichlet-multinomial distributions, is

.. math::  \alpha_k \leftarrow \alpha_k\,
           \frac{\sum_d w_d\,[\psi(n_{dk} + \alpha_k) - \psi(\alpha_k)]}
                {\sum_d w_d\,[\psi(N_d + A) - \psi(A)]}.

Of counts, only means :math:`\bar n_{dk}` are known. For small α, ψ bends so much that ψ of the mean
overstates the mean of ψ: a tenth of a token in each document would count as if it were whole ones. A count is
therefore zero with the probability :math:`e^{-\bar n}` of a Poisson distribution, and else its mean if it is
not zero:

.. math::  \mathrm{E}[\psi(n + \alpha) - \psi(\alpha)] \approx
           p\,[\psi(\bar n / p + \alpha) - \psi(\alpha)], \qquad p = 1 - e^{-\bar n},

as Teh, Newman and Welling (2007) do it for their variational bound. A pass leaves topics of documents
:math:`\theta_{dk} = (\bar n_{dk} + \alpha_k) / (N_d + A)`, from which :math:`\bar n_{dk}` is known: no counts
are stored. One step follows each pass. Topics that are in many documents, such as a background, get a
larger α.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from swiftem.core.checkpoint import check_form
from swiftem.core.files import row_blocks
from swiftem.core.types import Array
from swiftem.kernels.threads import in_order
from swiftem.topics.compute.corpus import nothing
from swiftem.topics.compute.units import UnitDocuments
from swiftem.topics.documents import m_step, totals_of

if TYPE_CHECKING:
    from swiftem.topics.fit import TopicFit
    from swiftem.topics.read import AnyDocuments
    from swiftem.topics.resolve import TopicSpec

Table = TypeVar("Table", bound=Any)
"""An array or a tensor."""
SHARE = 0.3
"""Share of the background in each document when it is added."""
LEAST = 0.1
"""With momentum no number falls below this share of em's own step: em could not leave zero."""
ROWS = 1024
"""Documents that are extrapolated at a time: they stay in the cache."""
RANGE = 1e-3, 1e3
"""A learned α stays between these: a topic of α = 0 could not return to a document."""
MOST_DOCUMENTS = 5_000
"""Documents that α is learned from, at equal distances: as many say it precisely, and ψ is slow."""


def decorrelated(counts: Table, topics: Table, strength: float, background: bool) -> Table:
    """Return expected counts (K, V) over 1 + ``strength`` times the word's mean share in the other topics.

    Parameters
    ----------
    counts, topics : ndarray or tensor, shape (K, V)
        Expected counts of words in topics, and the words of topics that are their M-step.
    strength : float
        τ; 0 returns the counts themselves.
    background : bool
        Whether topic 0 does not take part.

    Examples
    --------
    >>> counts = np.array([[8.0, 2.0], [0.0, 5.0]])
    >>> decorrelated(counts, counts / counts.sum(axis=1, keepdims=True), 5.0, False).round(2)
    array([[8.  , 0.33],
           [0.  , 2.5 ]])
    """
    first = int(background)
    if strength == 0.0 or len(counts) - first < 2:
        return counts
    others = topics[first:].sum(axis=0) - topics[first:]
    others *= strength / (len(counts) - first - 1)
    others += 1.0
    found: Table = counts * 1.0
    found[first:] /= others
    return found


def with_background(counts: Table) -> tuple[Table, int]:
    """Return counts (K, V) with the corpus in place of topic 0, and the index that topic 0 has then.

    The smallest topic is given up for it.

    >>> with_background(np.array([[4.0, 0.0], [0.0, 4.0], [1.0, 1.0]]))[0].round(2)
    array([[1.5, 1.5],
           [0. , 2.8],
           [2.8, 0. ]])
    """
    smallest = int(counts.sum(axis=1).argmin())
    found = counts * (1.0 - SHARE)
    found[smallest] = found[0]
    found[0] = SHARE * counts.sum(axis=0)
    return found, smallest


def make_room(doc_topic: Table, place: int) -> None:
    """Give the background its share of documents (D, K), in place; topic 0 moves to ``place``.

    >>> shares = np.array([[0.5, 0.5, 0.0]])
    >>> make_room(shares, 2)
    >>> shares.round(2)
    array([[0.3 , 0.35, 0.35]])
    """
    doc_topic[:, place] = doc_topic[:, 0]
    doc_topic[:, 0] = 0.0
    totals = doc_topic.sum(axis=1)[:, None]
    totals += totals == 0.0
    doc_topic /= totals / (1.0 - SHARE)
    doc_topic[:, 0] = 1.0 - doc_topic.sum(axis=1)


class Momentum:
    """Extrapolates the results of passes.

    Parameters
    ----------
    strength : float
        μ; 0 changes nothing.
    documents
        The corpus, which allocates an array of documents' topics.

    Attributes
    ----------
    state : tuple of ndarrays or None
        Counts (K, V) and topics of documents (D, K) after the last pass.
    """

    def __init__(self, strength: float, documents: AnyDocuments) -> None:
        self._strength, self._documents = strength, documents
        self.state: tuple[Array, Array] | None = None

    def restore(self, state: Any, counts: Array | None, doc_topic: Array) -> None:
        """Restore a state; raise ValueError or TypeError if it has another form."""
        if state is None:
            return
        before, shares = state
        check_form("counts", before, counts)
        check_form("doc_topic", shares, doc_topic)
        self._remember(before, shares)

    def _remember(self, counts: Array, doc_topic: Array) -> None:
        shares = self._documents.allocate(doc_topic.shape) if self.state is None else self.state[1]
        for rows in row_blocks(shares, doc_topic):
            shares[rows] = doc_topic[rows]
        self.state = counts, shares

    def go(self, counts: Array, doc_topic: Array, is_worse: bool) -> Array:
        """Return the counts that the next pass begins at; ``doc_topic`` is changed likewise.

        Parameters
        ----------
        counts, doc_topic : ndarray, shapes (K, V) and (D, K)
            The results of a pass.
        is_worse : bool
            Whether the point that it began at was worse than the one before.
        """
        if self._strength == 0.0:
            return counts
        if self.state is None or is_worse:
            self._remember(counts, doc_topic)
            return counts
        before, shares = self.state
        for block in row_blocks(shares, doc_topic):
            edges = [*range(block.start, block.stop, ROWS), block.stop]
            for _ in in_order(
                self._go, [(doc_topic[slice(*ends)], shares[slice(*ends)]) for ends in pairwise(edges)]
            ):
                pass
        self.state = counts, shares
        return self._ahead(counts, before)

    def _go(self, doc_topic: Array, shares: Array) -> None:
        """Change the topics of some documents; ``shares`` are those after the last pass, before and after."""
        now = doc_topic.copy()
        found = self._ahead(now, shares)
        np.divide(found, found.sum(axis=1, keepdims=True), out=doc_topic)
        shares[:] = now

    def _ahead(self, now: Array, before: Array) -> Array:
        found = now - before
        found *= self._strength
        found += now
        return np.maximum(found, LEAST * now, out=found)


def next_alpha(alpha: Array, doc_topic: Array, length: Array, weight: Array) -> Array:
    """Return α (K,) after one fixed-point step.

    Parameters
    ----------
    alpha : ndarray, shape (K,)
        α of the pass that has made ``doc_topic``; positive.
    doc_topic : ndarray, shape (D, K)
        Topics of documents after the pass.
    length, weight : ndarray, shape (D,)
        Tokens of the documents, without weights, and the documents' weights.

    Examples
    --------
    >>> counts, alpha = np.array([[9.0, 1.0], [5.0, 5.0]]), np.full(2, 0.1)
    >>> next_alpha(alpha, (counts + alpha) / 10.2, np.full(2, 10.0), np.ones(2)).round(3)
    array([0.162, 0.123])
    """
    from scipy.special import digamma

    some = np.arange(len(doc_topic))
    if len(some) > MOST_DOCUMENTS:
        some = np.linspace(0, len(some) - 1, MOST_DOCUMENTS).astype(np.intp)
    length, weight, total = length[some], weight[some], alpha.sum()
    counts = np.maximum(doc_topic[some] * (length + total)[:, None] - alpha, 0.0)
    positive = -np.expm1(-counts)
    if_positive = np.divide(counts, positive, out=np.ones_like(counts), where=positive > 0.0)
    more = positive * (digamma(if_positive + alpha) - digamma(alpha))
    above = (weight[:, None] * more).sum(axis=0)  # a product by BLAS would depend on its threads
    below = (weight * (digamma(length + total) - digamma(total))).sum()
    return np.clip(alpha * above / below, *RANGE) if below > 0.0 else alpha


def e_step(
    fit: TopicFit,
    documents: AnyDocuments,
    spec: TopicSpec,
    doc_topic: Array,
    check: Callable[[], None] = nothing,
) -> tuple[Array, float]:
    """Return expected counts (K, V) and the log-likelihood; ``doc_topic`` (D, K) is replaced.

    Before there are counts, no token has added anything to them.
    """
    left_out = None
    if spec.leaves_one_out and fit.counts is not None:
        left_out = (totals_of(fit.counts, spec.beta), spec.beta)
    return documents.em_pass(doc_topic, fit.topics, fit.alpha, left_out, check)


def contrasted(counts: Array, spec: TopicSpec) -> Array:
    """Return the counts (K, V) that the M-step of a pass is made of."""
    if not spec.decorrelation:
        return counts
    return decorrelated(counts, m_step(counts, spec.beta), spec.decorrelation, spec.background)


class HostPasses:
    """em's passes over documents on the CPU, or of units of documents."""

    def __init__(self, fit: TopicFit, documents: AnyDocuments, spec: TopicSpec, state: Any) -> None:
        self._fit, self._documents, self._spec = fit, documents, spec
        self._momentum = Momentum(spec.momentum, documents)
        self._momentum.restore(state, fit.counts, fit.doc_topic)

    @property
    def state(self) -> tuple[Array, Array] | None:
        """State of the momentum."""
        return self._momentum.state

    def step(self, check: Callable[[], None], *, add_background: bool, least: float) -> float:
        """Make a pass and the M-steps; return the log-likelihood before them.

        ``add_background`` is whether topic 0 becomes the background in this pass. If the log-likelihood is
        less than ``least``, the next pass begins where this one ends, without momentum.
        """
        fit, spec, documents = self._fit, self._spec, self._documents
        counts, value = e_step(fit, documents, spec, fit.doc_topic, check)
        if add_background:
            counts, place = with_background(counts)
            for rows in row_blocks(fit.doc_topic):
                make_room(fit.doc_topic[rows], place)
        elif spec.learns_alpha:
            assert not isinstance(documents, UnitDocuments)  # resolve refuses them
            fit.alpha = next_alpha(fit.alpha, fit.doc_topic, documents.length, documents.weight)
        fit.counts = self._momentum.go(contrasted(counts, spec), fit.doc_topic, value < least)
        fit.topics = m_step(fit.counts, spec.beta)
        return value
