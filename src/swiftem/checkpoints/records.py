"""A file that only grows: records with their lengths, one after another."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

from swiftem.files.durable import open_plain, read_into, write_all

__all__ = ["Records"]

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
