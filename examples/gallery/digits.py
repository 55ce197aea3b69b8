"""
Digits: means and new samples
=============================

A mixture of diagonal Gaussians on 1,797 images of handwritten digits, 8 × 8 pixels each, after a
principal component analysis. The mean of a component is a digit in one style of writing, and
``sample`` draws new ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import swiftem

pixels = load_digits().data
pca = PCA(20, random_state=0).fit(pixels)
mixture = swiftem.GaussianMixture(20, covariance_type="diag", random_state=0).fit(pca.transform(pixels))
print(mixture)

# %%
# Above, the means of the twenty components; below, twenty samples.
order = np.argsort(-mixture.weights_)
means = pca.inverse_transform(mixture.means_[order])
samples = pca.inverse_transform(mixture.sample(20)[0])
figure, axes = plt.subplots(4, 10, figsize=(9, 4), layout="constrained")
for ax, image in zip(axes.flat, [*means, *samples], strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
    ax.set_axis_off()
