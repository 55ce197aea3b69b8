"""Fits of a hidden Markov model: steps and phases as a mixture's, whose components are the emissions."""

from __future__ import annotations

from math import inf
from typing import cast

import numpy as np

from swiftem.core.algorithm import Iterate
from swiftem.core.checkpoint import check_form
from swiftem.core.problem import Problem
from swiftem.core.types import Array, Index
from swiftem.data.array import ArraySource
from swiftem.fit.driver import Outcome, Phase, drive
from swiftem.fit.watch import NoStart, StartWatch
from swiftem.hmm.model import BoundMarkov, MarkovTheta
from swiftem.hmm.sequences import SequenceSource, steps_of
from swiftem.methods.accelerated import Squarem
from swiftem.mixture.fit import EM_PASSES, Em, MixtureFit, MixtureStep, Run, certified, new_fit
from swiftem.mixture.look import LOOKED_AT, Look
from swiftem.mixture.resolve import MixtureSpec
from swiftem.mixture.starts.family_starts import starts_of
from swiftem.mixture.starts.named_starts import reseed
from swiftem.mixture.starts.settings import Start

SHARE = 0.1
"""Share of equal probabilities in the chain after a state was re-initialised."""
MOST_RESEEDS = 3
"""Maximum number of re-initialisations per state in a fit; then the data do not allow for them."""


class MarkovStep(MixtureStep):
    """What differs from the fit of a mixture."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._markov, self._source = (
            cast(BoundMarkov, self.problem.bound),
            cast(SequenceSource, self.problem.source),
        )
        self._rows = int(self._source.lengths.sum())

    def _check(self) -> None:
        check_form("theta", self.fit.theta, self._markov.like())
        if self.fit.s is not None:
            check_form("s", self.fit.s, np.empty(self._markov.size))

    def _dead(self, s: Array) -> Index:
        """Return the states without steps."""
        return starts_of(self._markov.emissions).dead(self._markov.unpack(s).emissions, self._rows)


class MarkovEm(MarkovStep, Em):
    """Passes of em."""

    def _reseeds(self, s: Array) -> bool:
        """Re-initialise the emissions of states without steps, or without an M-step; return whether any."""
        bound, fit = self._markov, self.fit
        starts, parts, exists = starts_of(bound.emissions), bound.unpack(s), bound.in_domain(s)
        gone = self._dead(s) if exists else np.union1d(self._dead(s), starts.collapsed(parts.emissions))
        is_last = not self._left and self._passes_left < 1
        if exists and (not len(gone) or is_last):
            return False
        if fit.reseeded + len(gone) > MOST_RESEEDS * bound.n_components or not len(gone):
            if not exists:
                raise ValueError(starts.ILL_DEFINED)
            return False
        fit.reseeded += len(gone)
        steps, before = self._source.steps, fit.theta.emissions
        emissions = reseed(bound.emissions, steps, before, parts.emissions, gone, fit.rng)
        # Ways into these states, which the others may have lost.
        start, transitions = (
            (1.0 - SHARE) * p + SHARE * q for p, q in zip(fit.theta, bound.uniform(), strict=False)
        )
        fit.theta, fit.s = MarkovTheta(start, transitions, emissions), None
        return True

    def _leaves_plateau(self, drive: object) -> bool:
        """Return False: there are no candidates beyond."""
        return False


class MarkovRun(MarkovStep, Run):
    """A run of a stochastic method."""

    def _end_at(self, iterate: Iterate, rests: bool) -> str:
        if len(self._dead(iterate.s)):
            return Outcome.DEAD_COMPONENT.name
        if iterate.rejected - self._last[1] == iterate.k - self._last[0]:
            return Outcome.ALL_REJECTED.name
        return Outcome.CONVERGED.name if rests else ""


def some_sequences(problem: Problem) -> Problem:
    """Return the model on sequences that have about as many steps as a mixture's fit looks at rows."""
    source = cast(SequenceSource, problem.source)
    order = np.random.default_rng(0).permutation(source.n)
    enough = int(np.searchsorted(np.cumsum(source.lengths[order]), LOOKED_AT)) + 1
    if enough >= source.n:
        return problem
    batch = source.take(np.sort(order[: max(enough, 2)]))
    steps = steps_of(batch)
    rows = ArraySource(steps.rows, allow_missing=source.allow_missing)
    return problem.on(SequenceSource(rows, steps.lengths, batch.weight))


def fit_sequences(
    start: Start,
    problem: Problem,
    spec: MixtureSpec,
    seed: int,
    watch: StartWatch,
    keeper: NoStart,
    last: tuple[float, float, float],
) -> MixtureFit:
    """Return the fit from a start; arguments as in :func:`swiftem.mixture.fit.fit_from`."""
    fit = new_fit(start, seed)
    alone = MarkovEm(fit, problem, spec, spec.acceleration, last)
    if spec.method is None:
        drive(fit, [Phase(alone)], max_passes=spec.max_passes, watch=watch, keeper=keeper)
        return certified(fit, problem, spec)
    is_noisy = spec.name == "sem"
    fit.look = Look(problem, spec.tol, 2 if is_noisy else 1, some_sequences(problem))
    after = {
        Outcome.DEAD_COMPONENT: 1,
        Outcome.CONVERGED: 2,
        Outcome.ALL_REJECTED: 3,
        Outcome.TOO_FEW_PASSES: 3,
    }
    repair, settle = MarkovEm(fit, problem, spec), MarkovEm(fit, problem, spec, Squarem())
    phases = [
        Phase(MarkovRun(fit, problem, spec, spec.method, seed), after),
        Phase(repair, {Outcome.CONVERGED: 0, Outcome.OUT_OF_PASSES: 0}, most_passes=1),
        Phase(settle, {} if is_noisy else {Outcome.OUT_OF_PASSES: 0}, inf if is_noisy else EM_PASSES),
        Phase(MarkovEm(fit, problem, spec)),
    ]
    drive(fit, phases, max_passes=spec.max_passes, watch=watch, keeper=keeper)
    return certified(fit, problem, spec)
