"""A process that has compiled everything, and forks one for each fit: these can be killed without a loss.

Reads lines of JSON from standard input and answers each with lines: ``whole`` runs a case here, without
checkpoints; ``fit`` forks, says the number of the process, and then how it ended.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Any

from fault_cases import CASES
from forks import fork, say, write

from swiftem.kernels.threads import set_threads


def main() -> None:
    set_threads(1)  # a process with threads should not fork
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "whole":
            case = CASES[order["case"]]
            case(None)  # compiles
            began = perf_counter()
            write(order["out"], case(None))
            say(seconds=perf_counter() - began)
        else:
            fork(order["out"], lambda order=order: fit(order))  # type: ignore[misc]


def fit(order: dict[str, Any]) -> bytes:
    """Return the result of a case with checkpoints."""
    set_threads(order["threads"])
    return CASES[order["case"]](order["folder"])


if __name__ == "__main__":
    main()
