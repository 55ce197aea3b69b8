"""What the tests of the command line share."""

import re
import sys

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


@pytest.fixture
def run(invoke):
    """Return ``invoke`` for ``swiftem topics``."""
    return lambda *arguments: invoke("topics", *arguments)


@pytest.fixture
def folder(tmp_path):
    """Return a folder of text files about two things."""
    folder = tmp_path / "my texts"
    folder.mkdir()
    for number in range(12):
        about = "apple pear plum apple fig" if number % 3 else "hammer saw chisel saw plane"
        (folder / f"{number:02}.txt").write_text(about)
    return folder


@pytest.fixture
def _csv_tables(monkeypatch):
    """Have tables in CSV, whether pyarrow is there or not."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.fixture
def _undrawn(monkeypatch):
    """Have empty figures, which take no time."""
    monkeypatch.setattr("swiftem.report.topics.panel_svg", lambda panel: b"<svg/>")
