"""
Counts: a Poisson mixture
=========================

The pixels of the digits data are counts from 0 to 16: dark points in a 4 × 4 square. A mixture of
Poisson distributions needs no transformation of them, and its rates are images.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import swiftem

digits = load_digits()
mixture = swiftem.Mixture(15, family="poisson", random_state=0).fit(digits.data)
labels = mixture.predict(digits.data)

# %%
# The digit that is most frequent in each component is above its rates, with its share.
figure, axes = plt.subplots(3, 5, figsize=(8, 5.4), layout="constrained")
for number, ax in enumerate(axes.flat):
    here = np.bincount(digits.target[labels == number], minlength=10)
    ax.imshow(mixture.params_["rates"][number].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{here.argmax()}: {here.max() / max(here.sum(), 1):.0%}", fontsize=10)
    ax.set_axis_off()
