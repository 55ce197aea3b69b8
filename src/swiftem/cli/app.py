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
