"""
Similar topics, merged topics, topics by group
==============================================

Which topics use the same words, what remains if they are merged, and which parts of a collection they
come from: methods of a fitted ``swiftem.PLSA``. The texts are docstrings of scikit-learn, grouped by
subpackage.
"""

import ast
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

import swiftem
from swiftem.data import count_words

# Words of every docstring say nothing about any.
COMMON = ["default", "array", "shape", "int", "like", "number", "parameters", "returns", "none", "bool"]
folder = Path(sklearn.__file__).parent
subpackage_of = {}  # by text
for file in sorted(folder.glob("*/**/*.py")):
    for node in ast.walk(ast.parse(file.read_bytes())) if "tests" not in file.parts else ():
        text = (isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)) or ""
        if len(text) >= 200:
            subpackage_of.setdefault(text, file.relative_to(folder).parts[0])
texts = list(subpackage_of)
counts, words, kept = count_words(texts, n_words=1500, stop_words=[*ENGLISH_STOP_WORDS, *COMMON])
package = np.array(list(subpackage_of.values()))[kept]
topics = swiftem.PLSA(10, random_state=0, max_iter=60, tol=1e-3).fit(counts)

# %%
# Similarity is 1 for topics of equal words, 0 if they share no word. The two most similar topics are
# merged: the model that is returned has one topic less, and the first is as it was.
similarity = topics.topic_similarity()
pair = np.unravel_index((similarity - np.eye(10)).argmax(), similarity.shape)
fewer = topics.merge_topics([[int(k) for k in pair]])
for k in pair:
    print(f"topic {k}: {', '.join(topics.top_words(words, n=6)[k])}")
print(f"merged: {', '.join(fewer.top_words(words, n=6)[min(pair)])}")

# %%
# The share of each topic in the words of the largest subpackages, by ``topics_over``.
often = [name for name in np.unique(package) if (package == name).sum() >= 60]
over = fewer.topics_over(np.where(np.isin(package, often), package, "others"), counts)
names = [", ".join(row) for row in fewer.top_words(words, n=3)]
figure, ax = plt.subplots(figsize=(8.5, 4.6), layout="constrained")
image = ax.imshow(100 * over.shares.T, cmap="Blues", aspect="auto")
ax.set_yticks(range(len(names)), names, fontsize=8)
ax.set_xticks(range(len(over.labels)), over.labels, rotation=35, ha="right", fontsize=8)
figure.colorbar(image, label="share of the words, %")

# %%
# One document that shows what each topic is about:
for k, (document,) in enumerate(fewer.representative_documents(counts, n=1)[:4]):
    print(f"{names[k]}: {texts[kept[document]].splitlines()[0]}")
