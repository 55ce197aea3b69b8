"""``swiftem topics``: from a corpus to topics as a table, files and a page; with --apply, by a model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import typer

from swiftem.cli import options
from swiftem.cli.console import (
    FAILED,
    INTERRUPTED,
    Console,
    fitted_with_warnings,
    one_sentence,
    refuse,
    tell,
)
from swiftem.cli.options import ARGUMENTS, DATA, MODEL, OUTPUT, given, option, read_counts
from swiftem.cli.out_file import writable_folder
from swiftem.cli.rows import open_model
from swiftem.core.process import clock, uninterrupted
from swiftem.show.numbers import counted, mean_text, seconds_text

if TYPE_CHECKING:
    from swiftem import PLSA
    from swiftem.cli.topics_files import Corpus, Fit, Results
    from swiftem.data.documents.counts import CorpusCounts
    from swiftem.topics.explorer.names import TopicNames

MODEL_FILE, PAGE = "model.swiftem", "topics.html"
APPLIES = {"apply", "corpus", "out", "text_column", "n_words", "names", "device"}
"""What --apply takes; all else belongs to new topics."""
MOST_NUMBERS = 8
"""Numbers of topics that are compared."""
N_WORDS = 5000
NONE_YET = "Interrupted before there were topics; nothing was written."

CORPUS = (
    "A folder of text files, a file with one document per line, CSV or Parquet with a column of text, or "
    "counts (UCI, lda-c, MatrixMarket, SciPy's .npz)."
)
WORDS = "Number of words, the most frequent ones; of counts a file with the words, one per line."
STOP = "Words of texts to leave out: of a language such as de, or in a file."
PHRASES = 'Count pairs of words such as "new york" as one word.'
BY = "Show topics by this column of dates or groups; of files in a folder: folder."
APPLY = "Find the topics of this model, instead of new ones."
NAMES = "Names of topics, and topics to merge, from topics.html."
OUT = "Folder for the page, the model and the tables."
CorpusArgument = Annotated[Path, typer.Argument(metavar="CORPUS", help=CORPUS)]
TextColumnOption = Annotated[str | None, option(DATA, "COLUMN", show_default="found by its length")]
WordsOption = Annotated[str, option(DATA, "N|FILE", "--words", help=WORDS)]
StopWordsOption = Annotated[str, option(DATA, "LANGUAGE|FILE|none", help=STOP)]
PhrasesOption = Annotated[bool, option(DATA, "", "--phrases", help=PHRASES)]
TopicsOption = Annotated[
    str, option(MODEL, "K|A:B", "--topics", "-k", help="Number of topics; several are compared.")
]
ApplyOption = Annotated[Path | None, option(MODEL, "MODEL", help=APPLY)]
ByOption = Annotated[str | None, option(OUTPUT, "COLUMN", "--by", help=BY)]
NamesOption = Annotated[Path | None, option(OUTPUT, "FILE", help=NAMES)]
FolderOption = Annotated[Path, option(OUTPUT, "DIR", "--out", "-o", callback=writable_folder, help=OUT)]


def topics(
    context: typer.Context,
    corpus: CorpusArgument,
    text_column: TextColumnOption = None,
    n_words: WordsOption = str(N_WORDS),
    stop_words: StopWordsOption = "english",
    phrases: PhrasesOption = False,
    n_components: TopicsOption = "10",
    apply: ApplyOption = None,
    method: options.Method = None,
    random_state: options.Seed = 0,
    device: options.Device = None,
    memory_limit: options.MemoryLimit = None,
    label_column: ByOption = None,
    names: NamesOption = None,
    out: FolderOption = Path("results/topics"),
) -> None:
    """Find the topics of a collection of texts.

    Writes a page for the browser, the model, and tables of topics and documents. Ctrl-C keeps what is done.
    """
    from swiftem import PLSA
    from swiftem.cli.topics_files import Results
    from swiftem.topics.explorer.names import read_names

    console = Console()
    reading: dict[str, Any] = {"text_column": text_column, "leave_out": out, **_words(n_words)}
    to_name = None if names is None else read_names(names)
    if apply is not None:
        refuse(context, APPLIES, "this is for new topics; those of --apply are as they were fitted.")
        _apply(console, _model_of(apply, device), corpus, reading, to_name, out)
        return
    numbers = thinned(read_counts(n_components))
    parameters = given(method=method, device=device)
    PLSA(**parameters)._validate_params()  # before anything is read
    reading |= {"label_column": label_column, "stop_words": _stop_words(stop_words), "phrases": phrases}
    found = _read(console, corpus, memory_limit, reading, numbers)
    with one_sentence(context, NONE_YET):
        fit = _fit(console, found, numbers, memory_limit, parameters | {"random_state": random_state})
        notes = [*found.notes, *([] if fit.selection is None else [fit.selection.reason])]
        model, given_names = fit.model, ("",) * len(fit.model.components_)
        if to_name is not None:
            model, given_names, lost = to_name.apply(model, found.read.word_names())
            console.say_all(lost)
            notes += lost
    command = shlex.join(context.find_root().meta[ARGUMENTS])
    _write(console, Results(found, fit, model, given_names, notes, command, random_state), out)


def thinned(counts: list[int]) -> list[int]:
    """Return at most :data:`MOST_NUMBERS` of the numbers, from first to last in about equal ratios.

    >>> thinned(list(range(10, 101)))
    [10, 14, 19, 27, 37, 52, 72, 100]
    """
    if len(counts) <= MOST_NUMBERS:
        return counts
    wanted = np.geomspace(counts[0], counts[-1], MOST_NUMBERS)
    return sorted({min(counts, key=lambda count: abs(count - one)) for one in wanted})


def _words(text: str) -> dict[str, Any]:
    """Return the arguments of ``read_corpus`` for a number of words, or for a file of words."""
    if not text.isdigit():
        return {"vocabulary": Path(text)}
    if int(text) < 1:
        raise ValueError(f"n_words must be at least 1, got {text}.")
    return {"n_words": int(text)}


def _stop_words(text: str) -> str | list[str] | None:
    """Return a language, the words of a file, or None."""
    if text != "none" and Path(text).is_file():
        try:
            return Path(text).read_text(encoding="utf-8").split()
        except UnicodeDecodeError:
            raise ValueError(f"{text} must be a text file of stop words in UTF-8.") from None
    return None if text == "none" else text


def _read(
    console: Console, path: Path, memory_limit: str | None, reading: dict[str, Any], numbers: Sequence[int]
) -> Corpus:
    """Return the corpus, and say what is in it; raise ValueError if it has too few documents."""
    from swiftem.cli.topics_files import read_counts_of

    with console.doing("Reading the corpus"):
        found = read_counts_of(path, memory_limit, reading)
    read = found.read
    console.say_all(found.notes)
    console.say(
        f"{counted(found.n_documents, 'document')} with {found.n_tokens:,.10g} words, "
        f"{read.counts.shape[1]:,} of them different."
    )
    if found.n_documents < numbers[-1]:
        each = " (each line is one)" if read.format == "text" else ""
        raise ValueError(
            f"n_components must be at most the number of documents, but {path} has "
            f"{counted(found.n_documents, 'document')}{each}, got {numbers[-1]}."
        )
    if len(numbers) > 1 and found.source is not None:
        raise ValueError("n_components must be one number for counts that are read in blocks.")
    return found


def _fit(
    console: Console,
    corpus: Corpus,
    numbers: list[int],
    memory_limit: str | None,
    parameters: Mapping[str, Any],
) -> Fit:
    """Fit the model, or one for each number of topics; raise KeyboardInterrupt if there is none yet."""
    from swiftem import PLSA, config_context, select_topics
    from swiftem.cli.topics_files import Fit

    began, selection = clock(), None
    if len(numbers) > 1:
        with console.counting("Comparing numbers of topics", len(numbers)) as step:
            selection = select_topics(corpus.read.counts, numbers, verbose=step, **parameters)
        model, is_interrupted = selection.best, selection.interrupted
        console.say(selection.shown)
        console.say()
    else:
        model = PLSA(numbers[0], **parameters, verbose=int(console.is_terminal))
        counts = corpus.read.counts if corpus.source is None else corpus.source
        with config_context(memory_limit=memory_limit):
            is_interrupted = fitted_with_warnings(lambda: model.fit(counts))
        model.verbose = 0  # the bar was for this terminal, not for whoever loads the model
        if is_interrupted and not len(model.history_):
            raise KeyboardInterrupt  # the topics are those of the start
    ended = "Interrupted" if is_interrupted else "Converged" if model.converged_ else "Not converged"
    spent = f"after {counted(model.n_iter_, 'pass')} over the documents, in {seconds_text(clock() - began)}"
    value = f"Mean log-likelihood of a word {mean_text(model.log_likelihood_)}."
    return Fit(model, f"{ended} {spent}. {value}", is_interrupted, selection)


def _write(console: Console, results: Results, out: Path) -> None:
    """Write the model, show it, and write the tables and the page; Ctrl-C keeps the files that are whole."""
    from swiftem.cli.topics_files import write_results
    from swiftem.topics.quality import topic_table

    model, read, written = results.model, results.corpus.read, []
    is_interrupted = results.fit.is_interrupted
    try:
        with uninterrupted():
            out.mkdir(parents=True, exist_ok=True)
            if read.words is not None:  # otherwise scikit-learn would require them in every call
                model.feature_names_in_ = np.array(read.words, dtype=object)
            model.save(out / MODEL_FILE)
            written.append(MODEL_FILE)
        console.say(topic_table(model, results.names, model.coherence(read.counts)))
        console.say()
        console.say(results.fit.ending)
        for file in write_results(results, out):
            written.append(file.name)
    except KeyboardInterrupt:
        is_interrupted = True
    except OSError as error:
        _fail(out, error)
    if is_interrupted:
        console.say(f"Interrupted. Wrote {', '.join(written) or 'nothing'}.")
    if PAGE in written:
        console.say(f"Page: {out / PAGE} (open it in a browser); model and tables are beside it.")
    if is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _fail(out: Path, error: OSError) -> NoReturn:
    tell(f"The results could not be written to {out}: {error.strerror or error}.")
    raise typer.Exit(FAILED) from None


def _model_of(file: Path, device: str | None) -> PLSA:
    """Return the topics in a file."""
    model = open_model(file, instead="--apply takes a model, written by swiftem topics")
    if not hasattr(model, "components_"):
        raise ValueError(f"apply must be a model of topics, got {type(model).__name__} in {file}.")
    found: PLSA = model.set_params(**given(device=device))
    return found


def _apply(
    console: Console, model: PLSA, corpus: Path, reading: dict[str, Any], names: TopicNames | None, out: Path
) -> None:
    """Find a model's topics in documents, show their shares, and write those of each to ``out``."""
    from swiftem.cli.topics_files import write_documents
    from swiftem.data import read_corpus
    from swiftem.topics.quality import topic_table

    words = getattr(model, "feature_names_in_", None)
    given_names: Sequence[str] = ()
    if names is not None:
        heads = [f"word {v}" for v in range(model.n_features_in_)] if words is None else words
        model, given_names, notes = names.apply(model, heads)
        console.say_all(notes)
    known = None if words is None else [str(word) for word in words]
    found = read_corpus(corpus, known_words=known, **reading)
    _check_words(model, found, corpus)
    console.say_all(found.notes)
    console.say(f"{counted(len(found), 'document')} with {found.n_tokens:,.10g} known words.")
    shares = model.transform(found.counts)
    try:
        out.mkdir(parents=True, exist_ok=True)
        file = write_documents(out, found, shares)
    except OSError as error:
        _fail(out, error)
    lengths = np.asarray(found.counts.sum(axis=1), dtype=np.float64).ravel()
    console.say(topic_table(model, given_names, shares=lengths @ shares / lengths.sum()))
    console.say(f"Shares of the topics in each document: {file}")


def _check_words(model: PLSA, found: CorpusCounts, corpus: Path) -> None:
    """Raise ValueError if the words of a corpus are not those of the model."""
    if not hasattr(model, "feature_names_in_") and found.texts is not None:
        raise ValueError(f"{corpus} must be counts, as the model has words without names, got texts.")
    if found.counts.shape[1] != model.n_features_in_:
        raise ValueError(
            f"{corpus} must have {model.n_features_in_:,} words, as many as the model, got "
            f"{found.counts.shape[1]:,}."
        )
