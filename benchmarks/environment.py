"""The environment of the measurements: commit, versions, machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from swiftem.core.describe import environment as facts
from swiftem.kernels.threads import get_threads

__all__ = ["VERSIONS", "environment"]

VERSIONS = ("python", "numpy", "scipy", "scikit-learn", "numba", "swiftem")


def environment() -> dict[str, str]:
    """Return the columns that are the same in every row of the results."""
    here = facts("scipy", "scikit-learn") | {"threads": str(get_threads())}
    chosen = {name: here[name] for name in VERSIONS}
    return {"commit": _commit(), **chosen, "cpu": here["processor"], "cores": str(os.cpu_count())}


def _commit() -> str:
    """Return the commit of this folder, marked if there are uncommitted changes."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
