"""The same rows under the four kinds of covariances: what each can follow, and what it costs.

Run it: python examples/gallery/mixture_ellipses.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import swiftem

MEANS = [[0.0, 0.0], [5.0, 1.0], [2.0, 5.5]]
COVARIANCES = [[[1.5, 1.1], [1.1, 1.2]], [[0.3, 0.0], [0.0, 2.0]], [[2.5, -0.6], [-0.6, 0.4]]]
SAYS = {
    "full": "each its own ellipse",
    "tied": "one ellipse for all",
    "diag": "axes along the columns",
    "spherical": "circles",
}


def rows(n: int) -> np.ndarray:
    """Return n rows of a mixture of three, by the library itself."""
    truth = swiftem.GaussianMixture.from_parameters([0.4, 0.3, 0.3], MEANS, COVARIANCES, random_state=0)
    return truth.sample(n)[0]


def main(folder: Path) -> Path:
    """Fit and draw; return the file."""
    X = rows(2000)
    figure = Figure(figsize=(7.4, 7.6), layout="constrained")
    figure.suptitle("One data set, four kinds of covariances", x=0.01, ha="left", fontweight="bold")
    for axes, (kind, words) in zip(
        figure.subplots(2, 2, sharex=True, sharey=True).ravel(), SAYS.items(), strict=True
    ):
        mixture = swiftem.GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
        mixture.plot(X, axes)
        axes.set_title(
            f"{kind}: {words}\nmean log-likelihood {mixture.score(X):.3f}", loc="left", fontsize=10
        )
        axes.label_outer()
        axes.texts[-1].remove()  # the note on ellipses, once for all four:
    figure.supxlabel("ellipses: 1 and 2 standard deviations; 2,000 rows", fontsize=8)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "mixture_ellipses.png", dpi=80)
    return folder / "mixture_ellipses.png"


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/gallery")))
