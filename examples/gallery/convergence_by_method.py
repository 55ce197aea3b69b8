"""The five methods from the same k-means: how far each is from the best log-likelihood, pass by pass.

Run it: python examples/gallery/convergence_by_method.py [FOLDER]
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem.report.drawing import label_ends, plain_axes
from swiftem.report.method_names import style_of

N, D, M, PASSES = 20_000, 3, 5, 20  # up to 20,000 rows, every look at the objective is at all of them


def rows() -> np.ndarray:
    """Return rows of a mixture whose components overlap, which makes EM slow."""
    means = 3.0 * np.random.default_rng(0).normal(size=(M, D))
    truth = swiftem.GaussianMixture.from_parameters(
        np.full(M, 1 / M), means, np.ones((M, D)), covariance_type="diag", random_state=0
    )
    return truth.sample(N)[0]


def main(folder: Path) -> Path:
    """Fit by every method and draw; return the file."""
    X = rows()
    warnings.simplefilter("ignore", ConvergenceWarning)  # all are to use up their passes
    options = {"tol": 0, "random_state": 0}
    fits = {
        name: swiftem.GaussianMixture(M, method=name, max_iter=PASSES, **options).fit(X)
        for name in ("em", "sem", "iem", "sem-vr", "fiem")
    }
    best = (
        swiftem.GaussianMixture(M, method="em", max_iter=1000, tol=1e-12, random_state=0).fit(X).lower_bound_
    )
    axes = Figure(figsize=(7.5, 4.4), layout="constrained").subplots()
    plain_axes(axes, x="passes over the data", y="mean log-likelihood below the best", log_y=True)
    for name, mixture in fits.items():
        history, style = mixture.history_, style_of(name)
        axes.plot(history.passes, best + history.objective, style.line, color=style.colour, linewidth=2)
    ends = {name: best + mixture.history_.objective[-1] for name, mixture in fits.items()}
    axes.set(xlim=(0, PASSES), xticks=range(0, PASSES + 1, 5))
    label_ends(axes, ends, {name: style_of(name).label for name in fits})
    axes.set_title(f"{N:,} rows, {M} overlapping components", loc="left", fontweight="bold")
    folder.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(folder / "convergence_by_method.png", dpi=100)
    return folder / "convergence_by_method.png"


if __name__ == "__main__":
    print(main(Path(sys.argv[1] if len(sys.argv) > 1 else "results/gallery")))
