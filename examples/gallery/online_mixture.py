"""A stream, batch by batch: how soon partial_fit knows the mixture, in any order of the rows.

Run it: python examples/gallery/online_mixture.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import swiftem
from swiftem.report.drawing import plain_axes

PASSES, BATCH, M, D = 6, 500, 8, 4


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows of a mixture, and the component of each."""
    rng = np.random.default_rng(0)
    means, roots = 3.0 * rng.normal(size=(M, D)), 0.8 * rng.normal(size=(M, D, D))
    covariances = roots @ roots.swapaxes(1, 2) + 0.2 * np.eye(D)
    truth = swiftem.GaussianMixture.from_parameters(np.full(M, 1 / M), means, covariances, random_state=seed)
    return truth.sample(n)


def stream(X: np.ndarray, test: np.ndarray) -> list[float]:
    """Return the mean log-likelihood of other rows after each batch."""
    mixture = swiftem.GaussianMixture(M, random_state=0)
    batches = np.split(X, len(X) // BATCH) * PASSES
    return [mixture.partial_fit(batch).score(test) for batch in batches]


def main(folder: Path) -> Path:
    """Fit and draw; return the file."""
    (X, component), (test, _) = rows(8000, 0), rows(2000, 1)
    whole = swiftem.GaussianMixture(M, random_state=0, n_init=3).fit(X).score(test)
    axes = Figure(figsize=(7.5, 4.4), layout="constrained").subplots()
    plain_axes(axes, x="passes over the stream", y="mean log-likelihood of held-out rows")
    axes.axhline(whole, color="black", linewidth=1, label="fit() on all rows at once")
    for order, colour, label in (
        (np.random.default_rng(2).permutation(len(X)), "#0072B2", "partial_fit, rows shuffled"),
        (np.argsort(component, kind="stable"), "#D55E00", "partial_fit, rows sorted by component"),
    ):
        scores = stream(X[order], test)
        passes = np.arange(1, len(scores) + 1) * BATCH / len(X)
        axes.plot(passes, scores, color=colour, linewidth=2, label=label)
    axes.set(xlim=(0, PASSES), ylim=(whole - 3, whole + 0.2))
    axes.set_title(f"{len(X):,} rows in batches of {BATCH}, {M} components", loc="left", fontweight="bold")
    axes.legend(frameon=False, loc="lower right")
    folder.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(folder / "online_mixture.png", dpi=100)
    return folder / "online_mixture.png"


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/gallery")))
