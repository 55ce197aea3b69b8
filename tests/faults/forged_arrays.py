"""``.npy`` and ``.npz`` files that say what is not so: headers, sizes, structure, tricks with archives."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

SIZES = (-1, 0, 1, 2, 3, 7, 100, 2**31 - 1, 2**31, 2**32, 3 * 10**9, 2**62, 2**63 - 1, 2**63, 2**64, 10**30)
DTYPES = (
    "<f8",
    "<f4",
    ">f4",
    "<f2",
    "<f16",
    "<u8",
    "<i8",
    "|u1",
    "|O",
    "|b1",
    "<c16",
    "<M8[ns]",
    "<U4",
    "|V8",
    "f8,f8",
    "(3,)f8",
    "x",
    "",
)


MOST = 1 << 20
"""Bytes that are unpacked for a mutation."""


def saved(array: Any, version: tuple[int, int] | None = None) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version)
    return stream.getvalue()


def with_header(header: bytes, body: bytes, version: int = 1) -> bytes:
    """Return a ``.npy`` file with any header, of the length that it says."""
    length = struct.pack(
        "<H" if version == 1 else "<I", len(header) & (0xFFFF if version == 1 else 0xFFFFFFFF)
    )
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + body


def _size(rng: random.Random) -> str:
    return rng.choice([str(size) for size in SIZES] + ["1" * 5000, "2L", "1.5", "(1", "1e3", "[]", "-"])


def forged_npy(content: bytes, rng: random.Random) -> bytes:
    """Return an array whose header is another."""
    body = np.arange(rng.randrange(40), dtype=rng.choice(("f8", "f4", "u1"))).tobytes()
    if rng.random() < 0.3:
        body = rng.randbytes(rng.randrange(300))
    shape = ", ".join(_size(rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 70))))
    descr = rng.choice([repr(rng.choice(DTYPES)), "[('a', '<f8')]", "None", "{}", "'<f8' * 99", "3"])
    order = rng.choice(("False", "True", "0", "None"))
    header = rng.choice(
        [
            f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': ({shape},), }}",
            f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}",
            f"{{'shape': ({shape},), 'fortran_order': {order}, 'descr': {descr}}}",
            "(" * rng.choice((10, 90, 300, 9000)),
            "{'descr': " + "[" * 300 + "]" * 300 + "}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), 'more': 1}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)",
            "{" + "'a': 1, " * 900 + "}",
            "'''",
            "\\",
            "1 +",
            "__import__('os')",
            "\x00" * 50,
            "é" * 40,
            "",
        ]
    )
    found = with_header(header.encode() + b" " * rng.choice((0, 10)) + b"\n", body, rng.choice((1, 1, 2, 3)))
    if rng.random() < 0.2:
        found = found[:6] + bytes([rng.randrange(6), rng.randrange(3)]) + found[8:]
    return found


def forged_npz(content: bytes, rng: random.Random) -> bytes:
    """Return an archive of a sparse matrix whose arrays do not fit, or whose directory lies."""
    return rng.choice((_arrays, _arrays, _arrays, _headers, _directory, _listed_often, _overlapping))(
        content, rng
    )


def _members(content: bytes) -> dict[str, Any]:
    good = {"format": np.array(b"csr"), "shape": np.array([2, 3]), "indptr": np.array([0, 1, 2], np.int32),
            "indices": np.array([0, 2], np.int32), "data": np.array([1, 2])}  # fmt: skip
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(info.file_size for info in archive.infolist()) > MOST:  # made large by an earlier mutation
                return good
        with np.load(io.BytesIO(content)) as stored:
            return dict(stored) or good
    except Exception:  # damaged by an earlier mutation
        return good


def _arrays(content: bytes, rng: random.Random) -> bytes:
    members = _members(content)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(members))
        array = np.array(members[name])
        how = rng.randrange(7)
        if name == "format" and how < 5:
            array = np.array(
                rng.choice([b"csr", b"csc", b"coo", b"bsr", b"dia", b"lil", b"", "csr", 3, None, [b"csr"]])
            )
        elif how == 0 and array.size and array.dtype.kind in "iuf":
            value = rng.choice([size for size in SIZES if size < 2**63])
            array = array.astype(np.int64)
            array.flat[rng.randrange(array.size)] = rng.choice((value, -value))
        elif how == 1:
            kind = rng.choice(("f8", "i8", "i4", "u8", "u1", "?", "c16", "S3", "O"))
            # Letters or complex numbers that an earlier change made are no numbers.
            with suppress(ValueError, TypeError, np.exceptions.ComplexWarning):
                array = array.astype(kind, casting="unsafe")
        elif how == 2:
            array = array.ravel()[: rng.randrange(array.size + 1)]
        elif how == 3:
            array = np.concatenate([array.ravel()] * 2)
        elif how == 4:
            array = array.reshape(-1, 1) if rng.random() < 0.5 else array.reshape(1, -1)
        elif how == 5:
            array = array.ravel()[::-1]
        else:
            members.pop(name)
            name = rng.choice(("indices", "row", "more", "offsets", name))
        members[name] = array
    stream = io.BytesIO()
    np.savez(stream, **members)
    return stream.getvalue()


def _headers(content: bytes, rng: random.Random) -> bytes:
    """Give one member another header."""
    stream = io.BytesIO()
    members = _members(content)
    hit = rng.choice(list(members))
    with zipfile.ZipFile(
        stream, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    ) as archive:
        for name, array in members.items():
            archive.writestr(f"{name}.npy", forged_npy(b"", rng) if name == hit else saved(array))
    return stream.getvalue()


def _directory(content: bytes, rng: random.Random) -> bytes:
    """Change sizes, offsets, methods or flags in the archive's directory, or in its end."""
    found = bytearray(content)
    places = [
        place
        for place in range(len(found) - 4)
        if found[place : place + 4] in (b"PK\1\2", b"PK\5\6", b"PK\3\4")
    ]
    for _ in range(rng.choice((1, 1, 3))):
        if places:
            place = rng.choice(places) + rng.randrange(4, 46)
            width = rng.choice((1, 2, 4))
            value = rng.choice((0, 1, 8, 12, 99, 2**16 - 1, 2**31 - 1, 2**32 - 1)) & (256**width - 1)
            found[place : place + width] = value.to_bytes(width, "little")
    return bytes(found)


def _entry(name: bytes, offset: int, packed: int, size: int, crc: int) -> bytes:
    fields = (20, 20, 0, 8, 0, 33, crc, packed, size, len(name), 0, 0, 0, 0, 0, offset)
    return b"PK\1\2" + struct.pack("<HHHHHHIIIHHHHHII", *fields) + name


def _local(name: bytes, packed: int, size: int, crc: int, extra: int) -> bytes:
    fields = (20, 0, 8, 0, 33, crc, packed, size, len(name), extra)
    return b"PK\3\4" + struct.pack("<HHHHHIIIHH", *fields) + name


def _end(entries: int, size: int, offset: int) -> bytes:
    return b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, entries & 0xFFFF, entries & 0xFFFF, size, offset, 0)


@cache
def zeros(length: int) -> tuple[bytes, int, int]:
    """Return an array of ``length`` MiB of zeros, deflated; its size, and its checksum."""
    head = saved(np.empty(0, np.int32)).replace(b"(0,), }     ", f"({length << 18},), }}     "[:12].encode())
    part, squeeze = bytes(1 << 20), zlib.compressobj(9, zlib.DEFLATED, -15)
    content = squeeze.compress(head) + squeeze.flush(zlib.Z_FULL_FLUSH)
    piece = squeeze.compress(part) + squeeze.flush(zlib.Z_FULL_FLUSH)  # the same for every piece
    crc = zlib.crc32(head)
    for _ in range(length):
        crc = zlib.crc32(part, crc)
    return content + piece * length + b"\x03\0", len(head) + (length << 20), crc


def one_content(names: list[bytes], kernel: tuple[bytes, int, int]) -> bytes:
    """Return an archive whose entries all have the same bytes: each one's head skips those of the others."""
    content, size, crc = kernel
    heads, after = b"", 0
    offsets: dict[bytes, int] = {}
    for name in reversed(list(dict.fromkeys(names))):
        heads = _local(name, len(content), size, crc, after) + heads
        after = len(heads)
        offsets[name] = after
    directory = b"".join(_entry(name, len(heads) - offsets[name], len(content), size, crc) for name in names)
    return heads + content + directory + _end(len(names), len(directory), len(heads) + len(content))


def _overlapping(content: bytes, rng: random.Random) -> bytes:
    names = [b"data.npy", b"indices.npy", b"indptr.npy", b"shape.npy", b"format.npy", b"row.npy", b"col.npy"]
    return one_content(names, zeros(rng.choice((1, 2, 256))))


def _listed_often(content: bytes, rng: random.Random) -> bytes:
    return one_content([b"data.npy"] * rng.choice((2, 300, 60_000)), zeros(rng.choice((1, 8))))
