"""Draw the picture of the README: a fitted mixture, and five methods by passes over the data.

Run it: PYTHONPATH=. python docs/images/overview.py
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

import swiftem
from paper.report.figures import label_ends
from swiftem.show.drawing import plain_axes
from swiftem.show.numbers import style_of

FILE = Path(__file__).with_name("overview.png")
M, PASSES = 5, 20
START = {"init_params": "kmeans", "random_state": 0}
"""A race of starts would leave nothing to compare."""


def turned(angle: float, long: float, short: float) -> np.ndarray:
    """Return the covariance of an ellipse with these standard deviations along its axes."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return turn @ np.diag([long**2, short**2]) @ turn.T


def two_columns() -> np.ndarray:
    """Return 2,000 rows of five turned ellipses."""
    means = [[0.0, 0.0], [4.5, 0.5], [8.0, 4.0], [3.0, 6.0], [-2.0, 5.0]]
    shapes = [(0.3, 1.6, 0.5), (1.4, 1.3, 0.4), (2.4, 1.5, 0.5), (0.0, 1.2, 0.6), (0.8, 1.0, 0.3)]
    covariances = np.array([turned(*shape) for shape in shapes])
    truth = swiftem.GaussianMixture.from_parameters(
        [0.3, 0.25, 0.2, 0.15, 0.1], means, covariances, random_state=1
    )
    return truth.sample(2000)[0]


def overlapping() -> np.ndarray:
    """Return 20,000 rows in three columns, of five components that overlap: EM is slow on them."""
    means = 3.0 * np.random.default_rng(0).normal(size=(M, 3))
    truth = swiftem.GaussianMixture.from_parameters(
        np.full(M, 1 / M), means, np.ones((M, 3)), covariance_type="diag", random_state=0
    )
    return truth.sample(20_000)[0]


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)  # every method uses all of its passes
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    X = two_columns()
    swiftem.GaussianMixture(M, n_init=3, random_state=0).fit(X).plot(X, left)
    left.texts[-1].remove()  # the note on the ellipses: it would lie under the title
    left.set_title("A Gaussian mixture of five components", loc="left", fontweight="bold")
    X = overlapping()
    best = swiftem.GaussianMixture(M, method="em", max_iter=1000, tol=1e-12, **START).fit(X)
    plain_axes(right, x="passes over the data", y="mean log-likelihood below the best", log="y")
    ends = []
    for name in ("em", "sem", "iem", "sem-vr", "fiem"):
        fit = swiftem.GaussianMixture(M, method=name, max_iter=PASSES, tol=0, **START).fit(X)
        gap, style = best.lower_bound_ + fit.history_.objective, style_of(name)
        right.plot(fit.history_.passes, gap, style.line, color=style.colour, linewidth=2)
        ends.append((float(gap[-1]), style.label, style.colour))
    right.set(xlim=(0, PASSES), xticks=range(0, PASSES + 1, 5))
    label_ends(right, ends)
    right.set_title("Five methods, 20,000 × 3 rows", loc="left", fontweight="bold")
    figure.savefig(FILE, dpi=100, metadata={"Software": None})
    print(f"Drawn: {FILE}")


if __name__ == "__main__":
    main()
