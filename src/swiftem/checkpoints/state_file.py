"""One checkpoint in a file: a nested structure, and a head that says what belongs to it."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from swiftem.checkpoints.memory_file import MemoryPlace
from swiftem.checkpoints.tree import LENGTH, decode, encode
from swiftem.files.durable import read_sealed, write_sealed

__all__ = ["StateHead", "read_state", "write_state"]


class StateHead(NamedTuple):
    """What a state begins with.

    Attributes
    ----------
    run : str
        Of which run it is: a state of another run is of no use.
    number : int
        Checkpoints of that run so far, with this one.
    memory : MemoryPlace or None
        Where the memory is.
    path : tuple of int
        How many bytes of what was recorded count, and their checksum.
    """

    run: str
    number: int
    memory: MemoryPlace | None
    path: tuple[int, int]


def write_state(path: Path, head: StateHead, content: bytes) -> None:
    """Write a head and an encoded structure; what is in the head is known only when the rest is on the disk.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_state(pathlib.Path(folder, "file"), StateHead("a", 1, None, (0, 0)), encode({"k": 1}))
    ...     read_state(pathlib.Path(folder, "file"))
    (StateHead(run='a', number=1, memory=None, path=(0, 0)), {'k': 1})
    """
    first = encode((head.run, head.number, head.memory and tuple(head.memory), head.path))
    write_sealed(path, b"".join((LENGTH.pack(len(first)), first, content)))


def read_state(path: Path) -> tuple[StateHead, Any]:
    """Return head and structure; ValueError where the file holds something else or is damaged."""
    content = read_sealed(path)
    try:
        (length,) = LENGTH.unpack_from(content)
        end = LENGTH.size + length
        run, number, memory, (length, checksum) = decode(content[LENGTH.size : end])
        place = None if memory is None else MemoryPlace(*memory)
        numbers = [number, length, checksum]
        if place is not None:
            numbers += [place.slot, place.checksum, *place.shape]
            if place.slot > 1 or np.dtype(place.dtype).hasobject:
                raise TypeError
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise TypeError
    except (TypeError, ValueError, struct.error):
        raise ValueError("it is another file of a checkpoint") from None
    return StateHead(run, number, place, (length, checksum)), decode(content[end:])
