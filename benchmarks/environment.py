"""The environment of the measurements: commit, versions, machine."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import swiftem

__all__ = ["VERSIONS", "environment"]

VERSIONS = ("python", "numpy", "scipy", "scikit-learn", "numba", "swiftem")


def environment() -> dict[str, str]:
    """Return the columns that are the same in every row of the results."""
    return {
        "commit": _commit(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")},
        "swiftem": swiftem.__version__,
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
    }


def _commit() -> str:
    """Return the commit of this folder, marked if there are uncommitted changes."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _cpu() -> str:
    """Return the model of the processor; only Linux has it in a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
