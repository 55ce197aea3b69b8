"""
Topics of texts
===============

``swiftem.PLSA`` finds topics in a matrix of word counts. The texts are docstrings of the Python
packages that every installation of swiftem has.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

import swiftem
from swiftem.data import count_words, docstring_corpus

corpus = docstring_corpus(["sklearn"])
counts, words, _ = count_words(corpus.documents, n_words=1500)
topics = swiftem.PLSA(10, random_state=0).fit(counts)

# %%
# The six words that are most likely in each topic, with the topic's share of all words.
largest = topics.sorted_topics()[:8]
share, top = topics.topic_prevalence(), topics.top_words(words, n=6)
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.barh(np.arange(len(largest))[::-1], share[largest], color="#A6CEE3")
for place, k in zip(np.arange(len(largest))[::-1], largest, strict=True):
    ax.text(0.002, place, ", ".join(top[k]), va="center")
ax.set(xlabel="share of all words", yticks=[], title=f"{counts.shape[0]:,} docstrings of scikit-learn")

# %%
# The topics of a new text are found by ``transform``:
text = ["Fit a forest of decision trees and average their predictions over all leaves."]
new = CountVectorizer(vocabulary=list(words)).transform(text)
k = int(topics.transform(new)[0].argmax())
print(f"{topics.transform(new)[0, k]:.0%}: {', '.join(top[k])}")
