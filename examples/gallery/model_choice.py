"""How many components, and of which kind? The criterion for every candidate, and the mixture that wins.

Run it: python examples/gallery/model_choice.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import swiftem

WEIGHTS = [0.3, 0.25, 0.2, 0.15, 0.1]
MEANS = [[0.0, 0.0], [4.5, 0.5], [8.0, 4.0], [3.0, 6.0], [-2.0, 5.0]]
ANGLES, LONG, SHORT = [0.3, 1.4, 2.4, 0.0, 0.8], [1.6, 1.3, 1.5, 1.2, 1.0], [0.5, 0.4, 0.5, 0.6, 0.3]


def rows(n: int) -> np.ndarray:
    """Return n rows of a mixture of five turned ellipses."""
    turns = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in ANGLES]
    covariances = [
        turn @ np.diag([long**2, short**2]) @ turn.T
        for turn, long, short in zip(turns, LONG, SHORT, strict=True)
    ]
    truth = swiftem.GaussianMixture.from_parameters(WEIGHTS, MEANS, covariances, random_state=1)
    return truth.sample(n)[0]


def main(folder: Path) -> Path:
    """Select and draw; return the file."""
    X = rows(2000)
    found = swiftem.select(X, range(1, 11), random_state=0)
    print(found)
    best = found.best
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    figure.suptitle("2,000 rows drawn from five components", x=0.01, ha="left", fontweight="bold")
    left, right = figure.subplots(1, 2)
    found.plot(left)
    left.set_title("forty candidates", loc="left", fontsize=10)
    best.plot(X, right)
    right.set_title(f"chosen: {best.covariance_type}, {best.n_components}", loc="left", fontsize=10)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "model_choice.png", dpi=100)
    return folder / "model_choice.png"


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/gallery")))
