"""Disk cache of a package's docstrings: loading is much faster than parsing.

One file per package, with docstrings of any length, serves every choice of packages and lengths.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import zlib
from pathlib import Path

from swiftem._cache import is_writable
from swiftem.data.documents.docstrings.installed_package import InstalledPackage
from swiftem.data.documents.docstrings.reader import Docstring
from swiftem.files.durable import write_atomically

__all__ = ["cache_file", "load_docstrings", "save_docstrings"]

log = logging.getLogger("swiftem")

FORMAT = 1
"""Increase it with every change of the reader or of the file's format."""


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
