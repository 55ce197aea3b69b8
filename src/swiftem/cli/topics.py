"""``swiftem topics``: from a corpus to topics as a table, files and a page; with --apply, by a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from swiftem.cli.choices import TopicsRequest
from swiftem.cli.failures import FAILED, INTERRUPTED, in_options, one_sentence, tell
from swiftem.cli.out_file import write_table
from swiftem.cli.screen import Console
from swiftem.cli.select import compare_topics, write_comparison
from swiftem.cli.topics_in_blocks import CorpusInBlocks, corpus_in_blocks
from swiftem.core.describe import environment
from swiftem.core.files import write_atomically
from swiftem.core.process import clock, uninterrupted
from swiftem.core.types import Array
from swiftem.data.documents.corpus import read_corpus
from swiftem.data.documents.counts import CorpusCounts
from swiftem.kernels.threads import get_threads
from swiftem.show.numbers import mean_text, passes_text, seconds_text, share_text
from swiftem.topics.explorer.content import explorer_content
from swiftem.topics.explorer.groups import DocumentGroups, group_documents, tokens_by_group
from swiftem.topics.explorer.names import TopicNames, read_names
from swiftem.topics.explorer.page import topics_page
from swiftem.topics.explorer.summary import TopicSummary, summarise_topics

__all__ = ["TopicsRequest", "apply_topics", "topics"]

LEAST_DOCUMENTS = 50
"""As in ``select_topics``."""
MODEL, PAGE = "model.swiftem", "topics.html"


@dataclass(frozen=True)
class Found:
    """What a command has found: the corpus, its topics, and how the fit ended."""

    corpus: CorpusCounts
    model: Any
    ending: str
    groups: DocumentGroups | None
    notes: Sequence[str]
    names: tuple[str, ...] | None = None
    fitted: Any = None
    """The model before topics were merged."""
    selection: Any = None
    """The comparison of numbers of topics."""
    blocks: CorpusInBlocks | None = None
    """All documents, if ``corpus`` is a sample."""


def topics(request: TopicsRequest, console: Console | None = None) -> int:
    """Read the corpus, fit, show the topics, write everything to ``request.out``, and return the exit code.

    Returns
    -------
    int
        0; 1 if the corpus cannot be read or the results not be written; 130 after Ctrl-C.
    """
    console = console or Console()
    # A terminal may break a sentence; a log or a pipe gets it whole. Names may hold what looks like markup.
    say = partial(console.print, soft_wrap=True, markup=False, highlight=False)
    ended = "Interrupted while the corpus was read; nothing was written."
    with one_sentence(ended), console.status("reading the corpus"):
        names = None if request.names is None else read_names(request.names)
        corpus, blocks = _read(request)
        groups = None if request.by is None else group_documents(corpus.labels or (), request.by)
    notes = [*corpus.notes, *(groups.notes if groups else ())]
    for note in notes:
        say(in_options(note))
    size, tokens = (len(corpus), corpus.n_tokens) if blocks is None else (blocks.n_documents, blocks.n_tokens)
    say(f"{_documents(size)} with {tokens:,.10g} words, {corpus.counts.shape[1]:,} of them different.")
    most = request.topics if isinstance(request.topics, int) else max(request.topics)
    if size < most:
        raise typer.BadParameter(
            f"{most} topics need at least as many documents, but {request.title} has "
            + _documents(size)
            + (" (each line is one)." if corpus.format == "text" else "."),
            param_hint="'--topics'",
        )
    with one_sentence("Interrupted before there were topics; nothing was written."):
        if isinstance(request.topics, int):
            model, seconds, interrupted = _fit(
                request, request.topics, corpus.counts if blocks is None else blocks.source, console
            )
            selection = None
        else:
            if blocks is not None:
                said = "counts that are read in blocks need one number: give one, or raise --memory-limit."
                raise typer.BadParameter(said, param_hint="'--topics'")
            if size < LEAST_DOCUMENTS:
                raise typer.BadParameter(
                    f"several numbers are compared on at least {LEAST_DOCUMENTS} documents, but "
                    f"{request.title} has {_documents(size)}: give one number.",
                    param_hint="'--topics'",
                )
            selection, seconds = compare_topics(request, request.topics, corpus.counts, console)
            model, interrupted = selection.best, selection.interrupted
            say(repr(selection))
            notes.append(selection.reason)
        ending = _ending(model, seconds, interrupted)
        found = Found(corpus, model, ending, groups, notes, selection=selection, blocks=blocks)
        if names is not None:
            found = _named(found, names, say)
    written: list[Path] = []
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        with uninterrupted():
            written.append(_save(found.model, corpus, request.out / MODEL))
        summary = summarise_topics(found.model, corpus, given=found.names)
        console.print(_table(summary, console.width))
        say(found.ending)
        _write(request, found, summary, written)
    except KeyboardInterrupt:
        interrupted = True
    except OSError as error:
        tell(f"The results could not be written to {request.out}: {error.strerror or error}.")
        return FAILED
    if interrupted:
        files = ", ".join(file.name for file in written) or "nothing"
        say(f"Interrupted: written is what there was ({files}).")
    if any(file.name == PAGE for file in written):
        say(f"Page: {request.out / PAGE} (open it in a browser); model and tables are beside it.")
    return INTERRUPTED if interrupted else 0


def _read(request: TopicsRequest) -> tuple[CorpusCounts, CorpusInBlocks | None]:
    """Return the corpus; or a sample of it, and where all of it is."""
    if request.memory_limit is not None and request.corpus.exists():
        given = (request.corpus, request.memory_limit, request.format, request.vocabulary, request.scratch)
        if (blocks := corpus_in_blocks(*given)) is not None:
            request.check_for(blocks.sample.format)
            return blocks.sample, blocks
    return read_corpus(
        request.corpus,
        format=request.format,
        n_words=request.words,
        text_column=request.text_column,
        vocabulary=request.vocabulary,
        leave_out=request.out,
        label_column=request.by,
        **request.word_options(),
    ), None


def _named(found: Found, names: TopicNames, say: Callable[[str], None]) -> Found:
    """Return the topics with their names, merged as the file of names says."""
    model, given, notes = names.apply(found.model, found.corpus.word_names())
    for note in notes:
        say(note)
    return replace(found, model=model, fitted=found.model, names=given, notes=[*found.notes, *notes])


def _documents(count: int) -> str:
    return "1 document" if count == 1 else f"{count:,} documents"


def _fit(request: TopicsRequest, number: int, counts: Any, console: Console) -> tuple[Any, float, bool]:
    """Return the fitted model, the seconds it took, and whether Ctrl-C ended it."""
    from sklearn.exceptions import ConvergenceWarning

    from swiftem import PLSA, config_context
    from swiftem.fit.interrupted import InterruptedWarning

    model = PLSA(
        number,
        **request.fit_options(),
        random_state=request.seed,
        verbose=int(console.is_terminal),
    )
    began = clock()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with config_context(memory_limit=request.memory_limit, scratch=request.scratch):
            model.fit(counts)
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    interrupted = any(issubclass(warning.category, InterruptedWarning) for warning in caught)
    if interrupted and not len(model.history_):
        raise KeyboardInterrupt  # what there is, is where it began
    return model, clock() - began, interrupted


def _ending(model: Any, seconds: float, interrupted: bool) -> str:
    """Return how the fit ended, in a sentence."""
    spent = f"after {passes_text(model)} over the documents, in {seconds_text(seconds)}"
    value = f"Mean log-likelihood of a word {mean_text(model.log_likelihood_)}."
    if interrupted:
        return f"Interrupted {spent}. {value}"
    if model.converged_:
        return f"Converged {spent}. {value}"
    return f"Not converged {spent}: raise --max-passes, which may change the topics a little. {value}"


def _save(model: Any, corpus: CorpusCounts, file: Path) -> Path:
    """Save the model with its words; otherwise scikit-learn would require them in every call."""
    model.verbose = 0  # the bar was for this terminal, not for whoever loads the model
    if corpus.words is not None:
        model.feature_names_in_ = np.array(corpus.words, dtype=object)
    try:
        model.save(file)
    finally:
        model.__dict__.pop("feature_names_in_", None)
    return file


def _table(summary: TopicSummary, width: int) -> Table:
    """Return the topics, the most prevalent first; as many words as fit."""
    table = Table(title=f"{len(summary.topics)} topics", box=SIMPLE_HEAD, title_justify="left")
    table.add_column("topic", justify="right")
    table.add_column("share", justify="right")
    table.add_column("words")
    table.add_column("coherence", justify="right")
    for topic in summary.topics:
        coherence = f"{topic.coherence:.2f}".replace("-", "−") if isfinite(topic.coherence) else ""
        name = topic.given or ("background" if topic.is_background else "")
        words = _words(name, topic.label(10 if width >= 100 else 7))
        table.add_row(str(topic.number), share_text(topic.prevalence), words, coherence)
    return table


def _shares_table(model: Any, prevalence: Array, given: Sequence[str], width: int) -> Table:
    """Return the topics' shares of documents that were given to a model, the largest first."""
    table = Table(title="Topics of the documents", box=SIMPLE_HEAD, title_justify="left")
    table.add_column("topic", justify="right")
    table.add_column("share", justify="right")
    table.add_column("words")
    words = model.top_words(n=10 if width >= 100 else 7)
    for k in np.argsort(-prevalence, kind="stable").tolist():
        name = given[k] or ("background" if k == model.background_ else "")
        table.add_row(str(k), share_text(prevalence[k]), _words(name, ", ".join(words[k])))
    return table


def _alpha(model: Any) -> str:
    if model.alpha != "learn":
        return str(model.alpha)
    return f"learned, {model.alpha_.min():.2g} to {model.alpha_.max():.2g}"


def _words(given: str, words: str) -> Text:
    return Text.assemble((given, "bold"), ": ", words) if given else Text(words)


def write_documents(folder: Path, corpus: CorpusCounts, shares: Array) -> Path:
    """Write the table of documents: name, number of words, and a share for each topic; return the file."""
    file = folder / "document_topics.parquet"
    columns = {f"topic_{k}": np.ascontiguousarray(column) for k, column in enumerate(shares.T)}
    lengths, names = np.asarray(corpus.counts.sum(axis=1)).ravel(), np.array(corpus.names, dtype=object)
    write_table(file, {"document": names, "words": lengths, **columns})
    return file


def _write(request: TopicsRequest, found: Found, summary: TopicSummary, written: list[Path]) -> None:
    """Write tables and page; each file is added to ``written`` when it is whole."""
    corpus, model, fitted = found.corpus, found.model, found.fitted or found.model
    # Not doc_topic_, which is a pass behind the topics: new texts are folded in, too.
    shares = model.transform(corpus.counts)
    components = np.asarray(model.components_)
    order = np.argsort(-components, axis=1, kind="stable")
    names = corpus.word_names()
    words = {
        "topic": np.repeat(np.arange(len(components)), components.shape[1]),
        "word": np.array(names, dtype=object)[order.ravel()],
        "probability": np.take_along_axis(components, order, axis=1).ravel(),
    }
    file = request.out / "topic_words.parquet"
    write_table(file, words)
    written.append(file)
    if found.blocks is None:
        written.append(write_documents(request.out, corpus, shares))
    else:
        written.append(request.out / "document_topics.parquet")
        found.blocks.write_documents(written[-1], model)
    files = {
        MODEL: "the model; swiftem topics --apply gives new texts to it",
        file.name: "every topic's words with their probabilities",
        written[-1].name: "every document's topics",
    }
    if found.groups is not None:
        written.append(_write_groups(request, found, shares))
        files[written[-1].name] = f"every topic's share by {request.by}"
    if found.selection is not None:
        written += write_comparison(found.selection, request.out, ".parquet")
        files[written[-1].name] = "perplexity, coherence and stability by number of topics"
    settings = {
        "corpus": str(request.corpus),
        "read as": corpus.format,
        "method": f"{request.method} ({model.method_})" if request.method == "auto" else request.method,
        "topics": f"{len(fitted.components_)}"
        + ("" if isinstance(request.topics, int) else f" of {request.numbers}"),
        "alpha, beta": f"{_alpha(fitted)}, {request.beta}",
        "background, decorrelation": f"{request.background}, {request.decorrelation}",
        "seed": str(request.seed),
        "most passes": str(request.max_passes),
        "stationarity": f"{fitted.stationarity_:.2g} (0 at a stationary point)",
        "mean log-likelihood": f"{mean_text(fitted.log_likelihood_)} per word",
        "passes": str(fitted.n_iter_),
    }
    facts = environment("scipy", "scikit-learn") | {
        "threads": str(get_threads()),
        "made": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    by = None if found.groups is None else (str(request.by), found.groups)
    content = explorer_content(model, corpus, shares, summary, title=request.title, names=found.names, by=by)
    html = topics_page(
        content,
        summary,
        fitted.history_,
        fit=found.ending,
        command=request.command,
        settings=settings,
        facts=facts,
        notes=[in_options(note) for note in found.notes],
        files=files,
    )
    write_atomically(request.out / PAGE, html.encode("utf-8", "backslashreplace"))
    written.append(request.out / PAGE)


def _write_groups(request: TopicsRequest, found: Found, shares: Array) -> Path:
    """Write the table of groups: label, documents, words, and a share for each topic; return the file."""
    assert found.groups is not None
    sums, documents = tokens_by_group(found.groups, found.corpus, shares)
    words = sums.sum(axis=1)
    of_words = sums / np.where(words > 0, words, np.nan)[:, None]
    file = request.out / "topics_by.parquet"
    columns = {f"topic_{k}": np.ascontiguousarray(column) for k, column in enumerate(of_words.T)}
    labels = np.array(found.groups.labels, dtype=object)
    write_table(file, {str(request.by): labels, "documents": documents, "words": words, **columns})
    return file


def apply_topics(
    model_file: Path,
    corpus: Path,
    out: Path,
    *,
    format: str = "auto",
    text_column: str | None = None,
    vocabulary: Path | None = None,
    names: Path | None = None,
    device: str = "cpu",
    console: Console | None = None,
) -> None:
    """Find a model's topics in documents, show their shares, and write those of each to ``out``."""
    console = console or Console()
    say = partial(console.print, soft_wrap=True, markup=False, highlight=False)
    from swiftem import PLSA

    with one_sentence():
        model = PLSA.load(model_file).set_params(device=device)
        given: tuple[str, ...] = ("",) * len(model.components_)
        if names is not None:
            words = getattr(model, "feature_names_in_", [f"word {v}" for v in range(model.n_features_in_)])
            model, given, notes = read_names(names).apply(model, words)
            for note in notes:
                say(note)
        found = _read_for(
            model,
            model_file,
            corpus,
            format=format,
            text_column=text_column,
            vocabulary=vocabulary,
            leave_out=out,
        )
        for note in found.notes:
            say(in_options(note))
        say(f"{_documents(len(found))} with {found.n_tokens:,.10g} known words.")
        with warnings.catch_warnings():
            # The columns are the model's own; scikit-learn would like to be told by a data frame.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            shares = model.transform(found.counts)
    try:
        out.mkdir(parents=True, exist_ok=True)
        file = write_documents(out, found, shares)
    except OSError as error:
        tell(f"The results could not be written to {out}: {error.strerror or error}.")
        raise typer.Exit(FAILED) from None
    lengths = np.asarray(found.counts.sum(axis=1), dtype=np.float64).ravel()
    console.print(_shares_table(model, lengths @ shares / lengths.sum(), given, console.width))
    say(f"Shares of the topics in each document: {file}")


def _read_for(model: Any, model_file: Path, corpus: Path, **options: Any) -> CorpusCounts:
    """Return the corpus in the model's words."""
    words = getattr(model, "feature_names_in_", None)
    if words is not None:
        return read_corpus(corpus, known_words=[str(word) for word in words], **options)
    found = read_corpus(corpus, **options)
    n_words = model.components_.shape[1]
    if found.texts is not None:
        raise ValueError(
            f"{corpus} must be counts, as {model_file} was fitted to words without names, got texts."
        )
    if found.counts.shape[1] != n_words:
        raise ValueError(
            f"{corpus} must have {n_words:,} words, as many as {model_file} knows, got "
            f"{found.counts.shape[1]:,}."
        )
    return found
