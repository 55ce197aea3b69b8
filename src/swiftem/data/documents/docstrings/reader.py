"""Docstrings from source files, read with ``ast``: nothing is imported, nothing runs."""

from __future__ import annotations

import ast
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Docstring", "docstrings_in", "read_docstrings", "source_files"]

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
