"""em of topics on a device: the M-step, the background, decorrelation and momentum, of tensors.

``contrast.py`` and ``momentum.py`` have the same of arrays. Tables are (V, K).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from swiftem.core.types import Array
from swiftem.topics.compute.torch import TorchPasses, left_out_of
from swiftem.topics.documents import FLUSH

LEAST = 0.1
"""No number falls below this share of em's own step, as in ``topics/momentum.py``."""
ROWS = 1 << 16
"""Documents that are extrapolated at a time."""


def m_step(counts: Tensor, beta: Tensor) -> Tensor:
    """Return words of topics (V, K) from counts (V, K) and β (1, K) or (V, K); uniform if there are none."""
    filled = counts.clamp(min=0.0).add_(beta)
    totals = filled.sum(dim=0)
    is_there = (totals > 0.0) & torch.isfinite(totals)
    found = torch.where(is_there, filled.div_(totals), 1.0 / len(filled))
    return torch.where(found < FLUSH, 0.0, found)


def decorrelated(counts: Tensor, beta: Tensor, strength: float, background: bool) -> Tensor:
    """Return counts (V, K) over 1 + ``strength`` times the word's mean share in the other topics."""
    first = int(background)
    if strength == 0.0 or counts.shape[1] - first < 2:
        return counts
    by_word = m_step(counts, beta)[:, first:]
    others = by_word.sum(dim=1, keepdim=True) - by_word
    found = counts.clone()
    found[:, first:] /= others.mul_(strength / (counts.shape[1] - first - 1)).add_(1.0)
    return found


def with_background(counts: Tensor, doc_topic: Tensor, share: float) -> Tensor:
    """Return counts (V, K) with the corpus in place of topic 0; ``doc_topic`` (D, K) is changed likewise.

    The smallest topic is dropped, and its index goes to the former topic 0.
    """
    smallest = int(counts.sum(dim=0).argmin())
    found, shares = counts * (1.0 - share), doc_topic.double()
    found[:, smallest] = found[:, 0]
    found[:, 0] = share * counts.sum(dim=1)
    shares[:, smallest] = shares[:, 0]
    shares[:, 0] = 0.0
    totals = shares.sum(dim=1, keepdim=True)
    shares = torch.where(totals > 0.0, shares / (totals / (1.0 - share)), shares)
    shares[:, 0] = 1.0 - shares.sum(dim=1)
    doc_topic.copy_(shares)
    return found


class DeviceTopics:
    """em's passes over documents on a device.

    Parameters
    ----------
    passes : TorchPasses
        The passes over the documents.
    beta : ndarray, shape (1, 1), (1, V) or (K, V)
        Added to topics' counts of words.
    topics, doc_topic, counts : ndarray, shapes (K, V), (D, K) and (K, V)
        Where em starts or resumes; counts may be None.
    leave_one_out : bool
        Whether tokens are left out of the counts that explain them, as soon as there are counts.
    contrast : tuple (background, share, strength)
        Whether topic 0 is a background, its share when it is added, and the strength of the decorrelation.
    momentum : float
        Its strength, as in :class:`swiftem.topics.momentum.Momentum`.
    behind : tuple of ndarrays or None
        Counts (K, V) and topics of documents (D, K) after the pass before: the state of the momentum.
    """

    def __init__(
        self,
        passes: TorchPasses,
        beta: Array,
        topics: Array,
        doc_topic: Array,
        counts: Array | None,
        *,
        leave_one_out: bool = False,
        contrast: tuple[bool, float, float] = (False, 0.0, 0.0),
        momentum: float = 0.0,
        behind: tuple[Array, Array] | None = None,
    ) -> None:
        self._passes, self._leave_one_out, self._momentum = passes, leave_one_out, momentum
        self._background, self._share, self._strength = contrast
        self._beta = passes.on_device(np.broadcast_to(beta.T, (beta.shape[1], passes.n_topics)))
        self._topics, self._doc_topic = passes.on_device(topics.T), passes.shares(doc_topic)
        self._counts = None if counts is None else passes.on_device(counts.T)
        self._behind: tuple[Tensor, Tensor] | None = None
        if behind is not None:
            self._behind = passes.on_device(behind[0].T), passes.shares(behind[1])

    def step(
        self,
        between: Callable[[], None] = lambda: None,
        *,
        add_background: bool = False,
        least: float = -np.inf,
    ) -> float:
        """Make a pass and the M-steps; return the log-likelihood before them.

        ``add_background`` is whether topic 0 becomes the background in this pass. If the log-likelihood is
        less than ``least``, the next pass begins where this one ends.
        """
        between()
        left_out, beta = None, self._beta
        if self._leave_one_out and self._counts is not None:
            totals = self._counts.clamp(min=0.0).sum(dim=0) + beta.expand_as(self._counts).sum(dim=0)
            left_out = left_out_of(totals, beta)
        found = self._passes.em(self._doc_topic, self._topics, left_out)
        counts, self._doc_topic = found.by_word, found.doc_topic
        if add_background:
            counts = with_background(counts, self._doc_topic[:, : self._passes.n_topics], self._share)
        value = float(found.log_likelihood)
        counts = decorrelated(counts, beta, self._strength, self._background)
        self._counts = self._ahead(counts, value < least) if self._momentum else counts
        self._topics = m_step(self._counts, beta)
        return value

    def _ahead(self, counts: Tensor, is_worse: bool) -> Tensor:
        """Return the counts that the next pass begins at; topics of documents are changed likewise."""
        before = self._behind
        if before is None or is_worse:
            self._behind = counts.clone(), self._doc_topic.clone()
            return counts
        for first in range(0, len(self._doc_topic), ROWS):
            now, earlier = (part[first : first + ROWS] for part in (self._doc_topic, before[1]))
            ahead = self._extrapolated(now.double(), earlier)
            earlier.copy_(now)
            now.copy_(ahead.div_(ahead.sum(dim=1, keepdim=True)))
        self._behind = counts.clone(), before[1]
        return self._extrapolated(counts, before[0])

    def _extrapolated(self, now: Tensor, before: Tensor) -> Tensor:
        return ((now - before) * self._momentum + now).maximum(LEAST * now)

    def read(self) -> tuple[Array, Array, Array | None]:
        """Return topics (K, V), doc_topic (D, K), and counts (K, V) or None, as arrays."""
        counts = None if self._counts is None else self._counts.cpu().numpy().T
        return self._topics.cpu().numpy().T, self._passes.array(self._doc_topic), counts

    def behind(self) -> tuple[Array, Array] | None:
        """Return the state of the momentum as arrays: counts (K, V), doc_topic (D, K)."""
        if self._behind is None:
            return None
        counts, doc_topic = self._behind
        return counts.cpu().numpy().T, self._passes.array(doc_topic)
