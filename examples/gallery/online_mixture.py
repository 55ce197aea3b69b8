"""
A stream, batch by batch
========================

``partial_fit`` takes rows as they come and forgets them. Rows in random order are known after one
pass; rows that are sorted by component need a few passes more.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

M, D, BATCH, PASSES = 5, 3, 500, 4
rng = np.random.default_rng(0)
roots = 0.8 * rng.normal(size=(M, D, D))
covariances = roots @ roots.swapaxes(1, 2) + 0.2 * np.eye(D)
truth = swiftem.GaussianMixture.from_parameters(
    np.full(M, 1 / M), 3.0 * rng.normal(size=(M, D)), covariances, random_state=0
)
X, component = truth.sample(6000)
test, _ = truth.sample(2000)
whole = swiftem.GaussianMixture(M, n_init=10, random_state=0).fit(X).score(test)

# %%
# The mean log-likelihood of other rows after each batch.
orders = {"random order": rng.permutation(len(X)), "sorted": np.argsort(component, kind="stable")}
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.axhline(whole, color="black", linewidth=1, label="fit() on all rows at once")
for name, order in orders.items():
    mixture = swiftem.GaussianMixture(M, random_state=0)
    batches = np.split(X[order], len(X) // BATCH) * PASSES
    scores = [mixture.partial_fit(batch).score(test) for batch in batches]
    ax.plot(np.arange(1, len(scores) + 1) * BATCH / len(X), scores, linewidth=2, label=name)
ax.set(
    xlabel="passes over the stream", ylabel="mean log-likelihood of other rows", ylim=(whole - 3, whole + 0.2)
)
ax.legend(loc="lower right")
