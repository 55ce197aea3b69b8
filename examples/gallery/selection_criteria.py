"""
BIC, AIC and ICL
================

Criteria answer different questions. AIC looks for the best prediction and takes at least as many
components as BIC. BIC looks for the model that the data came from. ICL also charges for overlap,
and counts clusters that can be told apart. Here two components of the truth share a centre and look
like one cluster with long tails.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

means = np.array([[0.0, 0.0], [0.0, 0.0], [7.0, 0.0]])
covariances = np.array([0.6 * np.eye(2), 4.0 * np.eye(2), np.eye(2)])
truth = swiftem.GaussianMixture.from_parameters([0.3, 0.3, 0.4], means, covariances, random_state=0)
X, _ = truth.sample(1500)

# %%
# One selection has the fits; each criterion is computed from them.
fits = swiftem.select(X, range(1, 7), "full", random_state=0).models
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
numbers = [mixture.n_components for mixture in fits.values()]
for name in ("aic", "bic", "icl"):
    values = [getattr(mixture, name)(X) for mixture in fits.values()]
    best = int(np.argmin(values))
    (line,) = axes[0].plot(numbers, values, "-o", label=f"{name.upper()}: {numbers[best]} components")
    axes[0].plot(numbers[best], values[best], "o", markersize=14, mfc="none", mec=line.get_color())
axes[0].set(xlabel="components", ylabel="criterion, lower is better")
axes[0].legend()
list(fits.values())[2].plot(X, axes[1])
