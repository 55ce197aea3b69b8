"""Errors of libraries that read a damaged file, as one sentence with the file's name."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["damage_named", "in_brackets"]


@contextmanager
def damage_named(file: Path, what: str) -> Iterator[None]:
    """Convert any error of a library that reads ``file`` into a sentence; ``what`` is the expected content.

    Libraries that parse binary files raise various errors: ``zlib.error``, ``EOFError``, ``OverflowError``,
    ``KeyError`` and others. Errors of the system keep their type, and errors that already name the file are
    raised unchanged.

    Examples
    --------
    >>> with damage_named(Path("toy.npz"), "an archive"):
    ...     {}["indptr.npy"]
    Traceback (most recent call last):
    ...
    ValueError: toy.npz must be an archive, got another or a damaged file (indptr.npy).
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ImportError) or str(error).startswith(str(file)):
            raise
        # An invalid argument is an impossible position in the file, from its directory.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            reason = (error.strerror or type(error).__name__).lower()
            raise type(error)(f"{file} cannot be read ({reason}).") from None
        if isinstance(error, MemoryError):  # a damaged file may claim any size
            raise ValueError(
                f"{file} must be {what} that fits into memory, got a larger or a damaged one."
            ) from None
        raise ValueError(
            f"{file} must be {what}, got another or a damaged file ({in_brackets(error)})."
        ) from None


def in_brackets(error: Exception) -> str:
    r"""Return an error's text as part of a sentence.

    >>> in_brackets(OSError("Couldn't deserialize thrift: invalid data.\nMore.")), in_brackets(EOFError())
    ("Couldn't deserialize thrift: invalid data", 'EOFError')
    """
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first.rstrip(". ")[:200] or type(error).__name__
