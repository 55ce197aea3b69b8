"""Accelerations of em: what they need to know about statistics, their states, and SQUAREM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from swiftem.core.types import Array, Tree

__all__ = ["SLACK", "Acceleration", "Space", "Squarem", "SquaremState", "inner", "is_worse", "slower"]

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
        """Return whether the M-step exists at ``s``."""
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
    def begin(self, s: Array) -> Tree:
        """Return the state before the first pass, for statistics of the size of ``s``."""

    @abstractmethod
    def advance(self, state: Tree, s: Array, objective: float, space: Space, *, plain: bool = False) -> Tree:
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


def is_worse(state: Tree, s: Array, objective: float, space: Space) -> bool:
    """Return whether the pass was at a leap that must be taken back."""
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


class SquaremState(NamedTuple):
    """As in :class:`Acceleration`; the last points of em are ``chain`` (3, q).

    The first ``length`` rows of it count. ``largest`` is the largest α, ``slowest`` the largest rate so far.
    """

    point: Array
    kept: Array
    chain: Array
    length: int
    leaps: bool
    objective: float
    largest: float
    rate: float
    slowest: float


@dataclass(frozen=True)
class Squarem(Acceleration):
    r"""SQUAREM, Varadhan and Roland 2008: two steps of em, then a leap along their parabola.

    From s two passes give G(s) and G(G(s)), and with r = G(s) − s and v = G(G(s)) − G(s) − r

    .. math:: s' = s + 2 \alpha\, r + \alpha^2 v, \qquad \alpha = \|r\| / \|v\|,

    is the limit of em if r kept shrinking as in the last pass; α = 1 is G(G(s)). Norms are of statistics
    without units. Plateaus that take em hundreds of passes then take tens.

    Examples
    --------
    >>> import numpy as np
    >>> class Line:
    ...     def scale(self, s):
    ...         return np.ones_like(s)
    ...     def in_domain(self, s):
    ...         return True
    >>> scheme = Squarem()
    >>> state = scheme.begin(np.zeros(1))
    >>> for s, objective in ((8.0, 3.0), (4.0, 2.0), (2.0, 1.0)):  # halved by each pass of em
    ...     state = scheme.advance(state, np.array([s]), objective, Line())
    >>> state.leaps, state.point, state.kept
    (True, array([0.]), array([2.]))
    """

    name: ClassVar[str] = "squarem"

    @property
    def vectors(self) -> int:
        """Vectors of statistics in a state."""
        return 5

    def begin(self, s: Array) -> SquaremState:
        """Return the state before the first pass."""
        chain = np.zeros((3, *s.shape))
        return SquaremState(chain[0], chain[0], chain, 0, False, inf, FIRST, inf, 0.0)

    def advance(
        self, state: SquaremState, s: Array, objective: float, space: Space, *, plain: bool = False
    ) -> SquaremState:
        """Return the state after a pass."""
        if is_worse(state, s, objective, space):
            return state._replace(
                point=state.kept,
                chain=_chain(state.kept),
                length=1,
                leaps=False,
                largest=max(1.0, state.largest / 2.0),
                rate=inf,
            )
        chain = _chain(*state.chain[: state.length], s)
        state = state._replace(
            point=s, kept=s, chain=chain, length=state.length + 1, leaps=False, objective=objective, rate=inf
        )
        if state.length < 3:
            return state
        first, second, third = chain
        r = second - first
        v = third - second - r
        scale = space.scale(third)
        size, bend = inner(r * scale, r * scale), inner(v * scale, v * scale)
        rate = slower(1.0 + inner(v * scale, r * scale) / size, state.slowest) if size > 0.0 else 0.0
        state = state._replace(rate=rate, slowest=max(rate, state.slowest))
        alpha = min(sqrt(size / bend) if bend > 0.0 else 1.0, state.largest)
        largest = state.largest * (FACTOR if alpha == state.largest else 1.0)
        while alpha > 1.0 and not plain:
            far = first + 2.0 * alpha * r + alpha**2 * v
            if space.in_domain(far):
                return state._replace(point=far, chain=_chain(far), length=1, leaps=True, largest=largest)
            alpha = largest = max(1.0, alpha / 2.0)  # nothing is evaluated: this costs no pass
        if state.largest == 1.0:  # this was a step of em, which is not worse
            state = state._replace(largest=FACTOR)
        return state._replace(chain=_chain(second, third), length=2)


def _chain(*points: Array) -> Array:
    """Return up to three points in an array (3, q)."""
    found = np.zeros((3, *points[0].shape))
    found[: len(points)] = points
    return found
