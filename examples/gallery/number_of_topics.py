"""
How many topics?
================

The perplexity of documents that were not fitted says how well topics predict: half of each document
is seen, the other half is predicted. It falls as long as more topics help. Coherence says whether the
words of a topic occur together, stability whether another half of the documents has the same topics.
"""

import matplotlib.pyplot as plt

import swiftem
from swiftem.data import count_words
from swiftem.theory.docstrings import docstring_corpus

counts, words, _ = count_words(docstring_corpus(["scipy"]).documents, n_words=1000)
found = swiftem.select_topics(counts, [5, 10, 20, 40])
_, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
found.plot(axes)

# %%
# The choice is the smallest number whose perplexity is the lowest one's, up to its standard error.
print(found)

# %%
# ``best`` is fitted to all documents.
for topic in found.best.top_words(words, n=6)[:5]:
    print(", ".join(topic))
