"""The texts of Figure 2 here: docstrings in the source files of installed packages; nothing is imported."""

from __future__ import annotations

import ast
import platform
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("numpy", "scipy", "sklearn", "stdlib")
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
LEAST = 200
"""Characters of the shortest document."""
PROGRAMS = frozenset({"ensurepip", "idlelib", "lib2to3", "turtledemo"})
"""Parts of the standard library that are programs and their data, not a library."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Corpus(NamedTuple):
    """Documents, the object of each, such as ``"json.dumps"``, and the version of each package."""

    documents: tuple[str, ...]
    names: tuple[str, ...]
    versions: dict[str, str]

    def sample(self, n_documents: int) -> Corpus:
        """Return so many of the documents, evenly spaced and in order: always the same ones."""
        places = [place * len(self.documents) // n_documents for place in range(n_documents)]
        documents, names = (tuple(part[place] for place in places) for part in self[:2])
        return Corpus(documents, names, self.versions)


@cache
def docstring_corpus(packages: Sequence[str] = PACKAGES) -> Corpus:
    """Return the docstrings of installed packages as documents: about 8,000, in a few seconds.

    Docstrings of modules, classes, functions and methods, also private ones, except of tests. Of equal
    docstrings the first is used. The corpus depends only on the versions of the packages.

    Parameters
    ----------
    packages : tuple of str
        Top-level names of installed packages, or ``"stdlib"`` for the standard library.

    Examples
    --------
    >>> from paper.docstrings import docstring_corpus
    >>> docstring_corpus(("json",)).names[:3]
    ('json', 'json.dump', 'json.dumps')
    """
    name_of: dict[str, str] = {}
    for package in sorted(packages):
        for module, path in _modules(package):
            for name, text in _docstrings(module, path):
                if len(text) >= LEAST:
                    name_of.setdefault(text, name)
    return Corpus(tuple(name_of), tuple(name_of.values()), {name: _version(name) for name in packages})


def _modules(package: str) -> list[tuple[str, Path]]:
    """Return name and file of each module of a package, sorted by name; test folders are left out."""
    if package == "stdlib" or package in sys.stdlib_module_names:
        folder = Path(sysconfig.get_path("stdlib"))
        parts = sys.stdlib_module_names - PROGRAMS if package == "stdlib" else {package}
    else:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ValueError(f"packages must be names of installed packages, got {package!r}.")
        folder, parts = Path(spec.submodule_search_locations[0]).parent, {package}
    found: list[tuple[str, Path]] = []
    for part in sorted(parts):
        modules = {}
        for path in (folder / part).rglob("*.py"):
            names = path.relative_to(folder).with_suffix("").parts
            if all(name.isidentifier() for name in names) and not {"test", "tests"} & {*names[1:-1]}:
                modules[".".join(names).removesuffix(".__init__")] = path
        single = folder / f"{part}.py"
        found += [(part, single)] * single.exists() + sorted(modules.items())
    return found


def _docstrings(module: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each docstring of a file; none if it cannot be parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # escape sequences in other people's code
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            return
    yield from _inside(tree, module)


def _inside(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Module | Definition):
        yield name, ast.get_docstring(node) or ""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Definition):
                yield from _inside(child, f"{name}.{child.name}")
            elif isinstance(child, ast.stmt | ast.ExceptHandler):
                yield from _inside(child, name)


def _version(package: str) -> str:
    try:
        return metadata.version(DISTRIBUTIONS.get(package, package))
    except metadata.PackageNotFoundError:
        return platform.python_version()
