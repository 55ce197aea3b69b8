"""Triton's cache of compiled kernels, used only if nobody else can write there.

Triton loads libraries and code for the GPU from it. If others can write there, kernels compile in a private
folder that is removed when the process ends.
"""

from __future__ import annotations

import logging
import os
import tempfile
from functools import cache
from pathlib import Path

from swiftem.kernels.cache import cache_in

__all__ = ["keep_private"]

log = logging.getLogger("swiftem")
_own: list[tempfile.TemporaryDirectory[str]] = []


@cache
def keep_private() -> None:
    """Have Triton keep kernels in its folder if that is private, else in a new one, and say so once."""
    given = os.environ.get("TRITON_CACHE_DIR")
    home = Path(os.path.expanduser(os.environ.get("TRITON_HOME") or "~"))
    folder, why_not = cache_in(Path(given)) if given else cache_in(home, ".triton", "cache")
    if why_not:
        log.warning("Triton compiles in every process, without a cache, as %s.", why_not)
        _own.append(tempfile.TemporaryDirectory(prefix="swiftem-triton-"))
        folder = Path(_own[-1].name)
    # Without links: one that is changed later does not matter.
    os.environ["TRITON_CACHE_DIR"] = str(folder)
