"""Where swiftem keeps what would take seconds to make again: compiled kernels, read docstrings."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["is_writable", "user_cache"]


def user_cache() -> Path:
    """Return swiftem's folder below NUMBA_CACHE_DIR, else in the user's cache folder; it need not exist."""
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(base)) / "swiftem"


def is_writable(folder: Path) -> bool:
    """Tell whether files can be written to ``folder``, which is made where it is missing.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     is_writable(pathlib.Path(folder, "new", "folder"))
    True
    """
    # Where there is no home, the path still begins with ~ and would be made below the current folder.
    if folder.parts[:1] == ("~",):
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
