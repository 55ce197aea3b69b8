"""The memory budget of a run, and an estimate of its needs.

A limit does not change results: windows and parts have fixed sizes, and a run that does not fit raises
MemoryLimitError with its needs. These are an upper bound by formula, with measured constants.
"""

from __future__ import annotations

import os
import re
from math import inf
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import numpy as np

from swiftem.core.checks import MemoryLimitError as MemoryLimitError
from swiftem.core.checks import shown
from swiftem.core.files import in_words, scratch_array
from swiftem.core.method import Method
from swiftem.core.source import Source
from swiftem.core.types import Array

UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")

BASE = 48 * 10**6
"""Memory of every run, whatever the data: compiled code, buffers of BLAS and threads (measured)."""
OF_A_START = 22 * 10**6
"""Memory of an estimator in addition to its passes: sampled rows, and k-means on them."""
COPIES = 12
"""Vectors of statistics, and parameters of about that size, in memory at a time."""
SHARE = 0.9
CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells the limit of a container."""


def read_memory_limit(limit: object, name: str = "memory_limit") -> int | None:
    """Return a limit in bytes, or None if there is none.

    Parameters
    ----------
    limit : int, str or None
        Bytes, or a text such as "500MB" or "1.5 GiB".
    name : str
        Name of the argument, for errors.

    Examples
    --------
    >>> read_memory_limit("500MB"), read_memory_limit("1.5GiB"), read_memory_limit(None)
    (500000000, 1610612736, None)
    """
    if limit is None:
        return None
    wrong = f'{name} must be a number of bytes, a text such as "500MB" or None, got {shown(limit)}.'
    if isinstance(limit, str):
        match = TEXT.fullmatch(limit)
        size = float(match[1]) * UNITS.get(match[2].lower(), 0) if match else 0.0
    elif isinstance(limit, Integral) and not isinstance(limit, bool):
        size = int(limit)
    else:
        raise TypeError(wrong)
    if not 1 <= size < inf:
        raise ValueError(wrong)
    return int(size)


class Budget(NamedTuple):
    """The memory budget of a run.

    Attributes
    ----------
    limit : int or None
        In bytes; None for no limit.
    scratch : path or None
        Folder for a method's memory if it does not fit.
    reserved : int
        Memory of the run without the method's memory, if there is a limit.
    """

    limit: int | None = None
    scratch: str | os.PathLike[str] | None = None
    reserved: int = 0

    def reserve(self, source: Source, method: Method, *, statistics: int = 0, starts: bool = False) -> Budget:
        """Return the budget with the needs of a run reserved; raise MemoryLimitError if they do not fit.

        Arguments are as in :func:`bytes_needed`.
        """
        if self.limit is None:
            return self
        needed = bytes_needed(source, method, statistics=statistics, starts=starts)
        if needed <= self.limit:
            return self._replace(reserved=needed)
        hint = ""
        if source.layout is not None and source.row_bytes and method.index_streams:
            rows = source.layout.window_rows
            size = in_words(rows * source.row_bytes)
            hint = f" (windows for draws have {rows:,} rows, {size}: a smaller window needs less)"
        raise MemoryLimitError(
            f"memory_limit must be at least {in_words(needed)} for {method.name} on these data, "
            f"got {in_words(self.limit)}{hint}."
        )

    def make_memory(self, shape: tuple[int, int], dtype: np.dtype) -> Array:
        """Return an array for a method's memory: in RAM if it fits, else in a scratch file."""
        size = shape[0] * shape[1] * np.dtype(dtype).itemsize
        if self.limit is not None and size + self.reserved > self.limit:
            return scratch_array(shape, dtype, self.scratch)
        found = available_memory()
        if size > found:
            raise MemoryLimitError(
                f"memory_limit must be less than {in_words(found)}, the memory that is available, for a "
                f"method that stores {in_words(size)} of {shape[0]:,} samples, got {shown(self.limit)}: with "
                "a limit they are in a file; em, sem and sem-vr store nothing."
            )
        return np.empty(shape, dtype)

    def check_order(self, source: Source, method: Method) -> None:
        """Raise MemoryLimitError if the order of so many samples does not fit into the machine's memory."""
        needed, found = order_bytes(source, method), available_memory()
        if needed > found:
            given = next(order for order in method.orders if order != "iid")
            raise MemoryLimitError(
                f"order and memory_order must be 'iid' for {source.n:,} samples, got {given!r}: it takes "
                f"{in_words(needed)}, and {in_words(found)} are available."
            )


def bytes_needed(source: Source, method: Method, *, statistics: int = 0, starts: bool = False) -> int:
    """Return an upper bound on the bytes of a run, without the method's memory of all samples.

    Parameters
    ----------
    source : Source
        The data. For an array only copies of it count.
    method : Method
        The method.
    statistics : int
        Length of the vector of statistics.
    starts : bool
        Whether a start is computed as by :class:`swiftem.GaussianMixture`.
    """
    needed = BASE + (COPIES + method.vectors) * 8 * statistics + (OF_A_START if starts else 0)
    needed += order_bytes(source, method)
    return needed + source.bytes_needed(method.index_streams)


def order_bytes(source: Source, method: Method) -> int:
    """Return the bytes of permutations, or of the sums of weights that samples are drawn by."""
    if source.layout is not None:
        return 0
    return source.n * sum({"shuffled": 16, "weighted": 32}.get(order, 0) for order in method.orders)


def available_memory() -> float:
    """Return the bytes that the process can take, as far as the system tells; else infinity.

    A tenth is left to others: a process that takes all of it is ended by the system.
    """
    found = inf
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found = 1024.0 * int(line.split()[1])
    except (OSError, ValueError):  # macOS, for example
        if hasattr(os, "sysconf"):
            found = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in CONTAINER:
        try:
            found = min(found, float(Path(file).read_text()))
        except (OSError, ValueError):  # not in a container, or "max"
            continue
    return SHARE * found
