"""
Step sizes of online EM
=======================

``swiftem.run`` takes any schedule. Online EM needs steps that fall: too quickly and it stops on the
way, too slowly and noise remains. fiEM takes a constant step and has neither problem.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem
from swiftem import methods, models, schedules

rng = np.random.default_rng(0)
n = 5000
y = rng.normal(size=n) + np.where(rng.random(n) < 0.5, 0.5, -0.5)
model = models.GaussianMixtureModel(2)
start = model.theta(weights=[0.5, 0.5], means=[[1.0], [-1.0]])
limit = swiftem.run(model, y, methods.EM(), n_iter=2000, theta0=start).theta.means

cases = {
    "sEM, 3 / (k + 10)": methods.OnlineEM(schedules.inverse(3, 10)),
    "sEM, 0.3 / (k + 10)": methods.OnlineEM(schedules.inverse(0.3, 10)),
    "sEM, $k^{-0.6}$": methods.OnlineEM(schedules.power(1.0, 0.6)),
    "fiEM, 0.003": methods.FastIncrementalEM(0.003),
}

# %%
# The squared error of the means, ten looks per epoch.
figure, ax = plt.subplots(figsize=(7.5, 4.4), layout="constrained")
for name, method in cases.items():
    result = swiftem.run(
        model, y, method, n_iter=40 * n, theta0=start, seed=0, record_every=n // 10,
        record=lambda now: ((now.theta.means - limit) ** 2).sum(),
    )  # fmt: skip
    ax.semilogy(np.arange(len(result.path)) / 10, result.path, label=name)
ax.set(xlabel="epochs", ylabel="squared error of the means", ylim=(1e-9, 2))
ax.grid(color="#DDDDDD")
ax.legend()
