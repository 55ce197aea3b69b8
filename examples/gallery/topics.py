"""Topics of the docstring corpus: how soon each method finds them, and the words of the largest.

Run it: python examples/gallery/topics.py [FOLDER]
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem.data import count_words, docstring_corpus
from swiftem.report.drawing import plain_axes

K, WORDS, SHOWN = 12, 1500, 6


def fit(X: object, method: str) -> swiftem.PLSA:
    """Return topics by 40 passes of a method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return swiftem.PLSA(K, method=method, max_iter=40, random_state=0).fit(X)


def main(folder: Path) -> Path:
    """Fit and draw; return the file."""
    counted = count_words(docstring_corpus().sample(2000).documents, n_words=WORDS)
    found = {method: fit(counted.counts, method) for method in ("em", "sem", "auto")}
    figure = Figure(figsize=(9.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plain_axes(left, x="passes", y="mean log-likelihood per token")
    for (method, topics), colour in zip(found.items(), ("black", "#0072B2", "#D55E00"), strict=True):
        history = topics.history_
        left.plot(history.passes, -history.objective, color=colour, linewidth=2, label=method)
    left.legend(frameon=False, loc="lower right")
    left.set_title(f"{counted.counts.shape[0]:,} docstrings, {K} topics", loc="left", fontweight="bold")
    topics = found["auto"]
    largest = topics.sorted_topics()[:SHOWN]
    words = topics.top_words(counted.words, n=5)
    right.barh(np.arange(SHOWN)[::-1], topics.topic_prevalence()[largest], color="#56B4E9")
    for place, k in zip(np.arange(SHOWN)[::-1], largest, strict=True):
        right.text(0.002, place, " ".join(words[k]), va="center", fontsize=9)
    plain_axes(right, x="share of the tokens", y="")
    right.set_yticks([])
    right.set_title("The largest topics", loc="left", fontweight="bold")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "topics.png", dpi=100)
    return folder / "topics.png"


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/gallery")))
