"""A separate process: some iterations of fiem on little data; prints when they were done.

The clock, :func:`time.monotonic`, is the same for all processes of a machine.
"""

from __future__ import annotations

import sys
from time import monotonic

__all__ = ["ITERATIONS", "SIZES"]

ITERATIONS = 100
"""A lane may do the very first ones without compiled code."""

SIZES = {"mixture": (1_000, "1", 2), "pLSA": (1_000, "10+50", 10)}
"""n, d or D+V, and M or K."""


def main(name: str) -> None:
    import numpy as np

    import swiftem
    from swiftem import methods, models

    n, _, components = SIZES[name]
    i = np.arange(n)
    if name == "pLSA":
        model, data = models.PLSAModel(n_topics=components), (i % 10, i % 50)
    else:
        model, data = models.GaussianMixtureModel(n_components=components), np.sin(i)

    def callback(iterate: swiftem.Iterate) -> None:
        if iterate.k == ITERATIONS:
            print(monotonic())

    swiftem.run(
        model, data, methods.FastIncrementalEM(), n_iter=ITERATIONS, seed=0,
        record_every=ITERATIONS, callback=callback,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1])
