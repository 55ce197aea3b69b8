"""pLSA token by token: the cost of a token with many documents, compared with few of the same length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.problems import token_source, topic_methods
from benchmarks.row import Row
from benchmarks.runs import E_STEPS, resumed
from benchmarks.timing import Laps, least
from swiftem import models

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "pLSA, a hundred times as many documents of the same length"
LEAD = ("method",)
NOTE = """Each document has 100 tokens. Time between two records of a run, one record included."""
GOALS = {"sem": 2.5, "iem": 2.5, "fiem": 3.5}
WORDS, TOPICS = 300, 10


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    few, many, iterations = (10, 1_000, 1_000) if quick else (1_000, 100_000, 4_000_000)
    model = models.PLSAModel(n_topics=TOPICS)
    sources = [token_source(documents, WORDS, topics=TOPICS) for documents in (many, few)]
    for name, goal in GOALS.items():
        laps = [_lap(model, source, topic_methods(source.n)[name], iterations) for source in sources]
        value, peer_value = (time / iterations for time in least(laps, repeats))
        yield Row(
            figure="plsa-documents", model="pLSA", method=name, n=sources[0].n, d=f"{many}+{WORDS}",
            components=TOPICS, b=1, e_steps=E_STEPS[name], iterations=iterations, repeats=repeats,
            value=value, unit="ns/iteration",
            peer=f"D = {few:,}", peer_value=peer_value, compared="ratio", goal=goal,
        )  # fmt: skip


def _lap(model: Any, source: Any, method: Any, iterations: int) -> Callable[[], float]:
    """Return a measurement of iterations N to 2N − 1 in nanoseconds: earlier ones fill the caches."""
    run, _, _ = resumed(model, source, method, None, 2 * iterations - 1)

    def measure() -> float:
        laps = Laps()
        run(record_every=iterations, record=lambda iterate: None, callback=laps)
        return 1e9 * laps.least()

    return measure
