"""Acceleration of a full-pass method: SQUAREM, Anderson, and the method that passes at their points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, sqrt
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import check_choice, check_int, shown
from swiftem.core.method import EStep, Method
from swiftem.core.types import Array, Index, Theta, Tree

SLACK = 1e-12
"""Relative increase of the objective from one accepted pass to the next that counts as rounding."""
FIRST, FACTOR = 4.0, 4.0
"""The initial largest leap in units of em's step, and the factor by which it grows if it is reached; a worse
leap halves it."""
MOST_RATE = 0.999
"""Earlier rates count as at most this: growth may be over."""
A, KAPPA = 1.2, 25.0
"""a and κ of the damping: the paper's."""
LOWER, LEAST_DEGREE = 5.0, -50.0
"""By how much a worse leap lowers the degree, and its minimum, −2κ."""
HALVINGS = 10
"""How often a leap outside the domain is shortened before em's step is taken instead."""
SMALLEST = 1e-14
"""Squares of singular values of the differences below this share of the largest are not used."""


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
    def advance(self, state: Tree, s: Array, objective: float, e_step: EStep, *, plain: bool = False) -> Tree:
        """Return the state after a pass.

        Parameters
        ----------
        state : NamedTuple
            The state before it.
        s : ndarray, shape (q,)
            Statistics of the pass at ``state.point``; of the first pass, at any parameters.
        objective : float
            At the parameters of the pass.
        e_step : EStep
            Scale and domain of statistics.
        plain : bool
            Whether the next point must be em's.
        """


def inner(a: Array, b: Array) -> float:
    """Return a·b by loops that do not depend on the threads of BLAS."""
    return float(np.einsum("i,i->", a, b))


def is_worse(state: Tree, s: Array, objective: float, e_step: EStep) -> bool:
    """Return whether the pass was at a leap that must be taken back."""
    if not state.leaps:
        return False
    most = state.objective + SLACK * (1.0 + abs(state.objective))
    return not objective <= most or not e_step.in_domain(s)


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
        self, state: SquaremState, s: Array, objective: float, e_step: EStep, *, plain: bool = False
    ) -> SquaremState:
        """Return the state after a pass."""
        if is_worse(state, s, objective, e_step):
            state = state._replace(largest=max(1.0, state.largest / 2.0), rate=inf)
            return state._replace(point=state.kept, chain=_chain(state.kept), length=1, leaps=False)
        chain = _chain(*state.chain[: state.length], s)
        state = state._replace(
            point=s, kept=s, chain=chain, length=state.length + 1, leaps=False, objective=objective, rate=inf
        )
        if state.length < 3:
            return state
        first, second, third = chain
        r = second - first
        v = third - second - r
        scale = e_step.scale(third)
        size, bend = inner(r * scale, r * scale), inner(v * scale, v * scale)
        rate = slower(1.0 + inner(v * scale, r * scale) / size, state.slowest) if size > 0.0 else 0.0
        state = state._replace(rate=rate, slowest=max(rate, state.slowest))
        alpha = min(sqrt(size / bend) if bend > 0.0 else 1.0, state.largest)
        largest = state.largest * (FACTOR if alpha == state.largest else 1.0)
        while alpha > 1.0 and not plain:
            far = first + 2.0 * alpha * r + alpha**2 * v
            if e_step.in_domain(far):
                return state._replace(point=far, chain=_chain(far), length=1, leaps=True, largest=largest)
            alpha = largest = max(1.0, alpha / 2.0)  # nothing is evaluated: this costs no pass
        if state.largest == 1.0:  # this was a step of em, which is not worse
            state = state._replace(largest=FACTOR)
        return state._replace(chain=_chain(second, third), length=2)


class ParallelSquarem:
    """The states of :class:`Squarem` of K independent runs, advanced at once; without its rates.

    Attributes
    ----------
    point : ndarray, shape (K, q)
        Statistics of the next pass of each run.
    kept : ndarray, shape (K, q)
        em's step from the last accepted point.
    """

    def __init__(self, s: Array) -> None:
        runs = len(s)
        self.point = self.kept = s
        self._chain = np.zeros((runs, 3, *s.shape[1:]))
        self._length, self._leaps = np.zeros(runs, dtype=int), np.zeros(runs, dtype=bool)
        self._objective, self._largest = np.full(runs, inf), np.full(runs, FIRST)

    def keep(self, stay: NDArray[np.bool_]) -> None:
        """Drop the runs that are not in ``stay``."""
        for name, value in self.__dict__.items():
            setattr(self, name, value[stay])

    def advance(self, s: Array, objectives: Array, scale: Array) -> None:
        """Take note of the statistics (K, q) and objectives (K,) of a pass at ``point``."""
        most = self._objective + SLACK * (1.0 + np.abs(self._objective))
        with np.errstate(invalid="ignore"):
            worse = self._leaps & ~(objectives <= most)
        s = np.where(worse[:, None], self.kept, s)
        self._objective = np.where(worse, self._objective, objectives)
        self._largest[worse] = np.maximum(1.0, self._largest[worse] / 2.0)
        self._length[worse] = 0
        self._leaps[:] = False
        self.point = self.kept = s
        self._chain[np.arange(len(s)), self._length] = s
        self._length += 1
        ready = np.flatnonzero(self._length == 3)
        if not len(ready):
            return
        first, second, third = np.moveaxis(self._chain[ready], 1, 0)
        r = second - first
        v = third - second - r
        size, bend = (np.einsum("kq,kq->k", one, one) for one in (r * scale, v * scale))
        longest = self._largest[ready]
        alpha = np.ones(len(ready))
        np.divide(size, bend, out=alpha, where=bend > 0.0)
        alpha = np.minimum(np.sqrt(alpha), longest)
        # A step of em, which is not worse, lifts a limit of 1.
        self._largest[ready] = np.where((alpha == longest) | (longest == 1.0), FACTOR * longest, longest)
        self._chain[ready, :2] = self._chain[ready, 1:]
        self._length[ready] = 2
        leap = alpha > 1.0
        leaping, far = ready[leap], alpha[leap][:, None]
        self.point = s.copy()
        self.point[leaping] = first[leap] + 2.0 * far * r[leap] + far**2 * v[leap]
        self._leaps[leaping] = True

    def accept(self, outside: Index) -> None:
        """Begin new chains at the leaps; those ``outside`` the domain are replaced by em's steps."""
        self._largest[outside] = np.maximum(1.0, self._largest[outside] / 2.0)
        self.point[outside], self._leaps[outside] = self.kept[outside], False
        self._chain[self._leaps, 0], self._length[self._leaps] = self.point[self._leaps], 1


def _chain(*points: Array) -> Array:
    """Return up to three points in an array (3, q)."""
    found = np.zeros((3, *points[0].shape))
    found[: len(points)] = points
    return found


class AndersonState(NamedTuple):
    """As in :class:`Acceleration`.

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
    r"""Damped Anderson acceleration (DAAREM), Henderson and Varadhan 2019: a leap after every pass.

    With the residual f(x) = G(x) − x of em and the differences ΔX, ΔF of the last few points and residuals,

    .. math:: x' = x + f - (\Delta X + \Delta F)\,\beta, \qquad
              \beta = \arg\min \|f - \Delta F \beta\|^2 + \lambda \|\beta\|^2

    is the zero of f if it were linear there. Norms are of statistics without units. λ is such that
    :math:`\|\beta\|^2` is a share :math:`\delta = (1 + a^{\kappa - t})^{-1}` of its value without damping.
    The degree t grows by one with each leap. If a leap is worse it is taken back, t is lowered, and the
    differences are forgotten: the restart of the paper, which also restarts after a fixed number of passes.

    Two things are not in the paper. A zero of f may be a saddle, to which a leap then goes back: if x' − G(x)
    is opposed to em's step f, the leap is :math:`G(x) + (\alpha - 1) f` instead, with
    :math:`\alpha = \|\Delta x\| / \|\Delta f\|` of the last difference, at most a bound that is learnt as in
    SQUAREM. And a leap must not be worse than the point before it, while the paper allows for a loss of 0.01
    in the total log-likelihood.

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
        self, state: AndersonState, s: Array, objective: float, e_step: EStep, *, plain: bool = False
    ) -> AndersonState:
        """Return the state after a pass."""
        if is_worse(state, s, objective, e_step):
            degree = max(LEAST_DEGREE, state.degree - LOWER)
            if state.turned:
                state = state._replace(largest=max(1.0, state.largest / 2.0))
            retreat = state._replace(point=state.kept, known=1, pairs=0, leaps=False, turned=0.0)
            return retreat._replace(degree=degree, rate=inf)
        if state.turned >= state.largest:
            state = state._replace(largest=FACTOR * state.largest)
        scale = e_step.scale(s)
        state = self._noted(state, s, objective, scale)
        if plain or not state.pairs:
            return state
        far, turned = _leap(state, s, scale)
        if state.largest == 1.0:  # after worse leaps this was a step of em, which is not worse
            state = state._replace(largest=FACTOR)
        for _ in range(HALVINGS):
            if far is None or e_step.in_domain(far):
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
    >>> _damped(np.eye(2), np.array([2.0, 0.0]), 0.64).round(6)
    array([1.6, 0. ])
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


ACCELERATIONS: dict[str, type[Acceleration]] = {scheme.name: scheme for scheme in (Squarem, Anderson)}
"""The accelerations by name."""


class AcceleratedState(NamedTuple):
    """States of the acceleration (``steps``) and of the method."""

    steps: Tree
    method: Tree


@dataclass(frozen=True)
class Accelerated(Method):
    r"""A full-pass method with larger steps, in the space of statistics.

    Each iteration makes one pass, at a point x of the acceleration's choice, and :math:`\hat s` becomes em's
    step from there, :math:`\bar s(\bar\theta(x))`. The objective at the points does not increase from one
    accepted pass to the next by more than 1e-12, relative to one plus its size; that at θ, one step of em
    further, is not larger. A leap that is worse, or outside the domain, is taken back: the next point is em's
    own step. The pass itself gives the objective; the compiled passes of a mixture of unit variances and of
    pLSA do not, and it is then a second one, which takes time and is not counted.

    The statistics are what is extrapolated. They need no form of their own for each model, sums such as the
    weights' are kept, and on mixtures of full covariances an unconstrained form of θ (log weights, Cholesky
    factors with log diagonals) needed 0.94 times as many passes of SQUAREM in the geometric mean of eight
    problems, and 2.5 times as many in one of them.

    Parameters
    ----------
    method : Method
        A method of full passes, such as :class:`~swiftem.methods.EM`.
    acceleration : {"squarem", "anderson"} or Acceleration
        SQUAREM: a leap after every second pass, with 5 vectors of statistics. Damped Anderson: a leap after
        every pass, with 36; fewer by ``Anderson(order=...)``.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> model = models.GaussianMixtureModel(n_components=2)
    >>> theta0 = model.theta(means=[[0.1], [-0.1]])
    >>> losses = []
    >>> for method in (methods.EM(), methods.Accelerated(methods.EM(), "squarem")):
    ...     result = swiftem.run(model, y, method, theta0=theta0, n_iter=30)
    ...     losses.append(swiftem.objective(model, y, result.theta))
    >>> losses[1] < losses[0]
    True
    """

    method: Method
    acceleration: Literal["squarem", "anderson"] | Acceleration

    index_streams: ClassVar[Literal[0, 1, 2]] = 0
    leaps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.method, Method) or self.method.index_streams or self.method.leaps:
            raise TypeError(
                "method must be a method of full passes, such as methods.EM(), "
                f"got {shown(self.method)}: methods that draw samples cannot be accelerated."
            )
        if self.method.step_size != 1.0:
            raise ValueError(f"method must have step_size 1, got {shown(self.method.step_size)}.")
        if not isinstance(self.acceleration, Acceleration):
            check_choice("acceleration", self.acceleration, tuple(ACCELERATIONS))

    @property
    def scheme(self) -> Acceleration:
        """The acceleration as an object."""
        if isinstance(self.acceleration, Acceleration):
            return self.acceleration
        return ACCELERATIONS[self.acceleration]()

    @property
    def name(self) -> str:  # type: ignore[override]  # two names in one
        """The names of both, as in "em+squarem"."""
        return f"{self.method.name}+{self.scheme.name}"

    @property
    def vectors(self) -> int:
        """Vectors of statistics in a state."""
        return self.scheme.vectors + self.method.vectors

    def init(self, theta: Theta, s: Array, memory: Array | None) -> AcceleratedState:
        """Return a state without points."""
        return AcceleratedState(self.scheme.begin(s), self.method.init(theta, s, memory))

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: AcceleratedState, e_step: EStep
    ) -> tuple[Array, AcceleratedState]:
        """Return em's step from the last accepted point."""
        steps = state.steps
        at = e_step.m_step(steps.point) if steps.leaps else theta
        s, of_method = self.method.proxy(k, at, draws, state.method, e_step)
        if not steps.leaps and not e_step.in_domain(s):  # Algorithm 1 rejects it, and θ stays
            return s, AcceleratedState(self.scheme.begin(s), of_method)
        steps = self.scheme.advance(steps, s, e_step.objective(at), e_step)
        return steps.kept, AcceleratedState(steps, of_method)
