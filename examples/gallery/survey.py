"""
A survey from start to end: latent class analysis
=================================================

3,000 people answer a survey on how they travel: ways of travel in words, ratings from 1 to 5, yes and no,
a number of trips, an age. The table is generated here, with three kinds of people that the analysis
does not get to see. A table of pandas or polars works like this one of pyarrow.
"""

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

import swiftem

rng = np.random.default_rng(7)
n = 3000
kind = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])


def words(levels, shares):
    """Return random levels, with shares for each of the three kinds of people."""
    ends = np.cumsum(shares, axis=1)[kind]
    return np.array(levels)[np.minimum((rng.random((n, 1)) > ends).sum(axis=1), len(levels) - 1)]


survey = pa.table(
    {
        "travels by": words(
            ["bicycle", "bus", "car", "train"],
            [[0.10, 0.10, 0.70, 0.10], [0.60, 0.20, 0.10, 0.10], [0.05, 0.20, 0.15, 0.60]],
        ),
        "lives in": words(
            ["city", "suburb", "village"], [[0.1, 0.4, 0.5], [0.8, 0.15, 0.05], [0.4, 0.5, 0.1]]
        ),
        "roads are good": 1 + rng.binomial(4, np.array([0.7, 0.3, 0.5])[kind]),
        "trains are good": 1 + rng.binomial(4, np.array([0.3, 0.5, 0.8])[kind]),
        "owns a car": rng.random(n) < np.array([0.95, 0.2, 0.5])[kind],
        "trips per month": rng.poisson(np.array([25, 40, 16])[kind]),
        "age": rng.normal(np.array([48.0, 31.0, 42.0])[kind], 9.0),
    }
)

# %%
# How many classes? ``family="auto"`` reads the types of the columns; BIC chooses the number.
found = swiftem.select(survey, range(1, 7), family="auto", random_state=0)
print(found)

# %%
# Who are they? The summary has a row for each question.
classes = found.best
print(classes.summary())

# %%
# The same as a picture: bars for answers, curves for numbers, over the data in grey.
classes.plot(survey)

# %%
# Who belongs where? Most people have one likely class. (The kinds are known here, so that we can look.)
likely = classes.predict_proba(survey)
print(f"{np.mean(likely.max(axis=1) > 0.9):.0%} of the people have a class with a probability above 90 %")
together = np.zeros((3, classes.n_components), dtype=int)
np.add.at(together, (kind, likely.argmax(axis=1)), 1)
print("people by kind (rows) and class (columns):", together, sep="\n")

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.hist(likely.max(axis=1), bins=40, color="#0072B2")
axes.set(xlabel="probability of the likeliest class", ylabel="people")
