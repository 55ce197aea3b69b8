"""Random termination of Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swiftem.core.checks import check_int, shown
from swiftem.core.schedules import Schedule, check_step, constant

__all__ = ["RandomTermination"]


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
        Smallest K. 0, the default, is that of Theorem 2: K from 0 to K_max − 1. Theorem 1, on iem, needs
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
