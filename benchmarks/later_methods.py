"""Iterations of SPIDER-EM and opt-FIEM, compared with those of sem-vr and fiem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.problems import paper_mixture, token_source, wide_mixture
from benchmarks.row import Row
from benchmarks.runs import resumed
from benchmarks.timing import interleaved
from swiftem import methods, models

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Iterations of later methods"
LEAD = ("model", "method")
NOTE = """Compiled, one thread, after the first pass and between two renewals; the same draws. An iteration of
either method of a pair evaluates as many E-steps as one of the other."""
GAMMA = 1e-5
"""So small that SPIDER-EM stays close to its last full pass, as it does between renewals."""
PAIRS = (
    (methods.SpiderEM, methods.VarianceReducedEM, 1.1),
    (methods.OptFIEM, methods.FastIncrementalEM, 1.3),
)


def problems(quick: bool) -> Iterator[tuple[str, tuple[Any, Any, Any], int, int, int, int]]:
    """Yield a name, model, source and θ, M, b, iterations, and d."""
    few = 100 if quick else 1
    yield "paper's mixture", paper_mixture(10_000 // few), 2, 1, 500_000 // few, 1
    yield "wide mixture", wide_mixture(25_600 // few), 32, 256, 2_000 // few, 16
    _, source, _ = wide_mixture(20_000 // few, d=8, m=8)
    full = models.GaussianMixtureModel(8, covariance="full")
    yield "full covariances", (full, source, None), 8, 64, 2_000 // few, 8
    tokens = token_source(100, 200 if quick else 5_000)
    yield "pLSA tokens", (models.PLSAModel(10), tokens, None), 10, 1, 200_000 // few, 5_100
    yield "pLSA tokens, batches", (models.PLSAModel(10), tokens, None), 10, 100, 2_000 // few, 5_100


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    for name, (model, source, theta), m, b, iterations, d in problems(quick):
        for kind, peer, goal in PAIRS:
            calls = []
            for each in (kind, peer):
                given: dict[str, Any] = {"step_size": GAMMA, "batch_size": b}
                if each in PAIRS[0]:
                    given["epoch_length"] = 2 * iterations
                calls.append(resumed(model, source, each(**given), theta, iterations)[0])
                calls[-1]()
            value, peer_value = (time / iterations for time in interleaved(calls, repeats))
            yield Row(
                figure="later-methods", model=name, method=kind.name, n=source.n, d=str(d), components=m,
                b=b, e_steps=2, iterations=iterations, repeats=repeats, value=value, unit="ns/iteration",
                peer=peer.name, peer_value=peer_value, compared="ratio", goal=goal,
            )  # fmt: skip
