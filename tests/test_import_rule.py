"""Imports point one way, and heavy packages are imported where they are used."""

import ast
from pathlib import Path

import pytest

import swiftem

SOURCE = Path(swiftem.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

LOWER = {"core", "methods", "data", "kernels"}
SHARED = {*LOWER, "_run", "fit", "show"}
ALLOWED = {
    "core": set(),
    "schedules": {"core"},
    "methods": {"core"},
    "kernels": {"core", "data"},
    "data": {"core", "kernels"},
    "_run": {"core", "methods", "data"},
    "show": {"core", "methods", "data"},
    "fit": {*LOWER, "_run", "show"},
    "mixture": SHARED,
    "regression": {*SHARED, "mixture"},
    "hmm": {*SHARED, "mixture"},
    "topics": SHARED,
    "functions": LOWER,
    "families": {"mixture"},
    "models": {"core", "mixture", "topics", "functions"},
    "estimators": {"hmm", "mixture", "regression", "topics"},
    "_select": {*SHARED, "mixture", "regression"},
    "_load": {"fit", "estimators"},
}
"""What a package may import of swiftem, in addition to itself; models, families and estimators are facades,
and the command line and the tests of contracts import everything."""

DEVICES = {"core/checks.py", "topics/compute/corpus.py"}
"""Files that import PyTorch within functions."""

ESTIMATORS = {"fit", "hmm", "mixture", "regression", "topics", "_load", "_select"}
"""Packages with classes that derive from scikit-learn's; `test_light_import.py` checks what imports them."""

NOT_INSTALLED = {"paper", "benchmarks", "tests"}
"""Folders of the repository that are not in the wheel."""

HEAVY = {"numba", "sklearn", "matplotlib", "dask", "distributed", "pyarrow"}


def imports(node, *, top=True):
    """Yield (absolute name, whether it runs at import time) of every import below ``node``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name, top) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are written out: from swiftem.data import ..."
            yield child.module, top
            if child.module == "swiftem":
                yield from ((f"swiftem.{alias.name}", top) for alias in child.names)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
                isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
            )
            yield from imports(child, top=top and not inside)


def room_of(module):
    """Return the room of a module's dotted name below swiftem."""
    return module.partition(".")[0]


def violations(room, source, *, late=frozenset()):
    """Return a sentence for each import that a file of ``room`` must not have.

    ``late`` are heavy packages that the file may import at its top. PyTorch and
    Triton are for few files, also within functions.
    """
    found = []
    for name, at_import in imports(ast.parse(source)):
        package, _, rest = name.partition(".")
        if package in NOT_INSTALLED:
            found.append(f"imports {package}, which is not in the wheel")
        elif package in ("torch", "triton"):
            if package not in late:
                found.append(f"imports {package}")
        elif package in HEAVY - late and at_import:
            found.append(f"imports {package} outside a function")
        elif package == "swiftem":
            target = room_of(rest)
            if room in ALLOWED and target not in ALLOWED[room] | {room, "", "__version__"}:
                found.append(f"{room} imports {name}")
    return found


def module_of(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SOURCE)) for path in FILES])
def test_imports(path):
    name = path.relative_to(SOURCE).as_posix()
    text = path.read_text()
    compiled = name.startswith(("kernels/", "functions/")) or "/compute/" in name
    on_device = "torch" in path.name or "triton" in path.name or name in DEVICES
    late = {"numba"} if compiled else set()
    late |= {"sklearn"} if room_of(module_of(path)) in ESTIMATORS and not compiled else set()
    late |= {"torch", "triton"} if on_device else set()
    assert violations(room_of(module_of(path)), text, late=late) == []


REFUSED = [
    ("core", "from swiftem.methods import EM"),
    ("core", "def f():\n    from swiftem.models import plsa"),
    ("core", "import torch"),
    ("methods", "import swiftem.topics.tokens"),
    ("methods", "from swiftem import models"),
    ("data", "from swiftem.mixture import compute"),
    ("data", "import pyarrow"),
    ("topics", "from swiftem.mixture import model"),
    ("models", "def f():\n    from paper.theory.gradient import V"),
    ("_run", "from swiftem.mixture.resolve import resolve"),
    ("show", "class A:\n    import sklearn"),
    ("estimators", "import matplotlib.pyplot as plt"),
    ("core", "try:\n    import numba\nexcept ImportError:\n    pass"),
]
ALLOWED_HERE = [
    ("methods", "from swiftem.core.schedules import inverse\nfrom swiftem.core.source import Batch"),
    ("show", "def f():\n    import matplotlib.pyplot"),
    ("show", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import matplotlib"),
    ("cli", "from swiftem import run, show"),
]


@pytest.mark.parametrize(("room", "source"), REFUSED + ALLOWED_HERE)
def test_the_rule_is_enforced(room, source):
    assert bool(violations(room, source)) == ((room, source) in REFUSED)


def test_files_were_found():
    assert {"core", "models", "methods", "data", "kernels"} <= {room_of(module_of(path)) for path in FILES}
