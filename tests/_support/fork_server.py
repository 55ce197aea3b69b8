"""A process that forks one for each fit: a fit can then be killed or resumed without a new start.

Packages of others are imported before, which takes most of the time of a new process. Each line of standard
input is an order in JSON: ``whole`` does a case here, without checkpoints, so that all is compiled; ``fit``
forks, and says the number of the process and then how it ended. A fork ``as_new`` has imported ``swiftem``
alone.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from forks import fork, say, write

import swiftem

OTHERS = ("numba", "scipy.sparse", "scipy.special", "sklearn.cluster", "sklearn.mixture", "typer.testing")
NOT_YET = (
    "swiftem._run",
    "swiftem.core.checkpoint",
    "swiftem.core.state_file",
    "swiftem.kernels.compile",
    "swiftem.kernels.loop",
    "swiftem.mixture.compute.passes",
    "swiftem.topics.compute.documents",
    "swiftem.topics.compute.tokens",
    "swiftem.estimators",
    "swiftem.cli",
)
"""Modules that a user who resumes has not imported."""


def main() -> None:
    for name in OTHERS:
        importlib.import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        if order.pop("do") == "whole":
            write(order["out"], work(**order))
            say(done=True)
        else:
            fork(order["out"], lambda order=order: work(**order))  # type: ignore[misc]


def work(
    out: str, case: str, folder: str | None = None, as_new: bool = False, threads: int = 1, **options: Any
) -> bytes:
    """Return the result of a case."""
    from resumable import CASES

    if as_new:
        early = {name for name in sys.modules if name.startswith(NOT_YET)}
        assert not early, f"a user has not imported {early}"
    else:
        swiftem.set_threads(threads)  # a process with threads should not fork
    return CASES[case](folder, **options)


if __name__ == "__main__":
    main()
