"""Runs of swiftem that can be timed repeatedly, and the check that a peer computes the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import swiftem

__all__ = ["E_STEPS", "METHODS", "agree", "resumed"]

METHODS = ("sem", "iem", "sem-vr", "fiem")
E_STEPS = {"em": 1, "sem": 1, "iem": 1, "sem-vr": 2, "fiem": 2}
"""Evaluations per iteration for each drawn sample."""


def resumed(
    model: Any, source: Any, method: Any, theta0: Any, iterations: int
) -> tuple[Callable[..., Any], Any, tuple[Any, ...]]:
    """Return a call that continues after iteration 0, the result it continues from, and its draws.

    The first pass, and sem-vr's if an epoch is longer than this, are therefore not part of the call.
    """
    rng = np.random.default_rng(1)
    shape = (iterations + 1, method.batch_size) if method.batch_size > 1 else (iterations + 1,)
    streams = [rng.integers(source.n, size=shape) for _ in range(method.index_streams)]

    def given(part: slice) -> Any:
        cut = [stream[part] for stream in streams]
        return cut[0] if len(cut) == 1 else cut

    start = swiftem.run(model, source, method, theta0=theta0, n_iter=1, draws=given(slice(1)), seed=0)
    call = partial(
        swiftem.run, model, source, method,
        theta0=start.theta, s0=start.s, state=start.state, n_iter=iterations, draws=given(slice(1, None)),
    )  # fmt: skip
    return call, start, tuple(stream[1:] for stream in streams)


def agree(name: str, ours: Any, theirs: Any, tolerance: float = 1e-9) -> None:
    """Raise AssertionError if a peer computes something else."""
    for one, other in zip(ours, theirs, strict=False):
        difference = np.abs(one - np.reshape(other, one.shape)) / np.maximum(np.abs(one), 1e-3)
        assert difference.max() <= tolerance, f"{name}: peers differ by {difference.max():.1e}"
