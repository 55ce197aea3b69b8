"""The command ``swiftem``: its commands are in the modules of their names."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from swiftem import __version__
<<<<<<< HEAD
from swiftem.cli.failures import FAILED, INTERRUPTED, Group, tell
from swiftem.cli.fit import fit
from swiftem.cli.impute import impute
from swiftem.cli.info import info
from swiftem.cli.options import DescribedCommand
from swiftem.cli.predict import predict
from swiftem.cli.score import score
from swiftem.cli.screen import Console
from swiftem.cli.select import select
from swiftem.cli.topics import topics
from swiftem.cli.warmup import warmup
=======
from swiftem.cli.choices import (
    AlphaOption,
    BackgroundOption,
    BetaOption,
    CorpusFormat,
    DecorrelationOption,
    TopicsRequest,
    check_limit,
    method_name,
    read_alpha,
    read_counts,
    thinned,
)
from swiftem.cli.failures import FAILED, INTERRUPTED, Group, tell
from swiftem.cli.fit_commands import fit, impute, info, predict, score, select
from swiftem.cli.fit_options import DeviceOption, refuse_given
from swiftem.cli.out_file import writable_folder
from swiftem.cli.table_options import SeedOption
from swiftem.methods import METHODS
>>>>>>> main

EXAMPLES: dict[Callable[..., Any], str] = {
    fit: "flowers.csv --components 3 --out flowers.model",
    select: "flowers.csv --components 1:20",
    predict: "flowers.model more.csv --proba --out labels.csv",
    score: "flowers.model more.csv",
    impute: "flowers.model holes.csv --out filled.csv",
    info: "flowers.model",
    topics: "my-texts --topics 10 --out my-topics",
    warmup: "",
}
"""The commands, and their arguments in an example."""

app = typer.Typer(
    name="swiftem",
    cls=Group,
    help="Fit latent-variable models by stochastic EM.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
)
for command, example in EXAMPLES.items():
    said = f"Example: swiftem {command.__name__} {example}" if example else None
    app.command(cls=DescribedCommand, epilog=said)(command)


def run_command() -> None:
    """Run the command given by the arguments of the process."""
    # Column names may have characters that the terminal lacks; standard error handles them already.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # The same name in messages, also as `python -m swiftem`.
    try:
        app(prog_name="swiftem")
    except KeyboardInterrupt:  # while typer makes its commands
        tell("Interrupted.")
        Console().show_cursor()
        sys.exit(INTERRUPTED)
    except ImportError as error:  # while options are checked: a package is missing, or another version
        tell(str(error))
        sys.exit(FAILED)
    except SystemExit as end:  # while it reads arguments: it would end without a word
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            tell("Interrupted.")
        if end.code == INTERRUPTED:
            Console().show_cursor()  # a bar that Ctrl-C interrupts while it starts leaves it hidden
        raise


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
<<<<<<< HEAD
=======


app.command(epilog="Example: swiftem fit flowers.csv --components 3 --out flowers.model")(fit)
app.command(epilog="Example: swiftem select flowers.csv --components 1:20")(select)
app.command(epilog="Example: swiftem predict flowers.model more.csv --proba --out labels.csv")(predict)
app.command(epilog="Example: swiftem score flowers.model more.csv")(score)
app.command(epilog="Example: swiftem impute flowers.model holes.csv --out filled.csv")(impute)
app.command(epilog="Example: swiftem info flowers.model")(info)


@app.command(epilog="Example: swiftem topics my-texts --topics 10 --out my-topics")
def topics(
    context: typer.Context,
    corpus: Annotated[
        Path,
        typer.Argument(
            metavar="CORPUS",
            help="A folder of text files, a text file with one document per line, CSV or Parquet with a "
            "column of text, or counts (UCI bag-of-words, lda-c, MatrixMarket, SciPy's .npz).",
        ),
    ],
    topics: Annotated[
        str,
        typer.Option(
            "--topics",
            "-k",
            metavar="K|A:B",
            help="How many topics to find; with a range such as 10:100, or a list such as 5,10,20, several "
            "numbers are compared.",
        ),
    ] = "10",
    out: Annotated[Path, _folder("Folder for the page, the model and the tables.")] = Path("results/topics"),
    words: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Size of the vocabulary: the most frequent words are used."),
    ] = 5000,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            callback=method_name,
            help=f"{', '.join(METHODS)}; auto reads each document once by sem and continues with em.",
        ),
    ] = "auto",
    seed: SeedOption = 0,
    max_passes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of passes over the documents.")
    ] = 200,
    format: Annotated[
        CorpusFormat,
        typer.Option(
            metavar="NAME",
            help="text, folder, csv, parquet, uci, lda-c, matrixmarket or npz; auto goes by the ending and "
            "the first lines of the corpus.",
        ),
    ] = CorpusFormat.auto,
    text_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of the table that has the texts.")
    ] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For counts: file with the words, one per line.")
    ] = None,
    stop_words: Annotated[
        str,
        typer.Option(
            metavar="LANGUAGE|FILE",
            help="Words of texts to leave out: those of a language (a code such as de; several: de,en), of a "
            "file, or none.",
        ),
    ] = "english",
    phrases: Annotated[
        bool, typer.Option("--phrases", help='Count pairs of words such as "new york" as one word.')
    ] = False,
    drop_common: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Leave out words that are in more than this share of the documents, such as 0.3.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Show topics by this column of a table: dates or groups. For files in a folder: folder.",
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Names of topics, and topics to merge, as topics.html exports them."
        ),
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="Find the topics of this model in CORPUS, instead of fitting new ones."
        ),
    ] = None,
    background: BackgroundOption = None,
    decorrelation: DecorrelationOption = None,
    alpha: AlphaOption = None,
    beta: BetaOption = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Memory that the fit may use, such as 2GB: larger counts (uci, lda-c) are read in blocks.",
            show_default="counts are loaded",
        ),
    ] = None,
    scratch: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for counts and topics of documents that do not fit into --memory-limit.",
        ),
    ] = None,
    device: DeviceOption = "cpu",
) -> None:
    """Find the topics of a collection of texts.

    Prints them and writes topics.html, which opens in any browser, the model, and
    tables of topics and documents. Ctrl-C keeps what is done.
    """
    check_limit(memory_limit, scratch)
    if apply is None:
        from swiftem.cli.topics import topics as run_topics

        numbers = thinned(read_counts(topics, "topics"))
        request = TopicsRequest(
            corpus,
            numbers[0] if len(numbers) == 1 else tuple(numbers),
            out,
            words,
            method,
            seed,
            max_passes,
            format.value,
            text_column,
            vocabulary,
            by,
            names,
            stop_words,
            phrases,
            drop_common,
            "auto" if background is None else background,
            "auto" if decorrelation is None else decorrelation,
            read_alpha(alpha),
            "auto" if beta is None else beta,
            memory_limit,
            scratch,
            device,
        )
        raise typer.Exit(run_topics(request))
    names_of_all = (option.name or "" for option in context.command.params)
    said = "this is for new topics; those of --apply are as they were fitted: leave it out."
    refuse_given(context, [name for name in names_of_all if name not in OF_APPLY], said)
    from swiftem.cli.topics import apply_topics

    apply_topics(
        apply,
        corpus,
        out,
        format=format.value,
        text_column=text_column,
        vocabulary=vocabulary,
        names=names,
        device=device,
    )


@app.command()
def warmup(
    all: Annotated[
        bool, typer.Option("--all", help="Also compile other methods, and mixtures with unit variances.")
    ] = False,
) -> None:
    """Compile the kernels for large data in advance, and print the cache folder."""
    from swiftem.cli.warmup import warmup as run_warmup

    run_warmup(all)
>>>>>>> main
