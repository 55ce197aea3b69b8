"""Data sets on which fits are compared by where they end.

Half of them is for choosing constants (``CHOOSING``), the other half for reporting (``REPORTING``): no
constant of the library is chosen on data that report it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHOOSING", "REPORTING", "Split", "load"]

TRAIN = 0.8
"""Share of the rows that are fitted; the others are held out."""
Rows = NDArray[np.float64]


class Split(NamedTuple):
    """Rows of a data set, standardised by those that are fitted."""

    train: Rows
    held_out: Rows


def load(name: str, most: int | None = None) -> Split | None:
    """Return a data set by name, or None if it is not on this machine.

    Columns that are constant are dropped, integer tables get uniform noise of one unit, and ``most`` rows are
    kept at most.
    """
    X = LOADERS[name]()
    if X is None:
        return None
    rng = np.random.default_rng(0)
    X = X[rng.permutation(len(X))[:most]]
    X = X[:, X.std(axis=0) > 0]
    rows = X.astype(np.float64)
    if (rows == np.round(rows)).all():
        rows += rng.uniform(-0.5, 0.5, size=rows.shape)
    train, held_out = np.split(rows, [int(TRAIN * len(rows))])
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    return Split((train - mean) / deviation, (held_out - mean) / deviation)


def _table(name: str) -> Callable[[], Rows | None]:
    def read() -> Rows | None:
        for folder in Path(__file__).resolve().parents:
            file = folder / "shared" / "data" / "tables" / f"{name}.npy"
            if file.exists():
                return np.asarray(np.load(file))
        return None

    return read


def _pixels(name: str) -> Callable[[], Rows | None]:
    def read() -> Rows | None:
        try:
            from sklearn.datasets import load_sample_image

            return np.asarray(load_sample_image(f"{name}.jpg").reshape(-1, 3))
        except ImportError:  # it needs Pillow
            return None

    return read


def _built_in(name: str) -> Callable[[], Rows | None]:
    def read() -> Rows | None:
        from sklearn import datasets

        return np.asarray(getattr(datasets, f"load_{name}")().data)

    return read


def _generated(seed: int, n: int, d: int, components: int, overlap: float) -> Callable[[], Rows | None]:
    return lambda: generated(seed, n, d, components, overlap)


def generated(seed: int, n: int, d: int, components: int, overlap: float) -> Rows:
    """Return rows of a mixture of which a share ``overlap`` is likelier in another component than its own.

    Weights are unequal (a Dirichlet draw), covariances random; the means are moved apart until the overlap is
    as wanted.
    """
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(components, 2.0))
    directions = rng.normal(size=(components, d))
    shapes = 0.3 * np.eye(d) + rng.normal(size=(components, d, d)) / np.sqrt(d)
    labels, noise = rng.choice(components, n, p=weights), rng.normal(size=(n, d))
    spread = np.einsum("nij,nj->ni", shapes[labels], noise)
    some = slice(0, 4000)

    def rows(scale: float) -> Rows:
        return np.asarray(scale * directions[labels] + spread)

    def wrong(scale: float) -> float:
        y = rows(scale)[some]
        logits = [
            np.log(weights[m]) + multivariate_normal(scale * directions[m], shapes[m] @ shapes[m].T).logpdf(y)
            for m in range(components)
        ]
        return float((np.argmax(logits, axis=0) != labels[some]).mean())

    low, high = 0.0, 64.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if wrong(middle) > overlap else (low, middle)
    return rows(high)


CHOOSING = (
    "magic", "satellite", "digits", "overlap-0.01a", "overlap-0.1a", "overlap-0.3a",
)  # fmt: skip
REPORTING = (
    "letter", "shuttle", "china", "flower", "wine", "breast cancer", "overlap-0.01b", "overlap-0.1b",
    "overlap-0.3b",
)  # fmt: skip
LOADERS: dict[str, Callable[[], Rows | None]] = {
    **{name: _table(name) for name in ("letter", "magic", "satellite", "shuttle")},
    **{name: _pixels(name) for name in ("china", "flower")},
    "digits": _built_in("digits"),
    "wine": _built_in("wine"),
    "breast cancer": _built_in("breast_cancer"),
    "overlap-0.01a": _generated(1, 20_000, 4, 10, 0.01),
    "overlap-0.1a": _generated(2, 60_000, 6, 10, 0.1),
    "overlap-0.3a": _generated(3, 20_000, 3, 8, 0.3),
    "overlap-0.01b": _generated(11, 60_000, 3, 12, 0.01),
    "overlap-0.1b": _generated(12, 20_000, 5, 15, 0.1),
    "overlap-0.3b": _generated(13, 150_000, 4, 8, 0.3),
}
