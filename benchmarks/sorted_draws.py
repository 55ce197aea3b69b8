"""The effect of draws by blocks on convergence if rows are sorted: ``python -m benchmarks.sorted_draws``.

Rows of a mixture, sorted by their component, so that neighbours are alike: the worst case. A window is a
share of the rows; its blocks come from everywhere (files with random access) or in their order (streams).
The table has the objective minus that of the best fit, by number of passes, the median of seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any, NamedTuple

import numpy as np

import swiftem
from swiftem import methods, models
from swiftem.data import ArraySource, BlockSource, NpySource

__all__ = ["Found", "measure"]

N, D, M = 200_000, 4, 8
SHARES = (1, 4, 16, 64)
PASSES = (3, 10)
SEEDS = 5
B = 500


class Found(NamedTuple):
    """Median excess of the objective of a method, by kind of draws, after ``PASSES``."""

    method: str
    draws: str
    excess: tuple[float, ...]


def sorted_rows(n: int) -> Any:
    """Return rows (n, d) sorted by component."""
    rng = np.random.default_rng(0)
    means = rng.normal(scale=3.0, size=(M, D))
    return np.concatenate([mean + rng.normal(size=(n // M, D)) for mean in means])


def sources(y: Any) -> Iterator[tuple[str, Any]]:
    """Yield the sources to draw from: all rows, and windows of a share of them."""
    n = len(y)
    yield "any row (in memory)", ArraySource(y)
    for share in SHARES[1:]:
        yield f"blocks, window n/{share}", NpySource(y, window=n // share)
    for share in SHARES:
        blocks = [y[start : start + 1000] for start in range(0, n, 1000)]
        yield (
            f"in order, window n/{share}" if share > 1 else "in order, one window",
            BlockSource(blocks, window=n // share),
        )


def measure(n: int = N, seeds: int = SEEDS, passes: tuple[int, ...] = PASSES) -> Iterator[Found]:
    """Yield the results, method by method."""
    y = sorted_rows(n)
    model = models.GaussianMixtureModel(M, covariance="diag", reg_covar=1e-6)
    in_memory = ArraySource(y)
    bound = model.bind(in_memory)
    starts = [bound.initial_theta(np.random.default_rng(seed)) for seed in range(seeds)]
    # Each start has its own optimum: that of 200 passes of em from it.
    best = [
        swiftem.objective(model, y, swiftem.run(model, y, methods.EM(), n_iter=200, theta0=theta).theta)
        for theta in starts
    ]
    for name, method in (
        ("sem", methods.OnlineEM(step_size=swiftem.schedules.power(1.0, 0.6, 30.0), batch_size=B)),
        ("sem-vr", methods.VarianceReducedEM(step_size=0.05, batch_size=B)),
        ("iem", methods.IncrementalEM(batch_size=B)),
        ("fiem", methods.FastIncrementalEM(step_size=0.05, batch_size=B)),
    ):
        for label, source in sources(y):
            if source.access == "sequential" and name in ("iem", "fiem"):
                continue
            found = []
            for seed, theta in enumerate(starts):
                result = swiftem.run(
                    model, source, method, theta0=theta, seed=seed, n_iter=_iterations(name, n, max(passes)),
                    record_every=max(1, n // B // 20), record=Kept(passes),
                )  # fmt: skip
                values = [swiftem.objective(model, y, theta) for theta in result.path]
                found.append([value - best[seed] for value in values])
            yield Found(name, label, tuple(median(column) for column in zip(*found, strict=True)))


def _iterations(name: str, n: int, passes: int) -> int:
    return 1 + passes * n // (B * (2 if name == "fiem" else 1))


class Kept:
    """Stores θ the first time that this many passes are done."""

    def __init__(self, passes: tuple[int, ...]) -> None:
        self._left = sorted(passes)

    def __call__(self, iterate: Any) -> Any:
        if self._left and iterate.passes >= self._left[0]:
            self._left.pop(0)
            return iterate.theta
        return None


def main() -> None:
    """Print the table."""
    print(
        f"n = {N:,}, d = {D}, M = {M}, b = {B}, diagonal covariances, {SEEDS} seeds, rows sorted by component"
    )
    columns = " | ".join(f"{passes} passes" for passes in PASSES)
    print(f"| method | draws | {columns} |\n|---|---|{'---|' * len(PASSES)}")
    for method, draws, excess in measure():
        print(f"| {method} | {draws} | {' | '.join(f'{value:.1e}' for value in excess)} |", flush=True)


if __name__ == "__main__":
    main()
