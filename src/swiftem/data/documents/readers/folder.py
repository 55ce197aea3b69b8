"""Folders of text files, one document per file."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

from swiftem.core.checks import shortened
from swiftem.data.documents.counts import Texts
from swiftem.data.documents.readers.lines import read_bytes

__all__ = ["read_folder"]

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_folder(path: str | os.PathLike[str], leave_out: str | os.PathLike[str] | None = None) -> Texts:
    r"""Return the text files of a folder and its subfolders, one document per file.

    All files are read, also those compressed with gzip, except hidden ones. Text is UTF-8, or UTF-16 if it
    has a byte order mark. Other files are read as Windows-1252 (Latin-1), which accepts any bytes: a
    collection of old texts has some, and one of them should not stop the whole. (A single text file raises an
    error with the line.) Binary and empty files are left out. The notes name the files.

    Parameters
    ----------
    path : str or path
        The folder.
    leave_out : str or path, optional
        A subfolder that is not read, for example the one for results.

    Returns
    -------
    Texts
        ``names`` are the files' paths in the folder, sorted.

    Raises
    ------
    FileNotFoundError, NotADirectoryError, ValueError
        If there is no such folder, or no text in it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data import read_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pathlib.Path(folder, "letters").mkdir()
    ...     _ = pathlib.Path(folder, "rice.txt").write_text("Rice and maize.")
    ...     _ = pathlib.Path(folder, "letters", "1").write_bytes(b"Caf\xe9.")
    ...     texts, names, notes = read_folder(folder)
    >>> texts, names, notes
    (['Café.', 'Rice and maize.'], ['letters/1', 'rice.txt'], ['1 file is not UTF-8 ... letters/1.'])
    """
    folder = Path(path)
    if not folder.exists():
        raise FileNotFoundError(f"{folder} must be a folder of text files, but does not exist.")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} must be a folder of text files, got a file.")
    texts: list[str] = []
    names: list[str] = []
    guessed: list[str] = []
    left_out: dict[str, list[str]] = {"empty": [], "binary": [], "unreadable": []}
    for name in _files(folder, None if leave_out is None else Path(leave_out).resolve()):
        try:
            content = read_bytes(folder / name, "a text file")
        except (OSError, ValueError):  # the latter if it is compressed and damaged
            left_out["unreadable"].append(name)
            continue
        text, is_guess = _decode(content)
        if text is None:
            left_out["binary"].append(name)
        elif not text or text.isspace():
            left_out["empty"].append(name)
        else:
            texts.append(text)
            # A file's name need not be valid text: the name of a document must be.
            names.append(os.fsencode(name).decode("utf-8", "replace"))
            if is_guess:
                guessed.append(name)
    told = {"not UTF-8 and read as Windows-1252": guessed}
    told |= {f"{kind} and left out": found for kind, found in left_out.items()}
    notes = [f"{_files_are(found)} {what}: {shortened(found, 3)}." for what, found in told.items() if found]
    if not texts:
        what = f"none: {' '.join(notes)}" if notes else "no files."
        raise ValueError(f"{folder} must have at least one text file, got {what}")
    return Texts(texts, names, notes)


def _files(folder: Path, leave_out: Path | None) -> list[str]:
    """Return the paths of all files in a folder, with slashes, sorted; hidden ones are left out."""
    found = []
    for base, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and (Path(base) / name).resolve() != leave_out
        ]
        inside = Path(base).relative_to(folder)
        # Opening pipes and sockets would block.
        found += [
            (inside / name).as_posix()
            for name in files
            if not name.startswith(".") and (Path(base) / name).is_file()
        ]
    return sorted(found)


def _decode(content: bytes) -> tuple[str | None, bool]:
    """Return the text, None for binary content; and whether its encoding is a guess."""
    if content.startswith(UTF_16):
        try:
            return content.decode("utf-16"), False
        except UnicodeDecodeError:
            return None, False
    if b"\0" in content:
        return None, False
    try:
        return content.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        try:
            return content.decode("cp1252"), True
        except UnicodeDecodeError:  # five bytes are undefined in it
            return content.decode("latin-1"), True


def _files_are(files: list[str]) -> str:
    return "1 file is" if len(files) == 1 else f"{len(files):,} files are"
