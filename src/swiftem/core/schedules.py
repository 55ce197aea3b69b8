r"""Step sizes :math:`\gamma_k`, k = 1, 2, ..., as small callables that print and pickle.

A plain number given as ``step_size`` means :func:`constant`, and any function of k is allowed. Values that
depend on the size of the data are set when the run starts.

>>> from swiftem import schedules
>>> gamma = schedules.inverse(3, 10)
>>> gamma(1)
0.2727272727272727
>>> schedules.resolve(schedules.sample_size(), n=1000, batch_size=1)
constant(0.01)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, sqrt
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np

from swiftem.core.checks import check_int, check_real, shown
from swiftem.core.types import Array

__all__ = [
    "Schedule",
    "StepSize",
    "check_step",
    "constant",
    "fiem_bound",
    "inverse",
    "power",
    "resolve",
    "sample_size",
    "spider_bound",
]

Schedule = Callable[[int], float]
"""A function of k = 1, 2, ... with values in (0, 1]."""


@runtime_checkable
class SizedSchedule(Protocol):
    """A step size that depends on the size of the data."""

    def resolve(self, n: int, batch_size: int) -> Schedule:
        """Return the schedule for ``n`` samples and batches of ``batch_size``."""


StepSize = float | Schedule | SizedSchedule
"""Types of ``step_size``."""


@dataclass(frozen=True, repr=False)
class constant:
    r"""A constant step: :math:`\gamma_k = g`.

    >>> constant(0.003)(17)
    0.003
    """

    g: float

    def __post_init__(self) -> None:
        check_step(self.g)

    def __call__(self, k: int) -> float:
        """Return γ_k."""
        return self.g

    def __repr__(self) -> str:
        return f"constant({self.g:g})"


@dataclass(frozen=True)
class inverse:
    r"""The paper's step for online EM: :math:`\gamma_k = a / (k + b)`.

    >>> inverse(3, 10)(5)
    0.2
    """

    a: float
    b: float = 0.0

    def __post_init__(self) -> None:
        check_real("a", self.a, minimum=0.0)
        check_real("b", self.b, minimum=0.0)
        check_step(self(1), k=1)

    def __call__(self, k: Any) -> Any:
        """Return γ_k."""
        return float(self.a) / (k + float(self.b))


@dataclass(frozen=True)
class power:
    r"""A power of k: :math:`\gamma_k = c\, (k + b)^{-a}`; Cappé and Moulines advise a = 0.6.

    b, 0 by default, keeps the first steps from forgetting the start.

    >>> power(1.0, 0.5)(4), power(1.0, 0.5, 5.0)(4)
    (0.5, 0.3333333333333333)
    """

    c: float
    a: float
    b: float = 0.0

    def __post_init__(self) -> None:
        for name in ("c", "a", "b"):
            check_real(name, getattr(self, name), minimum=0.0)
        check_step(self(1), k=1)

    def __call__(self, k: Any) -> Any:
        """Return γ_k."""
        return float(self.c) * (k + float(self.b)) ** -float(self.a)


@dataclass(frozen=True)
class sample_size:
    r"""A constant step that shrinks with the data: :math:`\gamma = \min(1, c\, b\, n^{-a})`, a = 2/3.

    The exponent 2/3 is from the paper's Theorem 2; for pLSA ``sample_size(10, exponent=1)`` is better.

    >>> sample_size(2).resolve(n=1000, batch_size=5)
    constant(0.1)
    """

    c: float = 1.0
    exponent: float = 2 / 3

    def __post_init__(self) -> None:
        check_real("exponent", self.exponent, minimum=0.0)
        _check_positive("c", self.c)

    def resolve(self, n: int, batch_size: int) -> Schedule:
        """Return the constant schedule for ``n`` samples and batches of ``batch_size``."""
        return constant(min(1.0, float(self.c) * batch_size * n ** -float(self.exponent)))


@dataclass(frozen=True)
class fiem_bound:
    r"""The two constant steps of Fort, Gach and Moulines (2021) for fiEM; opt-FIEM's variance is not larger.

    - :math:`\gamma = \sqrt C / (L_s n^{2/3})`: a gradient of ε takes :math:`O(n^{2/3}/\epsilon)` iterations.
    - with ``n_iter`` = K: :math:`\gamma = \sqrt C / (L_s (nK)^{1/3})`, which takes
      :math:`O(\sqrt n / \epsilon^{3/2})`: for low precision, few iterations.

    C is the largest with :math:`\sqrt C f(C) = 2\mu \upsilon_{\min} L_s / L_V`: then
    :math:`E\|h(\hat s^{(K)})\|^2 \leq E[\Delta V] / ((1-\mu)\upsilon_{\min}\gamma K)` for a uniform K, as of
    :class:`swiftem.RandomTermination`. The first f is the paper's,
    :math:`n^{-2/3} + C (1/n + 1/(1-\lambda)) / (\lambda - C n^{-1/3})`, with the best λ in (0, 1). The second
    step has the paper's form; its f is derived here: for K < n it is
    :math:`(nK)^{-1/3} + C (1/K + 1) \exp(1 + C n^{-1/3})`, and else the first f, as the step is smaller.
    Batches of more than one sample only decrease the variance: the step does not depend on b.

    Parameters
    ----------
    L_s, L_V, upsilon_min : float
        Lipschitz constants of the samples' statistics in s and of the gradient of V, and the smallest
        eigenvalue of B(s): values of ``paper.theory.constants`` of the repository.
    n_iter : int, optional
        K, the maximum number of iterations, for the second step.
    mu : float
        μ in (0, 1); 1/4 gives the smallest bound for large n.

    Examples
    --------
    >>> step = fiem_bound(L_s=1.0, L_V=1.0, upsilon_min=0.5)
    >>> [round(step.resolve(n, 1)(1) * n ** (2 / 3), 3) for n in (1000, 10**6)]
    [0.391, 0.396]
    """

    L_s: float
    L_V: float
    upsilon_min: float
    n_iter: int | None = None
    mu: float = 0.25

    def __post_init__(self) -> None:
        for name in ("L_s", "L_V", "upsilon_min", "mu"):
            _check_positive(name, getattr(self, name))
        if not self.mu < 1:
            raise ValueError(f"mu must be below 1, got {shown(self.mu)}.")
        if self.n_iter is not None:
            check_int("n_iter", self.n_iter, minimum=1)

    def resolve(self, n: int, batch_size: int) -> Schedule:
        """Return the constant schedule for ``n`` samples."""
        right = 2.0 * self.mu * self.upsilon_min * self.L_s / self.L_V
        k, root = self.n_iter, n ** (-1 / 3)
        if k is not None and k < n:
            early = (n * k) ** (-1 / 3)
            best = _largest(
                lambda c: sqrt(c) * (early + c * (1 / k + 1) * exp(min(1 + c * root, 700.0))), 1e6, right
            )
            return constant(min(1.0, sqrt(best) * early / self.L_s))

        def of(kept: float) -> float:
            most = 0.999999 * kept / root
            return _largest(
                lambda c: sqrt(c) * (root**2 + c * (1 / n + 1 / (1 - kept)) / (kept - c * root)), most, right
            )

        best = max(of(share / 100) for share in range(1, 100))
        return constant(min(1.0, sqrt(best) * (root**2 if k is None else (n * k) ** (-1 / 3)) / self.L_s))


@dataclass(frozen=True)
class spider_bound:
    r"""The constant step of Fort, Moulines and Wai (2020) for SPIDER-EM, for epochs of n / b iterations.

    :math:`\gamma = \upsilon_{\min} / (2 L_s \mu_*)` with
    :math:`\mu_* = \upsilon_{\max} \sqrt{m / b} + L_V / (2 L_s)`, m the length of an epoch. With
    b = m = √n it does not depend on n, and a gradient of ε takes :math:`n + O(\sqrt n / \epsilon)`
    evaluations and O(1/ε) M-steps: see :meth:`swiftem.methods.SpiderEM.by_theorem`. Twice this step is the
    limit of the theorem; this one has the smallest bound.

    Parameters
    ----------
    L_s, L_V, upsilon_min, upsilon_max : float
        Lipschitz constants of the samples' statistics in s and of the gradient of V, and the smallest and
        largest eigenvalue of B(s): values of ``paper.theory.constants`` of the repository.

    Examples
    --------
    >>> step = spider_bound(L_s=1.0, L_V=1.0, upsilon_min=0.5, upsilon_max=1.0)
    >>> step.resolve(10_000, 100), step.resolve(1_000_000, 1000)
    (constant(0.166667), constant(0.166667))
    """

    L_s: float
    L_V: float
    upsilon_min: float
    upsilon_max: float

    def __post_init__(self) -> None:
        for name in ("L_s", "L_V", "upsilon_min", "upsilon_max"):
            _check_positive(name, getattr(self, name))

    def resolve(self, n: int, batch_size: int) -> Schedule:
        """Return the constant schedule for ``n`` samples and batches of ``batch_size``."""
        ratio = sqrt(ceil(n / batch_size) / batch_size)
        slope = self.upsilon_max * ratio + self.L_V / (2 * self.L_s)
        return constant(min(1.0, self.upsilon_min / (2 * self.L_s * slope)))


def _check_positive(name: str, value: object) -> None:
    if not check_real(name, value, minimum=0.0) > 0:
        raise ValueError(f"{name} must be positive, got {shown(value)}.")


def _largest(increasing: Callable[[float], float], most: float, right: float) -> float:
    """Return the largest c up to ``most`` whose value is at most ``right``, by bisection."""
    low, high = 0.0, most
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if increasing(middle) <= right else (low, middle)
    return low


def check_step(gamma: object, k: int | None = None) -> float:
    """Return ``gamma`` as a float in (0, 1], or raise an error."""
    where = "" if k is None else f" at k = {k}"
    if isinstance(gamma, bool) or not isinstance(gamma, Real):
        raise TypeError(
            f"step_size must be a number or a function of k that returns one, got {shown(gamma)}{where}."
        )
    step = float(gamma) if gamma < 2 else 2.0  # an integer may be too large for a float
    if not 0.0 < step <= 1.0:
        raise ValueError(f"step_size must lie in (0, 1], got {shown(step)}{where}.")
    return step


def check_step_size(step_size: object) -> None:
    """Raise an error for an invalid step size, as early as possible."""
    if not (callable(step_size) or isinstance(step_size, SizedSchedule)):
        check_step(step_size)


def resolve(step_size: StepSize, n: int, batch_size: int) -> Schedule:
    """Return the function of k for ``step_size`` and data of this size.

    Parameters
    ----------
    step_size : float, callable or sized schedule
        As passed to a method.
    n, batch_size : int
        Samples in the data and samples per iteration.

    Returns
    -------
    callable
        Maps k = 1, 2, ... to a step in (0, 1].
    """
    if isinstance(step_size, SizedSchedule):
        return step_size.resolve(n, batch_size)
    return step_size if callable(step_size) else constant(check_step(step_size))


def step_sizes(gamma: Schedule, start: int, stop: int) -> Array:
    """Return γ_(start+1), ..., γ_stop, validated: the steps of iterations ``start`` to ``stop`` − 1.

    >>> step_sizes(inverse(3, 10), 0, 3)
    array([0.27272727, 0.25      , 0.23076923])
    """
    k = np.arange(start + 1, stop + 1)
    if isinstance(gamma, constant):
        return np.full(len(k), gamma.g)
    if isinstance(gamma, inverse | power):
        steps = np.asarray(gamma(k.astype(np.float64)))
    else:
        steps = np.array([check_step(gamma(int(number)), int(number)) for number in k])
    bad = np.flatnonzero(~((steps > 0) & (steps <= 1)))
    if len(bad):
        check_step(float(steps[bad[0]]), int(k[bad[0]]))
    return steps


@dataclass(frozen=True)
class RandomTermination:
    r"""Random number of iterations, equation (random): :math:`P(K = k) \propto \gamma_{k+1}`, k < n_iter.

    If it is passed as ``n_iter`` to :func:`swiftem.run`, K is drawn from the run's seed, and the result is
    :math:`\theta^{(K)}`, the iterate of the paper's theorems. The sample draws do not change.

    Parameters
    ----------
    n_iter : int
        K_max.
    earliest : {0, 1}
        Smallest K. 0, the default, is for Theorem 2: K from 0 to K_max − 1. Theorem 1, on iem, needs
        1: K from 1 to K_max, one later with the same seed, as its proof does not hold at k = 0.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> model = models.GaussianMixtureModel(n_components=2)
    >>> result = swiftem.run(model, y, methods.OnlineEM(), n_iter=swiftem.RandomTermination(50), seed=1)
    >>> 0 <= result.n_iter < 50
    True
    >>> later = swiftem.RandomTermination(50, earliest=1)
    >>> swiftem.run(model, y, methods.OnlineEM(), n_iter=later, seed=1).n_iter - result.n_iter
    1
    """

    n_iter: int
    earliest: int = 0

    def __post_init__(self) -> None:
        check_int("n_iter", self.n_iter, minimum=1)
        if check_int("earliest", self.earliest, minimum=0) > 1:
            raise ValueError(f"earliest must be 0 or 1, got {shown(self.earliest)}.")

    def draw(self, gamma: Schedule, rng: np.random.Generator, first: int = 0) -> int:
        """Return K for the step sizes ``gamma``; iteration ``first`` is the first one."""
        if isinstance(gamma, constant):
            return self.earliest + int(rng.integers(self.n_iter))
        cumulated = np.cumsum([check_step(gamma(k + 1), k + 1) for k in range(first, first + self.n_iter)])
        drawn = np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right")
        return self.earliest + int(drawn)
