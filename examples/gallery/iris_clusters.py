"""
Clusters of the iris data
=========================

Three species of iris flowers, found without their names. The mixture sees four measurements per
flower; the names are used only to look at the result.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import swiftem

iris = load_iris()
mixture = swiftem.GaussianMixture(3, n_init=5, random_state=0).fit(iris.data)
labels = mixture.predict(iris.data)

# %%
# How many flowers of each species are in each component:
print("species     component 0, 1, 2")
for number, name in enumerate(iris.target_names):
    print(f"{name:11s}", np.bincount(labels[iris.target == number], minlength=3))

# %%
# ``marginal`` is the mixture of some of the columns: here petal length and petal width. Colours are
# the components, and faint points are flowers whose component is uncertain.
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
mixture.marginal([2, 3]).plot(iris.data[:, [2, 3]], ax)
doubt = mixture.predict_proba(iris.data).max(axis=1) < 0.9
ax.plot(*iris.data[doubt][:, [2, 3]].T, "o", mfc="none", mec="black", label="probability below 0.9")
ax.set(xlabel="petal length (cm)", ylabel="petal width (cm)")
ax.legend(loc="upper left")
