"""A file that only grows: records with length and checksum, one after another."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

from swiftem.checkpoints.durable import write_all

__all__ = ["Records"]

HEAD = struct.Struct("<4sIQ")
"""Mark, CRC-32 and length of what follows."""
MARK = b"rec\n"


class Records:
    """Records in a file, of which the first ``length`` bytes count.

    Who keeps ``length`` elsewhere, and only after :meth:`sync`, never sees a record that is not whole: what
    a killed process left behind them is written over.

    Parameters
    ----------
    path : Path
        The file; it is made where it is missing.
    length : int
        How much of it counts, from an earlier :meth:`append`.

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

    def __init__(self, path: Path, length: int = 0) -> None:
        self.length = length
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    def append(self, content: bytes) -> int:
        """Write one more record, and return the length with it."""
        head = HEAD.pack(MARK, zlib.crc32(content), len(content))
        self.length = write_all(self._handle, head + content, self.length)
        return self.length

    def read(self) -> list[bytes]:
        """Return all records that count; ValueError where one is not as it was written."""
        position, found = 0, []
        while position < self.length:
            head = os.pread(self._handle, HEAD.size, position)
            if len(head) < HEAD.size:
                raise ValueError("it is shorter than it should be")
            mark, checksum, length = HEAD.unpack(head)
            if mark != MARK or length > self.length - position - HEAD.size:
                raise ValueError("a record in it is damaged")
            content = os.pread(self._handle, length, position + HEAD.size)
            if len(content) < length or zlib.crc32(content) != checksum:
                raise ValueError("a record in it is damaged")
            found.append(content)
            position += HEAD.size + length
        return found

    def sync(self) -> None:
        """Bring what was appended to the disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)
