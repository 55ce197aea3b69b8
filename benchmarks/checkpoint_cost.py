"""The cost of checkpoints: runs that write one every pass, compared with the same runs without.

``python -m benchmarks --only checkpoints`` prints the ratios of whole runs: start, passes, end.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import swiftem
from benchmarks.problems import wide_mixture
from benchmarks.row import Row
from benchmarks.timing import interleaved, threads
from swiftem import methods, models

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "A checkpoint every pass"
LEAD = ("model", "method")
NOTE = """Ratio of whole runs, with and without: fingerprint of the data and checkpoints. iem and fiem have a
memory of float64, n·M numbers, which is hashed and written. A run waits until a checkpoint is on disk."""
PASSES, REPEATS, THREADS = 10, 3, 2
MOST = {"em": 1.05, "sem": 1.05, "sem-vr": 1.05, "iem": 1.15, "fiem": 1.15}
"""The goals."""


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    n, passes = (20_000, 2) if quick else (1_000_000, PASSES)
    unit, source, _ = wide_mixture(n)
    full = models.GaussianMixtureModel(unit.n_components, covariance="full")
    with threads(THREADS):
        for name, model in (("wide mixture", unit), ("full", full)):
            for method in _methods():
                yield _cost(name, model, source, method, passes, min(repeats, REPEATS))


def _methods() -> tuple[methods.Method, ...]:
    step = {"step_size": 0.01, "batch_size": 1024}
    return (
        methods.EM(),
        methods.OnlineEM(batch_size=1024),
        methods.VarianceReducedEM(**step),
        methods.IncrementalEM(batch_size=1024),
        methods.FastIncrementalEM(**step),
    )


def _cost(name: str, model: Any, source: Any, method: methods.Method, passes: int, repeats: int) -> Row:
    epoch = method.epoch(source.n)

    def plain(**options: Any) -> None:
        swiftem.run(model, source, method, n_iter=passes * epoch, seed=0, **options)

    def kept() -> None:
        folder = Path(tempfile.mkdtemp(prefix="swiftem-"))
        try:
            plain(checkpoint=folder, checkpoint_every=epoch)
        finally:
            shutil.rmtree(folder)

    swiftem.run(model, source, method, n_iter=1, seed=0)  # compiles
    value, peer_value = (least / 1e9 for least in interleaved([kept, plain], repeats))
    return Row(
        figure="checkpoints", model=name, method=method.name, n=source.n, d=str(source.y.shape[1]),
        components=model.n_components, b=method.batch_size if method.index_streams else source.n,
        threads=THREADS, iterations=passes * epoch, repeats=repeats, value=value, unit="s",
        setting=f"{passes} passes", peer="no checkpoints", peer_value=peer_value, compared="ratio",
        goal=MOST[method.name],
    )  # fmt: skip
