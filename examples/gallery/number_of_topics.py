"""
How many topics?
================

The perplexity of documents that were not fitted says how well topics predict: half of each document
is seen, the other half is predicted. It falls as long as more topics help. Coherence says whether the
words of a topic occur together, stability whether another half of the documents has the same topics.
"""

import ast
from pathlib import Path

import matplotlib.pyplot as plt
import scipy

import swiftem
from swiftem.data import count_words

# The texts are docstrings of SciPy.
files = (file for file in sorted(Path(scipy.__file__).parent.rglob("*.py")) if "tests" not in file.parts)
nodes = (node for file in files for node in ast.walk(ast.parse(file.read_bytes())))
texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)]
texts = list(dict.fromkeys(text for text in texts if len(text) >= 200))
counts, words, _ = count_words(texts, n_words=1000)
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
