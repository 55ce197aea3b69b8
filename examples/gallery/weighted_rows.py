"""
Weights instead of repeated rows
================================

``sample_weight`` counts a row of weight 2 as two rows. Here 50,000 rows are rounded to a grid:
1,500 or so cells with their counts as weights give the same mixture as the rows, in a fraction of
the time.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

means = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 4.0]])
truth = swiftem.GaussianMixture.from_parameters(
    [0.5, 0.3, 0.2], means, np.array([np.eye(2), np.diag([0.3, 2.0]), np.eye(2)]), random_state=0
)
X, _ = truth.sample(50_000)
cells, counts = np.unique(np.round(X * 5) / 5, axis=0, return_counts=True)
print(f"{len(X):,} rows, {len(cells):,} cells")

rows = swiftem.GaussianMixture(3, method="em", random_state=0).fit(X)
weighted = swiftem.GaussianMixture(3, method="em", random_state=0).fit(cells, sample_weight=counts)
print(rows.means_[np.argsort(rows.weights_)].round(2).tolist())
print(weighted.means_[np.argsort(weighted.weights_)].round(2).tolist())

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharex=True, sharey=True, layout="constrained")
rows.plot(X[::25], axes[0])
weighted.plot(cells[:1], axes[1])
axes[1].scatter(*cells.T, s=counts / 8, color="gray", zorder=0)
for ax in axes:
    ax.texts[-1].remove()  # the note on the ellipses
axes[0].set_title("rows (one in 25 is drawn)", loc="left")
axes[1].set_title("cells; size is the weight", loc="left")
