"""Common parts of the accelerations: what they need to know about statistics, and their states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np

from swiftem._typing import Array

__all__ = ["SLACK", "Acceleration", "Space", "inner", "is_worse", "slower"]

SLACK = 1e-12
"""Relative increase of the objective from one accepted pass to the next that counts as rounding."""
FIRST, FACTOR = 4.0, 4.0
"""The initial largest leap in units of em's step, and the factor by which it grows if it is reached; a worse
leap halves it."""
MOST_RATE = 0.999
"""Earlier rates count as at most this: growth may be over."""


class Space(Protocol):
    """The space of statistics; :class:`swiftem.methods.EStep` is one."""

    def scale(self, s: Array) -> Array:
        """Return factors (q,) that make each statistic free of units."""
        ...

    def in_domain(self, s: Array) -> bool:
        """Tell whether the M-step exists at ``s``."""
        ...


class Acceleration(ABC):
    r"""Chooses at which statistics the next pass of em is made.

    em is the map :math:`G(s) = \bar s(\bar\theta(s))`. A state is a NamedTuple with at least these fields:
    ``point`` (q,), of the next pass; ``kept`` (q,), the step of em from the last point that was accepted;
    ``leaps``, whether ``point`` differs from it; ``objective`` at the last accepted point; ``rate``, by
    which the last step of em was shorter than the one before, infinite if the last pass was not one of em.

    A leap is accepted if it is not worse than the last accepted point, up to :data:`SLACK`, and G(point) has
    an M-step; else the next point is ``kept``: em's own step, which has lost one pass. Leaps outside the
    domain are shortened before.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def vectors(self) -> int:
        """Vectors of statistics in a state."""

    @abstractmethod
    def begin(self, s: Array) -> Any:
        """Return the state before the first pass, for statistics of the size of ``s``."""

    @abstractmethod
    def advance(self, state: Any, s: Array, objective: float, space: Space, *, plain: bool = False) -> Any:
        """Return the state after a pass.

        Parameters
        ----------
        state : NamedTuple
            The state before it.
        s : ndarray, shape (q,)
            Statistics of the pass at ``state.point``; of the first pass, at any parameters.
        objective : float
            At the parameters of the pass.
        space : Space
            Scale and domain.
        plain : bool
            Whether the next point must be em's.
        """


def inner(a: Array, b: Array) -> float:
    """Return a·b by loops that do not depend on the threads of BLAS."""
    return float(np.einsum("i,i->", a, b))


def is_worse(state: Any, s: Array, objective: float, space: Space) -> bool:
    """Tell whether the pass was at a leap that must be taken back."""
    if not state.leaps:
        return False
    most = state.objective + SLACK * (1.0 + abs(state.objective))
    return not objective <= most or not space.in_domain(s)


def slower(rate: float, slowest: float) -> float:
    """Return the rate of em, with an earlier one: a large step may have hidden a slow direction.

    >>> slower(0.5, 0.9), slower(0.5, 1.2)
    (0.9, 0.999)
    """
    return max(rate, min(slowest, MOST_RATE))
