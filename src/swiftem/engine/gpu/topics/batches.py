"""sem and sem-vr by documents on a device: batches of documents, and the running counts of words.

The equations are those of ``engine/document_lane.py``: counts = centre + scale·u. :class:`PlainSteps` is
their form in PyTorch, in float64; ``fast_batches.py`` computes the same by kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Array
from swiftem.data.foreign import torch_of
from swiftem.engine.document_lane import ScaledCounts
from swiftem.engine.gpu.topics.counts import Side
from swiftem.engine.gpu.topics.passes import PlainPasses
from swiftem.engine.snapshots import Running
from swiftem.models.documents import FLUSH, BoundDocuments, by_rows

__all__ = ["Done", "DrawnDocuments", "PlainSteps"]


class Done(NamedTuple):
    """``rejected``: steps that left the domain; ``evaluations``: E-steps of entries."""

    rejected: int
    evaluations: int


@dataclass(frozen=True)
class DrawnDocuments:
    """The entries of several batches of b documents each, by document and by word.

    A slot has one document of a batch: T batches have T·b slots. A word that several batches have is
    listed once for each of them.

    Attributes
    ----------
    row : tensor of int, shape (T·b,)
        Rows of the topics of documents that these are.
    begin : tensor of int, shape (T·b + 1,)
        Entries of each slot.
    word, count : tensor, shape (m,)
        The entries.
    words : tensor of int, shape (W,)
        Words of the first batch, ascending, then of the second, and so on.
    first : tensor of int, shape (W + 1,)
        Entries of each of them, in the order of words.
    slot, heavy : tensor, shape (m,)
        In the order of words: an entry's slot within its batch, 0 to b − 1, and its count times the
        document's weight.
    at, entries : list of int, T + 1
        First of ``words``, and first entry, of each batch.
    """

    batch_size: int
    row: Any
    begin: Any
    word: Any
    count: Any
    words: Any
    first: Any
    slot: Any
    heavy: Any
    at: list[int]
    entries: list[int]

    @classmethod
    def of(
        cls, row: Any, length: Any, word: Any, count: Any, weight: Any, batch_size: int, n_words: int
    ) -> DrawnDocuments:
        """Return the batches of slots whose numbers of entries are ``length`` (T·b,); see the attributes.

        The order of sums is that of slots: other batches in the same object make no difference.
        """
        torch = torch_of("a device")
        begin = torch.zeros(len(length) + 1, dtype=torch.int64, device=length.device)
        begin[1:] = length.cumsum(0)
        slots = torch.repeat_interleave(torch.arange(len(length), device=length.device), length)
        key, order = torch.sort(slots // batch_size * n_words + word, stable=True)
        distinct, times = torch.unique_consecutive(key, return_counts=True)
        first = torch.zeros(len(distinct) + 1, dtype=torch.int64, device=length.device)
        first[1:] = times.cumsum(0)
        edges = torch.arange(len(length) // batch_size + 1, device=length.device)
        slot = slots[order]
        return cls(
            batch_size, row, begin, word, count, distinct % n_words, first, (slot % batch_size).int(),
            count[order] * weight[slot].to(count.dtype),
            torch.searchsorted(distinct, edges * n_words).tolist(), begin[edges * batch_size].tolist(),
        )  # fmt: skip


class PlainSteps(ScaledCounts):
    """Steps of sem and sem-vr on a device, with the interface of ``RunningCounts`` for what a lane stores.

    Parameters
    ----------
    passes : PlainPasses
        Passes over the documents.
    model : BoundDocuments
        The model.
    share : float
        What the sums over a batch are multiplied by.
    """

    def __init__(self, passes: PlainPasses, model: BoundDocuments, share: float) -> None:
        self._torch, self._passes, self._model, self._share = torch_of("a device"), passes, model, share
        beta, n_topics = model.model.beta, passes.n_topics
        self._beta = self._there(by_rows(beta, n_topics))
        self._beta_total = self._there(np.broadcast_to(beta.T, (model.n_words, n_topics)).sum(axis=0))
        self._centre_here: Array = np.empty((0, n_topics))
        self._scale = 1.0
        self._u: Any = None
        self._total: Any = None
        self._centre: Any = None
        self._centre_total: Any = None
        self._places: Any = None
        self._anchor: Any = None

    def _there(self, array: Array) -> Any:
        """Return a copy of an array on the device."""
        return self._torch.from_numpy(np.array(array, order="C")).to(self._passes.device)

    def load(self, counts: Array, centre: Array | None = None) -> None:
        """Begin at counts (V, K), with a centre (V, K)."""
        self.restore(Running(counts, 1.0, np.empty((0, counts.shape[1])), counts.sum(axis=0)))
        if centre is not None:
            self.renew(centre)

    def renew(self, centre: Array) -> None:
        """Change the centre (V, K); the counts stay the same."""
        u = self.counts() - centre
        self.restore(Running(u, 1.0, centre, u.sum(axis=0)))

    def counts(self) -> Array:
        """Return the counts (V, K)."""
        found = self._scale * self._u
        counts: Array = (found if self._centre is None else found + self._centre).cpu().numpy()
        return counts

    def snapshot(self) -> Running:
        """Return the internal form of the counts."""
        return Running(self._u.cpu().numpy(), self._scale, self._centre_here, self._total.cpu().numpy())

    def restore(self, snapshot: Running) -> None:
        """Restore a snapshot, which is not changed."""
        self._u, self._total = self._there(snapshot.u), self._there(snapshot.total)
        self._scale, self._centre_here = float(snapshot.scale), snapshot.centre
        self._centre = self._there(snapshot.centre) if len(snapshot.centre) else None
        self._centre_total = self._there(snapshot.centre.sum(axis=0))

    def load_places(self, places: Array) -> None:
        """Load the topics of documents (D, K) from which E-steps begin."""
        self._places = self._passes.shares(places)

    def places(self) -> Array:
        """Return the topics of documents (D, K)."""
        return self._passes.array(self._places)

    def load_anchor(self, word_topic: Array) -> None:
        """Load θ of the anchor (V, K): from here on, steps are those of sem-vr."""
        self._anchor = self._there(word_topic)

    def go(self, drawn: DrawnDocuments, steps: Array, given: Array | None, *, leaves: bool) -> Done:
        """Do an iteration with each of the batches.

        Parameters
        ----------
        drawn : DrawnDocuments
            The batches.
        steps : ndarray, shape (T,)
            Their step sizes.
        given : ndarray, shape (V, K), or None
            θ until a step is accepted; None: that of the counts.
        leaves : bool
            Whether the next E-step of a document begins where this one ends.
        """
        theta, rejected, evaluations = None if given is None else self._there(given), 0, 0
        for t, gamma in enumerate(steps.tolist()):
            words = drawn.words[drawn.at[t] : drawn.at[t + 1]]
            row = drawn.row[t * drawn.batch_size : (t + 1) * drawn.batch_size]
            sides, begins = self._sides(drawn, t, words), self._places[row]
            at = self._topics_at(words) if theta is None else theta[words]
            change, ends, spent = self._e_step(sides, at, begins)
            if self._anchor is not None:
                other, _, more = self._e_step(sides, self._anchor[words], begins)
                change, spent = change - other, spent + more
            if leaves:
                self._places[row] = ends
            if self.step(words, self._share * change, gamma):
                theta = None
            else:
                rejected += 1
            evaluations += spent
        return Done(rejected, evaluations)

    def _sides(self, drawn: DrawnDocuments, t: int, words: Any) -> tuple[Side, Side]:
        """Return the entries of a batch, by document and by word; words are numbered within the batch."""
        torch, b = self._torch, drawn.batch_size
        entries = slice(drawn.entries[t], drawn.entries[t + 1])
        length = drawn.begin[t * b : (t + 1) * b + 1].diff()
        document = torch.repeat_interleave(torch.arange(b, device=words.device), length)
        number = torch.searchsorted(words, drawn.word[entries].long())
        times = drawn.first[drawn.at[t] : drawn.at[t + 1] + 1].diff()
        word = torch.repeat_interleave(torch.arange(len(words), device=words.device), times)
        return (
            Side.of(document, b, b, number, drawn.count[entries]),
            Side.of(word, len(words), len(words), drawn.slot[entries], drawn.heavy[entries]),
        )

    def _e_step(self, sides: tuple[Side, Side], word_topic: Any, places: Any) -> tuple[Any, Any, int]:
        """Return sums (U, K) of a batch's words, where its E-steps ended (b, K), and the evaluations."""
        by_document, by_word = sides
        model = self._model.model
        found = self._passes.folded(
            by_document, word_topic, places, model.rounds, model.tolerance, leaps=False
        )  # fmt: skip
        evaluations = int(((found.rounds + 1) * by_document.begin[by_document.first].diff()).sum())
        if not len(word_topic):
            return word_topic, found.doc_topic, evaluations
        sums = self._passes.of_words(by_word, by_word.count.double(), found.doc_topic, word_topic)
        return sums, found.doc_topic, evaluations

    def _totals(self, total: Any) -> tuple[Any, Any]:
        """Return the factor of β, and the topics' totals with it, given those of the deviation."""
        of_counts = total + self._centre_total
        strength = of_counts.sum() / self._model.tokens
        return strength, of_counts + strength * self._beta_total

    def _topics_at(self, words: Any) -> Any:
        """Return θ of some words (U, K)."""
        torch = self._torch
        strength, totals = self._totals(self._total)
        found = self._scale * self._u[words]
        if self._centre is not None:
            found += self._centre[words]
        beta = self._beta if len(self._beta) == 1 else self._beta[words]
        found = (found.clamp_(min=0.0) + strength * beta) / torch.where(totals > 0.0, totals, torch.inf)
        return torch.where(found > FLUSH, found, 0.0)
