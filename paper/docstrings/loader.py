"""A real corpus available in every installation: the docstrings of its packages.

They are cached on disk, as loading is much faster than parsing: one file per package, with docstrings of any
length, serves every choice of packages and lengths.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from paper.docstrings.corpus import Corpus, CorpusPackage
from paper.docstrings.reader import (
    STDLIB,
    Docstring,
    InstalledPackage,
    find_package,
    read_docstrings,
)
from swiftem.core.checks import check_int
from swiftem.core.files import write_atomically
from swiftem.kernels.cache import cache_in, is_writable, user_cache

__all__ = ["cache_file", "docstring_corpus", "load_docstrings", "save_docstrings"]

log = logging.getLogger("swiftem")
FORMAT = 1
"""Increase it with every change of the reader or of the file's format."""


def docstring_corpus(
    packages: Iterable[str] = ("numpy", "scipy", "sklearn", STDLIB),
    *,
    min_length: int = 200,
    cache: bool | str | os.PathLike[str] | None = True,
) -> Corpus:
    """Return the docstrings of installed packages as documents, about 8,000 of them.

    Docstrings of modules, classes, functions and methods, also private ones, are read from the source files;
    nothing is imported or downloaded. Tests are left out, and so are docstrings added at run time. Of equal
    docstrings the first is used. The corpus depends only on the versions of the packages.

    Parameters
    ----------
    packages : iterable of str
        Top-level names of installed packages, or ``"stdlib"`` for the standard library. Their order does not
        matter.
    min_length : int
        Docstrings with fewer characters, without their indentation, are left out.
    cache : bool, path or None
        The first call takes a few seconds. True caches the result in the folder of the compiled kernels; a
        path, in that folder; False or None, not at all. Packages of unknown version are read each time.
        Source files that change without a change of version and place, as in a checkout, need False.

    Returns
    -------
    Corpus
        ``documents``, ``names`` and ``packages``, sorted by package, module and place in the module.

    Raises
    ------
    ValueError
        If a package is not installed or has no source files, or if no docstring is long enough.

    Examples
    --------
    >>> from paper.docstrings import docstring_corpus
    >>> corpus = docstring_corpus(["json"])
    >>> corpus
    Corpus of ... documents from json 3...
    >>> corpus.names[:3]
    ('json', 'json.dump', 'json.dumps')
    """
    names = _package_names(packages)
    check_int("min_length", min_length, minimum=1)
    folder = _folder(cache)
    found = [find_package(name) for name in names]  # all of them, before any is read
    name_of: dict[str, str] = {}
    contributed = {}
    for package in found:
        before = len(name_of)
        for name, text in _docstrings(package, folder):
            if len(text) >= min_length:
                name_of.setdefault(text, name)
        contributed[package.name] = CorpusPackage(package.version or "unknown", len(name_of) - before)
    if not name_of:
        raise ValueError(
            f"packages must have a docstring of at least min_length={min_length} characters, "
            f"got none in {', '.join(names)}."
        )
    return Corpus(tuple(name_of), tuple(name_of.values()), contributed)


def _docstrings(package: InstalledPackage, folder: Path | None) -> list[Docstring]:
    """Return all docstrings of a package, of any length, from the cache if they are there."""
    # Without a version, a change of the source cannot be detected.
    if package.version is None:
        folder = None
    kept = None if folder is None else load_docstrings(folder, package)
    if kept is not None:
        return kept
    docstrings = [
        docstring for module, path in package.modules for docstring in read_docstrings(module, path)
    ]
    if folder is not None:
        save_docstrings(folder, package, docstrings)
    return docstrings


def _package_names(packages: Iterable[str]) -> list[str]:
    """Return the names, unique and sorted."""
    if isinstance(packages, str) or not isinstance(packages, Iterable):
        raise TypeError(f"packages must be a list of names, such as ['numpy', 'stdlib'], got {packages!r}.")
    names = list(packages)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"packages must be a list of names, such as ['numpy', 'stdlib'], got {name!r}.")
    if not names:
        raise ValueError("packages must have at least one name, got none.")
    return sorted(set(names))


def _folder(cache: bool | str | os.PathLike[str] | None) -> Path | None:
    """Return the cache folder, or None for no cache."""
    if cache is None or isinstance(cache, bool):
        folder, why_not = cache_in(user_cache().parent, "swiftem", "docstrings") if cache else (None, "")
        if why_not:
            log.info("Docstrings: they are read again each time, as %s.", why_not)
        return None if why_not else folder
    if not isinstance(cache, str | os.PathLike):
        raise TypeError(f"cache must be True, False, None or a folder, got {cache!r}.")
    return Path(os.path.expanduser(cache))


def cache_file(folder: Path, package: InstalledPackage) -> Path:
    """Return the file for this package: one for each version, place of installation and format.

    The place matters because distributors leave out, or change, parts of the standard library. Source files
    that change without either, as in a checkout, are not noticed.
    """
    digest = hashlib.blake2b(repr(_key(package)).encode(), digest_size=8).hexdigest()
    return folder / f"{package.name}-{package.version}-{digest}.json.gz"


def load_docstrings(folder: Path, package: InstalledPackage) -> list[Docstring] | None:
    """Return what :func:`save_docstrings` saved; None if there is nothing valid."""
    file = cache_file(folder, package)
    try:
        # The checksum of gzip finds damage; the key finds a renamed file.
        content = json.loads(gzip.decompress(file.read_bytes()))
        if content["key"] != _key(package):
            return None
        pairs = zip(content["names"], content["texts"], strict=True)
        return [Docstring(str(name), str(text)) for name, text in pairs]
    except FileNotFoundError:
        return None
    except (OSError, EOFError, ValueError, TypeError, KeyError, zlib.error) as error:
        log.info("Docstrings: %s cannot be used and is created again: %s.", file, error)
        return None


def save_docstrings(folder: Path, package: InstalledPackage, docstrings: list[Docstring]) -> None:
    """Save the docstrings for the next time; if the folder is not writable, nothing happens.

    >>> import pathlib, tempfile
    >>> toy = InstalledPackage("toy", "1.0", (("toy", pathlib.Path("toy.py")),))
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     save_docstrings(folder, toy, [Docstring("toy.norm", "Return the norm.")])
    ...     load_docstrings(folder, toy)
    [Docstring(name='toy.norm', text='Return the norm.')]
    """
    content = {
        "key": _key(package),
        "names": [docstring.name for docstring in docstrings],
        "texts": [docstring.text for docstring in docstrings],
    }
    file = cache_file(folder, package)
    if not is_writable(folder):
        log.info("Docstrings: %s cannot be written to, the docstrings are read again each time.", folder)
        return
    try:
        write_atomically(file, gzip.compress(json.dumps(content).encode(), compresslevel=1, mtime=0))
    except OSError as error:  # for example a full disk
        log.info("Docstrings: %s could not be written: %s.", file, error)


def _key(package: InstalledPackage) -> list[str | int | None]:
    """Return the key of the content, as read back from JSON."""
    return [FORMAT, package.name, package.version, str(package.modules[0][1].parent)]
