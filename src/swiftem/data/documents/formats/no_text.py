"""Recognises the format of a corpus, and what looks like text but is not: markup, code, data, identifiers.

Topics of the latter can be computed, but are meaningless: the words are tags, keywords and names of columns.
The rules accept prose of every kind, and detect files that are hardly anything else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path, PurePosixPath

from swiftem.data.documents.formats.lines import read_lines

__all__ = ["FORMATS", "check_texts", "looks_like", "recognise", "without_others"]

FORMATS = ("text", "folder", "csv", "parquet", "uci", "lda-c", "matrixmarket", "npz")
"""Names of the formats: one document per line, folders of text files, tables with a text column, counts."""
BY_ENDING = {
    ".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet", ".npz": "npz",
    ".mtx": "matrixmarket", ".mm": "matrixmarket", ".ldac": "lda-c", ".lda-c": "lda-c",
}  # fmt: skip
PEEKED = 5
LDA_C = re.compile(r"\s*(0|\d+(\s+\d+:\d+)+)\s*")
WHOLE = re.compile(r"\s*\d+\s*")
TRIPLE = re.compile(r"\s*\d+\s+\d+\s+\d+\s*")

SAMPLE = 20_000
"""Number of characters of a document that are examined."""
CORPUS_SAMPLE = 200_000
"""Number of characters of a file with one document per line that are examined."""
LEAST_DOCUMENTS, SEVERAL_WORDS = 10, 0.1
"""With this many documents or more, at least this share must have two words."""
TAG = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>|<[!?][A-Za-z-][^<>]*>")
TAGGED = 0.05
"""Share of a text in tags from which it is markup."""
NUMBER = re.compile(
    r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?%?|nan|inf|null|none|true|false|na", re.I
)
NUMBERS = 0.4
"""Share of numbers among the tokens between white space and separators from which it is data."""
LEAST_CELLS = 20
"""Minimum number of tokens to judge by numbers: a single sentence may have nothing else."""
CELLS = re.compile(r"[\s,;|:\"'{}\[\]()=]+")
KEY = re.compile(r"\"[^\"\n]{1,60}\"\s*:")
ENDINGS = {
    "markup": ".html .htm .xhtml .xml .sgml .sgm .svg .rss",
    "source code": ".py .pyi .ipynb .c .h .cc .cpp .hpp .cs .java .js .mjs .ts .tsx .jsx .go .rs .rb .php "
    ".pl .pm .r .jl .m .sh .bat .ps1 .sql .css .scss .swift .kt .scala .lua .f90 .asm .cmake",
    "data": ".csv .tsv .json .jsonl .geojson .yaml .yml .toml .ini .cfg .arff .parquet",
}
"""File extensions by content."""
PROSE = (".md", ".rst", ".tex", ".markdown")
"""Extensions of texts, whatever code they quote."""
CODE_LINE = re.compile(
    r"^\s*(?:#\s*(?:include|define|if|endif)\b|import\s+[\w.]+|from\s+\S+\s+import\b|def\s+\w+\(|class\s+\w+\s*[(:{]"
    r"|return\b.*[;)\]\w]$|(?:el)?if\s.*[:{]$|else\s*[:{]|for\s.*[:{]$|while\s.*[:{]$|try\s*[:{]|except\b.*:$|@\w+"
    r"|(?:public|private|protected|static|const|let|var|function|fn|func|package|using|namespace|struct|enum)\s"
    r"|//|/\*|\*/|\w[\w.\[\]'\"]*\s*(?:[-+*/|&]|:)?=\s*\S)|[;{}]\s*$|\w\([^)]*\)\s*(?:[;:{,.]|$)|->|=>|::|&&|\|\|"
)
CODE = 0.5
"""Share of lines that look like program code from which a text is source code."""
WORD = re.compile(r"[^\W\d_]{2,}")
INSTEAD = {
    "markup": "extract the text from it first",
    "source code": "topics are for texts in a language that people speak",
    "data": "swiftem fit is for tables of numbers",
    "identifiers or single words": "name the column or the file that has the texts",
}
"""Kinds, and what to do instead."""


def looks_like(text: str, name: str = "") -> str:
    r"""Return the kind of :data:`INSTEAD` that a document looks like; empty if it looks like text.

    Parameters
    ----------
    text : str
        The document.
    name : str
        The name of its file, if it has one.

    Examples
    --------
    >>> looks_like("<html><body><p>Rice</p><p>and maize</p></body></html>")
    'markup'
    >>> looks_like("Rice and maize, 1.5 tons of it, are <b>stored</b> in the barn behind the house.")
    ''
    >>> looks_like("1.5,2,red\n2.5,3,blue\n" * 5), looks_like("a = 1", "setup.py")
    ('data', 'source code')
    """
    ending = PurePosixPath(name.lower().removesuffix(".gz")).suffix
    for kind, endings in ENDINGS.items():
        if ending in endings.split():
            return kind
    sample = text[:SAMPLE]
    tags = TAG.findall(sample)
    if len(tags) >= 3 and sum(map(len, tags)) >= TAGGED * len(sample):
        return "markup"
    cells = [cell for cell in CELLS.split(sample) if cell]
    if len(cells) >= LEAST_CELLS and sum(
        NUMBER.fullmatch(cell) is not None for cell in cells
    ) >= NUMBERS * len(cells):
        return "data"
    if sample.lstrip()[:1] in "{[" and len(KEY.findall(sample)) >= max(2, len(sample) / 200):
        return "data"
    lines = [line for line in sample.splitlines() if line.strip()]
    if (
        ending not in PROSE
        and len(lines) >= 5
        and sum(CODE_LINE.search(line) is not None for line in lines) >= CODE * len(lines)
    ):
        return "source code"
    return ""


def check_texts(source: str, texts: Sequence[str], name: str = "") -> None:
    """Raise ValueError for a file or a column, with one document per line or cell, that has no texts.

    Parameters
    ----------
    source : str
        The file or column, for the message.
    texts : sequence of str
        The documents.
    name : str
        The name of the file, if it indicates the content.
    """
    joined, length = [], 0
    for text in texts:
        joined.append(text[:SAMPLE])
        length += len(joined[-1])
        if length > CORPUS_SAMPLE:
            break
    pieces = [
        "\n".join(joined)[start : start + SAMPLE] for start in range(0, min(length, CORPUS_SAMPLE), SAMPLE)
    ]
    found = Counter(looks_like(piece, name) for piece in pieces)
    kind = found.most_common(1)[0][0] if found else ""
    if not kind and len(texts) >= LEAST_DOCUMENTS:
        several = sum(len(WORD.findall(text[:SAMPLE])) > 1 for text in texts)
        kind = "" if several >= SEVERAL_WORDS * len(texts) else "identifiers or single words"
    if kind:
        raise _refusal(source, f"what looks like {kind}", kind)


def without_others(folder: str, names: Sequence[str], texts: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return the indices of the documents of a folder that are texts, and notes on the others.

    Raises ValueError if more than half of the folder is not text.
    """
    kinds = [looks_like(text, name) for name, text in zip(names, texts, strict=True)]
    others = [place for place, kind in enumerate(kinds) if kind]
    if not others:
        return list(range(len(texts))), []
    shown = ", ".join(names[place] for place in others[:3]) + (", ..." if len(others) > 3 else "")
    kind = Counter(kinds[place] for place in others).most_common(1)[0][0]
    all_kinds = " or ".join(kind for kind in INSTEAD if kind in kinds)
    if 2 * len(others) > len(texts):
        files = (
            "1 file that looks" if len(others) == 1 else f"{len(others):,} of {len(texts):,} files that look"
        )
        raise _refusal(folder, f"{files} like {all_kinds} ({shown})", kind)
    looks = "1 file looks" if len(others) == 1 else f"{len(others):,} files look"
    was = "was" if len(others) == 1 else "were"
    note = f"{looks} like {all_kinds} and {was} left out: {shown} (as_text=True reads all files)."
    return [place for place, kind in enumerate(kinds) if not kind], [note]


def _refusal(source: str, got: str, kind: str) -> ValueError:
    return ValueError(
        f"{source} must have texts, got {got}: {INSTEAD[kind]}, or use as_text=True if these are texts."
    )


def recognise(path: Path) -> str:
    r"""Return the format of a corpus: by its extension if that is enough, else by its first lines.

    Parameters
    ----------
    path : Path
        A file or folder that exists.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from swiftem.data.documents.formats.no_text import recognise
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
    for ending, format in BY_ENDING.items():
        if name.endswith(ending):
            return format
    try:
        lines = [line for _, line in islice(read_lines(path), PEEKED) if line.strip()]
    except ValueError:  # not text: the reader of the text then names the line
        return "text"
    if lines and lines[0].startswith("%%MatrixMarket"):
        return "matrixmarket"
    if len(lines) > 3 and all(map(WHOLE.fullmatch, lines[:3])) and all(map(TRIPLE.fullmatch, lines[3:])):
        return "uci"
    if all(map(LDA_C.fullmatch, lines)) and any(":" in line for line in lines):
        return "lda-c"
    return "text"
