"""
How many components?
====================

``swiftem.select`` fits every number of components with every kind of covariances, and ranks them by
BIC. Each fit has new starts and one from a split of the fit before, so that the log-likelihood never
falls with the number of components.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

# %%
# 2,000 rows from five turned ellipses.
angles = np.array([0.3, 1.4, 2.4, 0.0, 0.8])
turns = np.stack([np.cos(angles), -np.sin(angles), np.sin(angles), np.cos(angles)], axis=-1).reshape(5, 2, 2)
spread = np.array([[1.6, 0.5], [1.3, 0.4], [1.5, 0.5], [1.2, 0.6], [1.0, 0.3]])
means = np.array([[0.0, 0.0], [4.5, 0.5], [8.0, 4.0], [3.0, 6.0], [-2.0, 5.0]])
covariances = (turns * spread[:, None] ** 2) @ turns.swapaxes(1, 2)
truth = swiftem.GaussianMixture.from_parameters(np.full(5, 0.2), means, covariances, random_state=1)
X, _ = truth.sample(2000)

found = swiftem.select(X, range(1, 8), ["full", "tied", "diag"], random_state=0)
found

# %%
# ``found.plot`` draws the criterion of all candidates; ``found.best`` is the mixture that wins.
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
found.plot(axes[0])
found.best.plot(X, axes[1])
