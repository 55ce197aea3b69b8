"""
Tables with holes
=================

A third of the cells of a table is missing. A mixture with full covariances is fitted to what is
there, and fills in the rest: by conditional means, or by draws that keep the spread of the data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

import swiftem

X, species = load_iris(return_X_y=True)
rng = np.random.default_rng(0)
is_missing = rng.random(X.shape) < 1 / 3
holes = np.where(is_missing, np.nan, X)
print(f"{is_missing.any(axis=1).sum()} of {len(X)} rows have a missing cell.")

# %%
# ``missing="ignore"`` takes the rows as they are: no row is left out, and nothing has to be filled in
# before.
mixture = swiftem.GaussianMixture(3, missing="ignore", covariance_type="tied", n_init=5, random_state=0)
labels = mixture.fit(holes).predict(holes)
print(f"Agreement with the species (adjusted Rand index): {adjusted_rand_score(species, labels):.2f}")

# %%
# How far are the filled cells from the truth?
means = np.broadcast_to(np.nanmean(holes, axis=0), X.shape)
filled = mixture.impute(holes)
for name, values in (("column means", means), ("conditional means", filled)):
    print(f"{name}: error {np.abs(values - X)[is_missing].mean():.2f} cm")

# %%
# Means are best cell by cell, but lie on a line; draws look like the data.
shown = is_missing[:, 2] & ~is_missing[:, 3]
drawn = mixture.impute(holes, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharex=True, sharey=True, layout="constrained")
parts = (("column means", means), ("conditional means", filled), ("draws", drawn))
for ax, (name, values) in zip(axes, parts, strict=True):
    ax.scatter(X[:, 3], X[:, 2], s=8, color="#CCCCCC", label="truth")
    ax.scatter(X[shown, 3], values[shown, 2], s=14, color="#0072B2", label="filled in")
    ax.set(title=name, xlabel="petal width (cm)")
axes[0].set_ylabel("petal length (cm)")
axes[0].legend(loc="lower right")
