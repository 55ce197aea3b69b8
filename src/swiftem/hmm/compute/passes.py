"""Compiled passes over sequences: densities by the mixture, recursions by compiled code, threads over parts.

A part has about a page of steps, or one longer sequence, which is computed in pieces: its forward pass keeps
the states before each piece only, and the backward pass computes the piece again. The memory of a pass is
therefore that of the rows of its longest sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from swiftem.core.compute import BLOCK, Compute, Evaluation
from swiftem.core.source import Batch
from swiftem.core.types import Array, Index, Theta
from swiftem.hmm.compute import recursions
from swiftem.hmm.compute.emissions import Emissions
from swiftem.hmm.model import IMPOSSIBLE, BoundMarkov, MarkovTheta
from swiftem.hmm.sequences import STEPS, Steps, parts_of, steps_of
from swiftem.kernels.threads import in_order, one_thread_blas


class Piece(NamedTuple):
    """Smoothed steps: whole sequences, or a piece of one.

    Attributes
    ----------
    place : slice
        Their place among the steps of the part.
    gamma : ndarray, shape (t, K)
        Probabilities of the states.
    terms : ndarray, shape (t,)
        log p(y_t | y_1, ..., y_{t−1}).
    features : ndarray, shape (1 + p, t), or None
        T(y), if it is a matrix.
    """

    place: slice
    gamma: Array
    terms: Array
    features: Array | None


def smoothed(emissions: Emissions, steps: Steps, counts: Array) -> Iterator[Piece]:
    """Yield smoothed steps, backwards in a long sequence, and write the counts of transitions (n, K, K)."""
    start, transitions, _ = emissions.theta
    n, length, weighted, starts = len(steps.begin) - 1, len(steps.rows), np.empty_like(start), [start]
    is_long = n == 1 and length > 2 * STEPS
    places = [slice(at, min(at + STEPS, length)) for at in range(0, length, STEPS if is_long else length)]
    counts[:] = 0.0

    def densities(place: slice) -> tuple[Array, Array, Array | None]:
        own = steps if len(places) == 1 else steps.piece(place)
        b, features = emissions.densities(own, place.start)
        largest = np.empty(len(b))
        recursions.divide_by_largest(b, largest)
        return np.exp(b, out=b), largest, features

    for place in places[:-1]:
        starts.append(starts[-1].copy())
        if not recursions.forward(densities(place)[0], starts[-1], transitions):
            yield _in_logs(emissions, steps, counts[0])
            return
    for place, predicted in zip(reversed(places), reversed(starts), strict=True):
        (b, largest, features), done = densities(place), 0
        begin, scale = steps.begin if len(places) == 1 else np.array([0, len(b)]), np.empty(len(b))
        follows = place is not places[-1]
        while done < n:
            rest = begin[done:], predicted, transitions, counts[done:], scale, weighted, follows
            done += recursions.smooth(b, *rest)
            if done < n:  # this one has numbers that are too small
                here = place if n == 1 else slice(begin[done], begin[done + 1])
                piece = _in_logs(emissions, steps.piece(here) if n > 1 else steps, counts[done])
                if n == 1:
                    yield piece
                    return
                b[here], largest[here], scale[here] = piece.gamma, piece.terms, 1.0
                done += 1
        yield Piece(place, b, np.log(scale) + largest, features)


def _in_logs(emissions: Emissions, steps: Steps, counts: Array) -> Piece:
    """Return the smoothed steps of one sequence, in logarithms."""
    logs, features = emissions.densities(steps)
    gamma, counts[:], terms = recursions.in_logs(logs, *emissions.theta.logs)
    if terms[-1] == -np.inf:
        raise ValueError(IMPOSSIBLE)
    return Piece(slice(0, len(logs)), gamma, terms, features)


class PartSums(NamedTuple):
    """The E-step of the sequences of a part.

    Attributes
    ----------
    index : ndarray of int, shape (n,)
        The sequences.
    log_likelihood : ndarray, shape (n,)
        Their log-likelihoods.
    rows : ndarray, shape (n, q) or (1, q)
        Their statistics, or the weighted sum of these.
    """

    index: Index  # type: ignore[assignment]  # hides tuple.index
    log_likelihood: Array
    rows: Array


class PassesCompute(Compute):
    """E-steps of a hidden Markov model, by several threads: sums are over parts, in their order."""

    _model: BoundMarkov

    def _part(self, batch: Batch, emissions: Emissions, is_sum: bool) -> PartSums:
        """Return the E-step of a part: the weighted sum of statistics, or one row per sequence."""
        model, steps, n = self._model, steps_of(batch), len(batch.index)
        k, is_plain = model.n_components, not is_sum or self._source.weight is None
        start, counts, log_likelihood = np.empty((n, k)), np.empty((n, k, k)), np.zeros(n)
        sums = np.zeros((1 if is_sum else n, model.emissions.size - k))
        of_steps = None if is_plain else np.repeat(batch.weight, steps.lengths)
        for place, gamma, terms, features in smoothed(emissions, steps, counts):
            if place.start == 0:
                start[:] = gamma[steps.begin[:-1]]
            log_likelihood += np.add.reduceat(terms, steps.begin[:-1])
            own = steps if n > 1 else Steps(steps.rows[place], np.array([0, len(gamma)]))
            if is_sum:
                sums += emissions.sums(own, features, gamma, None if of_steps is None else of_steps[place])
            else:
                sums += emissions.by_sequence(own, features, gamma)
        chain = np.hstack([start, counts.reshape(n, -1)])
        if is_sum:
            chain = model.statistics(batch, chain, batch.weight)[None]
        return PartSums(batch.index, log_likelihood, np.hstack([chain, sums]))

    def _parts(self, work: Iterable[Batch], theta: MarkovTheta, *, is_sum: bool) -> Iterator[PartSums]:
        """Yield the E-steps of parts, in their order."""
        emissions = Emissions(self._model, theta)
        with one_thread_blas(), closing(in_order(self._part, ((b, emissions, is_sum) for b in work))) as done:
            for part in done:
                self._between_blocks()
                yield part

    def _posterior(self, batch: Batch, theta: MarkovTheta) -> tuple[Array, Array]:
        done = list(self._parts(divided(batch), theta, is_sum=False))
        return np.concatenate([part.rows for part in done]), np.concatenate([p.log_likelihood for p in done])

    def _pass(self, theta: MarkovTheta, remember: bool) -> tuple[Array, Array | None]:
        s, loss, memory, self._passed = np.zeros(self._model.size), 0.0, None, None
        if remember:
            memory = self.allocate((self.n, self._model.size), self.memory_dtype)
        batches = self._source.blocks(BLOCK)
        weight, total = self._source.weight, self._source.total_weight
        for index, log_likelihood, rows in self._parts(batches, theta, is_sum=not remember):
            w = np.ones(len(index)) if weight is None else weight[index]
            if memory is not None:
                memory[index] = rows  # statistics belong to the stored rows, also in float32
                rows = np.einsum("i,iq->q", w, memory[index].astype(np.float64))[None]
            s += rows[0] / total
            loss -= float((w * log_likelihood).sum())
            self.evaluations += len(index)
        self._passed = theta, loss
        return s, memory

    def mean(self, batch: Batch, rows: Array) -> Array:
        """Return the mean over the batch, for means over all steps."""
        if not self.is_divided:
            return super().mean(batch, rows)
        source, b = self._source, len(batch.index)
        weights = float(self.n if source.weight is None else source.weight.sum())
        return self._statistics(batch, rows, np.full(b, weights / (source.total_weight * b)))

    def objective(self, theta: MarkovTheta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._passed is None or self._passed[0] is not theta:
            before = self.evaluations
            self._pass(theta, remember=False)
            self.evaluations = before
        return super().objective(theta)

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sequence, and its first state if that is wanted."""
        results = Evaluation.room(self.n, self._model.n_components, responsibilities, labels)
        for index, log_likelihood, rows in self._parts(self._source.blocks(BLOCK), theta, is_sum=False):
            results.log_likelihood[index] = log_likelihood
            first = rows[:, : self._model.n_components]
            if results.responsibilities is not None:
                results.responsibilities[index] = first
            if results.labels is not None:
                results.labels[index] = first.argmax(axis=1)
        return results


def divided(batch: Batch) -> Iterator[Batch]:
    """Yield the parts of a batch, as many sequences as have about a page of steps.

    >>> steps = Steps(np.zeros((3 * STEPS, 1)), STEPS * np.arange(4))
    >>> [part.index.tolist() for part in divided(Batch(steps, np.ones(3), np.array([7, 8, 9])))]
    [[7], [8], [9]]
    """
    steps = steps_of(batch)
    for start, stop in parts_of(steps.begin):
        own = Steps(steps.rows[steps.begin[start] : steps.begin[stop]], steps.begin[start : stop + 1])
        own = own._replace(begin=own.begin - own.begin[0])
        yield Batch(own, batch.weight[start:stop], batch.index[start:stop])  # type: ignore[arg-type]
