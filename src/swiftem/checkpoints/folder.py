"""The files in the folder of a checkpoint: lock, records, states, and the memory of iem and fiem."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.checkpoints.tree import LENGTH, decode, encode
from swiftem.files.durable import open_plain, read_into, read_sealed, write_all, write_sealed

__all__ = ["Lock", "MemoryFile", "MemoryPlace", "Records", "StateHead", "read_state", "write_state"]

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


class Lock:
    """A lock on a folder that ends with its process, however that ends.

    Parameters
    ----------
    folder : Path
        It must exist; the file ``lock`` in it is created if it is missing.

    Raises
    ------
    ValueError
        If another run has the lock.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Lock(pathlib.Path(folder))
    ...     lock.release()
    """

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = open_plain(folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            import fcntl
        except ImportError:  # pragma: no cover
            return
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._handle, 20, 0).decode(errors="replace").strip()
            os.close(self._handle)
            self._handle = None
            who = f", process {holder}," if holder.isdigit() else ""
            raise ValueError(
                f"checkpoint={str(folder)!r} is in use: another run{who} writes to it. "
                "Wait until it ends, or use another folder."
            ) from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Release the folder."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


HEAD = struct.Struct("<4sQ")
"""Mark, and length of the content."""
MARK = b"rec\n"


class Records:
    """Records in a file, of which the first ``length`` bytes are valid.

    If ``length`` and ``checksum`` are stored elsewhere, and only after :meth:`sync`, no incomplete record is
    ever read: the remains of a killed process are overwritten. The checksum is of all valid bytes, so that a
    record that is missing, duplicated or from another time is detected.

    Parameters
    ----------
    path : Path
        The file; it is created if it is missing.
    length : int
        Number of valid bytes, from an earlier :meth:`append`.
    checksum : int
        CRC-32 of these bytes; before the first record, any number that identifies this file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = Records(pathlib.Path(folder, "file"))
    ...     _ = records.append(b"one"), records.append(b"two")
    ...     found = records.read()
    ...     records.close()
    >>> found
    [b'one', b'two']
    """

    def __init__(self, path: Path, length: int = 0, checksum: int = 0) -> None:
        self.length, self.checksum = length, checksum
        self._handle = open_plain(path, os.O_RDWR | os.O_CREAT)

    def append(self, content: bytes) -> None:
        """Write one more record."""
        record = HEAD.pack(MARK, len(content)) + content
        self.length = write_all(self._handle, record, self.length)
        self.checksum = zlib.crc32(record, self.checksum)

    def read(self, first: int = 0) -> list[bytes]:
        """Return all valid records; ValueError if they are not as they were written.

        ``first`` is the value of ``checksum`` before the first record.
        """
        if os.fstat(self._handle).st_size < self.length:
            raise ValueError("it is shorter than it should be")
        position, found = 0, []
        while position < self.length:
            head = self._read(HEAD.size, position)
            mark, length = HEAD.unpack(head)
            # A damaged length must not lead to a larger allocation.
            if mark != MARK or length > self.length - position - HEAD.size:
                raise ValueError("a record in it is damaged")
            content = self._read(length, position + HEAD.size)
            first = zlib.crc32(content, zlib.crc32(head, first))
            found.append(content)
            position += HEAD.size + length
        if first != self.checksum:
            raise ValueError("a record in it is damaged, or not where it belongs")
        return found

    def _read(self, length: int, position: int) -> bytes:
        found = bytearray(length)
        if read_into(self._handle, memoryview(found), position) < length:
            raise ValueError("it is shorter than it should be")
        return bytes(found)

    def sync(self) -> None:
        """Flush the appended records to disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)
