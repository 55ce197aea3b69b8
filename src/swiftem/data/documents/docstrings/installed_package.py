"""The source files of an installed package, found without importing it."""

from __future__ import annotations

import importlib.util
import platform
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

__all__ = ["STDLIB", "InstalledPackage", "find_package"]

STDLIB = "stdlib"
"""The name of the standard library."""

NOT_DOCUMENTED = frozenset({"ensurepip", "idlelib", "lib2to3", "turtledemo"})
"""Parts of the standard library that are programs and their data, not a library."""

DISTRIBUTIONS = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn"}
"""Distribution names of common packages: a search of all installed packages takes much longer."""


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
    >>> from swiftem.data.documents.docstrings.installed_package import find_package
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
