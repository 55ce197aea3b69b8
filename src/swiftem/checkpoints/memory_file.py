"""The memory of iem and fiem on disk: whole in one of two files, and what changed since in a journal."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Index
from swiftem.checkpoints.durable import write_all
from swiftem.checkpoints.records import Records
from swiftem.checkpoints.tree import decode, encode

__all__ = ["MemoryFile", "MemoryPlace"]

WHOLE = 0.25
"""From this share of the memory on, what changed is not gathered: all of it is written, which is quicker."""
PIECE, BLOCK = 1 << 22, 1 << 18
"""Bytes that are written at once, and those that are summed: few enough for the cache."""


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
        Of the file.
    journal : int
        How many bytes of the journal count.
    """

    slot: int
    shape: tuple[int, ...]
    dtype: str
    checksum: int
    journal: int


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
        if path.exists() and path.stat().st_size == size:
            return
        zeros = bytes(min(size, PIECE))
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
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
                records = Records(self._folder / f"journal-{place.slot}", place.journal)
                try:
                    length = records.append(encode((changed, memory[changed])))
                finally:
                    records.close()
                self._next = place._replace(journal=length)
                return
        slot = self._other
        handle = os.open(self._folder / f"memory-{slot}", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # Written over in place: a file whose pages the system has already takes a tenth of the time.
            write_all(handle, np.ascontiguousarray(memory), 0)
            os.ftruncate(handle, memory.nbytes)
        finally:
            os.close(handle)
        self._next = MemoryPlace(slot, memory.shape, memory.dtype.str, -1, 0)

    def sync(self) -> MemoryPlace:
        """Bring what was written to the disk, and return where it is; another thread may do this."""
        assert self._next is not None, "write comes first"
        place = self._next
        name = f"journal-{place.slot}" if place.checksum >= 0 else f"memory-{place.slot}"
        handle = os.open(self._folder / name, os.O_RDONLY)
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
        memory = allocate(place.shape, np.dtype(place.dtype))
        path = self._folder / f"memory-{place.slot}"
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != memory.nbytes:
                raise ValueError(f"{path.name} is of another length than it should be")
            if _checksum(file.fileno()) != place.checksum:
                raise ValueError(f"the checksum of {path.name} is wrong")
            view, position = memory.data.cast("B"), 0
            while position < len(view):
                got = file.readinto(view[position : position + PIECE])
                if not got:
                    raise ValueError(f"{path.name} ends too early")
                position += got
        if place.journal:
            journal = self._folder / f"journal-{place.slot}"
            if not journal.exists():
                raise ValueError(f"{journal.name} is missing")
            records = Records(journal, place.journal)
            try:
                for record in records.read():
                    changed, rows = decode(record)
                    memory[changed] = rows
            except (ValueError, IndexError, TypeError) as error:
                raise ValueError(f"journal-{place.slot} cannot be read: {error}") from None
            finally:
                records.close()
        return memory


def _checksum(handle: int) -> int:
    """Return a checksum of an open file: CRC-32 of the sums of its blocks, as words of eight bytes.

    Sums are four times as quick as a CRC of all bytes. A changed bit, a page of older numbers among newer
    ones, and blocks in another order all change it.
    """
    buffer = np.zeros(BLOCK // 8, dtype=np.uint64)
    sums, position = [], 0
    while got := _fill(handle, buffer.data.cast("B"), position):
        buffer.view(np.uint8)[got:] = 0
        sums.append(int(np.add.reduce(buffer)))
        position += got
    return zlib.crc32(np.array(sums, dtype=np.uint64).tobytes())


def _fill(handle: int, view: memoryview, position: int) -> int:
    """Read into ``view`` until it is full or the file ends, and return how much that was."""
    got = 0
    while got < len(view) and (more := os.preadv(handle, [view[got:]], position + got)):
        got += more
    return got
