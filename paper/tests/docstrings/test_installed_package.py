import platform
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import sklearn
from helpers import assert_refused

from paper.docstrings.reader import find_package


def test_packages():
    assert find_package("numpy") == ("numpy", np.__version__, (("numpy", Path(np.__file__).parent),))
    assert find_package("sklearn").version == sklearn.__version__
    assert find_package("pytest").version == pytest.__version__


def test_the_standard_library():
    package = find_package("stdlib")
    assert package.version == platform.python_version()
    names = [name for name, _ in package.modules]
    assert {"json", "os", "typing", "collections"} <= set(names) <= sys.stdlib_module_names
    assert names == sorted(names)
    assert {"idlelib", "lib2to3", "test", "sys"}.isdisjoint(names)
    assert all(path.exists() for _, path in package.modules)


@pytest.mark.parametrize("name", ["json", "os", "abc"])
def test_parts_of_the_standard_library(name):
    """Those, too, that are frozen into the interpreter."""
    package = find_package(name)
    assert package.version == platform.python_version()
    ((module, path),) = package.modules
    assert (module, path.stem) == (name, name)


def test_modules_and_packages_without_a_version(packages):
    name = packages.add({"__init__.py": ""}, version=None)
    assert find_package(name) == (name, None, ((name, packages.folder / name),))
    (packages.folder / "swiftem_toy_module.py").touch()
    package = find_package("swiftem_toy_module")
    assert package.modules == (("swiftem_toy_module", packages.folder / "swiftem_toy_module.py"),)


def test_a_package_that_is_not_installed_though_its_version_is_known(packages, monkeypatch):
    from paper.docstrings import reader

    name = packages.add({"__init__.py": ""}, version=None)
    monkeypatch.setitem(reader.DISTRIBUTIONS, name, "swiftem-no-such-distribution")
    assert find_package(name).version is None


@pytest.mark.parametrize(
    "name", ["swiftem_no_such_package", "numpy.linalg", "", ".", "my package", "__main__x"]
)
def test_what_is_not_there(name):
    assert_refused(lambda: find_package(name), "packages", f"names of installed packages, got {name!r}")


def test_what_has_no_source(packages, monkeypatch):
    assert_refused(lambda: find_package("sys"), "packages", "source files in Python, got 'sys'")
    (packages.folder / "swiftem_toy_compiled.pyc").touch()
    assert_refused(lambda: find_package("swiftem_toy_compiled"), "packages", "source files in Python")
    monkeypatch.setitem(sys.modules, "swiftem_toy_made", types.ModuleType("swiftem_toy_made"))
    assert_refused(lambda: find_package("swiftem_toy_made"), "packages", "installed packages")
