"""em of topics on a device: the topics of documents, the words of topics and their counts stay there.

What the M-step, the background and the decorrelation compute is defined in NumPy, in ``models/documents.py``
and ``estimators/topics/contrast.py``; here it is in float64, on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array
from swiftem.data.foreign import torch_of
from swiftem.engine.gpu.topics.passes import LeftOut, PlainPasses
from swiftem.models.documents import FLUSH

__all__ = [
    "DeviceMomentum", "DeviceTopics", "TopicArrays", "decorrelated", "left_out_of", "m_step",
    "with_background",
]  # fmt: skip

LEAST = 0.1
"""No number falls below this share of em's own step, as in ``estimators/topics/momentum.py``."""
ROWS = 1 << 16
"""Documents that are extrapolated at a time."""


class TopicArrays(NamedTuple):
    """The state of em as arrays: topics (K, V), doc_topic (D, K), and counts (K, V) or None."""

    topics: Array
    doc_topic: Array
    counts: Array | None


def m_step(counts: Any, beta: Any) -> Any:
    """Return words of topics (V, K) from counts (V, K) and β (1, K) or (V, K); uniform if there are none."""
    torch = torch_of("a device")
    filled = counts.clamp(min=0.0).add_(beta)
    totals = filled.sum(dim=0)
    is_there = (totals > 0.0) & torch.isfinite(totals)
    found = torch.where(is_there, filled.div_(totals), 1.0 / len(filled))
    return torch.where(found < FLUSH, 0.0, found)


def left_out_of(counts: Any, beta: Any) -> LeftOut:
    """Return what leaving a token out needs of the topics' counts (V, K) and β."""
    torch = torch_of("a device")
    totals = counts.clamp(min=0.0).sum(dim=0) + torch.broadcast_to(beta, counts.shape).sum(dim=0)
    inverse = torch.where(totals > 0.0, 1.0 / totals, 0.0)
    return LeftOut(inverse, beta * inverse)


def decorrelated(counts: Any, beta: Any, strength: float, background: bool) -> Any:
    """Return counts (V, K) over 1 + ``strength`` times the word's mean share in the other topics."""
    first = int(background)
    if strength == 0.0 or counts.shape[1] - first < 2:
        return counts
    by_word = m_step(counts, beta)[:, first:]
    others = by_word.sum(dim=1, keepdim=True) - by_word
    others.mul_(strength / (counts.shape[1] - first - 1)).add_(1.0)
    found = counts.clone()
    found[:, first:] /= others
    return found


def with_background(counts: Any, doc_topic: Any, share: float) -> tuple[Any, Any]:
    """Return counts (V, K) and topics of documents (D, K) with the corpus in place of topic 0.

    The smallest topic is given up, and topic 0 takes its number; ``share`` is that of the background.
    """
    torch = torch_of("a device")
    smallest = int(counts.sum(dim=0).argmin())
    found, shares = counts.clone(), doc_topic.double()
    of_all = found.sum(dim=1)
    found[:, smallest] = found[:, 0]
    found *= 1.0 - share
    found[:, 0] = share * of_all
    shares[:, smallest] = shares[:, 0]
    shares[:, 0] = 0.0
    totals = shares.sum(dim=1, keepdim=True)
    shares = torch.where(totals > 0.0, shares / (totals / (1.0 - share)), shares)
    shares[:, 0] = 1.0 - shares.sum(dim=1)
    return found, shares.to(doc_topic.dtype)


class DeviceMomentum:
    """As :class:`swiftem.estimators.topics.momentum.Momentum`, of tensors: counts are (V, K).

    Parameters
    ----------
    strength : float
        μ; 0 changes nothing.
    state : tuple of tensors or None
        Counts and topics of documents after the last pass; they are changed.
    """

    def __init__(self, strength: float, state: tuple[Any, Any] | None) -> None:
        self._strength, self.state = strength, state

    def go(self, counts: Any, doc_topic: Any, is_worse: bool) -> Any:
        """Return the counts that the next pass begins at; ``doc_topic`` is changed likewise."""
        if self._strength == 0.0:
            return counts
        if self.state is None or is_worse:
            self.state = counts.clone(), doc_topic.clone()
            return counts
        before, shares = self.state
        for first in range(0, len(doc_topic), ROWS):
            now, earlier = doc_topic[first : first + ROWS], shares[first : first + ROWS]
            ahead = self._ahead(now.double(), earlier)
            earlier.copy_(now)
            now.copy_(ahead.div_(ahead.sum(dim=1, keepdim=True)))
        self.state = counts.clone(), shares
        return self._ahead(counts, before)

    def _ahead(self, now: Any, before: Any) -> Any:
        return ((now - before) * self._strength + now).maximum(LEAST * now)


class DeviceTopics:
    """em's passes over documents on a device.

    Parameters
    ----------
    passes : PlainPasses
        The passes over the documents.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to topics' counts of words.
    state : TopicArrays
        Where em starts or resumes.
    leave_one_out : bool
        Whether tokens are left out of the counts that explain them, as soon as there are counts.
    contrast : tuple (background, share, strength)
        Whether topic 0 is a background, its share when it is added, and the strength of the decorrelation.
    momentum : tuple (strength, state)
        Of :class:`swiftem.estimators.topics.momentum.Momentum`; its state is None at first.

    Examples
    --------
    Documents make them: see :meth:`swiftem.engine.gpu.topics.documents.DeviceDocuments.topics`.
    """

    def __init__(
        self, passes: PlainPasses, beta: Array, state: TopicArrays, *, leave_one_out: bool = False,
        contrast: tuple[bool, float, float] = (False, 0.0, 0.0), momentum: tuple[float, Any] = (0.0, None),
    ) -> None:  # fmt: skip
        self._passes, self._leave_one_out = passes, leave_one_out
        self._background, self._share, self._strength = contrast
        self._beta = self._there(np.broadcast_to(beta.T, (beta.shape[1], passes.n_topics)))
        self._topics = self._there(state.topics.T)
        self._counts = None if state.counts is None else self._there(state.counts.T)
        self._doc_topic = passes.shares(state.doc_topic)
        strength, kept = momentum
        kept = None if kept is None else (self._there(kept[0].T), passes.shares(kept[1]))
        self._momentum = DeviceMomentum(strength, kept)

    def _there(self, array: Array) -> Any:
        """Return a copy of an array on the device."""
        return torch_of("a device").from_numpy(np.ascontiguousarray(array)).to(self._passes.device)

    def step(
        self, between: Callable[[], None] = lambda: None, *, add_background: bool = False,
        least: float = -np.inf,
    ) -> float:  # fmt: skip
        """Make a pass and the M-steps; return the log-likelihood before them.

        ``add_background`` is whether topic 0 becomes the background in this pass. If the log-likelihood is
        less than ``least``, the next pass begins where this one ends.
        """
        between()
        left_out = None
        if self._leave_one_out and self._counts is not None:
            left_out = left_out_of(self._counts, self._beta)
        found = self._passes.em(self._doc_topic, self._topics, left_out)
        counts, self._doc_topic = found.by_word, found.doc_topic
        if add_background:
            shares = self._doc_topic[:, : self._passes.n_topics]
            counts, shares[:] = with_background(counts, shares, self._share)
        value = float(found.log_likelihood)
        counts = decorrelated(counts, self._beta, self._strength, self._background)
        self._counts = self._momentum.go(counts, self._doc_topic, value < least)
        self._topics = m_step(self._counts, self._beta)
        return value

    def read(self) -> TopicArrays:
        """Return the state as arrays."""
        counts = None if self._counts is None else self._counts.cpu().numpy().T
        return TopicArrays(self._topics.cpu().numpy().T, self._passes.array(self._doc_topic), counts)

    def behind(self) -> tuple[Array, Array] | None:
        """Return the state of the momentum as arrays: counts (K, V), doc_topic (D, K)."""
        if self._momentum.state is None:
            return None
        counts, doc_topic = self._momentum.state
        return counts.cpu().numpy().T, self._passes.array(doc_topic)
