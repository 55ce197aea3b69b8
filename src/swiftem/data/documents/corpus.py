"""Corpora of any format: which format it is, all its word counts at once, or blocks of them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from swiftem.core.checks import check_choice, shortened
from swiftem.data.documents import count_files, text_files
from swiftem.data.documents.counts import (
    CorpusCounts,
    CsrDocuments,
    DocumentSource,
    PathName,
    Texts,
    counted_documents,
    is_sparse,
)
from swiftem.data.documents.text_files import existing_file, filled_lines
from swiftem.data.documents.words import count_known_words, count_words, note_on_common

COUNTS: dict[str, tuple[Callable[..., CorpusCounts], Callable[..., DocumentSource]]] = {
    "uci": (count_files.read_bag_of_words, count_files.open_uci),
    "lda-c": (count_files.read_lda_c, count_files.open_lda_c),
    "matrixmarket": (count_files.read_count_matrix, count_files.open_matrix),
    "npz": (count_files.read_count_matrix, count_files.open_matrix),
}
"""Readers of formats of counts, at once and in blocks."""
TABLES = {"csv": text_files.read_text_csv, "parquet": text_files.read_text_parquet}
"""Readers of formats of tables."""
TEXTS = ("text", "folder", *TABLES)
FORMATS = (*TEXTS, *COUNTS)
"""Names of the formats: one document per line, folders of text files, tables with a text column, counts."""
ENDINGS = {
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
    "npz": (".npz",),
    "matrixmarket": (".mtx", ".mm"),
    "lda-c": (".ldac", ".lda-c"),
}
FIRST_LINES = {
    "matrixmarket": re.compile(r"%%MatrixMarket"),
    "uci": re.compile(r"(\s*\d+\s*\n){3}(\s*\d+\s+\d+\s+\d+\s*\n)+\Z"),
    "lda-c": re.compile(r"(?=.*:)(\s*(0|\d+(\s+\d+:\d+)+)\s*\n)+\Z", flags=re.DOTALL),
}
"""How files of counts begin."""
PEEKED = 5
"""Lines that are examined."""
SHOWN, MOST_SHOWN, SHOWN_BYTES = 200, 4000, 1 << 26
"""Characters of a document's text that are kept: at least, at most, and of all documents together."""
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
    by_ending = [format for format, endings in ENDINGS.items() if name.endswith(endings)]
    if by_ending:
        return by_ending[0]
    try:
        lines = "".join(f"{line}\n" for _, line in islice(filled_lines(path), PEEKED))
    except ValueError:  # not text: the reader of the text then names the line
        return "text"
    return next((format for format, begin in FIRST_LINES.items() if begin.match(lines)), "text")


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
        Count only these words, in this order, such as the words of a fitted model.
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
    options: dict[str, Any] = {"stop_words": stop_words, "phrases": phrases, "drop_common": drop_common}
    check_for_format(
        place, format, vocabulary=vocabulary, text_column=text_column, label_column=label_column, **options
    )
    if format in COUNTS:
        counted = COUNTS[format][0](place, vocabulary)
        return counted if known_words is None else _match_words(counted, known_words, str(place))
    if format in TABLES:
        texts = TABLES[format](place, text_column, label_column)
    elif format == "folder":
        texts = _labelled(place, text_files.read_folder(place, leave_out), label_column)
    else:
        texts = text_files.read_text_lines(place)
    return count_texts(texts, str(place), format, known_words=known_words, n_words=n_words, **options)


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
    source: str = "The corpus",
    format: str = "text",
    *,
    known_words: Sequence[str] | None = None,
    stop_words: str | Iterable[str] | None = "english",
    drop_common: float | None = None,
    **options: Any,
) -> CorpusCounts:
    """Return the word counts of texts.

    Parameters
    ----------
    texts : Texts
        The documents.
    source, format : str
        Name of the corpus in messages, and its format.
    known_words, stop_words, drop_common
        As for :func:`read_corpus`.
    **options
        Other arguments of :func:`swiftem.data.count_words`; known words do not need them.

    Examples
    --------
    >>> from swiftem.data.documents.counts import Texts
    >>> count_texts(Texts(["Rice and maize.", "It is."], ["a", "b"], [])).notes
    ('1 of 2 documents has none of the words and was left out: b.',)
    """
    documents, names, notes, labels = texts
    if known_words is None:
        try:
            counts, words, kept = count_words(
                documents, stop_words=stop_words, drop_common=drop_common, **options
            )
        except ValueError as error:
            raise ValueError(re.sub(r"^documents\b", lambda _: source, str(error))) from None
        new_notes = note_on_common(counts, words) if drop_common is None else []
    else:
        words = tuple(known_words)
        counts, kept, unknown = count_known_words(documents, words, stop_words)
        new_notes = _note_on_unknown(source, words, unknown, float(counts.sum()))
    if len(kept) < len(documents):
        dropped = np.setdiff1d(np.arange(len(documents)), kept)
        does = "has none of the words and was" if len(dropped) == 1 else "have none of the words and were"
        which = shortened([names[place] for place in dropped], 3)
        new_notes.append(f"{len(dropped):,} of {len(documents):,} documents {does} left out: {which}.")
    return CorpusCounts(
        counts,
        words,
        tuple(names[place] for place in kept),
        beginnings([documents[place] for place in kept]),
        format,
        (*notes, *new_notes),
        None if labels is None else tuple(labels[place] for place in kept),
    )


def beginnings(texts: Sequence[str]) -> tuple[str, ...]:
    r"""Return the first characters of each text in one line: fewer of them, the more texts there are.

    >>> beginnings([" Rice\n  and maize. "])
    ('Rice and maize.',)
    >>> len(beginnings(["rice " * 1000])[0]), len(beginnings(["rice " * 1000] * 100_000)[0])
    (3999, 670)
    """
    length = max(SHOWN, min(MOST_SHOWN, SHOWN_BYTES // max(1, len(texts))))
    return tuple(_beginning(text, length) for text in texts)


def _beginning(text: str, length: int) -> str:
    # Only part of a long text is read: white space is rarely more than nine tenths of it.
    line = " ".join(text[: 10 * length].split())
    if len(line) <= length and len(text) <= 10 * length:
        return line
    return line[: length - 2].rstrip(" .,;:") + "…"


def _match_words(corpus: CorpusCounts, words: Sequence[str], source: str = "The corpus") -> CorpusCounts:
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
    >>> corpus = _match_words(CorpusCounts(sp.csr_array([[1, 2]]), ("fish", "rice"), ("a",)), ("rice", "rye"))
    >>> corpus.counts.toarray().tolist(), corpus.notes
    ([[2, 0]], ("1 of 3 words (33%) ... left out, most often 'fish'.",))
    """
    import scipy.sparse as sp

    if corpus.words is None:
        if corpus.counts.shape[1] != len(words):
            got = f"{corpus.counts.shape[1]:,} without names: give their vocabulary"
            raise ValueError(f"{source} must have the {len(words):,} known words, got {got}.")
        return replace(corpus, words=tuple(words))
    column = {word: place for place, word in enumerate(words)}
    target = np.array([column.get(word, -1) for word in corpus.words])
    totals = np.where(target < 0, corpus.counts.sum(axis=0), 0).tolist()
    unknown = Counter({word: total for word, total in zip(corpus.words, totals, strict=True) if total})
    entries = corpus.counts[:, target >= 0].tocoo()
    coordinates = (entries.data, (entries.row, target[target >= 0][entries.col]))
    counts = sp.coo_array(coordinates, shape=(len(corpus), len(words)))
    notes = _note_on_unknown(source, words, unknown, float(counts.sum()))
    matched = counted_documents(counts, words, corpus.names.__getitem__, source, corpus.format)
    return replace(matched, notes=(*corpus.notes, *notes, *matched.notes))


def _note_on_unknown(source: str, words: Sequence[str], unknown: Counter[str], n_known: float) -> list[str]:
    """Return a note on words that were left out, if any; raise ValueError if no word is known."""
    if not n_known:
        raise ValueError(f"{source} must have at least one of the {len(words):,} known words, got none.")
    if not unknown:
        return []
    total, often = unknown.total() + n_known, [repr(word) for word, _ in unknown.most_common()]
    return [
        f"{unknown.total():,.10g} of {total:,.10g} words ({unknown.total() / total:.0%}) are not among the "
        f"{len(words):,} known ones and were left out, most often {shortened(often, 3)}."
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
    file = existing_file(data, "a corpus of counts or texts")
    format = format or recognise(file)
    if format == "text":
        if vocabulary is None:
            raise ValueError(
                f"{file} is text, and its words must be known: give vocabulary, or use read_corpus."
            )
        return text_files.open_texts(file, vocabulary)
    if format not in COUNTS:
        raise ValueError(f"{file} is not read in blocks, as it is {format}: load it with read_corpus.")
    return COUNTS[format][1](file, vocabulary)
