"""The command line, ``swiftem``."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from typing import Any

from swiftem.core.process import AfterImports

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C ends it at any moment without a traceback."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, _quit)
        # Then all is done, but for the interpreter's own end.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    from swiftem.cli.app import run_command

    if is_default:
        signal.signal(signal.SIGINT, AfterImports())
    hook, sys.unraisablehook = sys.unraisablehook, _press_again
    try:
        run_command()
    finally:
        sys.unraisablehook = hook
        if is_default:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _quit(*_: object) -> None:
    """End at once: so far there were only imports."""
    os.write(sys.stderr.fileno(), b"Interrupted; nothing was written.\n")
    os._exit(130)


def _press_again(found: Any) -> None:
    """Raise Ctrl-C again if Python ignored it, for example while an object was deleted."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    else:
        sys.__unraisablehook__(found)
