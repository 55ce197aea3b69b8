"""
A file instead of an array
==========================

``fit``, ``predict`` and ``score`` take the path of a file. Rows are read block by block, and
the setting ``memory_limit`` says how much memory the fit may use, however large the file is.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import swiftem

# %%
# A small file here, so that the example is quick: 200,000 rows of a mixture.
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "rows.npy"
means = np.array([[0.0, 0.0], [5.0, 1.0], [2.0, 5.0], [7.0, 6.0]])
truth = swiftem.GaussianMixture.from_parameters(
    np.full(4, 0.25), means, np.array([np.eye(2)] * 4), random_state=0
)
np.save(file, truth.sample(200_000)[0])

with swiftem.config_context(memory_limit="200MB"):
    mixture = swiftem.GaussianMixture(4, random_state=0).fit(file)
print(f"{mixture.method_}, {mixture.n_iter_} passes, log-likelihood {mixture.score(file):.4f}")

# %%
# The same rows in memory give the same mixture, up to the order in which rows are drawn.
inside = swiftem.GaussianMixture(4, random_state=0).fit(np.load(file))
print(f"in memory: {inside.score(file):.4f}")
figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
mixture.plot(np.load(file, mmap_mode="r")[::200], ax)
folder.cleanup()
