"""Bytes and numbered lines of text files, compressed or not; vocabularies; whole numbers."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, cast

__all__ = [
    "MOST_EMPTY",
    "check_unnamed_words",
    "decode_line",
    "existing_file",
    "filled_lines",
    "find_vocabulary",
    "most_bytes",
    "read_bytes",
    "read_lines",
    "read_pieces",
    "read_vocabulary",
    "shortened_number",
    "whole_number",
]

GZIP = b"\x1f\x8b"
PIECE = 1 << 20
"""Bytes read at a time."""
UNPACKED, FREE = 100, 8 << 20
"""Limits of an unpacked gzip file: this factor, plus this number of bytes. Text grows three to twenty times,
a file made to fill the memory a thousand times."""
MOST_EMPTY = 10**6
"""Maximum number of documents without words in a file of counts, which cost a few bytes each."""
UNNAMED = 1 << 24
"""Maximum number of words without names for a small file; hashed words have such numbers."""
LONGEST = 40
"""Maximum number of digits that are parsed: Python reads at most 4,300, in quadratic time."""


def existing_file(path: str | os.PathLike[str], what: str) -> Path:
    """Return ``path`` if it is a file; ``what`` describes in a message what it should be.

    >>> existing_file("no-such-file", "a vocabulary, one word per line")
    Traceback (most recent call last):
    ...
    FileNotFoundError: no-such-file must be a vocabulary, one word per line, but does not exist.
    """
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} must be {what}, got a folder.")
    if not file.exists():
        raise FileNotFoundError(f"{file} must be {what}, but does not exist.")
    return file


def read_lines(path: str | os.PathLike[str], what: str = "a text file") -> Iterator[tuple[int, str]]:
    r"""Yield the number (from 1) and the text of each line of a UTF-8 file, without its end: LF, CRLF or CR.

    A file compressed with gzip is unpacked, whatever its name.

    >>> import gzip, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.gz")
    ...     _ = file.write_bytes(gzip.compress(b"rice\nfish\n"))
    ...     list(read_lines(file))
    [(1, 'rice'), (2, 'fish')]
    """
    for first, lines in _decoded(path, what):
        yield from enumerate(lines, start=first)


def filled_lines(path: str | os.PathLike[str], what: str = "a text file") -> Iterator[tuple[int, str]]:
    r"""Yield the lines of :func:`read_lines` that have more than white space.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.txt")
    ...     _ = file.write_bytes(b"rice\n\n \nfish\n")
    ...     list(filled_lines(file))
    [(1, 'rice'), (4, 'fish')]
    """
    for first, lines in _decoded(path, what):
        # For a whole piece at once: a file may have millions of empty lines.
        yield from [(n, line) for n, line in enumerate(lines, start=first) if line and not line.isspace()]


def _decoded(path: str | os.PathLike[str], what: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of a line, and the text of this and some following lines."""
    file, number = Path(path), 1
    for piece in read_pieces(file, what, PIECE):
        content = piece.removesuffix(b"\n")
        try:
            if b"\0" in content:
                raise ValueError
            text = (content if number > 1 else content.removeprefix(codecs.BOM_UTF8)).decode("utf-8")
        except ValueError:  # line by line, so that the wrong one is named after those before it
            for line in content.split(b"\n"):
                yield number, [decode_line(line, file, number)]
                number += 1
            continue
        lines = text.split("\n")
        if "\r" in text:  # a file without a line feed has lines that end in CR
            lines = text.removesuffix("\r").split("\r") if len(lines) == 1 else lines
            lines = [line.rstrip("\r") for line in lines]
        yield number, lines
        number += len(lines)


def decode_line(line: bytes, file: Path, number: int) -> str:
    """Return line ``number`` (from 1) of a file as text, without its end and without a byte order mark."""
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    if b"\0" in line:
        raise ValueError(
            f"{file} must be text in UTF-8, got a NUL byte in line {number}: it is a binary file, or UTF-16."
        )
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        byte = f"the byte 0x{line[error.start]:02x} in line {number}"
        raise ValueError(f"{file} must be text in UTF-8, got {byte}: convert the file first.") from None


def read_bytes(path: str | os.PathLike[str], what: str) -> bytes:
    """Return the whole content of a file, unpacked if it is compressed with gzip."""
    with _unpacked(existing_file(path, what)) as stream:
        return b"".join(iter(lambda: stream.read(PIECE), b""))


def read_pieces(path: str | os.PathLike[str], what: str, size: int) -> Iterator[bytes]:
    r"""Yield a file's bytes in pieces of about ``size``, cut at the ends of lines; unpacked.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "three.txt")
    ...     _ = file.write_bytes(b"1\n22\n333")
    ...     list(read_pieces(file, "a text file", 3))
    [b'1\n', b'22\n', b'333']
    """
    with _unpacked(existing_file(path, what)) as stream:
        rest: list[bytes] = []  # of a line that is longer than a piece
        while read := stream.read(size):
            whole, end, after = read.rpartition(b"\n")
            if end:
                yield b"".join([*rest, whole, end])
                rest = [after]
            else:
                rest.append(read)
        if last := b"".join(rest):
            yield last


def most_bytes(path: str | os.PathLike[str]) -> int:
    """Return the maximum number of bytes of the unpacked file."""
    file = Path(path)
    with file.open("rb") as stream:
        packed = stream.read(2) == GZIP
    size = file.stat().st_size
    return UNPACKED * size + FREE if packed else size


class Stream(Protocol):
    """What is asked of a stream."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes, none at the end."""
        ...


class _Unpacking:
    """Unpacks while reading, and stops if a small file becomes too large."""

    def __init__(self, file: Path, raw: BinaryIO) -> None:
        self._file, self._raw, self._done = file, raw, 0
        self._stream = gzip.GzipFile(fileobj=raw)

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most ``size``."""
        found = self._stream.read(size)
        self._done += len(found)
        if self._done > UNPACKED * self._raw.tell() + FREE:
            raise ValueError(
                f"{self._file} must be at most {UNPACKED} times as large when unpacked, got more: "
                "unpack it first with gunzip if this is intended."
            )
        return found


@contextmanager
def _unpacked(file: Path) -> Iterator[Stream]:
    with file.open("rb") as raw:
        packed = raw.read(2) == GZIP
        raw.seek(0)
        try:
            yield _Unpacking(file, cast(BinaryIO, raw)) if packed else raw
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            reason = (str(error).rstrip(".") or type(error).__name__).lower()
            raise ValueError(f"{file} must be a whole gzip file, got a damaged one ({reason}).") from None


def whole_number(text: str) -> int:
    """Return the number of ASCII digits with an optional sign; at most 10^40 in size.

    >>> whole_number("-007"), whole_number("9" * 5000) == 10**40
    (-7, True)
    """
    digits = text.lstrip("+-").lstrip("0")
    size = int(digits or "0") if len(digits) <= LONGEST else 10**LONGEST
    return -size if text.startswith("-") else size


def shortened_number(text: str) -> str:
    """Return a number for a message.

    >>> shortened_number("-12"), shortened_number("9" * 5000)
    ('-12', 'a number of 5000 digits')
    """
    return text if len(text) <= LONGEST else f"a number of {len(text.lstrip('+-'))} digits"


def read_vocabulary(path: str | os.PathLike[str]) -> tuple[str, ...]:
    r"""Return the words of a file with one word per line: the first is word 0 (1 in UCI files).

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, a line is empty, or a word occurs twice; the message names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_vocabulary
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "vocab.txt")
    ...     _ = file.write_text("fish\nrice\n")
    ...     read_vocabulary(file)
    ('fish', 'rice')
    """
    places: dict[str, int] = {}
    empty = 0
    for number, line in read_lines(path, "a vocabulary, one word per line"):
        word = line.strip()
        if not word:
            empty = empty or number
            continue
        if empty:  # empty lines at the end are ignored, but one in between would shift all that follow
            raise ValueError(f"{path} must have a word in every line, got none in line {empty}.")
        if word in places:
            raise ValueError(
                f"{path} must have each word once, got {word!r} in lines {places[word]} and {number}."
            )
        places[word] = number
    if not places:
        raise ValueError(f"{path} must have at least one word, got none.")
    return tuple(places)


def find_vocabulary(file: Path, given: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file of the words of counts: a given one, one next to the file, or None.

    For ``docword.nips.txt.gz`` it is ``vocab.nips.txt``; for ``ap.dat`` one of ``ap.vocab``,
    ``ap.vocab.txt``, ``vocab.ap.txt`` and ``vocab.txt``.

    >>> find_vocabulary(Path("/nowhere/docword.nips.txt")) is None
    True
    """
    if given is not None:
        return Path(given)
    name = file.name.removesuffix(".gz")
    stem = name.rpartition(".")[0] or name
    candidates = [f"{stem}.vocab", f"{stem}.vocab.txt", f"vocab.{stem}.txt", "vocab.txt"]
    if name.startswith("docword."):
        candidates = ["vocab." + name.removeprefix("docword."), *candidates]
    beside = (file.with_name(candidate) for candidate in candidates)
    return next((path for path in beside if path.is_file() and path != file), None)


def check_unnamed_words(file: Path, n_words: int, where: str = "") -> None:
    """Raise ValueError for too many words if only their numbers are known: topics have all of them."""
    most = max(UNNAMED, most_bytes(file))
    if n_words > min(most, 2**31 - 1):
        raise ValueError(
            f"{file} must have at most {most:,} words if no vocabulary names them, got {n_words:,}{where}."
        )
