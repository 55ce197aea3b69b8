"""``swiftem topics``: from a corpus to topics as a table, files and a page; with --apply, by a model."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from swiftem.cli.failures import ARGUMENTS, FAILED, INTERRUPTED, one_sentence, refuse, tell
from swiftem.cli.options import (
    DATA,
    MODEL,
    OUTPUT,
    DeviceOption,
    MemoryLimitOption,
    MethodOption,
    SeedOption,
    given,
    option,
    read_counts,
)
from swiftem.cli.out_file import writable_folder
from swiftem.cli.rows import open_model
from swiftem.cli.screen import Console
from swiftem.core.process import clock, uninterrupted
from swiftem.show.numbers import counted, mean_text, seconds_text, share_text
from swiftem.show.table import Table

MODEL_FILE, PAGE = "model.swiftem", "topics.html"
APPLIES = {"apply", "corpus", "out", "text_column", "n_words", "names", "device"}
"""What --apply takes; all else belongs to new topics."""
MOST_NUMBERS = 8
"""Numbers of topics that are compared."""
N_WORDS = 5000
WORDS = 10
"""Shown of a topic."""


def topics(
    context: typer.Context,
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS",
            help="A folder of text files, a file with one document per line, CSV or Parquet with a column of "
            "text, or counts (UCI, lda-c, MatrixMarket, SciPy's .npz).",
        ),
    ],
    text_column: Annotated[
        str | None, option("--text-column", metavar="COLUMN", panel=DATA, show_default="found by its length")
    ] = None,
    n_words: Annotated[
        str,
        option(
            "--words",
            metavar="N|FILE",
            panel=DATA,
            help="Number of words, the most frequent ones; of counts a file with the words, one per line.",
        ),
    ] = str(N_WORDS),
    stop_words: Annotated[
        str,
        option(
            metavar="LANGUAGE|FILE|none",
            panel=DATA,
            help="Words of texts to leave out: of a language such as de, or in a file.",
        ),
    ] = "english",
    phrases: Annotated[
        bool, option("--phrases", panel=DATA, help='Count pairs of words such as "new york" as one word.')
    ] = False,
    n_components: Annotated[
        str,
        option(
            "--topics", "-k", metavar="K|A:B", panel=MODEL, help="Number of topics; several are compared."
        ),
    ] = "10",
    apply: Annotated[
        Path | None,
        option(metavar="MODEL", panel=MODEL, help="Find the topics of this model, instead of new ones."),
    ] = None,
    method: MethodOption = None,
    random_state: SeedOption = 0,
    device: DeviceOption = None,
    memory_limit: MemoryLimitOption = None,
    label_column: Annotated[
        str | None,
        option(
            "--by",
            metavar="COLUMN",
            panel=OUTPUT,
            help="Show topics by this column of dates or groups; of files in a folder: folder.",
        ),
    ] = None,
    names: Annotated[
        Path | None,
        option(metavar="FILE", panel=OUTPUT, help="Names of topics, and topics to merge, from topics.html."),
    ] = None,
    out: Annotated[
        Path,
        option(
            "--out",
            "-o",
            metavar="DIR",
            panel=OUTPUT,
            callback=writable_folder,
            help="Folder for the page, the model and the tables.",
        ),
    ] = Path("results/topics"),
) -> None:
    """Find the topics of a collection of texts.

    Writes a page for the browser, the model, and tables of topics and documents. Ctrl-C keeps what is done.
    """
    from swiftem.cli.topics_files import Results, groups_of, write_results
    from swiftem.cli.topics_in_blocks import CorpusInBlocks, corpus_in_blocks
    from swiftem.data import read_corpus
    from swiftem.topics.explorer.names import read_names

    console = Console()
    vocabulary = None if n_words.isdigit() else Path(n_words)
    with one_sentence(context):
        to_name = None if names is None else read_names(names)
        if apply is not None:
            refuse(context, APPLIES, "this is for new topics; those of --apply are as they were fitted.")
            _apply(console, apply, corpus, text_column, vocabulary, to_name, device, out)
            return
        numbers = thinned(read_counts(n_components))
        parameters = given(method=method, device=device)
        _check(parameters)
        words = {"stop_words": _stop_words(stop_words), "phrases": phrases}
        if vocabulary is None and int(n_words) < 1:
            raise ValueError(f"n_words must be at least 1, got {n_words}.")
        with console.doing("Reading the corpus"):
            blocks: CorpusInBlocks | None = None
            if memory_limit is not None and corpus.exists():
                purposes = {"text_column": text_column, "label_column": label_column, **words}
                blocks = corpus_in_blocks(corpus, memory_limit, vocabulary, purposes)
            read = (
                read_corpus(
                    corpus,
                    n_words=N_WORDS if vocabulary is not None else int(n_words),
                    text_column=text_column,
                    vocabulary=vocabulary,
                    leave_out=out,
                    label_column=label_column,
                    **words,
                )
                if blocks is None
                else blocks.sample
            )
            groups = groups_of(read, label_column)
        notes = [*read.notes, *(groups.notes if groups is not None else ())]
        for note in notes:
            console.say(note)
        size, tokens = (len(read), read.n_tokens) if blocks is None else (blocks.n_documents, blocks.n_tokens)
        console.say(
            f"{counted(size, 'document')} with {tokens:,.10g} words, {read.counts.shape[1]:,} of them "
            "different."
        )
        if size < numbers[-1]:
            each = " (each line is one)" if read.format == "text" else ""
            raise ValueError(
                f"n_components must be at most the number of documents, but {corpus} has "
                f"{counted(size, 'document')}{each}, got {numbers[-1]}."
            )
        if len(numbers) > 1 and blocks is not None:
            raise ValueError("n_components must be one number for counts that are read in blocks.")
    with one_sentence(context, "Interrupted before there were topics; nothing was written."):
        began, selection = clock(), None
        if len(numbers) == 1:
            counts = read.counts if blocks is None else blocks.source
            model, is_interrupted = _fit(
                console, counts, numbers[0], memory_limit, parameters | {"random_state": random_state}
            )
        else:
            selection = _compare(console, read.counts, numbers, random_state, parameters)
            model, is_interrupted = selection.best, selection.interrupted
            console.say(selection.shown)
            notes.append(selection.reason)
        ending = _ending(model, clock() - began, is_interrupted)
        fitted, given_names = model, ("",) * len(model.components_)
        if to_name is not None:
            model, given_names, more = to_name.apply(model, read.word_names())
            notes += more
            for note in more:
                console.say(note)
    command = shlex.join(context.find_root().meta[ARGUMENTS])
    results = Results(
        corpus, read, model, fitted, ending, groups, tuple(notes), given_names, selection, blocks, command
    )
    written: list[str] = []
    try:
        with uninterrupted():
            out.mkdir(parents=True, exist_ok=True)
            _save(model, read.words, out / MODEL_FILE)
            written.append(MODEL_FILE)
        console.say(topic_table(model, given_names, model.coherence(read.counts)))
        console.say()
        console.say(ending)
        for file in write_results(results, out, label_column, random_state):
            written.append(file.name)
    except KeyboardInterrupt:
        is_interrupted = True
    except OSError as error:
        tell(f"The results could not be written to {out}: {error.strerror or error}.")
        raise typer.Exit(FAILED) from None
    if is_interrupted:
        console.say(f"Interrupted. Wrote {', '.join(written) or 'nothing'}.")
    if PAGE in written:
        console.say(f"Page: {out / PAGE} (open it in a browser); model and tables are beside it.")
    if is_interrupted:
        raise typer.Exit(INTERRUPTED)


def thinned(counts: list[int]) -> list[int]:
    """Return at most :data:`MOST_NUMBERS` of the numbers, from first to last in about equal ratios.

    >>> thinned(list(range(10, 101)))
    [10, 14, 19, 27, 37, 52, 72, 100]
    """
    if len(counts) <= MOST_NUMBERS:
        return counts
    wanted = np.geomspace(counts[0], counts[-1], MOST_NUMBERS)
    return sorted({min(counts, key=lambda count: abs(count - one)) for one in wanted})


def topic_table(model: Any, names: Sequence[str] = (), coherence: Any = None, shares: Any = None) -> Table:
    """Return the topics with their words, the most prevalent first.

    Parameters
    ----------
    model : PLSA
        The model.
    names : sequence of str, length K
        Names that somebody gave to topics, or nothing.
    coherence : array-like, shape (K,), optional
        A further column.
    shares : array-like, shape (K,), optional
        Shares of the topics; by default of the corpus that was fitted.
    """
    heads = (
        None if hasattr(model, "feature_names_in_") else [f"word {v}" for v in range(model.n_features_in_)]
    )
    words = model.top_words(heads, n=WORDS)
    prevalence = np.asarray(model.topic_prevalence() if shares is None else shares)
    rows: list[list[Any]] = []
    for k in np.argsort(-prevalence, kind="stable").tolist():
        name = (names[k] if names else "") or ("background" if k == model.background_ else "")
        text = f"{name}: {', '.join(words[k])}" if name else ", ".join(words[k])
        rows.append([k, share_text(prevalence[k]), *([] if coherence is None else [coherence[k]]), text])
    heads = ["topic", "share", *([] if coherence is None else ["coherence"]), "words"]
    title = counted(len(words), "topic")
    formats = {"coherence": lambda value: f"{value:z.2f}"}
    return Table(title, heads, rows, formats=formats, n_index=2)


def _check(parameters: dict[str, Any]) -> None:
    """Let the estimator check its parameters before anything is read."""
    from swiftem import PLSA

    PLSA(**parameters)._validate_params()


def _stop_words(text: str) -> Any:
    """Return a language, the words of a file, or None."""
    if text != "none" and Path(text).is_file():
        try:
            return Path(text).read_text(encoding="utf-8").split()
        except UnicodeDecodeError:
            raise ValueError(f"{text} must be a text file of stop words in UTF-8.") from None
    return None if text == "none" else text


def _fit(
    console: Console, counts: Any, number: int, memory_limit: str | None, parameters: dict[str, Any]
) -> tuple[Any, bool]:
    """Return the fitted model, and whether Ctrl-C ended the fit."""
    from sklearn.exceptions import ConvergenceWarning

    from swiftem import PLSA, config_context
    from swiftem.fit.estimator import InterruptedWarning

    model = PLSA(number, **parameters, verbose=int(console.is_terminal))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with config_context(memory_limit=memory_limit):
            model.fit(counts)
    model.verbose = 0  # the bar was for this terminal, not for whoever loads the model
    for warning in caught:
        if issubclass(warning.category, UserWarning) and not issubclass(warning.category, ConvergenceWarning):
            tell(str(warning.message))
    is_interrupted = any(issubclass(warning.category, InterruptedWarning) for warning in caught)
    if is_interrupted and not len(model.history_):
        raise KeyboardInterrupt  # the topics are those of the start
    return model, is_interrupted


def _compare(
    console: Console, counts: Any, numbers: list[int], random_state: int, parameters: dict[str, Any]
) -> Any:
    """Return the comparison of several numbers of topics."""
    from swiftem import select_topics
    from swiftem.fit.watch import progress_bar

    with progress_bar(console) as bar:
        task = bar.add_task("Comparing numbers of topics", total=len(numbers))
        return select_topics(
            counts,
            numbers,
            random_state=random_state,
            verbose=lambda line: bar.update(task, advance=1, description=line.partition(":")[0]),
            **parameters,
        )


def _ending(model: Any, seconds: float, is_interrupted: bool) -> str:
    """Return how the fit ended, in a sentence."""
    ended = "Converged" if model.converged_ else "Not converged"
    spent = f"after {counted(model.n_iter_, 'pass')} over the documents, in {seconds_text(seconds)}"
    value = f"Mean log-likelihood of a word {mean_text(model.log_likelihood_)}."
    return f"{'Interrupted' if is_interrupted else ended} {spent}. {value}"


def _save(model: Any, words: Sequence[str] | None, file: Path) -> None:
    """Save the model with its words; otherwise scikit-learn would require them in every call."""
    if words is not None:
        model.feature_names_in_ = np.array(words, dtype=object)
    model.save(file)


def _apply(
    console: Console,
    model_file: Path,
    corpus: Path,
    text_column: str | None,
    vocabulary: Path | None,
    names: Any,
    device: str | None,
    out: Path,
) -> None:
    """Find a model's topics in documents, show their shares, and write those of each to ``out``."""
    from swiftem.cli.topics_files import write_documents
    from swiftem.data import read_corpus

    model = open_model(model_file, instead="--apply takes a model, written by swiftem topics")
    if not hasattr(model, "components_"):
        raise ValueError(f"apply must be a model of topics, got {type(model).__name__} in {model_file}.")
    model.set_params(**given(device=device))
    words = getattr(model, "feature_names_in_", None)
    given_names: Sequence[str] = ()
    if names is not None:
        heads = [f"word {v}" for v in range(model.n_features_in_)] if words is None else words
        model, given_names, notes = names.apply(model, heads)
        for note in notes:
            console.say(note)
    known = None if words is None else [str(word) for word in words]
    found = read_corpus(
        corpus, known_words=known, text_column=text_column, vocabulary=vocabulary, leave_out=out
    )
    if words is None and found.texts is not None:
        raise ValueError(
            f"{corpus} must be counts, as {model_file} was fitted to words without names, got texts."
        )
    if found.counts.shape[1] != model.n_features_in_:
        raise ValueError(
            f"{corpus} must have {model.n_features_in_:,} words, as many as {model_file} knows, got "
            f"{found.counts.shape[1]:,}."
        )
    for note in found.notes:
        console.say(note)
    console.say(f"{counted(len(found), 'document')} with {found.n_tokens:,.10g} known words.")
    shares = model.transform(found.counts)
    try:
        out.mkdir(parents=True, exist_ok=True)
        file = write_documents(out, found, shares)
    except OSError as error:
        tell(f"The results could not be written to {out}: {error.strerror or error}.")
        raise typer.Exit(FAILED) from None
    lengths = np.asarray(found.counts.sum(axis=1), dtype=np.float64).ravel()
    console.say(topic_table(model, given_names, shares=lengths @ shares / lengths.sum()))
    console.say(f"Shares of the topics in each document: {file}")
