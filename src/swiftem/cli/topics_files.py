"""Files of ``swiftem topics``: the corpus, also in blocks, tables of topics, documents and groups, the page.

A corpus of counts that is larger than the memory limit is read in blocks, and shown by a sample of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.cli.out_file import write_table, write_table_blocks
from swiftem.core.describe import environment
from swiftem.core.files import in_words, replacing, write_atomically
from swiftem.core.problem import read_memory_limit
from swiftem.core.types import Array
from swiftem.data.documents.corpus import USED_BY, check_for_format, open_documents, read_corpus, recognise
from swiftem.data.documents.counts import CorpusCounts, DocumentSource, SpooledDocuments
from swiftem.fit.selection import Selection
from swiftem.kernels.threads import get_threads
from swiftem.show.numbers import mean_text
from swiftem.topics.compute.corpus import BLOCK
from swiftem.topics.explorer.content import explorer_content, summarise_topics
from swiftem.topics.explorer.groups import DocumentGroups, group_documents, tokens_by_group
from swiftem.topics.explorer.page import topics_page
from swiftem.topics.plsa import PLSA
from swiftem.topics.select import NumberOfTopics

SAMPLE = 5_000
"""At least half as many documents are shown, if there are so many."""
LOADED, UNPACKED = 4, 5
"""Bytes in memory per byte of a file while it is loaded, and bytes of a file per byte compressed."""
NAMES = {"uci": "document {}", "lda-c": "line {}"}
"""How documents are named, by their numbers from 1, in the formats that are read in blocks."""


class Corpus(NamedTuple):
    """A corpus in a file or folder.

    Attributes
    ----------
    path : Path
        The file or folder.
    read : CorpusCounts
        The documents, or some of those with words, at equal distances, if they are read in blocks.
    groups, by : DocumentGroups and str, or None
        The documents by a column.
    source : DocumentSource or None
        All documents, if they are read in blocks.
    n_documents, n_tokens : int and float
        Documents, with words if they are read in blocks, and the sum of all counts.
    """

    path: Path
    read: CorpusCounts
    groups: DocumentGroups | None
    by: str | None
    source: DocumentSource | None
    n_documents: int
    n_tokens: float

    @property
    def notes(self) -> list[str]:
        """What was left out."""
        return [*self.read.notes, *(self.groups.notes if self.groups is not None else ())]


class Fit(NamedTuple):
    """A fitted model, how the fit ended, and the comparison that it is from."""

    model: PLSA
    ending: str
    is_interrupted: bool
    selection: Selection[PLSA, NumberOfTopics] | None


class Results(NamedTuple):
    """What a command has found: ``model`` has the merged topics, ``names`` are theirs."""

    corpus: Corpus
    fit: Fit
    model: PLSA
    names: tuple[str, ...]
    notes: Sequence[str]
    command: str
    random_state: int


def _name(format: str, number: int) -> str:
    return NAMES[format].format(number + 1)


def _is_larger(path: Path, memory_limit: str, reading: Mapping[str, Any]) -> bool:
    """Return whether a corpus must be read in blocks; raise ValueError if its format has to be loaded."""
    limit = read_memory_limit(memory_limit)
    assert limit is not None
    parts = [path] if path.is_file() else list(path.rglob("*"))
    size = LOADED * sum(
        file.stat().st_size * (UNPACKED if file.suffix == ".gz" else 1) for file in parts if file.is_file()
    )
    if size <= limit:
        return False
    kind = recognise(path)
    check_for_format(path, kind, **{name: reading.get(name) for name in USED_BY})
    if kind not in NAMES:
        raise ValueError(
            f"memory_limit must be at least {in_words(size)} for {path}, got {memory_limit}: only counts "
            "in the formats uci and lda-c are read in blocks."
        )
    return True


def _in_blocks(path: Path, reading: Mapping[str, Any]) -> tuple[DocumentSource, CorpusCounts, int, float]:
    """Return all documents, a sample of them, and the numbers of documents with words and of words.

    The text is parsed once: the numbers are then in a temporary file, unless the disk is full. Counts use
    only the vocabulary of the arguments of :func:`swiftem.data.read_corpus`.
    """
    kind = recognise(path)
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
    return source, sample, n_documents, n_tokens


def read_counts_of(path: Path, memory_limit: str | None, reading: Mapping[str, Any]) -> Corpus:
    """Return a corpus; ``reading`` are arguments of :func:`swiftem.data.read_corpus`."""
    source = None
    if memory_limit is not None and path.exists() and _is_larger(path, memory_limit, reading):
        source, read, n_documents, n_tokens = _in_blocks(path, reading)
    else:
        read = read_corpus(path, **reading)
        n_documents, n_tokens = len(read), read.n_tokens
    by = reading["label_column"]
    groups = None if by is None else group_documents(read.labels or (), by)
    return Corpus(path, read, groups, by, source, n_documents, n_tokens)


def write_results(results: Results, out: Path) -> Iterator[Path]:
    """Write tables and page; yield each file when it is whole."""
    corpus, model = results.corpus, results.model
    read = corpus.read
    # Not doc_topic_, which is a pass behind the topics: new texts are folded in, too.
    shares = model.transform(read.counts)
    files = {"model.swiftem": "the model; swiftem topics --apply gives new texts to it"}
    for file, what in _tables(results, out, shares):
        files[file.name] = what
        yield file
    summary = summarise_topics(model, read, given=results.names)
    title = corpus.path.resolve().name or str(corpus.path)
    content = explorer_content(
        model,
        read,
        shares,
        summary,
        title=title,
        names=results.names,
        by=None if corpus.groups is None else (str(corpus.by), corpus.groups),
    )
    facts = environment("scipy", "scikit-learn") | {
        "threads": str(get_threads()),
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    html = topics_page(
        content,
        summary,
        results.fit.model.history_,
        fit=results.fit.ending,
        command=results.command,
        settings=_settings(results),
        facts=facts,
        notes=results.notes,
        files=files,
    )
    write_atomically(out / "topics.html", html.encode("utf-8", "backslashreplace"))
    yield out / "topics.html"


def write_documents(folder: Path, corpus: CorpusCounts, shares: Array) -> Path:
    """Write the table of documents: name, number of words, and a share for each topic; return the file."""
    file = folder / "document_topics.parquet"
    lengths, names = np.asarray(corpus.counts.sum(axis=1)).ravel(), np.array(corpus.names, dtype=object)
    write_table(file, {"document": names, "words": lengths, **topic_columns(shares)})
    return file


def _documents_in_blocks(
    source: DocumentSource, format: str, model: PLSA
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the table of documents, block by block."""
    for first, counts in source.blocks(BLOCK):
        lengths = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        there = np.flatnonzero(lengths)
        names = [_name(format, first + row) for row in there.tolist()]
        columns = topic_columns(model.transform(counts[there]))
        yield {"document": np.array(names, dtype=object), "words": lengths[there], **columns}


def topic_columns(shares: Array) -> dict[str, NDArray[Any]]:
    """Return the columns of a table of shares (n, K)."""
    return {f"topic_{k}": np.ascontiguousarray(column) for k, column in enumerate(shares.T)}


def _tables(results: Results, out: Path, shares: Array) -> Iterator[tuple[Path, str]]:
    """Write the tables; yield each file with a description when it is whole."""
    yield _write_words(results, out), "every topic's words with their probabilities"
    corpus = results.corpus
    if corpus.source is None:
        yield write_documents(out, corpus.read, shares), "every document's topics"
    else:
        file = out / "document_topics.parquet"
        write_table_blocks(file, _documents_in_blocks(corpus.source, corpus.read.format, results.model))
        yield file, "every document's topics"
    if corpus.groups is not None:
        yield _write_groups(corpus.groups, corpus.read, out, str(corpus.by), shares), f"topics by {corpus.by}"
    if results.fit.selection is not None:
        rows = results.fit.selection.table
        file = out / "numbers_of_topics.parquet"
        columns = {name: np.array([getattr(row, name) for row in rows]) for name in rows[0]._fields}
        write_table(file, columns)
        yield file, "perplexity, coherence and stability by number of topics"
        if find_spec("matplotlib"):
            file = out / "numbers_of_topics.svg"
            with replacing(file) as picture:
                results.fit.selection.plot()[0].figure.savefig(picture, format="svg")
            yield file, "the same as a picture"


def _write_words(results: Results, out: Path) -> Path:
    components = np.asarray(results.model.components_)
    order = np.argsort(-components, axis=1, kind="stable")
    file = out / "topic_words.parquet"
    columns = {
        "topic": np.repeat(np.arange(len(components)), components.shape[1]),
        "word": np.array(results.corpus.read.word_names(), dtype=object)[order.ravel()],
        "probability": np.take_along_axis(components, order, axis=1).ravel(),
    }
    write_table(file, columns)
    return file


def _write_groups(groups: DocumentGroups, corpus: CorpusCounts, out: Path, by: str, shares: Array) -> Path:
    """Write the table of groups: label, documents, words, and a share for each topic; return the file."""
    sums, documents = tokens_by_group(groups, corpus, shares)
    words = sums.sum(axis=1)
    file = out / "topics_by.parquet"
    labels = np.array(groups.labels, dtype=object)
    of_words = topic_columns(sums / np.where(words > 0, words, np.nan)[:, None])
    write_table(file, {by: labels, "documents": documents, "words": words, **of_words})
    return file


def _settings(results: Results) -> dict[str, str]:
    """Return what the page says of the fit."""
    model = results.fit.model
    alpha = str(model.alpha)
    if alpha == "learn":
        alpha = f"learned, {model.alpha_.min():.2g} to {model.alpha_.max():.2g}"
    numbers = (
        [] if results.fit.selection is None else [row.n_components for row in results.fit.selection.table]
    )
    return {
        "corpus": str(results.corpus.path),
        "read as": results.corpus.read.format,
        "method": f"{model.method} ({model.method_})" if model.method == "auto" else str(model.method),
        "topics": f"{len(model.components_)}" + (f" of {', '.join(map(str, numbers))}" if numbers else ""),
        "alpha, beta": f"{alpha}, {model.beta}",
        "background, decorrelation": f"{model.background}, {model.decorrelation}",
        "seed": str(results.random_state),
        "most passes": str(model.max_iter),
        "stationarity": f"{model.stationarity_:.2g} (0 at a stationary point)",
        "mean log-likelihood": f"{mean_text(model.log_likelihood_)} per word",
        "passes": str(model.n_iter_),
    }
