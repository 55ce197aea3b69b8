"""The command ``swiftem``: its commands are in the modules of their names."""

from __future__ import annotations

import inspect
import io
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from swiftem import __version__
from swiftem.cli.console import FAILED, INTERRUPTED, Console, one_sentence, tell
from swiftem.cli.fit import fit
from swiftem.cli.impute import impute
from swiftem.cli.info import info
from swiftem.cli.options import ARGUMENTS
from swiftem.cli.predict import predict
from swiftem.cli.score import score
from swiftem.cli.select import select
from swiftem.cli.topics import topics
from swiftem.cli.warmup import warmup
from swiftem.core.messages import visible

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

SOURCES = {
    "fit": ("swiftem.GaussianMixture", "swiftem.Mixture"),
    "select": ("swiftem.select", "swiftem.GaussianMixture", "swiftem.Mixture"),
    "topics": ("swiftem.PLSA", "swiftem.data.read_corpus"),
}
"""Where the parameters of commands are documented."""


SENTENCES = {
    "int_parsing": "{value!r} is not an integer.",
    "int_from_float": "{value!r} is not an integer.",
    "float_parsing": "{value!r} is not a number.",
}
"""Names of pydantic's errors, by which typer reads options, and sentences for them."""


class _PlainHelp:
    """Has an option --help without a type: it takes no value."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option."""
        found = super().get_help_option(ctx)  # type: ignore[misc]
        if found is not None:
            found.metavar = ""
        return found


class Group(_PlainHelp, TyperGroup):
    """The commands of ``swiftem``."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **given: Any) -> Any:
        """Read the options of the group, and keep the words of the command line."""
        words = [str(info_name), *args]
        with _visible_errors():
            context = super().make_context(info_name, args, *rest, **given)
        context.meta[ARGUMENTS] = words
        return context

    def invoke(self, ctx: Any) -> Any:
        """Run a command; errors of options have a sentence of their own."""
        with _visible_errors(), warnings.catch_warnings():
            # Columns are matched by the commands; scikit-learn would like to be told by data frames.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            try:
                return super().invoke(ctx)
            except typer.BadParameter as error:
                error.message = plain(error)
                raise


@contextmanager
def _visible_errors() -> Iterator[None]:
    """Make values in the sentences of typer visible."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's, whose base has moved between versions
            error.message = visible(error.message)  # type: ignore[attr-defined]
        raise


def plain(error: typer.BadParameter) -> str:
    """Return the sentence of an error, with the choice that is close to the value.

    >>> plain(typer.BadParameter("kind must be 'full' or 'tied', got 'fulll'."))
    "kind must be 'full' or 'tied', got 'fulll': did you mean 'full'?"
    """
    sentence = error.message.removeprefix("Value error, ")
    cause: Any = error.__cause__
    found = cause.errors()[0] if hasattr(cause, "errors") else {}
    if found.get("type") in SENTENCES:
        return SENTENCES[found["type"]].format(value=found["input"])
    choices, got, value = sentence.rpartition(", got '")
    close = get_close_matches(value.lower().rstrip("'."), re.findall(r"'([^']*)'", choices), n=1)
    return f"{sentence.rstrip('.')}: did you mean {close[0]!r}?" if got and close else sentence


class DescribedCommand(_PlainHelp, TyperCommand):
    """A command whose options are described as the library's parameters of the same name.

    Its failures are one sentence.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with one_sentence(ctx):
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; options that have no text of their own get the library's."""
        described: dict[str, tuple[str, Any]] = {}
        for path in reversed(SOURCES.get(self.name or "", ())):
            module, _, name = path.rpartition(".")
            described |= parameters_of(getattr(import_module(module), name))
        for part in self.params:
            if part.name in described and hasattr(part, "help"):
                sentence, default = described[part.name]
                part.help = part.help or sentence
                # Only in the help: the command itself leaves it to the library.
                part.default = default if part.default is None else part.default
        super().format_help(ctx, formatter)


def parameters_of(described: Any) -> dict[str, tuple[str, Any]]:
    """Return the first sentence on each parameter in a docstring, and its default.

    >>> def scaled(size: float = 1.0):
    ...     '''Scale.
    ...
    ...     Parameters
    ...     ----------
    ...     size : float
    ...         Size of the ``result``: see below. It is not checked.
    ...     '''
    >>> parameters_of(scaled)
    {'size': ('Size of the result.', 1.0)}
    """
    signature = inspect.signature(described).parameters
    section = (inspect.getdoc(described) or "").partition("Parameters\n----------\n")[2].partition("\n---")[0]
    texts: dict[str, str] = {}
    for line in section.splitlines():
        if line[:1].strip():
            head = line
            texts[head] = ""
        else:
            texts[head] += f" {line.strip()}"
    found = {}
    for head, text in texts.items():
        names, _, kind = head.partition(" : ")
        sentence = re.split(r"[.:;] |, as in |\.$", text.replace("`", "").strip())[0]
        if choices := re.findall(r'"([^"]*)"', kind.partition("}")[0]):
            sentence += f": {', '.join(choices)}"
        for name in names.split(", "):
            default = signature[name].default if name in signature else None
            is_required = default is inspect.Parameter.empty
            found[name] = f"{sentence}.", None if is_required else default
    return found


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
        typer.Option(
            "--version", metavar="", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass
