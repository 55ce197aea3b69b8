"""
A prior for small samples
=========================

With few rows, a component may shrink to two or three of them: its variance goes to zero, and the
likelihood to infinity. A normal-inverse-Wishart prior counts as a few rows of an expected size, and
keeps components wide.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import swiftem
from swiftem.models import NormalInverseWishart

warnings.simplefilter("ignore")  # the first fit collapses, and says so
rng = np.random.default_rng(4)
X = np.concatenate([rng.normal(0, 1, size=(15, 2)), rng.normal(4, 1, size=(15, 2))])

# %%
# Five components for thirty rows, first without and then with a prior worth six rows.
prior = NormalInverseWishart(degrees_of_freedom=6, scale=4.0)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharex=True, sharey=True, layout="constrained")
for ax, given, title in ((axes[0], None, "no prior"), (axes[1], prior, "with a prior")):
    mixture = swiftem.GaussianMixture(5, prior=given, max_iter=300, random_state=0).fit(X)
    mixture.plot(X, ax)
    least = np.sqrt(np.linalg.eigvalsh(mixture.covariances_).min())
    ax.set_title(f"{title}: narrowest standard deviation {least:.3f}", loc="left", fontsize=10)
    ax.texts[-1].remove()
