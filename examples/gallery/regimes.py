"""
Calm and turbulent days
=======================

The price of a share moves little for months, then much for weeks. A hidden Markov model of its daily returns
finds these regimes; the prices of Google's share from 2004 to 2008 come with matplotlib.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

import swiftem

prices = get_sample_data("goog.npz")["price_data"]
returns = 100 * np.diff(np.log(prices["close"]))[:, None]  # percent
days = prices["date"][1:]

# %%
# How many regimes? BIC compares numbers of states; tails that are too long for one normal distribution need
# a second one.
model = swiftem.HiddenMarkovModel(family="gaussian", random_state=0)
chosen = model.select(returns, range(1, 4))
print(chosen)

# %%
# The table of the best model: the share of days, the transitions from each state, and the mean and standard
# deviation of the return.
best = chosen.best
print(best.summary())

# %%
# Regimes last: a state is left after 1 / (1 − its probability to stay) days, on average.
print((1 / (1 - best.transmat_.diagonal())).round(), "days")

# %%
# The most likely states, over time. Single large returns do not change the state, a series of them does.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), width_ratios=[3, 1], layout="constrained")
best.plot_states(returns, axes=axes[0])
axes[0].set(title="daily return of Google's share", ylabel="%", xlabel="trading day")
best.plot_transitions(axes=axes[1])
axes[1].set(title="transitions")

# %%
# On the last days the model expects more of the same: the probability of each state, and from it the standard
# deviation of the next day's return.
last = best.predict_proba(returns)[-1] @ best.transmat_
spread = np.sqrt(last @ (best.covariances_[:, 0] + best.means_[:, 0] ** 2) - (last @ best.means_[:, 0]) ** 2)
print(f"after {days[-1]}: probabilities {last.round(2)}, standard deviation {spread:.1f} %")
