"""
A table of mixed columns
========================

Customers with a number of visits, a membership, a favourite category and an age: counts, answers,
categories and numbers in one table. A dict says which family each column has.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem

rng = np.random.default_rng(0)
kind = rng.choice(2, size=1500, p=[0.6, 0.4])
table = np.column_stack(
    [
        rng.poisson(np.array([2.0, 9.0])[kind]),
        rng.random(1500) < np.array([0.1, 0.7])[kind],
        np.where(kind == 0, rng.choice(3, 1500, p=[0.7, 0.2, 0.1]), rng.choice(3, 1500, p=[0.1, 0.3, 0.6])),
        rng.normal(np.array([30.0, 55.0])[kind], 8.0),
    ]
)
family = {"poisson": [0], "bernoulli": [1], "categorical": [2], "gaussian": [3]}
mixture = swiftem.Mixture(2, family=family, random_state=0).fit(table)
same = np.mean(mixture.predict(table) == kind)
print(f"{max(same, 1 - same):.1%} of the rows are in the class that they were drawn from")

# %%
# ``params_`` has the parameters by family.
params = mixture.params_
figure, axes = plt.subplots(1, 4, figsize=(10, 3.2), layout="constrained")
names = [f"class {m}\n({weight:.0%})" for m, weight in enumerate(mixture.weights_)]
axes[0].bar(names, params["poisson"]["rates"][:, 0], color=["C0", "C1"])
axes[1].bar(names, params["bernoulli"]["probabilities"][:, 0], color=["C0", "C1"])
for m, levels in enumerate(params["categorical"]["probabilities"][:, 0]):
    axes[2].bar(np.arange(3) + 0.4 * m - 0.2, levels, width=0.4)
axes[3].bar(names, params["gaussian"]["means"][:, 0], color=["C0", "C1"])
for ax, title in zip(axes, ["visits", "members", "favourite category", "age"], strict=True):
    ax.set_title(title)
