r"""Messages for users: text without characters that a terminal obeys, and warnings at the user's own line.

Text from files may be a column's name, a category or a path. Whatever is shown passes here: output and errors
of the command line, also into a pipe, warnings, the log and summaries. Files keep what they were given.
"""

from __future__ import annotations

import logging
import sys
import warnings
from types import FrameType

CONTROLS = (
    *(code for code in range(0x20) if chr(code) not in "\t\n"),  # C0: escape sequences, bell, return
    *range(0x7F, 0xA0),  # delete, and C1: escape sequences in one character
    *(0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),  # change the direction
)
ESCAPED = {code: repr(chr(code))[1:-1] for code in CONTROLS}


def visible(text: str) -> str:
    r"""Return a text with control characters, except tabs and line breaks, as Python writes them.

    >>> print(visible("a\x1b]0;title\x07 \u202eb"))
    a\x1b]0;title\x07 \u202eb
    """
    return text if text.isprintable() else text.translate(ESCAPED)


def _in_log(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    if not message.isprintable():
        record.msg, record.args = visible(message), ()
    return True


logging.getLogger("swiftem").addFilter(_in_log)

INSIDE = ("swiftem", "sklearn")
"""Packages between the user's call and a warning: validation and callbacks are decorators."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn, with the line that called swiftem or scikit-learn as its location."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(visible(message), category, stacklevel=level)
