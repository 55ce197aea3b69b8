"""pLSA token by token: each method compared with a hand-written loop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks import numba_plsa_loops as loops
from benchmarks.problems import token_source, topic_methods
from benchmarks.row import Row
from benchmarks.runs import E_STEPS, METHODS, agree, resumed
from benchmarks.timing import interleaved
from swiftem import models

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "pLSA, one token per iteration"
LEAD = ("method",)
NOTE = """Numba loop: written by hand in O(K) for this method, same draws,
results equal to 1e-9 (checked first). Iterations are after the first pass,
and those of sem-vr between two renewals of its anchor."""
GOAL = 1.3
WORDS, TOPICS = 300, 10


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    documents, iterations = (20, 1_000) if quick else (1_000, 300_000)
    source = token_source(documents, WORDS, topics=TOPICS)
    document, word = np.ascontiguousarray(source.y.T)
    model = models.PLSAModel(n_topics=TOPICS)
    methods = topic_methods(source.n, epoch_length=2 * iterations)
    for name in METHODS:
        ours, start, draws = resumed(model, source, methods[name], None, iterations)
        step = (methods[name].step_size,) if name in ("sem-vr", "fiem") else ()
        theirs = partial(loops.LOOPS[name], document, word, model, WORDS, start, *draws, *step)
        agree(f"{TITLE}, {name}", ours().theta, theirs())
        value, peer_value = (time / iterations for time in interleaved([ours, theirs], repeats))
        yield Row(
            figure="plsa", model="pLSA", method=name, n=source.n, d=f"{documents}+{WORDS}", components=TOPICS,
            b=1, e_steps=E_STEPS[name], iterations=iterations, repeats=repeats, value=value,
            unit="ns/iteration", peer="Numba loop, O(K)", peer_value=peer_value, compared="ratio", goal=GOAL,
        )  # fmt: skip
