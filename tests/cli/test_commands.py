"""The commands and their help."""

import re

import pytest

COMMANDS = ["fit", "predict", "score", "info", "topics"]


def test_the_order_of_commands(invoke):
    code, output = invoke("--help")
    assert code == 0
    listed = output.partition("Commands")[2]
    places = [re.search(rf" {command} [A-Z]", listed).start() for command in COMMANDS]
    assert places == sorted(places)


@pytest.mark.parametrize("command", COMMANDS[:4])
def test_help_has_an_example(command, invoke):
    code, output = invoke(command, "--help")
    assert code == 0
    assert f"Example: swiftem {command} flowers." in output


@pytest.mark.parametrize("command", COMMANDS)
def test_typing_errors_are_answered_with_suggestions(command, invoke):
    code, output = invoke(command[:-1] + "x")
    assert code == 2
    assert f"'{command}'" in output
