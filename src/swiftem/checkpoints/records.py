"""A file that only grows: records with their lengths, one after another."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

from swiftem.files.durable import open_plain, read_into, write_all

__all__ = ["Records"]

HEAD = struct.Struct("<4sQ")
"""Mark, and length of what follows."""
MARK = b"rec\n"


class Records:
    """Records in a file, of which the first ``length`` bytes count.

    Who keeps ``length`` and ``checksum`` elsewhere, and only after :meth:`sync`, never sees a record that is
    not whole: what a killed process left behind them is written over. The checksum is of all bytes that
    count, so that a record that is missing, there twice or from another time is noticed.

    Parameters
    ----------
    path : Path
        The file; it is made where it is missing.
    length : int
        How much of it counts, from an earlier :meth:`append`.
    checksum : int
        CRC-32 of that, from then, too; of no record, any number that tells this file from others.

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
        """Return all records that count; ValueError where they are not as they were written.

        ``first`` is what ``checksum`` was when there was no record.
        """
        if os.fstat(self._handle).st_size < self.length:
            raise ValueError("it is shorter than it should be")
        position, found = 0, []
        while position < self.length:
            head = self._read(HEAD.size, position)
            mark, length = HEAD.unpack(head)
            # Of a damaged length no more than there is may be asked for.
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
        """Bring what was appended to the disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)
