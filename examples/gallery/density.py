"""
A density without a histogram
=============================

The size of cell nuclei in 569 samples of breast tissue, from the data set that comes with scikit-
learn. A mixture of two components in one column is a smooth density, and tells which rows lie in
which part of it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import swiftem

tissue = load_breast_cancer()
X = np.log(tissue.data[:, [3]])  # mean area
mixture = swiftem.GaussianMixture(2, random_state=0).fit(X)

# %%
# ``score_samples`` is the logarithm of the density.
grid = np.linspace(X.min() - 0.3, X.max() + 0.3, 400)[:, None]
density = np.exp(mixture.score_samples(grid))
parts = mixture.predict_proba(grid) * density[:, None]

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for kind, name in enumerate(tissue.target_names):
    rows = X[tissue.target == kind, 0]
    ax.plot(rows, np.full(len(rows), -0.03 - 0.03 * kind), "|", alpha=0.4, label=name)
ax.plot(grid, density, color="black", label="density of the mixture")
ax.plot(grid, parts, color="gray", linestyle="--")
ax.set(xlabel="logarithm of the mean area", ylabel="density")
ax.legend()
