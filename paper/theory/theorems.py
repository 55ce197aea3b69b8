"""The theorems: step sizes, epoch length and right-hand sides for iem, sem-vr and fiem."""

from __future__ import annotations

from dataclasses import dataclass
from math import e, floor, inf, sqrt
from typing import Any

from paper.theory.constants import Constant, Constants, weaker
from paper.theory.family import family_of
from paper.theory.gradient import gradient_objective
from swiftem.core.checks import check_int, check_real
from swiftem.core.model import Model
from swiftem.core.schedules import RandomTermination
from swiftem.core.types import Theta
from swiftem.methods import FastIncrementalEM, IncrementalEM, VarianceReducedEM


@dataclass(frozen=True, eq=False)
class IncrementalTheorem:
    r"""Theorem 1: :math:`E\|\nabla\overline{\mathcal L}(\theta^{(K)})\|^2 \le 2 n L_e E[\Delta] / K_{\max}`.

    K is uniform on 1, ..., K_max and Δ is :math:`\overline{\mathcal L}(\theta^{(0)}) - \overline{\mathcal
    L}(\theta^{(K_{\max}+1)})`; the paper has both one iteration earlier, for which the proof fails at k = 0.
    It holds for runs with one sample per iteration whose θ lie in the set of L_e together with :math:`\theta
    + \nabla\overline{\mathcal L}(\theta) / L_e`, a point used in the proof: see ``holds_at``.

    Parameters
    ----------
    constants : Constants
        Bounds or estimates.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from paper import theory
    >>> model, y = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), np.linspace(-2, 2, 200)
    >>> theorem = theory.IncrementalTheorem(theory.constants(model, y))
    >>> result = swiftem.run(model, y, theorem.method(), n_iter=theorem.termination(1000), seed=0)
    >>> theorem.holds_at(model, y, result.theta)
    True
    >>> theorem.right_hand_side(n_iter=1000, decrease=0.01).kind
    'bound'
    """

    constants: Constants

    def method(self) -> IncrementalEM:
        """Return the method: its step is always 1."""
        return IncrementalEM()

    def termination(self, n_iter: int) -> RandomTermination:
        """Return K, uniform on 1, ..., ``n_iter``, for :func:`swiftem.run`."""
        return RandomTermination(n_iter, earliest=1)

    def right_hand_side(self, *, n_iter: int, decrease: float) -> Constant:
        r"""Return the right-hand side of (iem_bdd).

        Parameters
        ----------
        n_iter : int
            K_max.
        decrease : float
            :math:`E[\overline{\mathcal L}(\theta^{(0)}) - \overline{\mathcal L}(\theta^{(K_{\max}+1)})]`.
        """
        check_int("n_iter", n_iter, minimum=1)
        check_real("decrease", decrease, minimum=-inf)
        value = 2.0 * self.constants.n * self.constants.L_e.value * decrease / n_iter
        return Constant(value, self.constants.L_e.kind, "2·n·L_e·E[Δ]/K_max")

    def holds_at(self, model: Model, data: Any, theta: Theta) -> bool:
        r"""Tell whether θ and :math:`\theta + \nabla\overline{\mathcal L}(\theta)/L_e` lie in the set of L_e.

        The paper's proof assumes this; the set is the box of the constants.
        """
        if not self.constants.box.holds(theta):
            return False
        family, _ = family_of(model, data)
        gradient = gradient_objective(model, data, theta)
        ahead = family.from_vector(family.vector(theta) + gradient / self.constants.L_e.value)
        return self.constants.box.holds(ahead)


@dataclass(frozen=True, eq=False)
class _Theorem2:
    """The common part of both theorems: the premise υ_min > 0, K, and one sample per iteration."""

    constants: Constants

    def __post_init__(self) -> None:
        if not self.constants.upsilon_min.value > 0:
            raise ValueError(
                "Theorem 2 does not apply: υ_min must be positive, got 0 "
                f"({self.constants.upsilon_min.how}). Theorem 1, on iem, needs no υ_min."
            )

    def termination(self, n_iter: int) -> RandomTermination:
        """Return K, uniform on 0, ..., ``n_iter`` − 1, for :func:`swiftem.run`."""
        return RandomTermination(n_iter)

    @property
    def gamma(self) -> float:
        """Return γ for the n of the constants."""
        raise NotImplementedError

    def _right_hand_side(self, factor: float, n_iter: int, decrease: float, how: str) -> Constant:
        check_int("n_iter", n_iter, minimum=1)
        check_real("decrease", decrease, minimum=-inf)
        found = self.constants
        ratio = found.upsilon_max.value / found.upsilon_min.value
        value = found.n ** (2 / 3) * factor * found.L_v.value * ratio**2 * decrease / n_iter
        return Constant(value, weaker(found.L_v, found.upsilon_min, found.upsilon_max), how)


@dataclass(frozen=True, eq=False)
class VarianceReducedTheorem(_Theorem2):
    r"""Theorem 2 for sem-vr: :math:`\gamma = \mu\upsilon_{\min} / (\overline L_v n^{2/3})`, and m.

    m is :math:`n / (2\mu^2\upsilon_{\min}^2 + \mu)`, rounded down. μ, which the paper calls universal, is the
    positive root of :math:`2(e-1)\upsilon_{\min}^2 \mu^2 + (1 + (e-1)\upsilon_{\min}^2)\mu = 1/2`.

    Parameters
    ----------
    constants : Constants
        Bounds or estimates, for the data to fit.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from paper import theory
    >>> model, y = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), np.linspace(-2, 2, 1000)
    >>> theorem = theory.VarianceReducedTheorem(theory.constants(model, y))
    >>> bool(0.4 < theorem.mu < 0.5), bool(1e-8 < theorem.gamma < 1e-5), theorem.epoch_length > 1000
    (True, True, True)
    >>> result = swiftem.run(model, y, theorem.method(), n_iter=theorem.epoch_length, seed=0)
    >>> result.rejected
    0
    """

    @property
    def mu(self) -> float:
        """Return μ."""
        square = (e - 1.0) * self.constants.upsilon_min.value**2
        linear = 1.0 + square
        # The root in a form without a difference of nearly equal numbers.
        return 1.0 / (linear + sqrt(linear**2 + 4.0 * square))

    @property
    def gamma(self) -> float:
        """Return γ for the n of the constants."""
        n = self.constants.n
        return float(self.mu * self.constants.upsilon_min.value / (self.constants.L_v.value * n ** (2 / 3)))

    @property
    def epoch_length(self) -> int:
        """Return m, rounded down and at least 1."""
        product = self.mu * self.constants.upsilon_min.value
        return max(1, floor(self.constants.n / (2.0 * product**2 + self.mu)))

    def method(self) -> VarianceReducedEM:
        """Return the method with this γ and m."""
        return VarianceReducedEM(step_size=self.gamma, epoch_length=self.epoch_length)

    def right_hand_side(self, *, n_iter: int, decrease: float) -> Constant:
        r"""Return the right-hand side of (svrgem_bdd), of :math:`E\|\nabla V(\hat s^{(K)})\|^2`.

        Parameters
        ----------
        n_iter : int
            K_max, a multiple of m; K is uniform on 0, ..., K_max − 1.
        decrease : float
            :math:`E[V(\hat s^{(0)}) - V(\hat s^{(K_{\max})})]`.
        """
        m = self.epoch_length
        if check_int("n_iter", n_iter, minimum=1) % m:
            raise ValueError(f"n_iter must be a multiple of the epoch length m = {m}, got {n_iter}.")
        how = "n^(2/3)·(2·L_v/μ)·(υ_max/υ_min)²·E[Δ]/K_max"
        return self._right_hand_side(2.0 / self.mu, n_iter, decrease, how)


@dataclass(frozen=True, eq=False)
class FastIncrementalTheorem(_Theorem2):
    r"""Theorem 2 for fiem: :math:`\gamma = \upsilon_{\min} / (\alpha \overline L_v n^{2/3})`.

    α is :math:`\max(6, 1 + 4\upsilon_{\min})`.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from paper import theory
    >>> model, y = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), np.linspace(-2, 2, 1000)
    >>> theorem = theory.FastIncrementalTheorem(theory.constants(model, y))
    >>> theorem.alpha
    6.0
    >>> result = swiftem.run(model, y, theorem.method(), n_iter=theorem.termination(1000), seed=0)
    >>> 0 <= result.n_iter < 1000
    True
    """

    @property
    def alpha(self) -> float:
        """Return α."""
        return max(6.0, 1.0 + 4.0 * self.constants.upsilon_min.value)

    @property
    def gamma(self) -> float:
        """Return γ for the n of the constants."""
        found = self.constants
        return float(found.upsilon_min.value / (self.alpha * found.L_v.value * found.n ** (2 / 3)))

    def method(self) -> FastIncrementalEM:
        """Return the method with this γ."""
        return FastIncrementalEM(step_size=self.gamma)

    def right_hand_side(self, *, n_iter: int, decrease: float) -> Constant:
        r"""Return the right-hand side of (sagaem_bdd), of :math:`E\|\nabla V(\hat s^{(K)})\|^2`.

        Arguments are those of :meth:`VarianceReducedTheorem.right_hand_side`; ``n_iter`` may be any.
        """
        how = "n^(2/3)·α²·L_v·(υ_max/υ_min)²·E[Δ]/K_max"
        return self._right_hand_side(self.alpha**2, n_iter, decrease, how)


THEOREMS: dict[str, type[IncrementalTheorem | VarianceReducedTheorem | FastIncrementalTheorem]] = {
    "iem": IncrementalTheorem,
    "sem-vr": VarianceReducedTheorem,
    "fiem": FastIncrementalTheorem,
}
"""The theorem on each method that has one."""
