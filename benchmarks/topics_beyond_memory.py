"""Topics of counts in a file that are larger than the memory limit, in a separate process.

``python -m benchmarks.topics_beyond_memory --tokens 1e8 --words 50000 --topics 100 --limit 2GB`` generates
the corpus block by block, fits it in a new process, and prints seconds and memory.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.memory import STATUS, bytes_of
from benchmarks.row import Row

__all__ = ["LEAD", "NOTE", "TITLE", "generate", "rows"]

TITLE = "Topics of a corpus on disk"
LEAD = ("setting",)
NOTE = """A generated corpus of 100 tokens per document in UCI's format; auto, a few passes of em after the
first reading. Peak of resident memory, with pages of mapped files, minus that after the import: memory_limit
is its goal. Topics of documents are in a scratch file. Read from /proc, so on Linux only."""
LENGTH, BLOCK = 100, 20_000
TRUE_TOPICS = 100
PASSES = 9
"""The first reading by sem counts up to six."""


def generate(file: Path, tokens: float, words: int, seed: int = 0) -> int:
    """Write a corpus in UCI's format, with its vocabulary; return the number of documents.

    Topics are Zipf's law with the words in another order; a document has three of them. The head, which has
    the number of entries, is written over at the end.
    """
    rng = np.random.default_rng(seed)
    documents = int(tokens) // LENGTH
    order = np.array([rng.permutation(words) for _ in range(TRUE_TOPICS)], dtype=np.int32)
    law = 1.0 / np.arange(1, words + 1)
    cumulative = np.cumsum(law / law.sum())
    file.with_name(f"vocab.{file.name.split('.')[1]}.txt").write_text(
        "\n".join(f"word{v}" for v in range(words)) + "\n", encoding="utf-8"
    )
    entries = 0
    with open(file, "wb") as out:
        head = b"%-12d\n%-12d\n%-12d\n"
        out.write(head % (documents, words, 0))
        for first in range(0, documents, BLOCK):
            count = min(BLOCK, documents - first)
            three = rng.integers(TRUE_TOPICS, size=(count, 3))
            topic = np.take_along_axis(three, rng.integers(3, size=(count, LENGTH)), axis=1)
            place = np.searchsorted(cumulative, rng.random((count, LENGTH))).clip(max=words - 1)
            keys = np.arange(count)[:, None] * words + order[topic, place]
            found, n = np.unique(keys, return_counts=True)
            table = np.column_stack([first + found // words + 1, found % words + 1, n])
            out.write(b"\n".join(b"%d %d %d" % tuple(row) for row in table.tolist()) + b"\n")
            entries += len(found)
        out.seek(0)
        out.write(head % (documents, words, entries))
    return documents


def fit(file: Path, topics: int, limit: str, scratch: str | None) -> dict[str, Any]:
    """Fit the file, and return seconds and bytes: of a new process, please."""
    import swiftem.topics.compute.passes_kernels

    before, resident, peaks = bytes_of("RssAnon"), bytes_of("VmRSS"), [0]

    class Watch:
        """Looks at the memory after every pass: a callback of scikit-learn."""

        def setup(self, estimator: Any, context: Any) -> None:
            pass

        teardown = on_fit_task_begin = setup

        def on_fit_task_end(self, estimator: Any, context: Any) -> None:
            peaks.append(bytes_of("RssAnon") - before)

    model = swiftem.PLSA(topics, max_iter=PASSES, random_state=0)
    began, cpu = perf_counter(), process_time()
    limits = swiftem.config_context(memory_limit=limit, scratch=scratch)
    with warnings.catch_warnings(), Sampler(before, peaks), limits:
        warnings.simplefilter("ignore")
        model.set_callbacks(Watch()).fit(file)
    return {
        "seconds": perf_counter() - began, "cpu_seconds": process_time() - cpu, "anonymous": max(peaks),
        "resident": bytes_of("VmHWM") - resident, "peak": bytes_of("VmHWM"),
        "passes": model.n_iter_, "log_likelihood": model.log_likelihood_,
        "per_pass": float(np.diff([moment.seconds for moment in model.history_]).min()),
    }  # fmt: skip


class Sampler:
    """Samples the anonymous memory while a block runs."""

    def __init__(self, before: int, peaks: list[int]) -> None:
        from threading import Event, Thread

        self._over, self._before, self._peaks = Event(), before, peaks
        self._thread = Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._over.wait(0.05):
            self._peaks.append(bytes_of("RssAnon") - self._before)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    from benchmarks.start_up import fresh
    from swiftem.core.problem import read_memory_limit

    if not STATUS.exists():
        return
    tokens, words, topics, limit = (2e4, 500, 5, "200MB") if quick else (1e7, 50_000, 100, "2GB")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "docword.generated.txt"
        documents = generate(file, tokens, words)
        found = json.loads(fresh("-m", "benchmarks.topics_beyond_memory", "--file", str(file), "--topics",
                                 str(topics), "--limit", limit))  # fmt: skip
    common: dict[str, Any] = {
        "figure": "topics-memory", "model": "PLSA", "method": "auto", "n": int(tokens),
        "d": f"{documents}+{words}", "components": topics, "b": 0, "threads": 2, "repeats": 1,
        "compared": "value", "iterations": int(found["passes"]),
    }  # fmt: skip
    yield Row(**common, setting="seconds per pass of em", value=found["per_pass"], unit="s")
    goal = float(read_memory_limit(limit) or 0)
    yield Row(**common, setting="memory", value=float(found["resident"]), unit="bytes", goal=goal)


def main() -> None:
    """Generate a corpus and fit it, or fit a file."""
    parser = ArgumentParser()
    parser.add_argument("--file", type=Path, help="fit this file instead of a generated corpus")
    parser.add_argument("--tokens", type=float, default=1e8)
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--scratch", help="folder for the corpus and for topics of documents")
    given = parser.parse_args()
    if given.file is not None:
        print(json.dumps(fit(given.file, given.topics, given.limit, given.scratch)))
        return
    from benchmarks.start_up import fresh

    with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
        file = Path(folder) / "docword.generated.txt"
        began = perf_counter()
        documents = generate(file, given.tokens, given.words)
        print(f"{documents:,} documents, {file.stat().st_size / 1e6:,.0f} MB, "
              f"generated in {perf_counter() - began:.0f} s", flush=True)  # fmt: skip
        more = ["--scratch", given.scratch] if given.scratch else []
        print(fresh("-m", "benchmarks.topics_beyond_memory", "--file", str(file), "--topics",
                    str(given.topics), "--limit", given.limit, *more))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
