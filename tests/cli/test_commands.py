"""The commands and their help."""

import re

import pytest

COMMANDS = ["fit", "predict", "score", "info", "topics"]


def test_the_order_of_commands(invoke):
    output = invoke("--help")
    listed = output.partition("Commands")[2]
    places = [re.search(rf" {command} [A-Z]", listed).start() for command in COMMANDS]
    assert places == sorted(places)


@pytest.mark.parametrize("command", COMMANDS[:4])
def test_help_has_an_example(command, invoke):
    assert f"Example: swiftem {command} flowers." in invoke(command, "--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_typing_errors_are_answered_with_suggestions(command, invoke):
    assert f"'{command}'" in invoke(command[:-1] + "x", code=2)
