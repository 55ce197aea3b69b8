"""What a watched child does with a damaged file: every reader, whole and in blocks."""

from __future__ import annotations

import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv  # noqa: F401  # before memory is limited
import sklearn.feature_extraction.text  # noqa: F401
from faults.file_mutants import WORDS, mutant
from faults.watched import innermost

from swiftem.data import (
    open_documents,
    open_source,
    read_corpus,
    read_documents,
    read_table,
    read_vocabulary,
)  # fmt: skip

ROWS, BLOCKS = 4096, 3000
"""Asked for at a time, and most blocks: more than any of the small files may have."""


class UnsoundError(Exception):
    """A reader took a file and returned what cannot be."""


def sound_counts(counts: Any, words: int) -> None:
    """Refuse counts that are no CSR array of sorted, positive, finite entries."""
    begin, word = counts.indptr, counts.indices
    ordered = begin[0] == 0 and (np.diff(begin) >= 0).all() and begin[-1] == len(word) == len(counts.data)
    inside = not len(word) or (word.min() >= 0 and word.max() < words == counts.shape[1])
    if not (ordered and inside and (counts.data > 0).all() and np.isfinite(counts.data).all()):
        raise UnsoundError("counts that are not sound")


def corpus(path: Path, **options: Any) -> float:
    found = read_corpus(path, **options)
    sound_counts(found.counts, found.counts.shape[1])
    if len(found.names) != found.counts.shape[0] or not np.diff(found.counts.indptr).all():
        raise UnsoundError("names that do not fit the counts")
    return float(found.counts.sum())


def documents(path: Path, vocabulary: Any = None) -> float:
    source = open_documents(path, vocabulary)
    total, seen = 0.0, 0
    for first, block in source.blocks(ROWS):
        sound_counts(block, source.n_words)
        if first != seen:
            raise UnsoundError("blocks that are not one after the other")
        seen, total = seen + block.shape[0], total + float(block.sum())
    if seen != source.n_documents:
        raise UnsoundError("another number of documents")
    return total


def table(path: Path) -> float:
    found = read_table(path)
    if found.values.ndim != 2 or not found.values.size or not np.isfinite(found.values).all():
        raise UnsoundError("values that are not finite")
    return float(len(found.values))


def source(path: Path) -> float:
    found = open_source(path)
    seen = 0
    for chunk in found.chunks(ROWS):
        if not np.isfinite(chunk.y).all():
            raise UnsoundError("values that are not finite")
        seen += len(chunk.y)
    for _ in islice(found.blocks(ROWS), BLOCKS):
        pass
    if found.access == "random":
        found.take(np.array([0, found.n - 1]))
    if seen != found.n:
        raise UnsoundError("another number of rows")
    return float(seen)


Reader = tuple[str, Callable[[], float | None]]


def readers(kind: str, path: Path, beside: Path) -> Iterator[Reader]:
    """Yield the readers of a kind, by name."""
    if kind in ("uci", "lda-c", "matrixmarket", "npz", "folder"):
        yield "read_corpus", lambda: corpus(path)
    if kind in ("uci", "lda-c", "matrixmarket", "npz"):
        yield "open_documents", lambda: documents(path)
    if kind in ("npy", "parquet", "csv"):
        yield "read_table", lambda: table(path)
        yield "open_source", lambda: source(path)
    if kind in ("parquet", "csv"):
        yield "read_corpus", lambda: corpus(path, text_column=None)
        yield "read_corpus, a column", lambda: corpus(path, text_column="text")
    if kind == "text":
        yield "read_corpus", lambda: corpus(path)
        yield "read_corpus, known", lambda: corpus(path, format="text", known_words=WORDS)
        yield "open_documents", lambda: documents(path, beside)
        yield "read_documents", lambda: float(len(read_documents(path)))
        yield "read_vocabulary", lambda: float(len(read_vocabulary(path)))


ALLOWED = (ValueError, TypeError, OSError)


def complaint(error: Exception, names: set[str]) -> str:
    """Return what is wrong with a refusal, or nothing."""
    sentence = str(error)
    if not isinstance(error, ALLOWED) or isinstance(error, UnicodeError):
        return "not a refusal"
    if "\n" in sentence or not sentence.endswith((".", "?")):
        return "not one sentence"
    return "" if any(name in sentence for name in names) else "does not name the file"


def read_mutant(case: tuple[str, int]) -> dict[str, Any]:
    """Read a mutant with every reader of its kind; return findings, and how many took it or refused it."""
    kind, seed = case
    folder = Path(tempfile.mkdtemp(prefix="swiftem-fuzz-"))
    findings, taken, refused = [], 0, 0
    try:
        files = mutant(kind, seed)
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        first = folder / next(iter(files)).partition("/")[0]
        names = {Path(name).name for name in files} | {first.name}
        totals = {}
        for reader, call in readers(kind, first, folder / "words.txt"):
            try:
                totals[reader] = call()
                taken += 1
            except Exception as error:
                wrong = complaint(error, names)
                refused += not wrong
                if wrong:
                    where = innermost("".join(traceback.format_exception(error)))
                    findings.append([reader, type(error).__name__, where, wrong, str(error)[:300]])
        pair = [
            totals[name] for name in ("read_corpus", "open_documents") if name in totals and kind != "text"
        ]
        pair = pair or [totals[name] for name in ("read_table", "open_source") if name in totals]
        if len(pair) == 2 and not np.isclose(pair[0], pair[1], rtol=1e-12):
            findings.append(["both", "differ", "", "another result in blocks", f"{pair}"])
    finally:
        with suppress(OSError):
            shutil.rmtree(folder)
    return {"findings": findings, "taken": taken, "refused": refused}
