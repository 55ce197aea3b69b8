"""The memory of iem and fiem on disk: in two files, written in turns."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.files.durable import open_plain, read_into, write_all

__all__ = ["MemoryFile", "MemoryPlace"]

PIECE, BLOCK = 1 << 22, 1 << 18
"""Bytes written at once, and bytes read at once for a checksum: few enough for the cache."""


Allocate = Callable[..., NDArray[Any]]


class MemoryPlace(NamedTuple):
    """Location of a memory: everything that :meth:`MemoryFile.read` needs.

    Attributes
    ----------
    slot : int
        0 or 1: ``memory-0`` or ``memory-1``.
    shape, dtype : tuple of int and str
        Of the array.
    checksum : int
        CRC-32 of the file; -1 if it is not yet known.
    """

    slot: int
    shape: tuple[int, ...]
    dtype: str
    checksum: int


class MemoryFile:
    """Stores a memory (n, R) that changes from one checkpoint to the next.

    The file of the last place is never written to: if the process is killed, the last place can be read.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    place : MemoryPlace, optional
        Location of the last memory.
    """

    def __init__(self, folder: Path, place: MemoryPlace | None = None) -> None:
        self._folder, self._place = folder, place
        self._next = place

    def reserve(self, size: int) -> None:
        """Fill the next file with this many zeros, if it is new; another thread may do this.

        Writing new pages takes the system ten times as long as overwriting.
        """
        path = self._folder / f"memory-{self._other}"
        zeros = bytes(min(size, PIECE))
        handle = open_plain(path, os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(handle).st_size == size:
                return
            for position in range(0, size, PIECE):
                write_all(handle, zeros[: size - position], position)
        finally:
            os.close(handle)

    @property
    def _other(self) -> int:
        """The slot that the last place does not use."""
        return 0 if self._place is None else 1 - self._place.slot

    def write(self, memory: NDArray[Any]) -> None:
        """Write the current memory (n, R) to the page cache; :meth:`sync` makes it durable."""
        slot = self._other
        handle = open_plain(self._folder / f"memory-{slot}", os.O_RDWR | os.O_CREAT)
        try:
            # Overwritten in place: this takes a tenth of the time if the pages are already allocated.
            write_all(handle, np.ascontiguousarray(memory), 0)
            os.ftruncate(handle, memory.nbytes)
        finally:
            os.close(handle)
        self._next = MemoryPlace(slot, memory.shape, memory.dtype.str, -1)

    def sync(self) -> MemoryPlace:
        """Flush the written memory to disk, and return its location; another thread may do this."""
        assert self._next is not None, "write comes first"
        handle = open_plain(self._folder / f"memory-{self._next.slot}", os.O_RDONLY)
        try:
            place = self._next._replace(checksum=_checksum(handle))
            os.fsync(handle)
        finally:
            os.close(handle)
        self._place = self._next = place
        return place

    def read(self, allocate: Allocate = np.empty) -> NDArray[Any]:
        """Return the memory at its location, in an array made by ``allocate(shape, dtype)``.

        Raises ValueError if it is not as it was written.
        """
        place = self._place
        assert place is not None, "there is no memory"
        name, dtype = f"memory-{place.slot}", np.dtype(place.dtype)
        handle = open_plain(self._folder / name, os.O_RDONLY)
        try:
            # Before anything is allocated: the file's length is checked.
            if os.fstat(handle).st_size != prod(place.shape) * dtype.itemsize:
                raise ValueError(f"{name} has the wrong length")
            memory = allocate(place.shape, dtype)
            checksum = _read_memory(handle, memory)
        finally:
            os.close(handle)
        if checksum != place.checksum:
            raise ValueError(f"the checksum of {name} is wrong")
        return memory


def _read_memory(handle: int, memory: NDArray[Any]) -> int:
    """Fill an array from a file, and return the CRC-32 of the bytes read."""
    checksum = position = 0
    view = memory.reshape(-1).view(np.uint8).data
    while position < len(view):
        piece = view[position : position + BLOCK]
        got = read_into(handle, piece, position)
        checksum = zlib.crc32(piece, checksum)
        position += len(piece)
        if got < len(piece):
            raise ValueError("the memory ends too early")
    return checksum


def _checksum(handle: int) -> int:
    """Return the CRC-32 of an open file: changed or moved bytes change it."""
    buffer = memoryview(bytearray(BLOCK))
    checksum = position = 0
    while got := read_into(handle, buffer, position):
        checksum = zlib.crc32(buffer[:got], checksum)
        position += got
    return checksum
