"""
Rows that do not fit
====================

``score_samples`` is low for rows that the mixture finds unlikely. Here 2,000 rows follow two curved
clouds, and 40 rows lie anywhere; a mixture of eight components learns the clouds, and the 2 % of
rows with the lowest density are marked.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import swiftem

rng = np.random.default_rng(0)
usual, _ = make_moons(2000, noise=0.08, random_state=0)
odd = rng.uniform([-1.6, -1.2], [2.6, 1.7], size=(40, 2))
X = np.concatenate([usual, odd])

mixture = swiftem.GaussianMixture(8, random_state=0).fit(X)
score = mixture.score_samples(X)
flagged = score < np.quantile(score, 0.02)
print(f"{flagged[2000:].sum()} of the 40 odd rows are among the {flagged.sum()} that are flagged.")

# %%
grid = np.stack(np.meshgrid(np.linspace(-1.6, 2.6, 120), np.linspace(-1.2, 1.7, 90)), axis=-1)
level = mixture.score_samples(grid.reshape(-1, 2)).reshape(90, 120)
figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.contourf(grid[..., 0], grid[..., 1], np.maximum(level, -8), levels=12, cmap="Blues")
ax.plot(*X[~flagged].T, ".", color="gray", markersize=2)
ax.plot(*X[flagged].T, "x", color="#D55E00", label="lowest 2 %")
ax.legend(loc="upper right")
