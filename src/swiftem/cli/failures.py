"""Failures of commands: one sentence and an exit code; the group of commands suggests what was meant."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import typer
from typer.core import TyperGroup

from swiftem.core.messages import visible

FAILED = 1
"""Exit code if data or a model cannot be used."""
INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended, as in shells."""
ARGUMENTS = "swiftem.arguments"
"""Key of the words of the command line in the context's ``meta``."""


def tell(sentence: str) -> None:
    """Print a message to standard error, so that standard output has only results."""
    text = visible(sentence)
    typer.echo(at_words(text, get_terminal_size().columns) if sys.stderr.isatty() else text, err=True)


def at_words(text: str, width: int) -> str:
    """Return a sentence in lines of a terminal; a word that is longer than a line is not cut."""
    return fill(text, width, break_long_words=False, break_on_hyphens=False)


def parameter_of(error: Exception) -> str:
    """Return the parameter that an error of the library is about: the first word of its sentence.

    >>> parameter_of(ValueError("tol must be at least 0, got -1."))
    'tol'
    >>> parameter_of(ValueError("The 'tol' parameter of PLSA must be a float."))  # scikit-learn's words
    'tol'
    """
    found = re.match(r"(?:The ')?([a-z]\w*)", str(error))
    name = str(getattr(error, "argument", found[1] if found else ""))
    return {"drop": "columns", "vocabulary": "n_words"}.get(name, name)  # as --columns -A,-B, --words FILE


@contextmanager
def one_sentence(
    context: typer.Context, interrupted: str = "Interrupted; nothing was written."
) -> Iterator[None]:
    """End the program with a sentence instead of a traceback: 1 for files, 2 for options, 130 for Ctrl-C."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has ended: typer ends silently
        raise
    except MemoryError as error:
        tell(f"There is not enough memory ({error})." if str(error) else "There is not enough memory.")
        raise typer.Exit(FAILED) from None
    except (OSError, ValueError, TypeError, ImportError) as error:
        options = {part.name: part.opts[0] for part in context.command.params if part.opts[0][0] == "-"}
        if option := options.get(parameter_of(error)):
            raise typer.BadParameter(str(error), param_hint=f"'{option}'") from None
        if isinstance(error, TypeError):
            raise
        sentence = str(error)
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror.lower() if error.filename is not None else error.strerror
            sentence = reason if error.filename is None else f"{error.filename} cannot be read: {reason}."
        tell(sentence)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        tell(interrupted)
        raise typer.Exit(INTERRUPTED) from None


def fitted_with_warnings(fit: Callable[[], object]) -> bool:
    """Call a fit, print its warnings once each, and return whether Ctrl-C ended it."""
    from sklearn.exceptions import ConvergenceWarning

    from swiftem.fit.estimator import InterruptedWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    told = (warning for warning in caught if issubclass(warning.category, UserWarning))
    # What has not converged is in the summary.
    for sentence in dict.fromkeys(
        str(one.message) for one in told if not issubclass(one.category, ConvergenceWarning)
    ):
        tell(sentence)
    return any(issubclass(warning.category, InterruptedWarning) for warning in caught)


def refuse(context: typer.Context, but: set[str], sentence: str) -> None:
    """Raise BadParameter with this text for the first option on the command line, ``but`` for these."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if option.name not in but and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(sentence, param_hint=f"'{option.opts[0]}'")


SENTENCES = {
    "int_parsing": "{value!r} is not an integer.",
    "int_from_float": "{value!r} is not an integer.",
    "float_parsing": "{value!r} is not a number.",
}
"""Names of pydantic's errors, by which typer reads options, and sentences for them."""


class Group(TyperGroup):
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

    def get_params(self, ctx: Any) -> Any:
        """Return the options of the group."""
        return _without_types(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_types(command.get_params(ctx))
        return command


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


def _without_types(options: list[Any]) -> list[Any]:
    """Return options of which flags have no type in the help: they take no value."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options
