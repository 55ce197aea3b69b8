"""The memory of iem and fiem on disk: whole in one of two files, and what changed since in a journal."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Index
from swiftem.checkpoints.records import Records
from swiftem.checkpoints.tree import decode, encode
from swiftem.files.durable import open_plain, read_into, write_all

__all__ = ["MemoryFile", "MemoryPlace"]

WHOLE = 0.25
"""From this share of the memory on, what changed is not gathered: all of it is written, which is quicker."""
PIECE, BLOCK = 1 << 22, 1 << 18
"""Bytes that are written at once, and those that are read for a checksum: few enough for the cache."""


Allocate = Callable[..., NDArray[Any]]


class MemoryPlace(NamedTuple):
    """Where a memory is: all that :meth:`MemoryFile.read` needs.

    Attributes
    ----------
    slot : int
        0 or 1: ``memory-0`` with ``journal-0``, or ``memory-1`` with ``journal-1``.
    shape, dtype : tuple of int and str
        Of the array.
    checksum : int
        CRC-32 of the file; -1 where it is not known yet.
    journal, journal_checksum : int
        How many bytes of the journal count, and their CRC-32, which begins with that of the memory.
    """

    slot: int
    shape: tuple[int, ...]
    dtype: str
    checksum: int
    journal: int = 0
    journal_checksum: int = 0


class MemoryFile:
    """Keeps a memory (n, R) that changes from one checkpoint to the next.

    The file of the last place is never written to, but for records behind those that count: whenever a
    process is killed, the last place can be read.

    Parameters
    ----------
    folder : Path
        Where the files are.
    place : MemoryPlace, optional
        Where the memory was left.
    """

    def __init__(self, folder: Path, place: MemoryPlace | None = None) -> None:
        self._folder, self._place = folder, place
        self._next = place

    def reserve(self, size: int) -> None:
        """Fill the file that comes next with so many zeros, if it is new; another thread may do this.

        Pages that the system has never given out before take ten times as long to write as others do.
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
        """The slot that the last place is not in."""
        return 0 if self._place is None else 1 - self._place.slot

    def write(self, memory: NDArray[Any], changed: Index | None) -> None:
        """Hand the memory as it is now to the system; :meth:`sync` makes it last.

        Parameters
        ----------
        memory : ndarray, shape (n, R)
            All of it.
        changed : ndarray of int or None
            Sorted numbers of all rows that may have changed since the last call; None: any.
        """
        place = self._place
        # Rows of no element at all have nothing to cast to bytes.
        size = max(memory.nbytes, 1)
        if place is not None and changed is not None and place.shape == memory.shape:
            gathered = len(changed) * (memory.nbytes // max(len(memory), 1) + changed.itemsize)
            if gathered < WHOLE * size and place.journal + gathered < size:
                records = self._journal(place)
                try:
                    records.append(encode((changed, memory[changed])))
                finally:
                    records.close()
                self._next = place._replace(journal=records.length, journal_checksum=records.checksum)
                return
        slot = self._other
        handle = open_plain(self._folder / f"memory-{slot}", os.O_RDWR | os.O_CREAT)
        try:
            # Written over in place: a file whose pages the system has already takes a tenth of the time.
            write_all(handle, np.ascontiguousarray(memory), 0)
            os.ftruncate(handle, memory.nbytes)
        finally:
            os.close(handle)
        self._next = MemoryPlace(slot, memory.shape, memory.dtype.str, -1)

    def _journal(self, place: MemoryPlace) -> Records:
        checksum = place.journal_checksum if place.journal else place.checksum
        return Records(self._folder / f"journal-{place.slot}", place.journal, checksum)

    def sync(self) -> MemoryPlace:
        """Bring what was written to the disk, and return where it is; another thread may do this."""
        assert self._next is not None, "write comes first"
        place = self._next
        name = f"journal-{place.slot}" if place.checksum >= 0 else f"memory-{place.slot}"
        handle = open_plain(self._folder / name, os.O_RDONLY)
        try:
            if place.checksum < 0:
                place = place._replace(checksum=_checksum(handle))
            os.fsync(handle)
        finally:
            os.close(handle)
        self._place = self._next = place
        return place

    def read(self, allocate: Allocate = np.empty) -> NDArray[Any]:
        """Return the memory at its place, in an array that ``allocate(shape, dtype)`` makes.

        ValueError where it is not as it was written.
        """
        place = self._place
        assert place is not None, "there is no memory"
        name, dtype = f"memory-{place.slot}", np.dtype(place.dtype)
        handle = open_plain(self._folder / name, os.O_RDONLY)
        try:
            # Before anything is allocated: the file says how much there is.
            if os.fstat(handle).st_size != prod(place.shape) * dtype.itemsize:
                raise ValueError(f"{name} is of another length than it should be")
            memory = allocate(place.shape, dtype)
            checksum = _read_memory(handle, memory)
        finally:
            os.close(handle)
        if checksum != place.checksum:
            raise ValueError(f"the checksum of {name} is wrong")
        if place.journal:
            if not (self._folder / f"journal-{place.slot}").exists():
                raise ValueError(f"journal-{place.slot} is missing")
            records = self._journal(place)
            try:
                for record in records.read(place.checksum):
                    changed, rows = decode(record)
                    memory[changed] = rows
            except (ValueError, IndexError, TypeError) as error:
                raise ValueError(f"journal-{place.slot} cannot be read: {error}") from None
            finally:
                records.close()
        return memory


def _read_memory(handle: int, memory: NDArray[Any]) -> int:
    """Fill an array from a file, and return the CRC-32 of what was read."""
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
    """Return the CRC-32 of an open file: bytes that changed, or stand elsewhere, change it."""
    buffer = memoryview(bytearray(BLOCK))
    checksum = position = 0
    while got := read_into(handle, buffer, position):
        checksum = zlib.crc32(buffer[:got], checksum)
        position += got
    return checksum
