"""A process of its own: one fit, of data that a first try has; prints its CPU seconds, import included.

:func:`small_fit` compares fits of small data, which use NumPy and compile nothing, with the compiled path.
"""

from __future__ import annotations

import sys
from time import process_time
from typing import Any
from unittest.mock import patch

__all__ = ["FITS", "SMALL_FITS", "small_fit"]

FITS: dict[str, tuple[int, str, int, float]] = {
    "mixture, float64": (10_000, "2", 2, 3.0),
    "mixture, float32": (10_000, "2", 2, 3.0),
    "PLSA": (1_000, "2000", 5, 5.0),
}
"""n, d or V, M or K, and the seconds that it may take."""
SMALL_FITS = ((5_001, 1, 8), (5_001, 2, 4), (5_001, 2, 8), (5_001, 4, 2), (10_000, 2, 4), (40_000, 1, 2))
"""n, d and M of fits on few rows, up to the largest that use NumPy."""


def small_fit(n: int, d: int, n_components: int, repeats: int) -> tuple[float, float]:
    """Return the least CPU seconds of default fits by NumPy and by compiled kernels, which are warm."""
    import numpy as np

    import swiftem
    from swiftem.mixture import estimator

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_components, d))[rng.integers(n_components, size=n)] + rng.normal(size=(n, d))
    chosen: dict[str, Any] = {"numpy": estimator.kernels_for, "compiled": lambda n, size: "auto"}
    seconds: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(repeats + 1):
        for name, rule in chosen.items():
            with patch.object(estimator, "kernels_for", rule):
                began = process_time()
                swiftem.GaussianMixture(n_components, random_state=0).fit(X)
                seconds[name].append(process_time() - began)
    return min(seconds["numpy"][1:]), min(seconds["compiled"][1:])


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
