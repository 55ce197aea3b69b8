"""Standard output without characters of files that a terminal obeys, see :mod:`swiftem.core.messages`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import rich.console
from rich.segment import Segment
from rich.text import Text

from swiftem.cli.failures import at_words
from swiftem.core.messages import visible
from swiftem.show.table import Table

PIPE = 100_000
"""Width of a line that is not in a terminal."""
MOST_ROWS = 60
"""Rows of a table that is shown beside other results."""


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
