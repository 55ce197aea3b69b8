"""The environment of a computation."""

from __future__ import annotations

import os
import platform

from swiftem.checkpoints.describe import versions

__all__ = ["environment"]

PACKAGES = ("numpy", "numba", "scipy", "scikit-learn", "matplotlib")


def environment() -> dict[str, str]:
    """Return versions, processor and threads, for a report.

    >>> sorted(environment())[:2]
    ['Python', 'computer']
    """
    from swiftem import __version__
    from swiftem.engine.threads import get_threads

    found = {"swiftem": __version__, "Python": platform.python_version(), **versions(*PACKAGES)}
    found["computer"] = f"{platform.system()} {platform.machine()}, {_processor()}, {os.cpu_count()} cores"
    found["threads"] = f"{get_threads()} in full passes, 1 in single iterations"
    return found


def _processor() -> str:
    """Return the processor's name, if the system provides it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"
