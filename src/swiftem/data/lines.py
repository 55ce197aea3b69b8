"""Lines of text files, compressed or not, with their numbers."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from swiftem.data.text import decode_line

__all__ = ["existing_file", "read_bytes", "read_lines", "read_pieces"]

GZIP = b"\x1f\x8b"


def existing_file(path: str | os.PathLike[str], what: str) -> Path:
    """Return ``path`` if it is a file; ``what`` says in a sentence what it should be.

    >>> existing_file("no-such-file", "a vocabulary, one word a line")
    Traceback (most recent call last):
    ...
    FileNotFoundError: no-such-file must be a vocabulary, one word a line, but does not exist.
    """
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} must be {what}, got a folder.")
    if not file.exists():
        raise FileNotFoundError(f"{file} must be {what}, but does not exist.")
    return file


def read_lines(path: str | os.PathLike[str], what: str = "a text file") -> Iterator[tuple[int, str]]:
    r"""Yield the number (from 1) and the text of each line of a UTF-8 file, without its end.

    A file that is compressed with gzip is unpacked, whatever its name.

    >>> import gzip, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.gz")
    ...     _ = file.write_bytes(gzip.compress(b"rice\nfish\n"))
    ...     list(read_lines(file))
    [(1, 'rice'), (2, 'fish')]
    """
    file = existing_file(path, what)
    try:
        with gzip.open(file) if _is_gzip(file) else file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                yield number, decode_line(line, file, number)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(file, error) from None


def read_bytes(path: str | os.PathLike[str], what: str) -> bytes:
    """Return all of a file, unpacked where it is compressed with gzip."""
    file = existing_file(path, what)
    try:
        with gzip.open(file) if _is_gzip(file) else file.open("rb") as stream:
            return stream.read()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(file, error) from None


def read_pieces(path: str | os.PathLike[str], what: str, size: int) -> Iterator[bytes]:
    r"""Yield a file's bytes piece by piece, about ``size`` each, cut at the ends of lines; unpacked.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "three.txt")
    ...     _ = file.write_bytes(b"1\n22\n333")
    ...     list(read_pieces(file, "a text file", 3))
    [b'1\n', b'22\n', b'333']
    """
    file = existing_file(path, what)
    try:
        with gzip.open(file) if _is_gzip(file) else file.open("rb") as stream:
            rest = b""
            while read := stream.read(size):
                whole, end, after = read.rpartition(b"\n")
                if end:
                    yield rest + whole + end
                    rest = after
                else:
                    rest += read
            if rest:
                yield rest
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged(file, error) from None


def _is_gzip(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(2) == GZIP


def _damaged(file: Path, error: Exception) -> ValueError:
    reason = (str(error).rstrip(".") or type(error).__name__).lower()
    return ValueError(f"{file} must be a whole gzip file, got a damaged one ({reason}).")
