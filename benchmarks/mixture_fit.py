"""A whole fit of a mixture to scikit-learn's final log-likelihood, and the memory of a fit.

``python -m benchmarks.mixture_fit METHOD N D M`` prints the bytes that a fit needs beyond its data.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.row import Row

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Fit of a full mixture to scikit-learn's final log-likelihood, and memory above the data"
LEAD = ("model", "method")
NOTE = """Median over the seeds of the time until the log-likelihood of all rows reaches the final one of
scikit-learn's fit; both start from the same parameters. A fit that never reaches it counts as infinite.
Memory: peak resident memory of a fit, including Numba, minus that after data and swiftem are loaded;
iem and fiem also have n·M numbers of 4 bytes, which their goal adds."""
SEEDS, N, D, M = 5, 500_000, 8, 16
MEMORY_N, MEMORY_D, MEMORY_M = 1_000_000, 16, 64
MEMORY_GOAL = 200e6


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    n = 20_000 if quick else N
    seconds: dict[str, list[float]] = {}
    for seed in range(1 if quick else SEEDS):
        for name, value in times(n, seed).items():
            seconds.setdefault(name, []).append(value)
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    for method, peer, goal in (
        ("auto", "scikit-learn", 10.0), ("em", "scikit-learn", None),
        ("sem-vr", "em", 1.5), ("fiem", "em", 1.5),
    ):  # fmt: skip
        yield Row(
            figure="mixture-fit", model="full, to the same", method=method, n=n, d=str(D), components=M, b=0,
            iterations=1, repeats=len(seconds["em"]), value=median[method], unit="s", peer=peer,
            peer_value=median[peer], compared="speed-up", goal=goal,
        )  # fmt: skip
    from benchmarks.memory import STATUS
    from benchmarks.start_up import fresh

    if quick or not STATUS.exists():
        return
    for method in ("em", "sem-vr", "iem", "fiem"):
        words = map(str, (method, MEMORY_N, MEMORY_D, MEMORY_M))
        kept = 4.0 * MEMORY_N * MEMORY_M if method in ("iem", "fiem") else 0.0
        yield Row(
            figure="mixture-fit", model="memory", method=method, n=MEMORY_N, d=str(MEMORY_D),
            components=MEMORY_M, b=0, iterations=1, repeats=1, unit="bytes",
            value=float(fresh("-m", "benchmarks.mixture_fit", *words)), peer="memory alone",
            peer_value=kept or None, compared="value", goal=MEMORY_GOAL + kept,
        )  # fmt: skip


def overlapping(
    n: int, seed: int, d: int = D, components: int = M, spread: float = 0.7
) -> NDArray[np.float64]:
    """Return rows of a mixture whose components overlap: the distances of their means equal their widths."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(components, n, p=rng.dirichlet(np.full(components, 5.0)))
    means = spread * rng.normal(size=(components, d))
    shapes = 0.4 * np.eye(d) + 0.8 * rng.normal(size=(components, d, d)) / np.sqrt(d)
    y = rng.normal(size=(n, d))
    for m in range(components):
        here = labels == m
        y[here] = means[m] + y[here] @ shapes[m].T
    return y


class Stops:
    """Stores the parameters and the time after each pass: a callback of scikit-learn."""

    def __init__(self) -> None:
        self.found: list[tuple[float, Any]] = []
        self._began = self._away = 0.0

    def setup(self, estimator: Any, context: Any) -> None:
        self._began = perf_counter()

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        if context.task_name == "pass":
            now = perf_counter()
            self.found.append((now - self._began - self._away, fitted_estimator))
            self._away += perf_counter() - now
        return False


METHODS = ("auto", "em", "sem-vr", "fiem")


def times(n: int, seed: int, methods: Sequence[str] = METHODS) -> dict[str, float]:
    """Return the seconds of scikit-learn's fit, and of ours until it is as good."""
    from sklearn import mixture

    import swiftem

    y = overlapping(n, seed)
    rng = np.random.default_rng(seed)
    precision = np.linalg.inv(np.cov(y.T))
    start = {
        "weights_init": np.full(M, 1 / M),
        "means_init": y[rng.choice(n, M, replace=False)],
        "precisions_init": np.array([precision] * M),
        "random_state": seed,
        "max_iter": 200,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Compiled before anything is timed.
        for method in methods:
            some = swiftem.GaussianMixture(M, method=method, **start).set_params(max_iter=6)
            some.fit(y[: 100 * M * 60])
        began = perf_counter()
        peer = mixture.GaussianMixture(M, **start).fit(y)
        found = {"scikit-learn": perf_counter() - began}
        target = peer.lower_bound_
        for method in methods:
            stops = Stops()
            ours = swiftem.GaussianMixture(M, method=method, **start).set_callbacks(stops)
            ours.fit(y)
            # The same sums in another order differ by rounding.
            good = (at for at, fitted in stops.found if fitted.score(y) >= target - 1e-9 * abs(target))
            found[method] = next(good, inf)
    return found


def above_the_data(method: str, n: int, d: int, components: int) -> int:
    """Return the bytes that a fit adds to the resident memory."""
    import swiftem
    from benchmarks.memory import _bytes

    y = np.random.default_rng(0).normal(size=(n, d))
    means = y[:components].copy()
    estimator = swiftem.GaussianMixture(
        components, method=method, max_iter=5, means_init=means,
        weights_init=np.full(components, 1 / components),
        precisions_init=np.array([np.eye(d)] * components),
    )  # fmt: skip
    before = _bytes("VmRSS")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(y)
    return _bytes("VmHWM") - before


if __name__ == "__main__":
    print(above_the_data(sys.argv[1], *map(int, sys.argv[2:])))
