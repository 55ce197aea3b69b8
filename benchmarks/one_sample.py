"""The one-sample lane: the paper's mixture, each method compared with a hand-written loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import numba_mixture_loops as loops
from benchmarks.problems import paper_mixture
from benchmarks.row import Row
from benchmarks.runs import E_STEPS, METHODS, agree, resumed
from benchmarks.timing import interleaved
from paper.experiments.gmm_precision import MODEL, precision_methods

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "One sample per iteration, the paper's mixture"
LEAD = ("method",)
NOTE = """Numba loop: written by hand for this model and method, same draws,
results equal to 1e-9 (checked first). Iterations are after the first pass,
and those of sem-vr between two renewals of its anchor."""
GOAL = 1.3


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    n, iterations = (500, 2_000) if quick else (10_000, 1_000_000)
    model, source, theta = paper_mixture(n)
    methods: dict[str, Any] = dict(precision_methods())
    methods["sem-vr"] = replace(methods["sem-vr"], epoch_length=2 * iterations)
    for name in METHODS:
        ours, start, draws = resumed(model, source, methods[name], theta, iterations)
        theirs = peer(name, methods[name].step_size, source.y, start, draws)
        agree(f"{TITLE}, {name}", ours().theta, theirs())
        value, peer_value = (time / iterations for time in interleaved([ours, theirs], repeats))
        yield Row(
            figure="one-sample", model="paper's mixture", method=name, n=n, d="1", components=2, b=1,
            e_steps=E_STEPS[name], iterations=iterations, repeats=repeats, value=value, unit="ns/iteration",
            peer="Numba loop", peer_value=peer_value, compared="ratio", goal=GOAL,
        )  # fmt: skip


def peer(name: str, step: Any, y: Any, start: Any, draws: tuple[Any, ...]) -> Callable[[], Any]:
    """Return a call of the hand-written loop that continues from ``start`` and returns weights and means."""
    penalty = (MODEL.delta, MODEL.epsilon)

    def halves(flat: Any) -> tuple[Any, Any]:
        m = MODEL.n_components
        return flat[:m].copy(), flat[m:].copy()

    def call() -> Any:
        theta = start.theta.weights.copy(), start.theta.means.ravel().copy()
        s, state = halves(start.s), start.state.method
        if name == "sem":
            steps = step(np.arange(start.n_iter + 1.0, start.n_iter + 1.0 + len(draws[0])))
            loops.sem(y, *draws, steps, *theta, *s, *penalty)
        elif name == "iem":
            loops.iem(y, *draws, *theta, *s, state.memory.copy(), *penalty)
        elif name == "sem-vr":
            anchor = state.anchor.weights, state.anchor.means.ravel()
            loops.sem_vr(y, *draws, step, *anchor, *halves(state.centre), *theta, *s, *penalty)
        else:
            centre = halves(state.centre)
            loops.fiem(y, *draws, step, *theta, *s, *centre, state.memory.copy(), *penalty)
        return theta

    return call
