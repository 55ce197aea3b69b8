"""The commands and their options; what a command does is in a module of its name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from swiftem import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    name="swiftem",
    help="Fit latent-variable models by stochastic EM.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
)


def main() -> None:
    """Run the command line."""
    # The same name in messages, also as `python -m swiftem`.
    app(prog_name="swiftem")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"swiftem {__version__}")
        raise typer.Exit


@app.callback()
def _options_of_all_commands(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


def _writable_folder(folder: Path) -> Path:
    """Make ``folder``, or refuse it now: after the computation would be too late."""
    import tempfile

    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"{folder} is a file: name a folder for the results.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise typer.BadParameter(f"{folder} cannot be written to ({reason}): name another folder.") from None
    return folder


class Experiments(StrEnum):
    """What ``reproduce`` takes."""

    gmm_precision = "gmm-precision"
    gmm_scaling = "gmm-scaling"
    plsa = "plsa"
    all = "all"


@app.command()
def reproduce(
    name: Annotated[
        Experiments,
        typer.Argument(
            metavar="NAME",
            help="gmm-precision and gmm-scaling: the two panels of the paper's Gaussian figure; "
            "plsa: its topic-model figure; all: everything in one report.",
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Under two minutes: smaller samples, only known weights, fewer epochs and runs of plsa.",
        ),
    ] = False,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Repetitions, each with its own data or start and its own draws.",
            show_default="5; of plsa 3, with --quick 1",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples, starts and draws.")] = 0,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="For plsa: a text file, one document a line, instead of the built-in docstrings. "
            "May be given several times.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", callback=_writable_folder, help="Folder for numbers, figures and report."
        ),
    ] = Path("results/reproduce"),
) -> None:
    """Do the paper's experiments and hold its claims against the numbers.

    Writes the raw numbers (CSV), figures (PNG, SVG) and report.html, which opens in any browser.
    Ctrl-C keeps what is done.
    """
    if corpus and name in (Experiments.gmm_precision, Experiments.gmm_scaling):
        raise typer.BadParameter("only plsa and all read a corpus.", param_hint="--corpus")
    from swiftem.cli.reproduce import Request
    from swiftem.cli.reproduce import reproduce as run_reproduce

    raise typer.Exit(run_reproduce(Request.of(name.value, quick, runs, seed, corpus or [], out)))


class TopicMethod(StrEnum):
    """How ``topics`` fits."""

    auto = "auto"
    em = "em"
    sem = "sem"
    iem = "iem"
    sem_vr = "sem-vr"
    fiem = "fiem"


class CorpusFormat(StrEnum):
    """What ``topics`` reads."""

    auto = "auto"
    text = "text"
    folder = "folder"
    csv = "csv"
    parquet = "parquet"
    uci = "uci"
    lda_c = "lda-c"
    matrixmarket = "matrixmarket"
    npz = "npz"


@app.command()
def topics(
    corpus: Annotated[
        Path | None,
        typer.Argument(
            metavar="CORPUS",
            help="A folder of text files, a text file with one document a line, CSV or Parquet with a "
            "column of text, or counts (UCI bag-of-words, lda-c, MatrixMarket, SciPy's .npz). "
            "Without it, the docstrings of the Python packages that are installed.",
        ),
    ] = None,
    topics: Annotated[int, typer.Option("--topics", "-k", min=1, help="How many topics to find.")] = 10,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", callback=_writable_folder, help="Folder for the page, the model and the tables."
        ),
    ] = Path("results/topics"),
    words: Annotated[
        int, typer.Option(min=1, help="How many words of texts to count: the most frequent ones.")
    ] = 5000,
    method: Annotated[
        TopicMethod,
        typer.Option(
            metavar="NAME",
            help="em, sem, iem, sem-vr or fiem; auto reads each document once by sem and goes on with em.",
        ),
    ] = TopicMethod.auto,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the start and of the draws.")] = 0,
    max_passes: Annotated[int, typer.Option(min=1, help="Most passes over the documents.")] = 100,
    format: Annotated[
        CorpusFormat,
        typer.Option(
            metavar="NAME",
            help="text, folder, csv, parquet, uci, lda-c, matrixmarket or npz; auto goes by the corpus' "
            "ending and "
            "its first lines.",
        ),
    ] = CorpusFormat.auto,
    text_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of a table that has the texts.")
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For counts: the words, one a line.")
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Find the topics of this model in CORPUS, instead of new ones."),
    ] = None,
) -> None:
    """Find the topics of a collection of texts.

    Prints the topics and writes topics.html, which opens in any browser, the model, and the tables of
    topics and documents. Ctrl-C keeps what is done.
    """
    if apply is None:
        from swiftem.cli.topics import TopicsRequest
        from swiftem.cli.topics import topics as run_topics

        request = TopicsRequest(
            corpus, topics, out, words, method.value, seed, max_passes, format.value, text_column, vocabulary
        )
        raise typer.Exit(run_topics(request))
    if corpus is None:
        raise typer.BadParameter("name the corpus whose topics are to be found.", param_hint="CORPUS")
    from swiftem.cli.apply_topics import apply_topics

    raise typer.Exit(
        apply_topics(apply, corpus, out, format=format.value, text_column=text_column, vocabulary=vocabulary)
    )
