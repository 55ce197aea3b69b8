"""Bytes and numbered lines of text files, compressed or not, and vocabularies."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "PathName",
    "check_unnamed_words",
    "check_unpacked",
    "existing_file",
    "filled_lines",
    "most_bytes",
    "read_lines",
    "read_pieces",
    "read_vocabulary",
    "vocabulary_beside",
]

PathName = str | os.PathLike[str]
GZIP = b"\x1f\x8b"
PIECE = 1 << 20
"""Bytes read at a time."""
UNPACKED, FREE = 100, 8 << 20
"""Limits of an unpacked file: this factor, plus this number of bytes. Text grows three to twenty times, a
file made to fill the memory a thousand times."""
UNNAMED = 1 << 24
"""Maximum number of words without names for a small file; hashed words have such numbers."""


def existing_file(path: PathName, what: str) -> Path:
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


def read_pieces(path: PathName, what: str) -> Iterator[bytes]:
    r"""Yield the bytes of a file in pieces of about 1 MB, cut at the ends of lines.

    A file compressed with gzip is unpacked, whatever its name.

    >>> import gzip, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.gz")
    ...     _ = file.write_bytes(gzip.compress(b"rice\nfish\n"))
    ...     list(read_pieces(file, "a text file"))
    [b'rice\nfish\n']
    """
    file = existing_file(path, what)
    with file.open("rb") as raw:
        is_packed = raw.read(2) == GZIP
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if is_packed else raw
        size, rest = 0, list[bytes]()  # the beginning of a line that is longer than a piece
        try:
            while content := stream.read(PIECE):
                size += len(content)
                if is_packed:
                    check_unpacked(file, size, raw.tell())
                lines, end, beginning = content.rpartition(b"\n")
                if end:
                    yield b"".join([*rest, lines, end])
                    rest = []
                rest.append(beginning)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            reason = (str(error).rstrip(".") or type(error).__name__).lower()
            raise ValueError(f"{file} must be a whole gzip file, got a damaged one ({reason}).") from None
        if last := b"".join(rest):
            yield last


def check_unpacked(file: Path, size: int, packed_size: int) -> None:
    """Raise ValueError if the content of a compressed file takes much more memory than the file."""
    if size > UNPACKED * packed_size + FREE:
        advice = "store it without compression if this is intended"
        raise ValueError(
            f"{file} must be at most {UNPACKED} times as large when unpacked, got more: {advice}."
        )


def read_lines(path: PathName, what: str = "a text file") -> Iterator[tuple[int, str]]:
    r"""Yield the number (from 1) and the text of each line of a UTF-8 file, without its end: LF, CRLF or CR.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "three.txt")
    ...     _ = file.write_bytes(b"rice\n\nfish\r\n")
    ...     list(read_lines(file))
    [(1, 'rice'), (2, ''), (3, 'fish')]
    """
    number = 1
    for piece in read_pieces(path, what):
        content = piece.removeprefix(codecs.BOM_UTF8) if number == 1 else piece
        lines = _decode(content.removesuffix(b"\n"), path, number).split("\n")
        if len(lines) == 1:  # a file without a line feed has lines that end in CR
            lines = lines[0].removesuffix("\r").split("\r")
        for line in lines:
            yield number, line.rstrip("\r")
            number += 1


def _decode(content: bytes, path: PathName, first_line: int) -> str:
    """Return lines as text, or raise ValueError that names the first wrong one."""
    place, advice = content.find(b"\0"), "it is a binary file, or UTF-16"
    if place < 0:
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            place, advice = error.start, "convert the file first"
    got = f"the byte 0x{content[place]:02x}" if content[place] else "a NUL byte"
    line = first_line + content.count(b"\n", 0, place)
    raise ValueError(f"{path} must be text in UTF-8, got {got} in line {line}: {advice}.")


def filled_lines(path: PathName, what: str = "a text file") -> Iterator[tuple[int, str]]:
    """Yield the lines of :func:`read_lines` that have more than white space."""
    return ((number, line) for number, line in read_lines(path, what) if line and not line.isspace())


def most_bytes(path: PathName) -> int:
    """Return the maximum number of bytes of the unpacked file."""
    file = Path(path)
    with file.open("rb") as stream:
        is_packed = stream.read(2) == GZIP
    size = file.stat().st_size
    return UNPACKED * size + FREE if is_packed else size


def read_vocabulary(path: PathName) -> tuple[str, ...]:
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
    line_of: dict[str, int] = {}
    for number, line in filled_lines(path, "a vocabulary, one word per line"):
        word = line.strip()
        if number > len(line_of) + 1:  # empty lines at the end are ignored, one in between would shift words
            raise ValueError(f"{path} must have a word in every line, got none in line {len(line_of) + 1}.")
        if word in line_of:
            where = f"lines {line_of[word]} and {number}"
            raise ValueError(f"{path} must have each word once, got {word!r} in {where}.")
        line_of[word] = number
    if not line_of:
        raise ValueError(f"{path} must have at least one word, got none.")
    return tuple(line_of)


def vocabulary_beside(file: Path, vocabulary: PathName | None, n_words: int = 0) -> tuple[str, ...] | None:
    """Return the words of counts: of a given file, or of one next to the counts; None if there is none.

    For ``docword.nips.txt.gz`` it is ``vocab.nips.txt``; for ``ap.dat`` one of ``ap.vocab``,
    ``ap.vocab.txt``, ``vocab.ap.txt`` and ``vocab.txt``. A file that is not given and has another number of
    words than ``n_words`` belongs to other counts, unless it has the name of UCI's vocabularies.

    >>> vocabulary_beside(Path("/nowhere/docword.nips.txt"), None) is None
    True
    """
    name = file.name.removesuffix(".gz")
    is_guess = vocabulary is None and not name.startswith("docword.")
    if vocabulary is None:
        stem = name.rpartition(".")[0] or name
        names = [f"{stem}.vocab", f"{stem}.vocab.txt", f"vocab.{stem}.txt", "vocab.txt"]
        beside = [file.with_name(other) for other in ["vocab." + name.removeprefix("docword."), *names]]
        vocabulary = next((path for path in beside if path.is_file() and path != file), None)
    if vocabulary is None:
        return None
    words = read_vocabulary(vocabulary)
    if n_words in (0, len(words)):
        return words
    if is_guess:
        return None
    raise ValueError(f"{vocabulary} must have the {n_words:,} words of {file}, got {len(words):,}.")


def check_unnamed_words(file: Path, n_words: int) -> None:
    """Raise ValueError for too many words if only their numbers are known: topics have all of them."""
    most = min(max(UNNAMED, most_bytes(file)), 2**31 - 1)
    if n_words > most:
        raise ValueError(f"{file} must have a vocabulary if it has over {most:,} words, got {n_words:,}.")
