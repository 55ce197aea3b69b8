"""
Colours of a photograph
=======================

Pixels are rows of red, green and blue. A mixture finds the main colours and how much each of them
varies; every pixel is then painted in the mean colour of its component.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import swiftem

image = load_sample_image("china.jpg")[::2, ::2] / 255.0
pixels = image.reshape(-1, 3)
print(f"{len(pixels):,} pixels")

# %%
# The fit uses every tenth pixel, ``predict`` all of them.
mixture = swiftem.GaussianMixture(6, random_state=0).fit(pixels[::10])
labels = mixture.predict(pixels)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
axes[0].imshow(image)
axes[1].imshow(np.clip(mixture.means_, 0, 1)[labels].reshape(image.shape))
axes[0].set_title("the photograph")
axes[1].set_title("six colours")
for ax in axes:
    ax.set_axis_off()
