"""The parts of a model's file: a zip without compression; lengths are checked against the file's."""

from __future__ import annotations

import os
import struct
import zipfile
from typing import BinaryIO

__all__ = ["HEADER", "LARGEST_HEADER", "read_parts"]

HEADER = "header.json"
LARGEST_HEADER = 16 << 20
"""Maximum bytes of the header: JSON takes up to thirty times as much in memory."""
LARGEST_DIRECTORY = 1 << 16
"""Maximum bytes of the zip's directory, each entry of which takes a hundred or more in memory."""
MOST_PARTS = 64
END, END_64 = struct.Struct("<4s8xL6x"), struct.Struct("<4s36xQ8x")
"""End record of a zip, and the additional one of a large zip: signature, and size of the directory."""
LOCATOR = 20
"""Bytes between the two."""


def read_parts(file: BinaryIO, only: str | None = None) -> dict[str, bytes]:
    """Return the parts by name, or just one of them; raises ValueError and others for invalid files.

    At most the file's length is read, however often the file lists its parts and whatever lengths it claims.
    """
    size = file.seek(0, os.SEEK_END)
    if _directory_size(file, size) > LARGEST_DIRECTORY:
        raise ValueError("the list of its parts is too long")
    with zipfile.ZipFile(file) as parts:
        found = parts.infolist()
        names = {info.filename for info in found}
        if len(found) > MOST_PARTS or len(names) < len(found):
            raise ValueError("parts are there twice, or too many")
        if any(info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 for info in found):
            raise ValueError("parts are never compressed or encrypted")
        # Stored parts have two equal lengths; zipfile would allocate as much as the second says.
        if sum(max(info.file_size, info.compress_size) for info in found) > size:
            raise ValueError("parts are longer than the file")
        if HEADER in names and parts.getinfo(HEADER).file_size > LARGEST_HEADER:
            raise ValueError("the header is too long")
        # Reading verifies the checksum.
        return {name: parts.read(name) for name in names if only is None or name == only}


def _directory_size(file: BinaryIO, size: int) -> int:
    """Return the size of the zip's directory, which :mod:`zipfile` would read first."""
    file.seek(max(0, size - END.size - (1 << 16) - LOCATOR - END_64.size))
    tail = file.read()
    place = len(tail) - END.size
    if place < 0 or tail[place : place + 4] != b"PK\5\6" or tail[-2:] != b"\0\0":
        place = tail.rfind(b"PK\5\6")
    if place < 0 or place + END.size > len(tail):
        raise ValueError("it is not a zip file")
    length = int(END.unpack_from(tail, place)[1])
    before = place - LOCATOR - END_64.size
    if before >= 0 and tail[place - LOCATOR : place - LOCATOR + 4] == b"PK\6\7":
        length = max(length, int(END_64.unpack_from(tail, before)[1]))
    return length
