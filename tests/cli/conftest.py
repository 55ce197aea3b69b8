"""What the tests of the command line share."""

import re

import pytest
from typer.testing import CliRunner

from swiftem.cli.app import app


@pytest.fixture
def invoke():
    """Return a function that gives exit code and output, as one line: breaks depend on the width."""

    def call(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        plain = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
        return result.exit_code, re.sub(r"[\s│╭╮╰╯─]+", " ", plain)

    return call
