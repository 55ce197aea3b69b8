"""Fits of a hidden Markov model: a mixture's, but for states that lost their steps."""

from __future__ import annotations

from typing import cast

from swiftem.core.types import Array, Index
from swiftem.hmm.model import BoundMarkov, MarkovTheta
from swiftem.hmm.sequences import SequenceSource
from swiftem.mixture.fit import Em
from swiftem.mixture.starts.named_starts import reseed

SHARE = 0.1
"""Share of equal probabilities in the chain after a state was re-initialised."""


class MarkovEm(Em):
    """Passes of em."""

    def _reseeded(self, s: Array, gone: Index) -> MarkovTheta:
        """Return θ with new emissions of states without steps, and with ways into these states."""
        bound, fit = cast(BoundMarkov, self.problem.bound), self.fit
        steps, before = cast(SequenceSource, self.problem.source).steps, fit.theta.emissions
        emissions = reseed(bound.emissions, steps, before, bound.unpack(s).emissions, gone, fit.rng)
        start, transitions = bound.uniform()
        return MarkovTheta(
            (1.0 - SHARE) * fit.theta.start + SHARE * start,
            (1.0 - SHARE) * fit.theta.transitions + SHARE * transitions,
            emissions,
        )
