"""Processes that fork one for each fit, for tests that kill or resume it: both ends of their pipes."""

from __future__ import annotations

import io
import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""A process whose libraries have threads of their own cannot fork one that uses them."""
LONGEST = 120.0
"""Seconds after which a fit that does not end is a failure."""


class Server:
    """The process that forks the fits: a script in this folder that reads lines of JSON and answers them."""

    def __init__(self, script: str) -> None:
        paths = [str(HERE), *sys.path]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | ONE_THREAD
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", str(HERE / script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def tell(self, **order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        ready, _, _ = select.select([self._process.stdout], [], [], LONGEST)
        assert ready, "the server does not answer"
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server ended"
        return json.loads(line)

    def close(self) -> None:
        with self._process:  # closes its ends of the pipes, and waits
            self._process.kill()


def say(**facts: object) -> None:
    """Answer a line."""
    print(json.dumps(facts), flush=True)


def encode(value: Any) -> bytes:
    """Return a result as bytes, to compare it; what does that is imported after the result is there."""
    from swiftem.core.state_file import write_tree

    stream = io.BytesIO()
    write_tree(stream, "a result, format 1", value)
    return stream.getvalue()


def write(path: str, content: bytes) -> None:
    """Write a file that is there completely or not at all."""
    Path(f"{path}.part").write_bytes(content)
    os.replace(f"{path}.part", path)


def fork(out: str, work: Callable[[], bytes]) -> None:
    """Write what ``work`` returns in another process; say its number, and then how it ended."""
    child = os.fork()
    if not child:
        try:
            write(out, work())
        except BaseException as error:
            write(f"{out}.error", repr(error).encode())
            os._exit(1)
        os._exit(0)
    say(child=child)
    _, status = os.waitpid(child, 0)
    say(ended=os.waitstatus_to_exitcode(status))
