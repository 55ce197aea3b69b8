"""Resident memory of fiem on many tokens, in a separate process.

``python -m benchmarks.memory D V`` is that process: it prints the bytes that a run needs beyond its data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.row import Row

__all__ = ["LEAD", "NOTE", "TITLE", "bytes_of", "rows"]

TITLE = "Resident memory of fiem with float32 memory"
LEAD = ("method",)
NOTE = """Peak resident memory of the run, including Numba, minus that after data and swiftem are loaded.
Memory alone: n·K numbers of 4 bytes. Read from /proc, so on Linux only."""
GOAL = 1.2e9
TOPICS, ITERATIONS = 10, 5_000
STATUS = Path("/proc/self/status")


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    from benchmarks.start_up import fresh

    if not STATUS.exists():
        return
    documents, words = (1_000, 100) if quick else (100_000, 1_000)
    n = 100 * documents
    yield Row(
        figure="memory", model="pLSA", method="fiem", n=n, d=f"{documents}+{words}", components=TOPICS, b=1,
        e_steps=2, iterations=ITERATIONS, repeats=1, unit="bytes",
        value=float(fresh("-m", "benchmarks.memory", str(documents), str(words))),
        peer="memory alone", peer_value=4.0 * n * TOPICS, compared="value", goal=GOAL,
    )  # fmt: skip


def above_the_data(documents: int, words: int) -> int:
    """Return the bytes that a run of fiem adds to the resident memory."""
    import swiftem
    from benchmarks.problems import token_source
    from swiftem import methods, models

    source = token_source(documents, words, topics=TOPICS)
    before = bytes_of("VmRSS")
    method = methods.FastIncrementalEM(step_size=10 / source.n, memory_dtype="float32")
    swiftem.run(models.PLSAModel(n_topics=TOPICS), source, method, n_iter=ITERATIONS, seed=0)
    return bytes_of("VmHWM") - before


def bytes_of(field: str) -> int:
    """Return a field of the process's status; ru_maxrss would include its parent's."""
    lines = STATUS.read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(f"{field}:"))
    return 1024 * int(line.split()[1])


if __name__ == "__main__":
    print(above_the_data(int(sys.argv[1]), int(sys.argv[2])))
