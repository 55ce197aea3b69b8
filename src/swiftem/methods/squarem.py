r"""SQUAREM, Varadhan and Roland 2008: two steps of em, then a leap along their parabola.

From s two passes give G(s) and G(G(s)), and with r = G(s) − s and v = G(G(s)) − G(s) − r

.. math:: s' = s + 2 \alpha\, r + \alpha^2 v, \qquad \alpha = \|r\| / \|v\|,

is the limit of em if r kept shrinking as in the last pass; α = 1 is G(G(s)). Norms are of statistics without
units. Plateaus that take em hundreds of passes then take tens.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from swiftem._typing import Array
from swiftem.methods.acceleration import FACTOR, FIRST, Acceleration, Space, inner, is_worse, slower

__all__ = ["Squarem", "SquaremState"]


class SquaremState(NamedTuple):
    """As in :class:`~swiftem.methods.acceleration.Acceleration`; the last points of em are ``chain`` (3, q).

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
    """SQUAREM on the statistics: a leap after every second pass.

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
                point=state.kept, chain=_chain(state.kept), length=1, leaps=False,
                largest=max(1.0, state.largest / 2.0), rate=inf,
            )  # fmt: skip
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
