"""Standard output without characters of files that a terminal obeys, see :mod:`swiftem.core.messages`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import rich.console
from rich.segment import Segment

from swiftem.core.messages import visible

__all__ = ["Console", "VisibleOutput"]


class Console(rich.console.Console):
    """A console of rich, whose own control sequences are kept."""

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """Return the segments of what is printed, with visible text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


class VisibleOutput:
    """Standard output for tables in CSV."""

    def write(self, text: str) -> int:
        """Write visible text."""
        return sys.stdout.write(visible(text))

    def flush(self) -> None:
        """Write what was held back."""
        sys.stdout.flush()
