"""
A run that is cut off, and resumed
==================================

With ``checkpoint=`` a run keeps its position in a folder. Here a run is stopped after a third of
its iterations; the same call with ``resume="auto"`` continues, and ends with the same numbers, bit
for bit, as a run that was never stopped.
"""

import tempfile

import matplotlib.pyplot as plt
import numpy as np

import swiftem
from swiftem import methods, models

rng = np.random.default_rng(0)
y = rng.normal(size=5000) + np.where(rng.random(5000) < 0.5, 1.0, -1.0)
model, method = models.GaussianMixtureModel(2), methods.FastIncrementalEM(step_size=0.005)
start = model.theta(weights=[0.5, 0.5], means=[[3.0], [-0.5]])
how = {"theta0": start, "seed": 0, "record_every": 500, "record": lambda now: now.theta.means.ravel()}

folder = tempfile.TemporaryDirectory()
first = swiftem.run(model, y, method, n_iter=10_000, checkpoint=folder.name, **how)
rest = swiftem.run(model, y, method, n_iter=30_000, checkpoint=folder.name, resume="auto", **how)
whole = swiftem.run(model, y, method, n_iter=30_000, **how)
assert np.array_equal(rest.theta.means, whole.theta.means)

# %%
# The means along the run: before the stop in blue, after it in orange.
path = np.array(rest.path)
k = 500 * np.arange(len(path))
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(k[k <= 10_000], path[k <= 10_000], color="#0072B2", linewidth=2)
ax.plot(k[k >= 10_000], path[k >= 10_000], color="#D55E00", linewidth=2)
ax.axvline(10_000, color="black", linestyle=":")
ax.set(xlabel="iterations", ylabel="means of the components")
folder.cleanup()
