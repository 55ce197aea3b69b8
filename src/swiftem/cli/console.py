"""What commands print: results, messages, and failures as one sentence with an exit code."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import rich.console
import typer
from rich.segment import Segment
from rich.text import Text

from swiftem.core.messages import visible
from swiftem.show.table import Table

FAILED = 1
"""Exit code if data or a model cannot be used."""
INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended, as in shells."""
PIPE = 100_000
"""Width of a line that is not in a terminal."""
MOST_ROWS = 60
"""Rows of a table that is shown beside other results."""


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


class Console(rich.console.Console):
    """Standard output: text is wrapped at words in a terminal, and not at all elsewhere."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Return the segments of what is printed, with visible text; rich's own sequences are kept."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def say(self, line: object = "") -> None:
        """Print a sentence, or a table in the width of the terminal; no word and no number is cut."""
        if isinstance(line, Table):
            line = line if self.is_terminal else line.to_text()
        elif self.is_terminal:
            line = at_words(str(line), self.width)
        width = None if self.is_terminal else PIPE
        self.print(line, width=width, overflow="ignore", crop=False, no_wrap=True)

    def say_all(self, lines: Iterable[str]) -> None:
        """Print sentences, one per line."""
        for line in lines:
            self.say(line)

    def say_facts(self, facts: Mapping[str, str]) -> None:
        """Print names and values, one per line."""
        width = max(map(len, facts))
        for name, value in facts.items():
            self.say(f"{name:{width}}  {value}")

    def doing(self, what: str) -> AbstractContextManager[Any]:
        """Return a context that shows in a terminal what is being done."""
        return self.status(Text(what)) if self.is_terminal else nullcontext()

    @contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[str], None]]:
        """Show in a terminal how many parts are done; the context takes a line for each of them."""
        from swiftem.fit.driver import progress_bar

        with progress_bar(self) as bar:
            task = bar.add_task(what, total=total)
            yield lambda line: bar.update(task, advance=1, description=line.partition(":")[0])


class VisibleOutput:
    """Standard output for tables in CSV."""

    def write(self, text: str) -> int:
        """Write visible text."""
        return sys.stdout.write(visible(text))

    def flush(self) -> None:
        """Write what was held back."""
        sys.stdout.flush()
