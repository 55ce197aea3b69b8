r"""Damped Anderson acceleration (DAAREM), Henderson and Varadhan 2019.

With the residual f(x) = G(x) − x of em and the differences ΔX, ΔF of the last few points and residuals,

.. math:: x' = x + f - (\Delta X + \Delta F)\,\beta, \qquad
          \beta = \arg\min \|f - \Delta F \beta\|^2 + \lambda \|\beta\|^2

is the zero of f if it were linear there. Norms are of statistics without units. λ is such that
:math:`\|\beta\|^2` is a share :math:`\delta = (1 + a^{\kappa - t})^{-1}` of its value without damping. The
degree t grows by one with each leap. If a leap is worse it is taken back, t is lowered, and the differences
are forgotten: the restart of the paper, which also restarts after a fixed number of passes.

Two things are not in the paper. A zero of f may be a saddle, to which a leap then goes back: if x' − G(x) is
opposed to em's step f, the leap is :math:`G(x) + (\alpha - 1) f` instead, with
:math:`\alpha = \|\Delta x\| / \|\Delta f\|` of the last difference, at most a bound that is learnt as in
SQUAREM. And a leap must not be worse than the point before it, while the paper allows for a loss of 0.01 in
the total log-likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from swiftem.core.checks import check_int
from swiftem.core.types import Array
from swiftem.methods.acceleration import FACTOR, FIRST, Acceleration, Space, inner, is_worse, slower

__all__ = ["Anderson", "AndersonState"]

A, KAPPA = 1.2, 25.0
"""a and κ of the damping: the paper's."""
LOWER, LEAST_DEGREE = 5.0, -50.0
"""By how much a worse leap lowers the degree, and its minimum, −2κ."""
HALVINGS = 10
"""How often a leap outside the domain is shortened before em's step is taken instead."""
SMALLEST = 1e-14
"""Squares of singular values of the differences below this share of the largest are not used."""


class AndersonState(NamedTuple):
    """As in :class:`~swiftem.methods.acceleration.Acceleration`.

    ``x``, ``f`` (q,): the last accepted point and its residual, if ``known`` is 2; if it is 1 there is only a
    point, and before the first pass not even that. ``moves``, ``changes`` (order, q): the differences of
    points and residuals, of which the last ``pairs`` count. ``turned``: α of a leap along f, else 0.
    ``degree``: t.
    """

    point: Array
    kept: Array
    x: Array
    f: Array
    moves: Array
    changes: Array
    known: int
    pairs: int
    leaps: bool
    turned: float
    objective: float
    degree: float
    largest: float
    rate: float
    slowest: float


@dataclass(frozen=True)
class Anderson(Acceleration):
    """Damped Anderson acceleration on the statistics: a leap after every pass.

    Parameters
    ----------
    order : int
        Number of differences that are remembered, at most half the number of statistics: two vectors each.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> line = SimpleNamespace(scale=np.ones_like, in_domain=np.all)
    >>> scheme, s = Anderson(order=1), np.array([8.0])
    >>> state = scheme.begin(s)
    >>> for k in range(60):  # halved by each pass of em
    ...     state = scheme.advance(state, s, abs(float(s[0])), line)
    ...     s = 0.5 * state.point
    >>> bool(state.kept < 0.5**100)
    True
    """

    order: int = 10

    name: ClassVar[str] = "anderson"

    def __post_init__(self) -> None:
        check_int("order", self.order, minimum=1)

    @property
    def vectors(self) -> int:
        """Vectors of statistics in a state, and those that the least squares need."""
        return 3 * self.order + 6

    def begin(self, s: Array) -> AndersonState:
        """Return the state before the first pass."""
        zero, rows = np.zeros_like(s), min(self.order, -(-len(s) // 2))
        moves = np.zeros((rows, len(s)))
        return AndersonState(
            zero, zero, zero, zero, moves, moves, 0, 0, False, 0.0, inf, 0.0, FIRST, inf, 0.0
        )

    def advance(
        self, state: AndersonState, s: Array, objective: float, space: Space, *, plain: bool = False
    ) -> AndersonState:
        """Return the state after a pass."""
        if is_worse(state, s, objective, space):
            degree = max(LEAST_DEGREE, state.degree - LOWER)
            largest = max(1.0, state.largest / 2.0) if state.turned else state.largest
            return state._replace(
                point=state.kept,
                known=1,
                pairs=0,
                leaps=False,
                turned=0.0,
                degree=degree,
                largest=largest,
                rate=inf,
            )
        if state.turned >= state.largest:
            state = state._replace(largest=FACTOR * state.largest)
        scale = space.scale(s)
        state = self._noted(state, s, objective, scale)
        if plain or not state.pairs:
            return state
        far, turned = _leap(state, s, scale)
        if state.largest == 1.0:  # after worse leaps this was a step of em, which is not worse
            state = state._replace(largest=FACTOR)
        for _ in range(HALVINGS):
            if far is None or space.in_domain(far):
                break
            far = 0.5 * (far + s)  # nothing is evaluated: this costs no pass
        else:
            return state
        if far is None:
            return state
        return state._replace(point=far, leaps=True, turned=turned, degree=state.degree + 1.0)

    def _noted(self, state: AndersonState, s: Array, objective: float, scale: Array) -> AndersonState:
        """Return the state with the differences of one more accepted pass, and em's step as the next."""
        after = state._replace(
            point=s, kept=s, known=1, leaps=False, turned=0.0, objective=objective, rate=inf
        )
        if not state.known:  # the first pass was at parameters that are not the M-step of a point
            return after
        x, f = state.point, s - state.point
        after = after._replace(x=x, f=f, known=2)
        if state.known < 2:
            return after
        move, change = x - state.x, f - state.f
        size, rate = inner(move * scale, move * scale), inf
        if size > 0.0:
            rate = slower(1.0 + inner(change * scale, move * scale) / size, state.slowest)
        elif not state.leaps:
            rate = 0.0
        return after._replace(
            moves=np.concatenate([state.moves[1:], move[None]]),
            changes=np.concatenate([state.changes[1:], change[None]]),
            pairs=min(state.pairs + 1, len(state.moves)),
            rate=inf if state.leaps else rate,
            slowest=max(rate, state.slowest) if rate < inf else state.slowest,
        )


def _leap(state: AndersonState, s: Array, scale: Array) -> tuple[Array | None, float]:
    """Return the next point, or None if there is none, and α if it is along em's step."""
    moves, changes = state.moves[-state.pairs :], state.changes[-state.pairs :]
    scaled, f = changes * scale, state.f * scale
    beta = _damped(
        np.einsum("iq,jq->ij", scaled, scaled),
        np.einsum("iq,q->i", scaled, f),
        1.0 / (1.0 + A ** (KAPPA - state.degree)),
    )
    if beta is None:
        return None, 0.0
    far = s - np.einsum("i,iq->q", beta, moves + changes)
    if inner((far - s) * scale, f) >= 0.0:
        return far, 0.0
    bend = inner(scaled[-1], scaled[-1])
    size = inner(moves[-1] * scale, moves[-1] * scale)
    alpha = min(sqrt(size / bend), state.largest) if bend > 0.0 else 1.0
    return (s + (alpha - 1.0) * state.f, alpha) if alpha > 1.0 else (None, 0.0)


def _damped(gram: Array, right: Array, share: float) -> Array | None:
    """Return the damped least squares whose square is ``share`` of that without damping, or None.

    Parameters
    ----------
    gram : ndarray, shape (m, m)
        Products of the differences.
    right : ndarray, shape (m,)
        Their products with the residual.
    share : float
        From 0 to 1.

    Examples
    --------
    >>> _damped(np.eye(2), np.array([2.0, 0.0]), 0.25).round(6)
    array([1., 0.])
    """
    squares, vectors = np.linalg.eigh(gram)
    used = squares > SMALLEST * squares[-1]
    if not used.any() or not squares[-1] > 0.0:
        return None
    squares, vectors = squares[used], vectors[:, used]
    along = vectors.T @ right
    target = share * float(((along / squares) ** 2).sum())
    low, high = 0.0, float(squares[-1])
    while float(((along / (squares + high)) ** 2).sum()) > target:
        low, high = high, 10.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        if float(((along / (squares + middle)) ** 2).sum()) > target:
            low = middle
        else:
            high = middle
    return np.asarray(vectors @ (along / (squares + high)))
