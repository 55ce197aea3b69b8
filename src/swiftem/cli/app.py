"""The command ``swiftem``: its commands are in the modules of their names."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from swiftem import __version__
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
