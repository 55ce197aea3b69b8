"""
Regression by conditioning
==========================

A mixture of x and y gives the distribution of y for every x: ``condition`` returns it as a mixture
again. It follows bends, and with two branches it has two modes instead of a mean between
them.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

rng = np.random.default_rng(0)
y = rng.uniform(-2.2, 2.2, size=3000)
x = y**3 - 3 * y + rng.normal(scale=0.5, size=3000)
mixture = swiftem.GaussianMixture(10, random_state=0).fit(np.column_stack([x, y]))

# %%
# The density of y given x on a grid, one condition for each column of the picture.
xs, ys = np.linspace(-4, 4, 161), np.linspace(-2.5, 2.5, 121)
density = [np.exp(mixture.condition([0], [value]).score_samples(ys[:, None])) for value in xs]
mean = [float(given.weights_ @ given.means_[:, 0]) for given in (mixture.condition([0], [v]) for v in xs)]

figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
ax.pcolormesh(xs, ys, np.array(density).T, cmap="Blues", vmax=1.5, shading="nearest")
ax.plot(x[::6], y[::6], ".", color="black", markersize=1.5)
ax.plot(xs, mean, color="#D55E00", label="mean of y given x")
ax.set(xlabel="x", ylabel="y", xlim=(-4, 4))
ax.legend(loc="upper left")
