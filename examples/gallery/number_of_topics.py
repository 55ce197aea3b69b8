"""
How many topics?
================

The perplexity of documents that were not fitted says how well topics predict: half of each document
is seen, the other half is predicted. It falls as long as more topics help.
"""

import matplotlib.pyplot as plt
import numpy as np

import swiftem
from swiftem.data import count_words, docstring_corpus

counts, words, _ = count_words(docstring_corpus(["scipy"]).documents, n_words=1000)
new = np.random.default_rng(0).random(counts.shape[0]) < 0.2

numbers = [2, 5, 10, 20, 40]
fits = [swiftem.PLSA(k, random_state=0).fit(counts[~new]) for k in numbers]
perplexity = [topics.perplexity(counts[new]) for topics in fits]
coherence = [float(np.mean(topics.coherence(counts))) for topics in fits]

# %%
# Coherence (do the words of a topic occur together?) is the second number to look at.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
axes[0].plot(numbers, perplexity, "-o")
axes[0].set(xlabel="topics", ylabel="perplexity of new documents", xscale="log", xticks=numbers)
axes[1].plot(numbers, coherence, "-o", color="#D55E00")
axes[1].set(xlabel="topics", ylabel="mean coherence (NPMI)", xscale="log", xticks=numbers)
for ax in axes:
    ax.set_xticks(numbers, [str(k) for k in numbers], minor=False)
    ax.minorticks_off()
