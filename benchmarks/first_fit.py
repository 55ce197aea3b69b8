"""A process of its own: one fit, of data that a first try has; prints its CPU seconds, import included."""

from __future__ import annotations

import sys
from time import process_time

__all__ = ["FITS"]

FITS: dict[str, tuple[int, str, int, float]] = {
    "mixture, float64": (10_000, "2", 2, 3.0),
    "mixture, float32": (10_000, "2", 2, 3.0),
    "PLSA": (1_000, "2000", 5, 5.0),
}
"""n, d or V, M or K, and the seconds that it may take."""


def main(name: str) -> None:
    import numpy as np

    import swiftem

    rng = np.random.default_rng(0)
    if name == "PLSA":
        from scipy.sparse import random_array

        counts = random_array((1000, 2000), density=0.03, format="csr", rng=rng)
        counts.data[:] = rng.integers(1, 5, size=len(counts.data))
        swiftem.PLSA(5, random_state=0).fit(counts)
    else:
        X = np.concatenate([rng.normal(0, 1, size=(6000, 2)), rng.normal(4, [1, 3], size=(4000, 2))])
        swiftem.GaussianMixture(2, random_state=0).fit(X.astype(name.partition(", ")[2]))
    print(process_time())


if __name__ == "__main__":
    main(sys.argv[1])
