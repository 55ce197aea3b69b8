"""The command line, ``swiftem``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C ends it without a traceback, whatever it does at that moment."""
    listens = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if listens:
        signal.signal(signal.SIGINT, _quit)
        sys.unraisablehook = _press_again
    from swiftem.cli.app import run_command

    try:
        if listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run_command()
    finally:
        if listens:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done but for the interpreter's own end


def _quit(*_: object) -> None:
    """End at once: nothing has been begun yet but imports."""
    os.write(sys.stderr.fileno(), b"Interrupted; nothing was written.\n")
    os._exit(130)


def _press_again(found: Any) -> None:
    """Raise Ctrl-C again where Python had to ignore it, as in an object's last moments."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    else:
        sys.__unraisablehook__(found)
