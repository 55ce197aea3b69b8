"""Text files with one document a line."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

__all__ = ["decode_line", "read_documents"]


def read_documents(path: str | os.PathLike[str]) -> list[str]:
    r"""Return the documents of a UTF-8 text file, one a line.

    Lines of nothing but white space are skipped. Lines may end in LF or CRLF, and the file may begin with a
    byte order mark.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    list of str, length D
        The lines in order, without their ends.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        When there is no such file, or it is a folder.
    ValueError
        When it has no document, or is not UTF-8 text; the sentence names the line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_documents
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "two.txt")
    ...     _ = file.write_bytes(b"Rice and maize.\r\n\r\nFish ponds.\r\n")
    ...     read_documents(file)
    ['Rice and maize.', 'Fish ponds.']
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, got {path!r}.")
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} must be a text file, one document a line, got a folder.")
    if not file.exists():
        raise FileNotFoundError(f"{file} must be a text file, one document a line, but does not exist.")
    documents = []
    with file.open("rb") as lines:
        # Line by line in bytes: a decoder of its own would read ahead, and not know which line was wrong.
        for number, line in enumerate(lines, start=1):
            document = decode_line(line, file, number)
            if document and not document.isspace():
                documents.append(document)
    if not documents:
        what = "only white space" if file.stat().st_size else "an empty file"
        raise ValueError(f"{file} must have at least one document, got {what}.")
    return documents


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
