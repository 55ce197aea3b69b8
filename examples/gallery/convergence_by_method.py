"""
Five methods side by side
=========================

How far each method is from the best log-likelihood, pass by pass, from the same k-means start. A
pass is n E-step evaluations. Components overlap, which makes batch EM slow; the variance-reduced
methods take many steps per pass.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import swiftem

warnings.simplefilter("ignore", ConvergenceWarning)  # every method uses all of its passes
means = 3.0 * np.random.default_rng(0).normal(size=(5, 3))
truth = swiftem.GaussianMixture.from_parameters(
    np.full(5, 0.2), means, np.ones((5, 3)), covariance_type="diag", random_state=0
)
X, _ = truth.sample(20_000)

# %%
start = {"init_params": "kmeans", "random_state": 0}  # a race of starts would leave nothing to compare
best = swiftem.GaussianMixture(5, method="em", max_iter=300, tol=1e-10, **start).fit(X).lower_bound_
figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
for method, style in zip(
    ["em", "sem", "iem", "sem-vr", "fiem"], ["k-", "C1-", "C2--", "C0-", "C3--"], strict=True
):
    mixture = swiftem.GaussianMixture(5, method=method, max_iter=20, tol=0, **start).fit(X)
    history = mixture.history_
    ax.semilogy(history.passes, best + history.objective, style, linewidth=2, label=method)
ax.set(xlabel="passes over the data", ylabel="mean log-likelihood below the best", xlim=(0, 20))
ax.grid(color="#DDDDDD")
ax.legend()
