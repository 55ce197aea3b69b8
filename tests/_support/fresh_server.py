"""A process that has imported ``swiftem`` alone, and forks one for each fit: it is as good as a new one.

Packages of others are imported before, which takes most of the time of a new process. Reads lines of JSON
from standard input: each fit resumes from its folder, and the answers are the process and how it ended.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

from forks import fork

import swiftem  # noqa: F401

OTHERS = ("numba", "scipy.sparse", "scipy.special", "sklearn.cluster", "sklearn.mixture", "typer.testing")
IMPORTED = {"swiftem", "swiftem.core", "swiftem.core.messages", "swiftem.core.process"}
"""Modules of ``import swiftem``."""
NOT_YET = (
    "swiftem._run",
    "swiftem.core.checkpoint",
    "swiftem.core.state_file",
    "swiftem.kernels.compile",
    "swiftem.kernels.loop",
    "swiftem.mixture.compute.passes",
    "swiftem.mixture.compute.steps",
    "swiftem.mixture.compute.one_sample",
    "swiftem.topics.compute.documents",
    "swiftem.topics.compute.tokens",
    "swiftem.estimators",
    "swiftem.cli",
)


def main() -> None:
    for name in OTHERS:
        importlib.import_module(name)
    ours = {name for name in sys.modules if name.partition(".")[0] == "swiftem"}
    assert ours == IMPORTED, f"only swiftem should be imported, got {ours - IMPORTED}"
    for line in sys.stdin:
        order = json.loads(line)
        fork(order["out"], lambda order=order: resume(order))  # type: ignore[misc]


def resume(order: dict[str, Any]) -> bytes:
    """Return the result of a case that resumes."""
    from resume_cases import CASES

    early = {name for name in sys.modules if name.startswith(NOT_YET)}
    assert not early, f"a user has not imported {early}"
    return CASES[order["case"]](order["folder"], True)


if __name__ == "__main__":
    main()
