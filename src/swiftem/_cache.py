"""The cache folder, for results that take seconds to compute: compiled kernels, docstrings."""

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
    """Tell whether files can be written to ``folder``, which is created if it is missing.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     is_writable(pathlib.Path(folder, "new", "folder"))
    True
    """
    # Without a home, the path still begins with ~ and would be created below the current folder.
    if folder.parts[:1] == ("~",):
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
