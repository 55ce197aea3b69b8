r"""Binary answers: independent Bernoulli columns, with a probability for each component and column.

T(y) = y, φ = log p − log(1 − p), c = Σ_j log(1 − p_j) and h(y) = 1. M-step: p is the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Family, Params

LEAST = 1e-300
"""A probability of zero is replaced by this one, whose logarithm is finite."""


@dataclass(frozen=True)
class Bernoulli(Family):
    """Zeros and ones; ``params_["probabilities"]`` has shape (M, d).

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> likely = np.where(rng.random((2000, 1)) < 0.3, [[0.9, 0.9, 0.1]], [[0.1, 0.2, 0.8]])
    >>> mixture = swiftem.Mixture(2, family="bernoulli", random_state=0).fit(rng.random((2000, 3)) < likely)
    >>> mixture.params_["probabilities"][mixture.weights_.argsort()].round(1)
    array([[0.9, 0.9, 0.1],
           [0.1, 0.2, 0.8]])
    """

    name = "bernoulli"
    bounds = (0.0, 1.0)
    parameters = (("probabilities", "from 0 to 1"),)

    def trials_of(self, d: int) -> Array:
        """Return N, the number of trials of each column."""
        return np.ones(d)

    def check_rows(self, y: Rows) -> None:
        """Raise ValueError for values other than zero and one."""
        bad = (y != 0) & (y != 1)
        if bad.any():
            raise ValueError(f"must be 0 or 1, got {y[bad][0]:g}")

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return log p − log(1 − p) and Σ N log(1 − p)."""
        yes = params["probabilities"]
        odds = np.log(np.maximum(yes, LEAST)) - np.log(np.maximum(1.0 - yes, LEAST))
        return odds, self.constants(params).sum(axis=1)

    def constants(self, params: Params) -> Array:
        """Return N log(1 − p)."""
        no = np.maximum(1.0 - params["probabilities"], LEAST)
        return np.asarray(np.log(no) * self.trials_of(no.shape[1]))

    def expected(self, params: Params) -> Array:
        """Return N p."""
        return np.asarray(params["probabilities"] * self.trials_of(params["probabilities"].shape[1]))

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return the means divided by the trials."""
        yes = means / self.trials_of(means.shape[1])
        return {"probabilities": yes} if ((yes >= 0) & (yes <= 1)).all() else None

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return zeros and ones."""
        yes = params["probabilities"][labels]
        return np.asarray(rng.random(yes.shape) < yes, dtype=np.float64)
