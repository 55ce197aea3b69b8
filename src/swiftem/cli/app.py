"""The commands and their options; what a command does is in a module of its name."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from swiftem import __version__
from swiftem.cli.choices import CorpusFormat, Covariance, Experiments, Method
from swiftem.cli.failures import INTERRUPTED, tell
from swiftem.cli.fit_options import (
    GAUSSIAN,
    CheckpointEveryOption,
    CheckpointOption,
    FamilyOption,
    MemoryLimitOption,
    MethodOption,
    ResumeOption,
    ScratchOption,
    UpdateOption,
    check_fit,
    check_limit,
    missing,
    model_file_if_any,
    refuse_options_of_a_fit,
    refuse_options_of_gaussians,
)
from swiftem.cli.out_file import not_the_same, table_file, writable_folder

__all__ = ["app", "run_command"]

app = typer.Typer(
    name="swiftem",
    help="Fit latent-variable models by stochastic EM.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
)


def run_command() -> None:
    """Run the command that the arguments of the process name."""
    # Names of columns may have letters that the terminal has not; standard error is so already.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # The same name in messages, also as `python -m swiftem`.
    try:
        app(prog_name="swiftem")
    except KeyboardInterrupt:  # while typer makes its commands
        tell("Interrupted.")
        sys.exit(INTERRUPTED)
    except SystemExit as end:  # while it reads arguments: it would end without a word
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            tell("Interrupted.")
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


TableArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="CSV (.csv, .tsv, .txt), .parquet or .npy; columns that are not numeric are left out.",
    ),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that swiftem fit wrote.")]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...", help="Columns to use, by name or by number from 0.", show_default="all numeric"
    ),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of weights of the rows, by name or by number from 0."),
]


def _split(columns: str | None) -> list[str] | None:
    """Return the columns of an option: as in a line of CSV, so that a name may have a comma in quotes."""
    import csv

    return None if columns is None else [name.strip() for name in next(csv.reader([columns]), [])]


@app.command(epilog="Example: swiftem fit flowers.csv --components 3 --out flowers.model")
def fit(
    context: typer.Context,
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE",
            help="CSV (.csv, .tsv, .txt), .parquet or .npy, one file, several, or a folder; columns that are "
            "not numeric are left out.",
        ),
    ],
    components: Annotated[
        int | None,
        typer.Option(
            "--components", "-m", metavar="M", min=1, help="Number of components.", show_default="required"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="MODEL",
            callback=model_file_if_any,
            help="File for the model; an older one is replaced.",
            show_default="required; with --update the model itself",
        ),
    ] = None,
    covariance: Annotated[
        Covariance,
        typer.Option(metavar="KIND", help="Of the covariances of Gaussians: full, tied, diag or spherical."),
    ] = Covariance.full,
    family: FamilyOption = GAUSSIAN,
    method: MethodOption = "auto",
    columns: ColumnsOption = None,
    weights: WeightsOption = None,
    max_passes: Annotated[int, typer.Option(metavar="N", min=1, help="Most passes over the rows.")] = 100,
    tol: Annotated[
        float,
        typer.Option(metavar="X", min=0.0, help="Stop when a pass gains less in the mean log-likelihood."),
    ] = 1e-3,
    starts: Annotated[int, typer.Option(metavar="N", min=1, help="Starts; the best fit is kept.")] = 1,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of starts and draws.")
    ] = 0,
    reg_covar: Annotated[
        float, typer.Option(metavar="X", min=0.0, help="Added to the variances, which keeps them above 0.")
    ] = 1e-6,
    batch_size: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Rows that a step draws; em takes all.", show_default="auto"),
    ] = None,
    step_size: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Step of sem, sem-vr and fiem: above 0, at most 1.", show_default="auto"
        ),
    ] = None,
    memory_limit: MemoryLimitOption = None,
    scratch: ScratchOption = None,
    checkpoint: CheckpointOption = None,
    checkpoint_every: CheckpointEveryOption = None,
    resume: ResumeOption = False,
    update: UpdateOption = None,
) -> None:
    """Fit a mixture to a table and write it to a file.

    Ctrl-C keeps the model so far.
    """
    not_the_same(out, *tables)
    if update is not None:
        from swiftem.cli.apply_model import update as run_update

        refuse_options_of_a_fit(context)
        run_update(update, tables, _split(columns), weights, update if out is None else out)
        raise typer.Exit
    if components is None or out is None:
        raise missing("--components" if components is None else "--out")
    check_limit(memory_limit, scratch)
    refuse_options_of_gaussians(context, family)
    check_fit(method, batch_size, step_size, checkpoint, checkpoint_every, resume)
    from swiftem.cli.fit import FitRequest
    from swiftem.cli.fit import fit as run_fit

    parameters = {
        "n_components": components, "method": method, "max_iter": max_passes, "tol": tol, "n_init": starts,
        "random_state": seed, "batch_size": "auto" if batch_size is None else batch_size,
        "step_size": "auto" if step_size is None else step_size, "memory_limit": memory_limit,
        "scratch": None if scratch is None else str(scratch), "checkpoint": checkpoint,
        "checkpoint_every": checkpoint_every, "resume": resume,
    }  # fmt: skip
    if family == GAUSSIAN:
        parameters |= {"covariance_type": covariance.value, "reg_covar": reg_covar}
    else:
        parameters["family"] = family
    raise typer.Exit(run_fit(FitRequest(tables, out, _split(columns), weights, parameters)))


@app.command(epilog="Example: swiftem predict flowers.model more.csv --proba --out labels.csv")
def predict(
    model: ModelArgument,
    table: TableArgument,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each component.")] = False,
    log_likelihood: Annotated[
        bool, typer.Option("--log-likelihood", help="Add the log-likelihood of each row.")
    ] = False,
    columns: ColumnsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            callback=table_file,
            help="File for the result: .csv, .tsv, .parquet or .npy.",
            show_default="CSV to standard output",
        ),
    ] = None,
) -> None:
    """Say to which component each row of a table belongs.

    Columns are found by their names where model and table have names, else by position.
    """
    not_the_same(out, model, table)
    from swiftem.cli.apply_model import predict as run_predict

    run_predict(model, table, columns=_split(columns), proba=proba, log_likelihood=log_likelihood, out=out)


@app.command(epilog="Example: swiftem score flowers.model more.csv")
def score(
    model: ModelArgument, table: TableArgument, columns: ColumnsOption = None, weights: WeightsOption = None
) -> None:
    """Say how well a model fits a table: mean log-likelihood, BIC, AIC and ICL.

    Criteria are the lower the better.
    """
    from swiftem.cli.apply_model import score as run_score

    run_score(model, table, columns=_split(columns), weights=weights)


@app.command(epilog="Example: swiftem info flowers.model")
def info(model: ModelArgument) -> None:
    """Show what is in a model's file."""
    from swiftem.cli.info import info as run_info

    run_info(model)


@app.command(epilog="Example: swiftem topics my-texts --topics 10 --out my-topics")
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
    topics: Annotated[
        int, typer.Option("--topics", "-k", metavar="K", min=1, help="How many topics to find.")
    ] = 10,
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", callback=writable_folder, help="Folder for the page, the model and the tables."
        ),
    ] = Path("results/topics"),
    words: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many words of texts to count: the most frequent.")
    ] = 5000,
    method: Annotated[
        Method,
        typer.Option(
            metavar="NAME",
            help="em, sem, iem, sem-vr or fiem; auto reads each document once by sem and goes on with em.",
        ),
    ] = Method.auto,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of the start and of the draws.")
    ] = 0,
    max_passes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Most passes over the documents.")
    ] = 200,
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

    Prints them and writes topics.html, which opens in any browser, the model, and
    tables of topics and documents. Ctrl-C keeps what is done.
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
    from swiftem.cli.topics import apply_topics

    apply_topics(apply, corpus, out, format=format.value, text_column=text_column, vocabulary=vocabulary)


@app.command()
def warmup(
    all: Annotated[
        bool, typer.Option("--all", help="Also for other methods, and for mixtures of unit variances.")
    ] = False,
) -> None:
    """Compile ahead what fits of large data use, and say where it is kept."""
    from swiftem.cli.warmup import warmup as run_warmup

    run_warmup(all)


@app.command()
def reproduce(
    name: Annotated[
        Experiments,
        typer.Argument(
            metavar="NAME",
            help="gmm-precision and gmm-scaling: the two panels of the paper's Gaussian figure; "
            "plsa: its topic-model figure; theory: its theorems in numbers; all: everything in one report.",
        ),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Under two minutes: smaller samples, only known weights, fewer epochs and runs of plsa "
            "and theory.",
        ),
    ] = False,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Repetitions, each with its own data or start and its own draws.",
            show_default="5; of plsa 3, with --quick 1; of theory with --quick 2",
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
        typer.Option(metavar="DIR", callback=writable_folder, help="Folder for numbers, figures and report."),
    ] = Path("results/reproduce"),
) -> None:
    """Do the paper's experiments and hold its claims against the numbers.

    Writes the raw numbers (CSV), figures (PNG, SVG) and report.html, which opens in any browser.
    Ctrl-C keeps what is done.
    """
    if corpus and name not in (Experiments.plsa, Experiments.all):
        raise typer.BadParameter("only plsa and all read a corpus.", param_hint="--corpus")
    from swiftem.cli.reproduce import Request
    from swiftem.cli.reproduce import reproduce as run_reproduce

    raise typer.Exit(run_reproduce(Request.of(name.value, quick, runs, seed, corpus or [], out)))
