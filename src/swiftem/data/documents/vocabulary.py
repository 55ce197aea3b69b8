"""Vocabulary files, which map numbers to words."""

from __future__ import annotations

import os
from pathlib import Path

from swiftem.data.documents.formats.lines import most_bytes, read_lines

__all__ = ["check_unnamed_words", "find_vocabulary", "read_vocabulary"]

UNNAMED = 1 << 24
"""Maximum number of words without names for a small file; hashed words have such numbers."""


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


def find_vocabulary(file: Path) -> Path | None:
    """Return the vocabulary next to a file of counts, or None.

    For ``docword.nips.txt.gz`` it is ``vocab.nips.txt``; for ``ap.dat`` one of ``ap.vocab``,
    ``ap.vocab.txt``, ``vocab.ap.txt`` and ``vocab.txt``.

    >>> find_vocabulary(Path("/nowhere/docword.nips.txt")) is None
    True
    """
    name = file.name.removesuffix(".gz")
    stem = name.rpartition(".")[0] or name
    candidates = [f"{stem}.vocab", f"{stem}.vocab.txt", f"vocab.{stem}.txt", "vocab.txt"]
    if name.startswith("docword."):
        candidates = ["vocab." + name.removeprefix("docword."), *candidates]
    beside = (file.with_name(candidate) for candidate in candidates)
    return next((found for found in beside if found.is_file() and found != file), None)


def check_unnamed_words(file: Path, n_words: int, where: str = "") -> None:
    """Raise ValueError for too many words if only their numbers are known: topics have all of them."""
    most = max(UNNAMED, most_bytes(file))
    if n_words > min(most, 2**31 - 1):
        raise ValueError(
            f"{file} must have at most {most:,} words if no vocabulary names them, got {n_words:,}{where}."
        )
