"""
Outliers: components with heavy tails
=====================================

A few rows far away pull the ellipses of a Gaussian mixture towards them. Components of a Student-t mixture
give such rows a small weight, and keep the shape of the clusters.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

rng = np.random.default_rng(0)
clusters = np.concatenate(
    [rng.normal([0, 0], [1.0, 0.5], size=(300, 2)), rng.normal([6, 2], [0.5, 1.0], size=(300, 2))]
)
X = np.concatenate([clusters, rng.uniform([-15, -12], [20, 15], size=(30, 2))])

gaussian = swiftem.GaussianMixture(2, random_state=0).fit(X)
heavy = swiftem.Mixture(2, family="student-t", random_state=0).fit(X)
print(f"degrees of freedom: {heavy.params_['degrees_of_freedom'].round(1)}")

# %%
# The scales of the Student-t components are drawn as ellipses of a Gaussian mixture.
scales = swiftem.GaussianMixture.from_parameters(
    heavy.weights_, heavy.params_["means"], heavy.params_["scales"]
)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharex=True, sharey=True, layout="constrained")
for ax, mixture, title in ((axes[0], gaussian, "Gaussian"), (axes[1], scales, "Student-t")):
    mixture.plot(X, ax)
    ax.texts[-1].remove()
    ax.set_title(title, loc="left")
