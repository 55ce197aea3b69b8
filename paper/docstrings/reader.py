"""Docstrings from source files of installed packages, by ``ast``: nothing is imported, nothing runs."""

from __future__ import annotations

import ast
import importlib.util
import logging
import os
import platform
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "STDLIB",
    "Docstring",
    "InstalledPackage",
    "docstrings_in",
    "find_package",
    "read_docstrings",
    "source_files",
]

STDLIB = "stdlib"
"""The name of the standard library."""
NOT_DOCUMENTED = frozenset({"ensurepip", "idlelib", "lib2to3", "turtledemo"})
"""Parts of the standard library that are programs and their data, not a library."""
DISTRIBUTIONS = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn"}
"""Distribution names of common packages: a search of all installed packages takes much longer."""

log = logging.getLogger("swiftem")

NO_LIBRARY = frozenset({"test", "tests"})
"""Folders that are left out."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Docstring(NamedTuple):
    """``name``: where it is defined, such as ``"json.decoder.JSONDecoder.decode"``; ``text``: cleaned."""

    name: str
    text: str


def read_docstrings(module: str, path: Path) -> list[Docstring]:
    """Return the docstrings of a package or module: of modules, classes, functions and methods.

    Files that cannot be read or parsed are skipped, with a line in the log.

    Parameters
    ----------
    module : str
        Its name.
    path : Path
        Its folder or its file.

    Returns
    -------
    list of Docstring
        Sorted by module, and in the order of the file within a module.

    Examples
    --------
    >>> import json, pathlib
    >>> found = read_docstrings("json", pathlib.Path(json.__file__).parent)
    >>> next(text.splitlines()[0] for name, text in found if name == "json.decoder.JSONDecoder")
    'Simple JSON <https://json.org> decoder'
    """
    found: list[Docstring] = []
    for name, file in source_files(module, path):
        try:
            found += docstrings_in(file.read_bytes(), name)
        # Wrong syntax or encoding; NUL bytes (a ValueError in Python 3.11); nesting too deep for the parser.
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            log.info("Docstrings: %s is skipped: %s.", file, error)
    return found


def source_files(module: str, path: Path) -> list[tuple[str, Path]]:
    """Return name and file of every module below ``path``, sorted by name; test folders are left out."""
    if path.is_file():
        return [(module, path)]
    files: list[tuple[str, Path]] = []
    for folder, below, inside in os.walk(path):
        # Names that are not identifiers, such as the data folder `2.0`, cannot be imported.
        below[:] = [name for name in below if name.isidentifier() and name not in NO_LIBRARY]
        parts = [module, *Path(folder).relative_to(path).parts]
        for file in inside:
            stem, ending = os.path.splitext(file)
            if ending == ".py" and stem.isidentifier():
                name = ".".join(parts if stem == "__init__" else [*parts, stem])
                files.append((name, Path(folder, file)))
    return sorted(files)


def docstrings_in(source: bytes, module: str) -> list[Docstring]:
    r"""Return the docstrings of one file, in the order of the file.

    >>> source = b'class Norm:\n    def of(self, x):\n        "Return the norm."'
    >>> docstrings_in(source, "toy")
    [Docstring(name='toy.Norm.of', text='Return the norm.')]
    """
    with warnings.catch_warnings():
        # Warnings about escape sequences in other people's code are not for the user.
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    return list(_docstrings(tree, module))


def _docstrings(node: ast.AST, name: str) -> Iterator[Docstring]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        text = ast.get_docstring(node)  # cleaned by inspect.cleandoc
        if text:
            yield Docstring(name, text)
    # Definitions inside a function are private to it.
    if isinstance(node, FUNCTIONS):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield from _docstrings(child, f"{name}.{child.name}")
        elif isinstance(child, ast.stmt | ast.ExceptHandler):  # definitions under if, try and with
            yield from _docstrings(child, name)


class InstalledPackage(NamedTuple):
    """A package, or the whole standard library.

    Attributes
    ----------
    name : str
        Its import name, or ``"stdlib"``.
    version : str or None
        None if unknown, as for a folder that was never installed.
    modules : tuple of (str, Path)
        Top-level names with their folder or file, sorted by name.
    """

    name: str
    version: str | None
    modules: tuple[tuple[str, Path], ...]


def find_package(name: str) -> InstalledPackage:
    """Return the location of a package's source, by its top-level name.

    Raises
    ------
    ValueError
        If it is not installed, or has no Python source files.

    Examples
    --------
    >>> from paper.docstrings.reader import find_package
    >>> package = find_package("json")
    >>> [(module, path.name) for module, path in package.modules]
    [('json', 'json')]
    """
    # By name, and not by the import system, in which some of these are frozen into the interpreter.
    if name == STDLIB or name in sys.stdlib_module_names:
        names = sys.stdlib_module_names - NOT_DOCUMENTED if name == STDLIB else {name}
        folder = Path(sysconfig.get_path("stdlib"))
        places = ((module, folder / end) for module in sorted(names) for end in (module, f"{module}.py"))
        modules = tuple((module, path) for module, path in places if path.exists())
        version: str | None = platform.python_version()
    else:
        modules = tuple((name, path) for path in _locations(name) if path.exists())
        version = _version(name)
    if not modules:
        raise ValueError(f"packages must have source files in Python, got {name!r}, which has none here.")
    return InstalledPackage(name, version, modules)


def _locations(name: str) -> list[Path]:
    """Return the folders of a package, or the file of a module."""
    # The name of a submodule would import its parent.
    try:
        spec = importlib.util.find_spec(name) if name.isidentifier() else None
    except ValueError:  # a module created by hand
        spec = None
    if spec is None:
        raise ValueError(f"packages must be top-level names of installed packages, got {name!r}.")
    if spec.submodule_search_locations is not None:
        return [Path(folder) for folder in spec.submodule_search_locations]
    return [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []


def _version(name: str) -> str | None:
    """Return the installed version, None unless there is exactly one."""
    # Imported here, as it takes longer than the rest of this module.
    from importlib import metadata

    known = DISTRIBUTIONS.get(name)
    found = [known] if known else sorted(set(metadata.packages_distributions().get(name, [])))
    try:
        return metadata.version(found[0]) if len(found) == 1 else None
    except metadata.PackageNotFoundError:
        return None
