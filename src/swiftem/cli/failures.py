"""Failures of commands: one sentence and an exit code; the group of commands says what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from swiftem.core.messages import visible
from swiftem.data import UnknownColumnError

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "Group",
    "in_options",
    "one_sentence",
    "plain",
    "tell",
    "writing",
]

FAILED = 1
"""Exit code if data or a model cannot be used."""
INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended, as shells have it."""


def tell(sentence: str) -> None:
    """Print a message to standard error, so that standard output has only results."""
    typer.echo(visible(sentence), err=True)


IN_OPTIONS = {
    "checkpoint='": "--checkpoint '",
    "fewer components, a larger reg_covar or a prior": "fewer --components or a larger --reg-covar",
    ": use resume='auto' to begin one": ": leave --resume out to begin one",
    "resume=True": "--resume",
    "memory_limit must": "--memory-limit must",
    "device_memory_limit must": "--device-memory-limit must",
    "device must be 'cpu'": "--device must be cpu",
    "device='": "--device '",
    "data can only be read in order, and": (
        "text files are read in order (several files, or one with --memory-limit), and"
    ),
    "leave out such rows, or give student-t(covariance='diag')": (
        "use --skip-missing, or --family \"student-t(covariance='diag')\""
    ),
    "leave out such rows, or choose another family": "use --skip-missing, or another --family",
    "has no unit vector, leave out such rows": "has no unit vector, use --skip-missing",
    "skip them (read_table has skip_missing=True)": (
        "use --skip-missing (fit and select also have --ignore-missing)"
    ),
    "text_column (--text-column on the command line)": "--text-column",
    "text_column is": "--text-column is",
    "vocabulary is": "--vocabulary is",
    "label_column must": "--by must",
    "label_column is": "--by is",
    "drop_common is": "--drop-common is",
    "stop_words is": "--stop-words is",
    "phrases is": "--phrases is",
    "drop_common=": "--drop-common ",
    "drop_common must": "--drop-common must",
    "stop_words must be 'english'": "--stop-words must be none, a file of words, english",
    ", None or a list of words, got": ", got",
}
"""Arguments in messages of the library, and the options in their place."""


def in_options(sentence: str) -> str:
    """Return a message of the library with options in place of arguments.

    >>> in_options("checkpoint='a' holds a run already: use resume=True to resume it.")
    "--checkpoint 'a' holds a run already: use --resume to resume it."
    """
    for words, option in IN_OPTIONS.items():
        sentence = sentence.replace(words, option)
    return sentence


@contextmanager
def one_sentence(interrupted: str = "Interrupted; nothing was written.") -> Iterator[None]:
    """End the program with a sentence instead of a traceback: 1 for files, 2 for options, 130 for Ctrl-C."""
    try:
        yield
    except UnknownColumnError as error:
        raise typer.BadParameter(str(error), param_hint=f"'--{error.argument}'") from None
    except BrokenPipeError:  # the reader of the output has ended: typer ends silently
        raise
    except MemoryError as error:
        tell(f"There is not enough memory ({error})." if str(error) else "There is not enough memory.")
        raise typer.Exit(FAILED) from None
    except (OSError, ValueError, ImportError) as error:
        sentence = str(error)
        if isinstance(error, OSError) and error.strerror and error.filename is not None:
            sentence = f"{error.filename} cannot be read: {error.strerror.lower()}."
        tell(in_options(sentence))
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        tell(interrupted)
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Create the folder of a file, and add the file's name to an error of the system."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OSError(f"{out} cannot be written ({reason}).") from None


SENTENCES = {
    "int_parsing": "{value!r} is not an integer.",
    "int_from_float": "{value!r} is not an integer.",
    "float_parsing": "{value!r} is not a number.",
    "finite_number": "{value!r} is not a finite number.",
    "greater_than_equal": "{value} is less than {ge}.",
    "less_than_equal": "{value} is more than {le}.",
}
"""What pydantic, by which later versions of typer read options, calls an error, and the sentence for it."""


class Group(TyperGroup):
    """The commands of ``swiftem``."""

    def make_context(self, *arguments: Any, **given: Any) -> Any:
        """Read the options of the group."""
        with _visible_errors():
            return super().make_context(*arguments, **given)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an invalid option is named with its value and with the name that was meant."""
        with _visible_errors():
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
    """Return the sentence of an error: with the value, and the choice that is close to it.

    >>> plain(typer.BadParameter("'fulll' is not one of 'full', 'tied'."))
    "'fulll' is not one of 'full', 'tied': did you mean 'full'?"
    """
    sentence = error.message.removeprefix("Value error, ")
    cause: Any = error.__cause__
    found = cause.errors()[0] if hasattr(cause, "errors") else {}
    if found.get("type") in SENTENCES:
        sentence = SENTENCES[found["type"]].format(value=found["input"], **found.get("ctx", {}))
    if choice := re.fullmatch(r"'(.*)' is not one of (.*)\.", sentence):
        close = get_close_matches(choice[1].lower(), re.findall(r"'([^']*)'", choice[2]), n=1)
        sentence = f"{sentence[:-1]}: did you mean {close[0]!r}?" if close else sentence
    return sentence


def _without_types(options: list[Any]) -> list[Any]:
    """Return options of which flags have no type in the help: they take no value."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options
