"""Reads a corpus of any format."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from swiftem._checks import check_choice, shortened
from swiftem.data.documents.corpus_counts import (
    CorpusCounts,
    TableTexts,
    Texts,
    beginning,
    counted_documents,
    shown_length,
)
from swiftem.data.documents.formats.count_matrix import read_count_matrix
from swiftem.data.documents.formats.line_documents import document_lines, read_lda_c
from swiftem.data.documents.formats.no_text import FORMATS, check_texts, recognise, without_others
from swiftem.data.documents.formats.text_folder import read_folder
from swiftem.data.documents.formats.text_table import read_text_csv, read_text_parquet
from swiftem.data.documents.formats.uci_documents import read_bag_of_words
from swiftem.data.documents.word_counts import (
    count_known_words,
    count_words,
    header_field,
    note_on_common,
    note_on_headers,
    without_header,
)
from swiftem.data.documents.words import choose_stop_words

__all__ = ["check_for_format", "count_texts", "match_words", "read_corpus"]

BY_FOLDER = "folder"
"""Name of the labels that are subfolders."""

COUNTS = {
    "uci": read_bag_of_words, "lda-c": read_lda_c, "matrixmarket": read_count_matrix,
    "npz": read_count_matrix,
}  # fmt: skip


def read_corpus(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    n_words: int = 5000,
    stop_words: str | Iterable[str] | None = "auto",
    phrases: bool = False,
    drop_common: float | None = None,
    drop_headers: bool = False,
    text_column: str | None = None,
    label_column: str | None = None,
    vocabulary: str | os.PathLike[str] | None = None,
    known_words: Sequence[str] | None = None,
    leave_out: str | os.PathLike[str] | None = None,
    as_text: bool = False,
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
        Words of texts to leave out: by default those of the language, guessed from them (languages other than
        English need the extra ``languages``); ``"english"``, the code of a language such as ``"de"``, codes
        of several (``"de,en"``), your own, or none.
    phrases : bool
        Whether pairs of words such as "new york", which are together more often than by chance, are words.
    drop_common : float, optional
        Leave out words that are in more than this share of the documents. Words in over 30 % of them are
        reported in the notes.
    drop_headers : bool
        Whether the header of a mail is left out of each text.
    text_column : str, optional
        The column of a table with the texts.
    label_column : str, optional
        The column of a table whose values are kept as ``labels``: a date, a group. For a folder of texts
        ``"folder"``, the subfolder that a file is in, or a field of the headers of mails, such as ``"date"``.
    vocabulary : str or path, optional
        For counts, the file with the words, one per line.
    known_words : sequence of str, optional
        Count only these words, in this order: those of a fitted model.
    leave_out : str or path, optional
        A subfolder of a folder of texts that is not read, for example the one for results.
    as_text : bool
        Whether to accept what looks like markup, source code, data or single words as text. By default it is
        an error, or left out of a folder that has mostly texts, with a note.

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
    check_for_format(
        place, format, text_column=text_column, label_column=label_column, stop_words=stop_words,
        phrases=phrases, drop_common=drop_common, drop_headers=drop_headers,
    )  # fmt: skip
    if vocabulary is not None and format not in COUNTS:
        raise ValueError(f"vocabulary is for counts ({', '.join(COUNTS)}), and {place} is read as {format}.")
    if format in COUNTS:
        counted = COUNTS[format](place, vocabulary)
        return counted if known_words is None else match_words(counted, known_words, str(place))
    texts = _texts(place, format, text_column, label_column, leave_out)
    if not as_text:
        texts = _only_texts(place, format, texts)
    if format == "folder" and label_column is not None:
        texts = _labelled(place, texts, label_column)
    return count_texts(
        texts, n_words, stop_words, phrases=phrases, drop_common=drop_common, drop_headers=drop_headers,
        known_words=known_words, source=str(place), format=format,
    )  # fmt: skip


def check_for_format(
    place: Path, format: str, *, text_column: str | None, label_column: str | None, stop_words: Any,
    phrases: bool, drop_common: float | None, drop_headers: bool,
) -> None:  # fmt: skip
    """Raise ValueError for an argument of :func:`read_corpus` that a format does not use."""
    if text_column is not None and format not in ("csv", "parquet"):
        raise ValueError(f"text_column is for tables (csv, parquet), and {place} is read as {format}.")
    if label_column is not None and format not in ("csv", "parquet", "folder"):
        raise ValueError(
            f"label_column is for tables (csv, parquet) and folders, and {place} is read as {format}."
        )
    of_texts = {
        "stop_words": stop_words is not None and stop_words != "auto", "phrases": phrases,
        "drop_common": drop_common is not None, "drop_headers": drop_headers,
    }  # fmt: skip
    for name, given in of_texts.items():
        if given and format in COUNTS:
            raise ValueError(f"{name} is for texts, and {place} is read as {format}, counts of words.")


def _texts(
    path: Path,
    format: str,
    text_column: str | None,
    label_column: str | None,
    leave_out: str | os.PathLike[str] | None,
) -> Texts:
    if format == "folder":
        return read_folder(path, leave_out)
    if format == "csv":
        return read_text_csv(path, text_column, label_column)
    if format == "parquet":
        return read_text_parquet(path, text_column, label_column)
    found = document_lines(path)
    return Texts([line for _, line in found], [f"line {number}" for number, _ in found], [])


def _labelled(path: Path, found: Texts, label: str) -> TableTexts:
    """Return the documents of a folder with their subfolders, or fields of their headers, as labels."""
    if label == BY_FOLDER:
        labels = [name.rpartition("/")[0].partition("/")[0] for name in found.names]
    else:
        labels = [header_field(text, label) for text in found.texts]
    if not any(labels):
        what = "subfolders" if label == BY_FOLDER else "mails with such a header"
        raise ValueError(
            f"label_column must be 'folder' or a field of the headers of mails for a folder, got {label!r}, "
            f"and {path} has no {what}."
        )
    return TableTexts.of(*found, "", labels)


def _only_texts(path: Path, format: str, found: Texts) -> Texts:
    """Return the documents that are texts; raise ValueError if there are none."""
    if format == "folder":
        kept, notes = without_others(str(path), found.names, found.texts)
        texts, names = ([part[place] for place in kept] for part in (found.texts, found.names))
        return Texts(texts, names, [*found.notes, *notes])
    column = f" (column {found.column!r})" if isinstance(found, TableTexts) else ""
    check_texts(f"{path}{column}", found.texts, path.name if format == "text" else "")
    return found


def count_texts(
    texts: Texts,
    n_words: int = 5000,
    stop_words: str | Iterable[str] | None = "auto",
    *,
    phrases: bool = False,
    drop_common: float | None = None,
    drop_headers: bool = False,
    known_words: Sequence[str] | None = None,
    source: str = "The corpus",
    format: str = "text",
) -> CorpusCounts:
    """Return the word counts of texts; the arguments are those of :func:`read_corpus`.

    >>> from swiftem.data.documents.corpus_counts import TableTexts, Texts
    >>> count_texts(Texts(["Rice and maize.", "It is."], ["a", "b"], [])).notes
    ('1 of 2 documents has none of the words and was left out: b.',)
    """
    notes = list(texts.notes)
    documents = [without_header(text) for text in texts.texts] if drop_headers else texts.texts
    if drop_headers and documents == texts.texts:
        where = ", and each line is a document here" if format == "text" else ""
        notes.append(
            "drop_headers=True has left out nothing: no document begins with a header, which is two or more "
            f"lines such as 'From: me' and an empty line{where}."
        )
    chosen = choose_stop_words(stop_words, documents)
    if known_words is None:
        notes += chosen.notes if drop_headers else [*chosen.notes, *note_on_headers(documents)]
        try:
            counts, words, kept = count_words(
                documents, n_words, chosen.words, phrases=phrases, drop_common=drop_common
            )
        except ValueError as error:
            raise ValueError(re.sub(r"^documents\b", lambda _: source, str(error))) from None
        if drop_common is None:
            notes += note_on_common(counts, words)
    else:
        words = tuple(known_words)
        counts, kept, unknown = count_known_words(documents, words, chosen.words)
        if not len(kept):
            raise _unknown(source, words)
        often, total = [word for word, _ in unknown.most_common()], unknown.total() + int(counts.sum())
        notes += _about_unknown(unknown.total(), total, words, often)
    if len(kept) < len(texts.texts):
        dropped = sorted(set(range(len(texts.texts))) - set(kept.tolist()))
        does = "has none of the words and was" if len(dropped) == 1 else "have none of the words and were"
        names = shortened([texts.names[place] for place in dropped], 3)
        notes.append(f"{len(dropped):,} of {len(texts.texts):,} documents {does} left out: {names}.")
    length, labels = shown_length(len(kept)), getattr(texts, "labels", None)
    return CorpusCounts(
        counts,
        words,
        tuple(texts.names[place] for place in kept),
        tuple(beginning(documents[place], length) for place in kept),
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
