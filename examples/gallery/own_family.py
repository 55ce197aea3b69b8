"""
A family of your own
====================

Waiting times that are exponential: a family of components is one class. It says what the
statistics, the natural parameters and the M-step are; fits, scores, selection and files come with
it.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import swiftem
from swiftem.mixture.families import Family


@dataclass(frozen=True)
class Exponential(Family):
    """Waiting times: log f(y) = −rate · y + log rate."""

    name = "exponential"
    bounds = (0.0, np.inf)

    def shapes(self, n_components, d):
        return {"rates": (n_components, d)}

    def check_rows(self, y):
        if (y < 0).any():
            raise ValueError("must be waiting times of at least 0")

    def natural(self, params):
        return -params["rates"], np.log(params["rates"]).sum(axis=1)

    def m_step(self, counts, means):
        return {"rates": 1 / means} if (means > 0).all() else None

    def draw(self, params, labels, rng):
        return rng.exponential(1 / params["rates"][labels])


# %%
# Most customers are served in a minute, some in twenty.
rng = np.random.default_rng(0)
X = np.concatenate([rng.exponential(1.0, 1400), rng.exponential(20.0, 600)])[:, None]
mixture = swiftem.Mixture(2, family=Exponential(), random_state=0).fit(X)
print((1 / mixture.params_["rates"][:, 0]).round(1), mixture.weights_.round(2))

# %%
grid = np.geomspace(0.01, 120, 300)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.hist(X[:, 0], bins=np.geomspace(0.01, 120, 50), density=True, color="#CCCCCC")
ax.plot(grid, np.exp(mixture.score_samples(grid[:, None])), color="#0072B2", linewidth=2)
ax.set(xscale="log", yscale="log", ylim=(1e-5, 3), xlabel="waiting time (minutes)", ylabel="density")
