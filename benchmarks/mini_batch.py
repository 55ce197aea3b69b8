"""The mini-batch lane: a mixture in many dimensions, compared with the bare matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.problems import wide_mixture
from benchmarks.row import Row
from benchmarks.runs import E_STEPS, METHODS, resumed
from benchmarks.timing import interleaved
from swiftem import methods

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Mini-batches"
LEAD = ("method", "E-steps")
NOTE = """Products and exp: (b, d)·(d, M), exp of (b, M), (M, b)·(b, d), the minimum of one E-step.
The goal is 1.7 for each E-step of a drawn sample: sem-vr and fiem have two."""
GOAL = 1.7
D, M, B = 16, 32, 256


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    n, iterations = (2 * B, 20) if quick else (100 * B, 2_000)
    model, source, theta0 = wide_mixture(n, D, M)
    bare = products_and_exp(iterations)
    kinds = (
        methods.OnlineEM(batch_size=B),
        methods.IncrementalEM(batch_size=B),
        methods.VarianceReducedEM(step_size=0.003, batch_size=B, epoch_length=2 * iterations),
        methods.FastIncrementalEM(step_size=0.003, batch_size=B),
    )
    for name, method in zip(METHODS, kinds, strict=True):
        ours, _, _ = resumed(model, source, method, theta0, iterations)
        ours(), bare()
        value, peer_value = (time / iterations for time in interleaved([ours, bare], repeats))
        yield Row(
            figure="mini-batch", model="wide mixture", method=name, n=n, d=str(D), components=M, b=B,
            e_steps=E_STEPS[name], iterations=iterations, repeats=repeats, value=value, unit="ns/iteration",
            peer="products and exp", peer_value=peer_value, compared="ratio", goal=GOAL * E_STEPS[name],
        )  # fmt: skip


def products_and_exp(iterations: int) -> Callable[[], None]:
    """Return a call that does two matrix products and an exponential, and nothing else."""
    rng = np.random.default_rng(0)
    y, phi, r, s = rng.normal(size=(B, D)), rng.normal(size=(D, M)), np.empty((B, M)), np.empty((M, D))

    def call() -> None:
        for _ in range(iterations):
            np.dot(y, phi, out=r)
            np.exp(r, out=r)
            np.dot(r.T, y, out=s)

    return call
