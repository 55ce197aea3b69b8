"""
Answers yes or no: latent classes
=================================

1,000 people answer twelve questions with yes or no. They are of three kinds, which nobody recorded.
A mixture of Bernoulli distributions finds the kinds: this is latent class analysis.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

rng = np.random.default_rng(0)
likely = np.array([[0.9] * 4 + [0.1] * 8, [0.1] * 4 + [0.85] * 4 + [0.2] * 4, [0.5] * 6 + [0.8] * 6])
kinds = rng.choice(3, size=1000, p=[0.5, 0.3, 0.2])
X = (rng.random((1000, 12)) < likely[kinds]).astype(float)

# %%
# The number of classes by BIC, and the answers of the classes.
found = swiftem.select(X, range(1, 6), family="bernoulli", random_state=0)
print(found)
best = found.best

# %%
order = np.argsort(best.predict(X), kind="stable")
figure, axes = plt.subplots(1, 3, figsize=(9, 4), layout="constrained", width_ratios=[1, 1, 1.4])
axes[0].imshow(X, aspect="auto", cmap="gray_r", interpolation="nearest")
axes[0].set(title="answers as they came", xlabel="question", ylabel="person")
axes[1].imshow(X[order], aspect="auto", cmap="gray_r", interpolation="nearest")
axes[1].set(title="sorted by class", xlabel="question", yticks=[])
for weight, yes in zip(best.weights_, best.params_["probabilities"], strict=True):
    axes[2].plot(yes, "-o", label=f"{weight:.0%} of the people")
axes[2].set(title="probability of yes", xlabel="question", ylim=(0, 1))
axes[2].legend(loc="upper center", bbox_to_anchor=(0.5, -0.18))
