"""
Topics of texts
===============

``swiftem.PLSA`` finds topics in a matrix of word counts. The texts are docstrings of the Python
packages that every installation of swiftem has.
"""

import ast
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy
from sklearn.feature_extraction.text import CountVectorizer

import swiftem

files = (file for file in sorted(Path(scipy.__file__).parent.rglob("*.py")) if "tests" not in file.parts)
nodes = (node for file in files for node in ast.walk(ast.parse(file.read_bytes())))
texts = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)]
texts = list(dict.fromkeys(text for text in texts if len(text) >= 200))
vectorizer = CountVectorizer(stop_words="english", token_pattern="[a-z]{3,}", min_df=5, max_df=0.1)
counts = vectorizer.fit_transform(texts)
words = vectorizer.get_feature_names_out()
topics = swiftem.PLSA(12, random_state=0).fit(counts)

# %%
# The six words that are most likely in each topic, with the topic's share of all words.
largest = topics.sorted_topics()[:8]
share, top = topics.topic_prevalence(), topics.top_words(words, n=6)
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.barh(np.arange(len(largest))[::-1], share[largest], color="#A6CEE3")
for place, k in zip(np.arange(len(largest))[::-1], largest, strict=True):
    ax.text(0.002, place, ", ".join(top[k]), va="center")
ax.set(xlabel="share of all words", yticks=[], title=f"{counts.shape[0]:,} docstrings of SciPy")

# %%
# The topics of a new text are found by ``transform``:
text = "The eigenvalues of a symmetric matrix by a Cholesky factorization."
shares = topics.transform(vectorizer.transform([text]))[0]
print(f"{shares.max():.0%}: {', '.join(top[shares.argmax()])}")
