"""
Four kinds of covariances
=========================

The same rows, fitted with full, tied, diagonal and spherical covariances. A kind with more
parameters follows the data more closely; BIC charges for each of them, and is lowest for the kind
that pays.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

# %%
# 2,000 rows of three components, drawn by the library itself.
means = np.array([[0.0, 0.0], [5.0, 1.0], [2.0, 5.5]])
covariances = np.array([[[1.5, 1.1], [1.1, 1.2]], [[0.3, 0.0], [0.0, 2.0]], [[2.5, -0.6], [-0.6, 0.4]]])
truth = swiftem.GaussianMixture.from_parameters([0.4, 0.3, 0.3], means, covariances, random_state=0)
X, _ = truth.sample(2000)

# %%
# ``plot`` draws the ellipses at one and two standard deviations over the rows.
figure, axes = plt.subplots(2, 2, figsize=(8, 7), sharex=True, sharey=True, layout="constrained")
for kind, ax in zip(["full", "tied", "diag", "spherical"], axes.flat, strict=True):
    mixture = swiftem.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    mixture.plot(X, ax)
    ax.texts[-1].remove()
    ax.set_title(f"{kind}: log-likelihood {mixture.score(X):.3f}, BIC {mixture.bic(X):.0f}", fontsize=10)
    ax.label_outer()
