"""One checkpoint in a file: a nested structure, and a header with the locations of the other parts."""

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
    """Header of a state.

    Attributes
    ----------
    run : str
        Identifier of the run: a state of another run is not used.
    number : int
        Number of this checkpoint in the run.
    memory : MemoryPlace or None
        Location of the memory.
    path : tuple of int
        Number of valid bytes of the records, and their checksum.
    """

    run: str
    number: int
    memory: MemoryPlace | None
    path: tuple[int, int]


def write_state(path: Path, head: StateHead, content: bytes) -> None:
    """Write a header and an encoded structure; the header is known only once the other parts are on disk.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_state(pathlib.Path(folder, "file"), StateHead("a", 1, None, (0, 0)), encode({"k": 1}))
    ...     read_state(pathlib.Path(folder, "file"))
    (StateHead(run='a', number=1, memory=None, path=(0, 0)), {'k': 1})
    """
    first = encode((head.run, head.number, head.memory and tuple(head.memory), head.path))
    write_sealed(path, b"".join((LENGTH.pack(len(first)), first, content)))


def read_state(path: Path) -> tuple[StateHead, Any]:
    """Return header and structure; ValueError if the file has other content or is damaged."""
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
