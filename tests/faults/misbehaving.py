"""What a case may do in a watched child, to see the watch at work."""

from __future__ import annotations

import os
import signal


def misbehave(how: str) -> int:
    """Return 7, or do what ``how`` says."""
    if how == "is killed":
        os.kill(os.getpid(), signal.SIGSEGV)
    while how == "hangs":
        pass
    if how == "takes memory":
        return len(bytes(10**6) * 150)
    if how == "asks for memory":
        return len(bytearray(10**10))
    return {"returns": 7}[how]
