"""The commands and their options; what a command does is in a module of its name."""

from __future__ import annotations

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


@app.command()
def demo(
    epochs: Annotated[
        int, typer.Option(min=1, help="Epochs of each method, n iterations each; the paper shows 100.")
    ] = 100,
    n: Annotated[int, typer.Option("--n", min=2, help="Samples to draw; the paper has 10,000.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples and of the methods' draws.")] = 0,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", callback=_writable_folder, help="Folder for the table and the figure."),
    ] = Path("results/demo"),
) -> None:
    """Compare the paper's five methods on its Gaussian example.

    EM, sEM, iEM, sEM-VR and fiEM fit two overlapping Gaussians.
    Table and figure show how far the means are from where batch EM ends.
    Ctrl-C keeps what is done.
    """
    from swiftem.cli.demo import run_demo

    raise typer.Exit(run_demo(epochs=epochs, n=n, seed=seed, out=out))
