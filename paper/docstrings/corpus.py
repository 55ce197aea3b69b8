"""A collection of documents, with the origin of each."""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from swiftem.core.checks import check_int
from swiftem.core.files import write_atomically

__all__ = ["Corpus", "CorpusPackage"]


class CorpusPackage(NamedTuple):
    """A package whose documents were read.

    Attributes
    ----------
    version : str
        Its version; Python's for the standard library.
    n_documents : int
        Number of its documents, before any :meth:`Corpus.sample`.
    """

    version: str
    n_documents: int


@dataclass(frozen=True)
class Corpus:
    """Documents with their names and packages.

    Attributes
    ----------
    documents : tuple of str, length D
        The texts.
    names : tuple of str, length D
        The object of each docstring, such as ``"json.decoder.JSONDecoder"``: where the source defines it.
    packages : dict of str to CorpusPackage
        Version and number of documents of each package, by name.

    Examples
    --------
    >>> from paper.docstrings import Corpus
    >>> corpus = Corpus(("Sine of x.", "Cosine of x.", "Tangent of x."), ("math.sin", "math.cos", "math.tan"))
    >>> len(corpus)
    3
    >>> corpus.sample(2).names
    ('math.sin', 'math.cos')
    """

    documents: tuple[str, ...]
    names: tuple[str, ...]
    packages: dict[str, CorpusPackage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.documents) != len(self.names):
            raise ValueError(
                f"names must be one per document, got {len(self.names)} for {len(self.documents)} documents."
            )

    def __len__(self) -> int:
        return len(self.documents)

    def __repr__(self) -> str:
        # The default representation would print every text.
        versions = ", ".join(f"{name} {package.version}" for name, package in self.packages.items())
        return f"Corpus of {len(self):,} documents" + (f" from {versions}" if versions else "")

    def sample(self, n_documents: int) -> Corpus:
        """Return ``n_documents`` of the documents, evenly spaced and in order: always the same ones.

        Parameters
        ----------
        n_documents : int
            At least 1, and at most the number of documents.
        """
        if check_int("n_documents", n_documents, minimum=1) > len(self):
            raise ValueError(
                f"n_documents must be at most {len(self)}, the size of the corpus, got {n_documents}."
            )
        places = [place * len(self) // n_documents for place in range(n_documents)]
        return replace(
            self,
            documents=tuple(self.documents[place] for place in places),
            names=tuple(self.names[place] for place in places),
        )

    def write_contents(self, path: str | os.PathLike[str]) -> Path:
        """Write the list of documents, without the texts, as CSV; return the file.

        The columns are ``document`` (its index, from 0), ``package``, ``version``, ``name`` and
        ``characters``.

        >>> import pathlib, tempfile
        >>> from paper.docstrings import Corpus, CorpusPackage
        >>> corpus = Corpus(("Norm of x.",), ("toy.linalg.norm",), {"toy": CorpusPackage("1.0", 1)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(corpus.write_contents(pathlib.Path(folder, "contents.csv")).read_text())
        document,package,version,name,characters
        0,toy,1.0,toy.linalg.norm,10
        <BLANKLINE>
        """
        file = Path(path)
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["document", "package", "version", "name", "characters"])
        for number, (name, document) in enumerate(zip(self.names, self.documents, strict=True)):
            package = self._package_of(name)
            version = self.packages[package].version if package else ""
            writer.writerow([number, package, version, name, len(document)])
        write_atomically(file, lines.getvalue().encode())
        return file

    def _package_of(self, name: str) -> str:
        """Return the package of ``name``: names of the standard library do not begin with it."""
        top = name.partition(".")[0]
        return next((package for package in (top, "stdlib") if package in self.packages), "")
