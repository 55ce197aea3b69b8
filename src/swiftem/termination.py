"""Random termination of Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swiftem._checks import check_int
from swiftem.schedules import Schedule, check_step, constant

__all__ = ["RandomTermination"]


@dataclass(frozen=True)
class RandomTermination:
    r"""Random number of iterations, equation (random): :math:`P(K = k) \propto \gamma_{k+1}`, k < n_iter.

    Given as ``n_iter`` to :func:`swiftem.run`, K is drawn from the run's seed, and the result is
    :math:`\theta^{(K)}`, the iterate that the paper's theorems speak of. The sample draws do not change.

    Parameters
    ----------
    n_iter : int
        K_max.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> model = models.GaussianMixtureModel(n_components=2)
    >>> result = swiftem.run(model, y, methods.OnlineEM(), n_iter=swiftem.RandomTermination(50), seed=1)
    >>> 0 <= result.n_iter < 50
    True
    """

    n_iter: int

    def __post_init__(self) -> None:
        check_int("n_iter", self.n_iter, minimum=1)

    def draw(self, gamma: Schedule, rng: np.random.Generator, first: int = 0) -> int:
        """Return K for the step sizes ``gamma``, where iteration ``first`` is the first to be done."""
        if isinstance(gamma, constant):
            return int(rng.integers(self.n_iter))
        cumulated = np.cumsum([check_step(gamma(k + 1), k + 1) for k in range(first, first + self.n_iter)])
        return int(np.searchsorted(cumulated, rng.random() * cumulated[-1], side="right"))
