"""Limits of memory for the fits of all estimators, set for a program or for a block of code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypedDict, Unpack

from swiftem.core.checks import shown
from swiftem.core.problem import Budget, read_memory_limit


class Config(TypedDict, total=False):
    """The settings, by name."""

    memory_limit: int | str | None
    scratch: str | os.PathLike[str] | None
    device_memory_limit: int | str | None


_settings: Config = {"memory_limit": None, "scratch": None, "device_memory_limit": None}
_of_block: ContextVar[Config | None] = ContextVar("swiftem_config", default=None)


def get_config() -> Config:
    """Return the current settings; :func:`config_context` comes first.

    Examples
    --------
    >>> import swiftem
    >>> with swiftem.config_context(memory_limit="500MB"):
    ...     swiftem.get_config()["memory_limit"]
    '500MB'
    """
    return {**_settings, **(_of_block.get() or {})}


def set_config(**settings: Unpack[Config]) -> None:
    """Change settings for the rest of the program.

    Parameters
    ----------
    memory_limit : int, str or None
        Memory limit of fits, in bytes or as a text such as "500MB": see :func:`swiftem.run`. Rows and counts
        given as arrays are already in memory and do not count; they are processed like rows of a file.
    scratch : path or None
        Folder for what does not fit into ``memory_limit``: the memory of iem and fiem, and the topics of
        documents that are read from files. By default the system's folder for temporary files.
    device_memory_limit : int, str or None
        Memory limit on a GPU, in bytes or as a text: see :func:`swiftem.run`.

    Notes
    -----
    A fit reads the settings once, when it begins. Processes that a program starts, such as joblib's,
    have settings of their own.

    Examples
    --------
    >>> import swiftem
    >>> swiftem.set_config(memory_limit="2GB")
    >>> swiftem.get_config()["memory_limit"]
    '2GB'
    >>> swiftem.set_config(memory_limit=None)
    """
    _settings.update(_checked(settings))


@contextmanager
def config_context(**settings: Unpack[Config]) -> Iterator[None]:
    """Change settings for a block of code, in the current thread.

    Parameters
    ----------
    **settings
        As in :func:`set_config`; the others stay as they are.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> with swiftem.config_context(memory_limit="1GB"):
    ...     mixture = swiftem.GaussianMixture(2, random_state=0).fit(X)
    """
    token = _of_block.set({**(_of_block.get() or {}), **_checked(settings)})
    try:
        yield
    finally:
        _of_block.reset(token)


def _checked(settings: Config) -> Config:
    """Return settings; raise an error for a name or value that does not exist."""
    for name in settings:
        if name not in _settings:
            raise TypeError(f"{name} must be one of {', '.join(_settings)}: there is no such setting.")
    for name in ("memory_limit", "device_memory_limit"):
        read_memory_limit(settings.get(name), name)
    scratch = settings.get("scratch")
    if scratch is not None:
        if not isinstance(scratch, str | os.PathLike):
            raise TypeError(f"scratch must be a folder or None, got {shown(scratch)}.")
        if not os.path.isdir(scratch):
            raise FileNotFoundError(f"scratch must be a folder that exists, got {shown(scratch)}.")
    return settings


def budget() -> Budget:
    """Return the memory budget of a fit that begins now."""
    config = get_config()
    return Budget(read_memory_limit(config["memory_limit"]), config["scratch"])


def device_memory_limit() -> int | None:
    """Return the limit of a device's memory in bytes, for a fit that begins now."""
    return read_memory_limit(get_config()["device_memory_limit"], "device_memory_limit")
