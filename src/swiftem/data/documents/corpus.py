"""Corpora of any format: which format it is, all its word counts at once, or blocks of them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from swiftem.core.checks import check_choice, shortened
from swiftem.data.documents.blocks import CsrDocuments, DocumentSource
from swiftem.data.documents.count_files import (
    LdaCDocuments,
    UciDocuments,
    open_count_matrix,
    read_bag_of_words,
    read_count_matrix,
    read_lda_c,
)
from swiftem.data.documents.counts import CorpusCounts, Texts, beginnings, counted_documents
from swiftem.data.documents.lines import PathName, existing_file, filled_lines
from swiftem.data.documents.sparse import is_sparse
from swiftem.data.documents.text_files import (
    TextDocuments,
    document_lines,
    read_folder,
    read_text_csv,
    read_text_parquet,
)
from swiftem.data.documents.words import count_known_words, count_words, note_on_common

__all__ = [
    "FORMATS",
    "check_for_format",
    "count_texts",
    "match_words",
    "open_documents",
    "read_corpus",
    "recognise",
]

COUNTS: dict[str, Callable[..., CorpusCounts]] = {
    "uci": read_bag_of_words,
    "lda-c": read_lda_c,
    "matrixmarket": read_count_matrix,
    "npz": read_count_matrix,
}
"""Readers of formats of counts."""
TABLES = {"csv": read_text_csv, "parquet": read_text_parquet}
"""Readers of formats of tables."""
TEXTS = ("text", "folder", *TABLES)
FORMATS = (*TEXTS, *COUNTS)
"""Names of the formats: one document per line, folders of text files, tables with a text column, counts."""
BY_ENDING = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".mtx": "matrixmarket",
    ".mm": "matrixmarket",
    ".ldac": "lda-c",
    ".lda-c": "lda-c",
}
PEEKED = 5
LDA_C = re.compile(r"\s*(0|\d+(\s+\d+:\d+)+)\s*")
WHOLE = re.compile(r"\s*\d+\s*")
TRIPLE = re.compile(r"\s*\d+\s+\d+\s+\d+\s*")
USED_BY = {
    "text_column": (tuple(TABLES), "tables (csv, parquet)"),
    "label_column": (("folder", *TABLES), "tables (csv, parquet) and folders"),
    "vocabulary": (tuple(COUNTS), f"counts ({', '.join(COUNTS)})"),
    "stop_words": (TEXTS, "texts"),
    "phrases": (TEXTS, "texts"),
    "drop_common": (TEXTS, "texts"),
}
"""Formats that use an argument of :func:`read_corpus`, and their name in messages."""


def recognise(path: Path) -> str:
    r"""Return the format of a corpus: by its extension if that is enough, else by its first lines.

    Parameters
    ----------
    path : Path
        A file or folder that exists.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "ap.dat")
    ...     _ = file.write_text("2 0:1 7:1\n1 3:2\n")
    ...     recognise(file), recognise(pathlib.Path(folder))
    ('lda-c', 'folder')
    """
    if path.is_dir():
        return "folder"
    name = path.name.lower().removesuffix(".gz")
    if name.startswith("docword."):
        return "uci"
    for ending, format in BY_ENDING.items():
        if name.endswith(ending):
            return format
    try:
        lines = [line for _, line in islice(filled_lines(path), PEEKED)]
    except ValueError:  # not text: the reader of the text then names the line
        return "text"
    if lines and lines[0].startswith("%%MatrixMarket"):
        return "matrixmarket"
    if len(lines) > 3 and all(map(WHOLE.fullmatch, lines[:3])) and all(map(TRIPLE.fullmatch, lines[3:])):
        return "uci"
    if all(map(LDA_C.fullmatch, lines)) and any(":" in line for line in lines):
        return "lda-c"
    return "text"


def read_corpus(
    path: PathName,
    *,
    format: str = "auto",
    n_words: int = 5000,
    stop_words: str | Iterable[str] | None = "english",
    phrases: bool = False,
    drop_common: float | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    vocabulary: PathName | None = None,
    known_words: Sequence[str] | None = None,
    leave_out: PathName | None = None,
) -> CorpusCounts:
    r"""Return the word counts of a corpus in a file or folder.

    Parameters
    ----------
    path : str or path
        The file or folder.
    format : str
        ``"text"`` (one document per line), ``"folder"`` (one document per file), ``"csv"`` or ``"parquet"``
        (one document per row), ``"uci"``, ``"lda-c"``, ``"matrixmarket"`` or ``"npz"`` (counts); by default
        recognised by extension, folder or first lines.
    n_words : int
        Number of words to count in texts: the most frequent ones.
    stop_words : str, iterable of str, or None
        Words of texts to leave out: ``"english"``; the code of a language such as ``"de"``, or of several,
        ``"de,en"``, with the extra ``languages``; your own; or none.
    phrases : bool
        Whether pairs of words such as "new york", which are together more often than by chance, are words.
    drop_common : float, optional
        Leave out words that are in more than this share of the documents. Words in over 30 % of them are
        reported in the notes.
    text_column : str, optional
        The column of a table with the texts.
    label_column : str, optional
        The column of a table whose values are kept as ``labels``: a date, a group. For a folder of texts
        ``"folder"``, the subfolder that a file is in.
    vocabulary : str or path, optional
        For counts, the file with the words, one per line.
    known_words : sequence of str, optional
        Count only these words, in this order: those of a fitted model.
    leave_out : str or path, optional
        A subfolder of a folder of texts that is not read, for example the one for results.

    Returns
    -------
    CorpusCounts
        Counts (D, V), words, names and beginnings of the documents, and notes.

    Raises
    ------
    OSError, ValueError
        If the corpus cannot be read or has no texts; the message names the file, and the line if there is
        one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_corpus
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("Rice and maize.")
    ...     _ = pathlib.Path(folder, "b.txt").write_text("Fish, fish ponds.")
    ...     corpus = read_corpus(folder)
    >>> corpus.names, corpus.words, corpus.texts
    (('a.txt', 'b.txt'), ('fish', 'maize', 'ponds', 'rice'), ('Rice and maize.', 'Fish, fish ponds.'))
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file or folder, got {path!r}.")
    place = Path(path)
    check_choice("format", format, ("auto", *FORMATS))
    if not place.exists():
        raise FileNotFoundError(f"{place} must be a file or a folder with a corpus, but does not exist.")
    if format == "auto":
        format = recognise(place)
    word_options: dict[str, Any] = {"stop_words": stop_words, "phrases": phrases, "drop_common": drop_common}
    check_for_format(
        place,
        format,
        vocabulary=vocabulary,
        text_column=text_column,
        label_column=label_column,
        **word_options,
    )
    if format in COUNTS:
        counted = COUNTS[format](place, vocabulary)
        return counted if known_words is None else match_words(counted, known_words, str(place))
    if format in TABLES:
        texts = TABLES[format](place, text_column, label_column)
    elif format == "folder":
        texts = _labelled(place, read_folder(place, leave_out), label_column)
    else:
        numbers, lines = zip(*document_lines(place), strict=True)
        texts = Texts(list(lines), [f"line {number}" for number in numbers], [])
    return count_texts(
        texts, n_words, known_words=known_words, source=str(place), format=format, **word_options
    )


def check_for_format(place: Path, format: str, **given: object) -> None:
    """Raise ValueError for an argument of :func:`read_corpus` that a format does not use.

    Arguments that are None, False or the default ``"english"`` are not given.
    """
    for name, value in given.items():
        formats, what = USED_BY[name]
        is_default = value is None or value is False or (isinstance(value, str) and value == "english")
        if not is_default and format not in formats:
            of_words = ", counts of words" if format in COUNTS else ""
            raise ValueError(f"{name} is for {what}, and {place} is read as {format}{of_words}.")


def _labelled(path: Path, texts: Texts, label: str | None) -> Texts:
    """Return the documents of a folder, with their subfolders as labels if this is asked for."""
    if label is None:
        return texts
    if label != "folder":
        raise ValueError(f"label_column must be 'folder' for a folder of texts, got {label!r}.")
    labels = [name.rpartition("/")[0].partition("/")[0] for name in texts.names]
    if not any(labels):
        raise ValueError(f"label_column is 'folder', and {path} has no subfolders.")
    return texts._replace(labels=labels)


def count_texts(
    texts: Texts,
    n_words: int = 5000,
    stop_words: str | Iterable[str] | None = "english",
    *,
    phrases: bool = False,
    drop_common: float | None = None,
    known_words: Sequence[str] | None = None,
    source: str = "The corpus",
    format: str = "text",
) -> CorpusCounts:
    """Return the word counts of texts; arguments as for :func:`read_corpus`.

    >>> from swiftem.data.documents.counts import Texts
    >>> count_texts(Texts(["Rice and maize.", "It is."], ["a", "b"], [])).notes
    ('1 of 2 documents has none of the words and was left out: b.',)
    """
    documents, names, notes, labels = texts
    notes = list(notes)
    if known_words is None:
        try:
            counts, words, kept = count_words(
                documents, n_words, stop_words, phrases=phrases, drop_common=drop_common
            )
        except ValueError as error:
            raise ValueError(re.sub(r"^documents\b", lambda _: source, str(error))) from None
        if drop_common is None:
            notes += note_on_common(counts, words)
    else:
        words = tuple(known_words)
        counts, kept, unknown = count_known_words(documents, words, stop_words)
        if not len(kept):
            raise _unknown(source, words)
        often, total = [word for word, _ in unknown.most_common()], unknown.total() + int(counts.sum())
        notes += _about_unknown(unknown.total(), total, words, often)
    if len(kept) < len(documents):
        dropped = sorted(set(range(len(documents))) - set(kept.tolist()))
        does = "has none of the words and was" if len(dropped) == 1 else "have none of the words and were"
        which = shortened([names[place] for place in dropped], 3)
        notes.append(f"{len(dropped):,} of {len(documents):,} documents {does} left out: {which}.")
    return CorpusCounts(
        counts,
        words,
        tuple(names[place] for place in kept),
        beginnings([documents[place] for place in kept]),
        format,
        tuple(notes),
        None if labels is None else tuple(labels[place] for place in kept),
    )


def match_words(corpus: CorpusCounts, words: Sequence[str], source: str = "The corpus") -> CorpusCounts:
    """Return the corpus with a column for each of ``words``; other words are left out, with a note.

    Parameters
    ----------
    corpus : CorpusCounts
        The counts. If its words are known only by number, there must be as many as ``words``.
    words : sequence of str, length V
        The vocabulary of a model.
    source : str
        The file, for messages.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from swiftem.data import CorpusCounts
    >>> corpus = match_words(CorpusCounts(sp.csr_array([[1, 2]]), ("fish", "rice"), ("a",)), ("rice", "rye"))
    >>> corpus.counts.toarray().tolist(), corpus.notes
    ([[2, 0]], ("1 of 3 words (33%) ... left out, most often 'fish'.",))
    """
    import scipy.sparse as sp

    if corpus.words is None:
        if corpus.counts.shape[1] != len(words):
            raise ValueError(
                f"{source} must have {len(words):,} words, as many as are known, got "
                f"{corpus.counts.shape[1]:,} without names: give their vocabulary."
            )
        return replace(corpus, words=tuple(words))
    target = {word: place for place, word in enumerate(words)}
    place = np.array([target.get(word, -1) for word in corpus.words])
    known = np.flatnonzero(place >= 0)
    if not len(known):
        raise _unknown(source, words)
    chosen = sp.coo_array(corpus.counts[:, known])
    moved = sp.coo_array(
        (chosen.data, (chosen.row, place[known][chosen.col])), shape=(chosen.shape[0], len(words))
    )
    found = counted_documents(moved, words, corpus.names.__getitem__, source, corpus.format)
    totals = np.asarray(corpus.counts.sum(axis=0)).ravel()
    totals[known] = 0
    often = [corpus.words[column] for column in np.argsort(-totals, kind="stable") if totals[column]]
    notes = _about_unknown(float(totals.sum()), corpus.n_tokens, words, often)
    return replace(found, notes=(*corpus.notes, *notes, *found.notes))


def _unknown(source: str, words: Sequence[str]) -> ValueError:
    return ValueError(
        f"{source} must have at least one of the {len(words):,} words that are known, got none."
    )


def _about_unknown(left: float, total: float, words: Sequence[str], often: Sequence[str]) -> list[str]:
    """Return a note on words that were left out, if any; ``often`` are these words, by frequency."""
    if not left:
        return []
    most = shortened([repr(word) for word in often], 3)
    return [
        f"{left:,.10g} of {total:,.10g} words ({left / total:.0%}) are not among the {len(words):,} known "
        f"ones and were left out, most often {most}."
    ]


def open_documents(data: Any, vocabulary: Any = None, format: str | None = None) -> DocumentSource:
    r"""Return documents as a source of blocks of counts.

    Parameters
    ----------
    data : path, sparse matrix (D, V), or DocumentSource
        A file: UCI bag-of-words, lda-c and texts (one document per line) are read on demand; MatrixMarket and
        ``.npz``, whose entries may be in any order, are loaded.
    vocabulary : path or sequence of str, optional
        The words. For texts they are required; for counts a file next to it is used by default.
    format : {"uci", "lda-c", "text", "matrixmarket", "npz"}, optional
        By default it is recognised.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import open_documents
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "toy.dat")
    ...     _ = file.write_text("2 0:1 1:1\n1 1:2\n")
    ...     open_documents(file).n_words
    2
    """
    if isinstance(data, DocumentSource):
        return data
    if is_sparse(data):
        return CsrDocuments(data)
    if not isinstance(data, str | os.PathLike):
        raise TypeError(f"data must be a file, a sparse matrix or a source, got {type(data).__name__}.")
    file = existing_file(Path(data), "a corpus of counts or texts")
    format = format or recognise(file)
    if format == "uci":
        return UciDocuments(file, vocabulary)
    if format == "lda-c":
        return LdaCDocuments(file, vocabulary)
    if format in ("matrixmarket", "npz"):
        return open_count_matrix(file, vocabulary)
    if format != "text":
        raise ValueError(
            f"{file} is in the format {format}, which is not read in blocks: load it with read_corpus."
        )
    if vocabulary is None:
        raise ValueError(
            f"{file} is text, whose words must be known before it is read in blocks: give vocabulary, or "
            "load it with read_corpus."
        )
    return TextDocuments(file, vocabulary)
