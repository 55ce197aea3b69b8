"""How much memory a run may take, as users write it, and what it is compared with."""

from __future__ import annotations

import re
from math import inf
from numbers import Integral
from typing import Any

from swiftem._checks import shown

__all__ = ["BASE", "MemoryLimitError", "in_words", "read_memory_limit"]

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")

BASE = 48 * 10**6
"""Taken by every run, whatever the data: compiled code, buffers of BLAS and threads (measured)."""


class MemoryLimitError(ValueError):
    """What was asked for does not fit into the memory limit."""


def read_memory_limit(limit: Any) -> int | None:
    """Return a limit in bytes, or None where there is none.

    Parameters
    ----------
    limit : int, str or None
        Bytes, or a text such as "500MB" or "1.5 GiB".

    Examples
    --------
    >>> read_memory_limit("500MB"), read_memory_limit("1.5GiB"), read_memory_limit(None)
    (500000000, 1610612736, None)
    """
    if limit is None:
        return None
    wrong = f'memory_limit must be a number of bytes, a text such as "500MB" or None, got {shown(limit)}.'
    if isinstance(limit, str):
        found = TEXT.fullmatch(limit)
        unit = None if found is None else UNITS.get(found[2].lower())
        if found is None or unit is None:
            raise ValueError(wrong)
        number = float(found[1]) * unit
        if number == inf:
            raise ValueError(wrong)
        size = int(number)
    elif isinstance(limit, Integral) and not isinstance(limit, bool):
        size = int(limit)
    else:
        raise TypeError(wrong)
    if size < 1:
        raise ValueError(wrong)
    return size


def in_words(size: float) -> str:
    """Return a size as people write it, rounded up so that it is enough.

    >>> in_words(64_200_000), in_words(3_200_000_000), in_words(999)
    ('65 MB', '3.2 GB', '1 MB')
    """
    if size < 10**9:
        return f"{max(1, -int(-size // 10**6))} MB"
    return f"{-int(-size // 10**8) / 10:g} GB"
