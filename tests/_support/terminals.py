"""Commands in a terminal of their own."""

import os
import re
import select
import signal
import subprocess
import time


def screen_of(command, press_at=None, seconds=120):
    """Return what a command shows in a terminal, without escape sequences, and its exit status.

    Ctrl-C is pressed once ``press_at``, an expression, is on the screen.
    """
    main, side = os.openpty()
    with subprocess.Popen(
        command,
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        os.close(side)
        screen, deadline = b"", time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([main], [], [], 0.2)[0]:
                try:
                    part = os.read(main, 65536)
                except OSError:  # the end, as Linux has it
                    break
                if not part:
                    break
                screen += part
            if press_at and re.search(press_at, screen):
                process.send_signal(signal.SIGINT)
                press_at = None
        os.close(main)
        status = process.wait(timeout=60)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.decode(errors="replace")), status
