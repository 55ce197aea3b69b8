"""A corpus of counts that is larger than the memory limit: read in blocks, and shown by a sample of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.cli.out_file import write_table_blocks
from swiftem.core.files import in_words
from swiftem.core.problem import read_memory_limit
from swiftem.data.documents.corpus import USED_BY, check_for_format, open_documents, recognise
from swiftem.data.documents.counts import CorpusCounts, DocumentSource, SpooledDocuments
from swiftem.topics.compute.corpus import BLOCK

SAMPLE = 5_000
"""At least half as many documents are shown, if there are so many."""
LOADED, UNPACKED = 4, 5
"""Bytes in memory per byte of a file while it is loaded, and bytes of a file per byte compressed."""
NAMES = {"uci": "document {}", "lda-c": "line {}"}
"""How documents are named, by their numbers from 1, in the formats that are read in blocks."""


@dataclass(frozen=True)
class CorpusInBlocks:
    """A corpus on disk.

    Attributes
    ----------
    source : DocumentSource
        The documents.
    sample : CorpusCounts
        Some of those with words, at equal distances.
    n_documents : int
        Documents that have words.
    n_tokens : float
        Sum of all counts.
    """

    source: DocumentSource
    sample: CorpusCounts
    n_documents: int
    n_tokens: float

    def write_documents(self, file: Path, model: Any) -> None:
        """Write the table of documents: name, number of words, and a share for each topic."""
        write_table_blocks(file, self._tables(model))

    def _tables(self, model: Any) -> Iterator[dict[str, NDArray[Any]]]:
        for first, counts in self.source.blocks(BLOCK):
            lengths = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
            there = np.flatnonzero(lengths)
            shares = model.transform(counts[there])
            names = [_name(self.sample.format, first + row) for row in there.tolist()]
            columns = {f"topic_{k}": np.ascontiguousarray(column) for k, column in enumerate(shares.T)}
            yield {"document": np.array(names, dtype=object), "words": lengths[there], **columns}


def _name(format: str, number: int) -> str:
    return NAMES[format].format(number + 1)


def corpus_in_blocks(path: Path, memory_limit: str, reading: Mapping[str, Any]) -> CorpusInBlocks | None:
    """Return a corpus that is too large to be loaded, or None if it can be loaded.

    Its text is parsed once: the numbers are then in a temporary file, unless the disk is full. ``reading``
    are arguments of :func:`swiftem.data.read_corpus`, of which counts use only the vocabulary.

    Raises
    ------
    ValueError
        If it is too large, and its format has to be loaded.
    """
    limit = read_memory_limit(memory_limit)
    assert limit is not None
    parts = [path] if path.is_file() else list(path.rglob("*"))
    size = LOADED * sum(
        file.stat().st_size * (UNPACKED if file.suffix == ".gz" else 1) for file in parts if file.is_file()
    )
    if size <= limit:
        return None
    kind = recognise(path)
    check_for_format(path, kind, **{name: reading.get(name) for name in USED_BY})
    if kind not in NAMES:
        raise ValueError(
            f"memory_limit must be at least {in_words(size)} for {path}, got {memory_limit}: only counts "
            "in the formats uci and lda-c are read in blocks."
        )
    opened: Any = open_documents(path, reading.get("vocabulary"), kind)
    source = SpooledDocuments(opened, BLOCK, None)
    stride, kept, numbers, n_documents, n_tokens = 1, [], [], 0, 0.0
    for first, counts in source.blocks(BLOCK):
        lengths = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        n_tokens += float(lengths.sum())
        for row in np.flatnonzero(lengths).tolist():
            if n_documents % stride == 0:
                kept.append(counts[[row]])
                numbers.append(first + row)
            n_documents += 1
        if len(kept) > SAMPLE:
            kept, numbers, stride = kept[::2], numbers[::2], 2 * stride
    if not kept:
        raise ValueError(f"{path} must have at least one document with a word in it, got none.")
    from scipy.sparse import csr_array, vstack

    note = (
        f"The counts are read in blocks: coherence, perplexity and typical documents are those of "
        f"{len(kept):,} of the {n_documents:,} documents."
    )
    sample = CorpusCounts(
        csr_array(vstack(kept, format="csr")),
        opened.words,
        tuple(_name(kind, number) for number in numbers),
        None,
        kind,
        (note,),
    )
    return CorpusInBlocks(source, sample, n_documents, n_tokens)
