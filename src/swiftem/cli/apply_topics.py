"""``swiftem topics --apply``: the topics of new documents, by a model that was fitted before."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from swiftem.cli.failures import FAILED, INTERRUPTED
from swiftem.cli.topics import fail, write_documents
from swiftem.data.documents.corpus_counts import CorpusCounts
from swiftem.data.documents.read_corpus import read_corpus

__all__ = ["apply_topics"]


def apply_topics(
    model_file: Path,
    corpus: Path,
    out: Path,
    *,
    format: str = "auto",
    text_column: str | None = None,
    vocabulary: Path | None = None,
    console: Console | None = None,
) -> int:
    """Fold documents into a model, write their topics to ``out``, and return the exit code.

    Returns
    -------
    int
        0; 1 where something cannot be read or written; 130 after Ctrl-C.
    """
    console = console or Console()
    say = partial(console.print, soft_wrap=True, markup=False, highlight=False)
    try:
        from swiftem import PLSA

        model = PLSA.load(model_file)
        found = _read(model, model_file, corpus, out, format, text_column, vocabulary)
        for note in found.notes:
            say(note)
        with warnings.catch_warnings():
            # The columns are the model's own; scikit-learn would like to be told by a data frame.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            shares = model.transform(found.counts)
    except (OSError, ValueError, ImportError, MemoryError) as error:
        fail(error)
        return FAILED
    except KeyboardInterrupt:
        say("Interrupted; nothing was written.")
        return INTERRUPTED
    try:
        out.mkdir(parents=True, exist_ok=True)
        file = write_documents(out, found, shares)
    except OSError as error:
        fail(f"The results could not be written to {out}: {error.strerror or error}.")
        return FAILED
    say(f"The topics of {len(found):,} documents: {file}.")
    return 0


def _read(
    model: Any,
    model_file: Path,
    corpus: Path,
    out: Path,
    format: str,
    text_column: str | None,
    vocabulary: Path | None,
) -> CorpusCounts:
    """Return the corpus in the model's words."""
    words = getattr(model, "feature_names_in_", None)
    options: dict[str, Any] = {
        "format": format, "text_column": text_column, "vocabulary": vocabulary, "leave_out": out,
    }  # fmt: skip
    if words is not None:
        return read_corpus(corpus, known_words=[str(word) for word in words], **options)
    found = read_corpus(corpus, **options)
    n_words = model.components_.shape[1]
    if found.texts is not None:
        raise ValueError(
            f"{model_file} was fitted to words that had no names, so that {corpus} must be counts, got texts."
        )
    if found.counts.shape[1] != n_words:
        raise ValueError(
            f"{corpus} must have {n_words:,} words, as many as {model_file} knows, got "
            f"{found.counts.shape[1]:,}."
        )
    return found
