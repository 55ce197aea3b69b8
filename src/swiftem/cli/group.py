"""The group of all commands: errors of options as one sentence, help without the types of flags."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["Group", "plain"]

SENTENCES = {
    "int_parsing": "{value!r} is not an integer.",
    "int_from_float": "{value!r} is not an integer.",
    "float_parsing": "{value!r} is not a number.",
    "finite_number": "{value!r} is not a finite number.",
    "greater_than_equal": "{value} is less than {ge}.",
    "less_than_equal": "{value} is more than {le}.",
}
"""What pydantic, by which later versions of typer read options, calls an error, and the sentence for it."""


class Group(TyperGroup):
    """The commands of ``swiftem``."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an invalid option is named with its value and with the name that was meant."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = plain(error)
            raise

    def get_params(self, ctx: Any) -> Any:
        """Return the options of the group."""
        return _without_types(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_types(command.get_params(ctx))
        return command


def plain(error: typer.BadParameter) -> str:
    """Return the sentence of an error: with the value, and the choice that is close to it.

    >>> plain(typer.BadParameter("'fulll' is not one of 'full', 'tied'."))
    "'fulll' is not one of 'full', 'tied': did you mean 'full'?"
    """
    sentence = error.message.removeprefix("Value error, ")
    cause: Any = error.__cause__
    found = cause.errors()[0] if hasattr(cause, "errors") else {}
    if found.get("type") in SENTENCES:
        sentence = SENTENCES[found["type"]].format(value=found["input"], **found.get("ctx", {}))
    if choice := re.fullmatch(r"'(.*)' is not one of (.*)\.", sentence):
        close = get_close_matches(choice[1].lower(), re.findall(r"'([^']*)'", choice[2]), n=1)
        sentence = f"{sentence[:-1]}: did you mean {close[0]!r}?" if close else sentence
    return sentence


def _without_types(options: list[Any]) -> list[Any]:
    """Return options of which flags have no type in the help: they take no value."""
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options
