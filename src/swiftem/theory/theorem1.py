"""Theorem 1: incremental EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from swiftem._checks import check_int, check_real
from swiftem._typing import Theta
from swiftem.methods.incremental_em import IncrementalEM
from swiftem.models.model import Model
from swiftem.termination import RandomTermination
from swiftem.theory.constants import Constant, Constants
from swiftem.theory.family import family_of
from swiftem.theory.full_pass import full_pass

__all__ = ["IncrementalTheorem"]


@dataclass(frozen=True, eq=False, repr=False)
class IncrementalTheorem:
    r"""Theorem 1: :math:`E\|\nabla\overline{\mathcal L}(\theta^{(K)})\|^2 \le 2 n L_e E[\Delta] / K_{\max}`.

    K is uniform on 1, ..., K_max and Δ is :math:`\overline{\mathcal L}(\theta^{(0)}) -
    \overline{\mathcal L}(\theta^{(K_{\max}+1)})`; the paper prints both one iteration earlier, for which the
    proof fails at k = 0. It holds for runs of one sample an iteration whose θ lie in the set of L_e together
    with :math:`\theta + \nabla\overline{\mathcal L}(\theta) / L_e`, a point that the proof goes to: see
    ``holds_at``.

    Parameters
    ----------
    constants : Constants
        Bounds or estimates.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import theory
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> model = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
    >>> theorem = theory.IncrementalTheorem(theory.constants(model, y))
    >>> result = swiftem.run(model, y, theorem.method(), n_iter=theorem.termination(1000), seed=0)
    >>> theorem.holds_at(model, y, result.theta)
    True
    >>> theorem.right_hand_side(n_iter=1000, decrease=0.01).kind
    'bound'
    """

    constants: Constants

    def __repr__(self) -> str:
        return f"IncrementalTheorem(L_e = {self.constants.L_e.value:.3g}, {self.constants.L_e.kind})"

    def method(self) -> IncrementalEM:
        """Return the method: its step is 1, always."""
        return IncrementalEM()

    def termination(self, n_iter: int) -> RandomTermination:
        """Return K, uniform on 1, ..., ``n_iter``, to be given to :func:`swiftem.run`."""
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
        check_real("decrease", decrease, minimum=-np.inf)
        value = 2.0 * self.constants.n * self.constants.L_e.value * decrease / n_iter
        return Constant(value, self.constants.L_e.kind, "2·n·L_e·E[Δ]/K_max")

    def holds_at(self, model: Model, data: Any, theta: Theta) -> bool:
        r"""Tell whether θ and :math:`\theta + \nabla\overline{\mathcal L}(\theta)/L_e` lie in the set of L_e.

        The paper's proof takes this for granted; the set is the box of the constants.
        """
        family, source = family_of(model, data)
        gradient = (
            family.gradient_penalty_psi(theta)
            - family.jacobian_phi(theta).T @ full_pass(family, source, theta).s
        )
        ahead = family.from_vector(family.vector(theta) + gradient / self.constants.L_e.value)
        return self.constants.box.holds(theta) and self.constants.box.holds(ahead)
