"""Sentences and exit codes of what goes wrong."""

import pytest
import typer

from swiftem.cli.failures import INTERRUPTED, one_sentence


def half_an_import():
    """Fail as modules written in C++ do where Ctrl-C is pressed while they are made."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as pressed:
        raise ImportError("initialization failed") from pressed


def test_ctrl_c_within_an_import_is_an_interrupt(capsys):
    with pytest.raises(typer.Exit) as end, one_sentence("Interrupted; nothing was written."):
        half_an_import()
    assert end.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err == "Interrupted; nothing was written.\n"
