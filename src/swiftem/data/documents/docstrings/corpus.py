"""A real corpus available in every installation: the docstrings of its packages."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from swiftem._cache import user_cache
from swiftem._checks import check_int
from swiftem.data.documents.corpus import Corpus, CorpusPackage
from swiftem.data.documents.docstrings.cache import load_docstrings, save_docstrings
from swiftem.data.documents.docstrings.installed_package import STDLIB, InstalledPackage, find_package
from swiftem.data.documents.docstrings.reader import Docstring, read_docstrings

__all__ = ["docstring_corpus"]


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
    >>> from swiftem.data import docstring_corpus
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
        return user_cache() / "docstrings" if cache else None
    if not isinstance(cache, str | os.PathLike):
        raise TypeError(f"cache must be True, False, None or a folder, got {cache!r}.")
    return Path(os.path.expanduser(cache))
