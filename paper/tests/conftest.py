"""What the tests of the paper's experiments share: Ctrl-C, and the command."""

import re
import signal

import pytest

from paper.__main__ import request
from paper.reproduce import reproduce

# Where the tests run in the background of a script, SIGINT is ignored, and would be in the children that they
# interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def invoke(capsys):
    """Return a function that gives exit code and output, as one line: breaks depend on the width."""

    def call(*arguments):
        try:
            code = reproduce(request([str(argument) for argument in arguments]))
        except SystemExit as end:
            code = end.code
        output = "".join(capsys.readouterr())
        return code, re.sub(r"[\s│╭╮╰╯─]+", " ", re.sub(r"\x1b\[[0-9;]*m", "", output))

    return call
