"""The computer and the versions of packages, for reports and checkpoints."""

from __future__ import annotations

import os
import platform
from importlib import metadata


def environment(*packages: str) -> dict[str, str]:
    """Return versions, machine and processor.

    Parameters
    ----------
    *packages : str
        Further packages whose versions a report names.

    Examples
    --------
    >>> sorted(environment("scipy"))
    ['machine', 'numba', 'numpy', 'processor', 'python', 'scipy', 'swiftem']
    """
    found = versions("swiftem", "numpy", "numba", *packages) | {"python": platform.python_version()}
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    return found | {"machine": machine, "processor": _processor()}


def _processor() -> str:
    """Return the processor's name, if the system provides it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def versions(*packages: str) -> dict[str, str]:
    """Return the installed versions of packages.

    >>> versions("no such package")
    {'no such package': 'not installed'}
    """
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
