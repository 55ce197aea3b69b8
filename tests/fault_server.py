"""A process that has compiled everything, and forks one for each fit: these can be killed without a loss.

Reads lines of JSON from standard input and answers each with lines: ``whole`` runs a case here, without
checkpoints; ``fit`` forks, says the number of the process, and then how it ended.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from time import perf_counter

from fault_cases import CASES

from swiftem.engine.threads import set_threads


def say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def write(path: str, content: bytes) -> None:
    Path(f"{path}.part").write_bytes(content)
    os.replace(f"{path}.part", path)


def main() -> None:
    set_threads(1)  # a process with threads should not fork
    for line in sys.stdin:
        order = json.loads(line)
        case = CASES[order["case"]]
        if order["do"] == "whole":
            case(None)  # compiles
            began = perf_counter()
            write(order["out"], case(None))
            say(seconds=perf_counter() - began)
            continue
        child = os.fork()
        if not child:
            set_threads(order["threads"])
            try:
                write(order["out"], case(order["folder"]))
            except BaseException as error:
                write(f"{order['out']}.error", repr(error).encode())
                os._exit(1)
            os._exit(0)
        say(child=child)
        _, status = os.waitpid(child, 0)
        say(ended=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
