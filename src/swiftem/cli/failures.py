"""Failures of commands: one sentence and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from swiftem.data import UnknownColumnError

__all__ = ["FAILED", "INTERRUPTED", "in_options", "is_interrupt", "one_sentence", "tell", "writing"]

FAILED = 1
"""Exit code if data or a model cannot be used."""
INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended, as shells have it."""


def tell(sentence: str) -> None:
    """Print a message to standard error, so that standard output has only results."""
    typer.echo(sentence, err=True)


def is_interrupt(error: BaseException) -> bool:
    """Tell whether Ctrl-C caused an error: the import of an extension module raises another type."""
    pressed = isinstance(error, ImportError) and isinstance(error.__cause__, KeyboardInterrupt)
    return pressed or isinstance(error, KeyboardInterrupt)


IN_OPTIONS = {
    "checkpoint='": "--checkpoint '",
    ": take resume='auto' to begin one": ": leave --resume out to begin one",
    "resume=True": "--resume",
    "memory_limit must": "--memory-limit must",
    "device must be 'cpu'": "--device must be cpu",
    "device='": "--device '",
    "skip them (read_table has skip_missing=True)": "take --skip-missing",
    "text_column (--text-column on the command line)": "--text-column",
    "text_column is": "--text-column is",
    "vocabulary is": "--vocabulary is",
    "label_column must": "--by must",
    "as_text=True": "--as-text",
    "drop_headers=True": "--drop-headers",
    "drop_common=": "--drop-common ",
    "drop_common must": "--drop-common must",
    "Name another language with stop_words": "Name another language with --stop-words",
    ", or give stop_words": ", or give --stop-words",
    "stop_words must be 'auto', 'english'": "--stop-words must be auto, none, a file of words, en",
    ", None or a list of words, got": ", got",
}
"""Arguments in messages of the library, and the options in their place."""


def in_options(sentence: str) -> str:
    """Return a message of the library with options in place of arguments.

    >>> in_options("checkpoint='a' holds a run already: take resume=True to resume it.")
    "--checkpoint 'a' holds a run already: take --resume to resume it."
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
        if is_interrupt(error):
            tell(interrupted)
            raise typer.Exit(INTERRUPTED) from None
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
    """Add the name of the file to an error of the system."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OSError(f"{out} cannot be written ({reason}).") from None
