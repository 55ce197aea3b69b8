"""Ids of tests that are the same in every process, on every machine, at every time."""

from __future__ import annotations

from typing import Any


def pytest_make_parametrize_id(config: Any, val: object, argname: str) -> str | None:
    """Name bytes and objects by their argument, not by what is in them; pytest numbers equal names.

    pytest would put bytes into the id as they are, and gzip, say, writes the current second into its bytes.
    """
    if isinstance(val, bool | int | float | complex | str | type(None)):
        return None
    name = getattr(val, "__name__", None)
    return None if isinstance(name, str) and name.isidentifier() else argname
