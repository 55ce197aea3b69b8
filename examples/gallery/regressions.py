"""
Lines of two classes
====================

Prices of two kinds of houses depend on their size in two ways, and nobody recorded the kind. A mixture of
regressions finds both lines, and fills in prices that are missing.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

rng = np.random.default_rng(0)
n = 600
size = rng.uniform(40, 200, size=n)
is_town = rng.random(n) < 0.4
price = np.where(is_town, 100 + 4.5 * size, 150 + 1.2 * size) + rng.normal(0, 40, size=n)
known = np.where(rng.random(n) < 0.1, np.nan, price)
X = size[:, None]

# %%
# How many lines are there? The integrated completed likelihood prefers components that are apart.
found = swiftem.select(X, range(1, 4), y=known, criterion="icl", random_state=0)
print(found)

# %%
# The best of them, as a table. Rows without a price add nothing to the fit.
lines = found.best
print(lines.summary())

# %%
# Each house belongs to the line that it is closer to, in units of the noise.
seen = ~np.isnan(known)
agree = np.mean(lines.predict_class(X[seen], known[seen]) == is_town[seen])
print(f"Agreement with the kind of house: {max(agree, 1 - agree):.0%}")

# %%
# Missing prices: the mean lies between the lines, far from both; draws are on one of them.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
lines.plot(X[seen], known[seen], axes=axes[:1])
axes[0].set(title="two lines", xlabel="size (m²)", ylabel="price (1,000)")
axes[1].scatter(size[seen], known[seen], s=6, color="#CCCCCC", label="known")
means, draws = lines.impute(X, known), lines.impute(X, known, random_state=0)
axes[1].scatter(size[~seen], means[~seen], s=16, color="#D55E00", label="mean")
axes[1].scatter(size[~seen], draws[~seen], s=16, color="#0072B2", label="draw")
axes[1].set(title="missing prices", xlabel="size (m²)")
axes[1].legend()
