"""Recognition of a corpus' format."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from swiftem.data.documents.formats.lines import read_lines

__all__ = ["FORMATS", "recognise"]

FORMATS = ("text", "folder", "csv", "parquet", "uci", "lda-c", "matrixmarket", "npz")
"""Names of the formats: one document per line, folders of text files, tables with a text column, counts."""

ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz",
    ".mtx": "matrixmarket", ".mm": "matrixmarket", ".ldac": "lda-c", ".lda-c": "lda-c",
}  # fmt: skip
PEEKED = 5
LDA_C = re.compile(r"\s*\d+(\s+\d+:\d+)+\s*")
NUMBER = re.compile(r"\s*\d+\s*")
TRIPLE = re.compile(r"\s*\d+\s+\d+\s+\d+\s*")


def recognise(path: Path) -> str:
    r"""Return the format of a corpus: by its extension if that is enough, else by its first lines.

    Parameters
    ----------
    path : Path
        A file or folder that exists.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data.documents.formats.corpus_format import recognise
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "ap.dat")
    ...     _ = file.write_text("2 0:1 7:1\n1 3:2\n")
    ...     recognise(file), recognise(pathlib.Path(folder))
    ('lda-c', 'folder')
    """
    if path.is_dir():
        return "folder"
    name = path.name.lower().removesuffix(".gz")
    if name.startswith("docword."):
        return "uci"
    for ending, format in ENDINGS.items():
        if name.endswith(ending):
            return format
    try:
        lines = [line for _, line in islice(read_lines(path), PEEKED) if line.strip()]
    except ValueError:  # not text: the reader of the text then names the line
        return "text"
    if lines and lines[0].startswith("%%MatrixMarket"):
        return "matrixmarket"
    if len(lines) > 3 and all(map(NUMBER.fullmatch, lines[:3])) and all(map(TRIPLE.fullmatch, lines[3:])):
        return "uci"
    if lines and all(map(LDA_C.fullmatch, lines)):
        return "lda-c"
    return "text"
