"""The header of an ``.npy`` file, read without evaluating it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

__all__ = ["NpyHeader", "read_npy_header"]

MAGIC = b"\x93NUMPY"
LONGEST = 10_000
"""Maximum bytes of a header, as in NumPy."""
ITEMS = {
    "descr": r"(?P<descr>'[^'\[\]]{1,20}(?:\[[0-9a-zA-Z]{1,9}\])?'|\[.*\])",
    "fortran_order": r"(?P<order>True|False)",
    "shape": r"\((?P<shape>(?:\s*[0-9]{1,19}L?\s*(?:,|(?=\))))*)\s*\)",
}
FIELDS = {name: re.compile(rf"'{name}'\s*:\s*{value}\s*", re.DOTALL) for name, value in ITEMS.items()}


class NpyHeader(NamedTuple):
    """Description of an array: ``shape``, ``dtype``, Fortran order, and the offset of the data."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    offset: int

    @property
    def n_bytes(self) -> int:
        """Bytes of the data, as a Python int, which does not overflow."""
        count = 1
        for length in self.shape:
            count *= length
        return count * self.dtype.itemsize


def read_npy_header(stream: BinaryIO, file: Path, what: str = "a file of numpy.save") -> NpyHeader:
    """Return the header at the beginning of a stream, or raise ValueError.

    NumPy's reader evaluates the text as Python, and raises any of Python's errors. This one accepts what
    :func:`numpy.save` and similar writers in other languages write: three items, in any order.

    Parameters
    ----------
    stream : binary file
        At its beginning.
    file : Path
        For the message.
    what : str
        What it should be.

    Examples
    --------
    >>> import io, numpy as np
    >>> stream = io.BytesIO()
    >>> np.save(stream, np.zeros((3, 2)))
    >>> _ = stream.seek(0)
    >>> read_npy_header(stream, Path("toy.npy"))
    NpyHeader(shape=(3, 2), dtype=dtype('float64'), fortran=False, offset=128)
    """
    refused = ValueError(f"{file} must be {what}, got a damaged one or something else.")
    start = stream.read(8)
    version = start[6:]
    if len(start) != 8 or start[:6] != MAGIC or version not in (b"\1\0", b"\2\0", b"\3\0"):
        raise refused
    width = 2 if version == b"\1\0" else 4
    length = int.from_bytes(stream.read(width), "little")
    if length > LONGEST:
        raise refused
    text = stream.read(length).decode("latin-1").strip()
    found = _items(text.replace('"', "'"))
    if found is None:
        raise refused
    descr, order, shape = found
    if descr.startswith("["):
        raise ValueError(f"{file} must hold real numbers, got named fields.")
    try:
        dtype = np.dtype(descr.strip("'"))
    except Exception:  # NumPy parses type descriptions here
        raise refused from None
    if dtype.hasobject:
        raise ValueError(f"{file} must hold numbers, got Python objects, which are not read.")
    sizes = tuple(int(size.strip().rstrip("L")) for size in shape.split(",") if size.strip())
    if dtype.subdtype is not None or (len(sizes) == 1 and "," not in shape):
        raise refused
    return NpyHeader(sizes, dtype, order == "True", 8 + width + length)


def _items(text: str) -> tuple[str, str, str] | None:
    """Return type, order and shape as written, or None if there are not exactly these three."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    rest, found = text[1:-1].strip(), {}
    while rest:
        for name, field in FIELDS.items():
            match = field.match(rest)
            if match and name not in found:
                found[name] = match[1]
                rest = rest[match.end() :]
                break
        else:
            return None
        if rest and not rest.startswith(","):
            return None
        rest = rest[1:].strip()
    return (found["descr"], found["fortran_order"], found["shape"]) if len(found) == 3 else None
