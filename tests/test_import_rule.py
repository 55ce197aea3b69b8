"""Imports point one way, heavy packages are imported where they are used, and files stay short."""

import ast
from pathlib import Path

import pytest

import swiftem

SOURCE = Path(swiftem.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

BASE = {"_typing", "_checks", "_cache", "_visible", "_warn", "process", "files"}
TOP = {"estimators", "theory", "testing", "experiments", "report", "reports", "cli"}
RUN = {"algorithm", "e_step"}
UPPER = TOP | RUN
ALLOWED = {
    "_typing": set(),
    "_checks": {"_typing"},
    "_cache": set(),
    "_visible": set(),
    "_warn": {"_visible"},
    "process": set(),
    "files": {"_typing", "_checks", "_cache", "process"},
    "kernels": BASE,
    "schedules": BASE,
    "data": BASE | {"kernels"},
    "models": BASE | {"kernels", "data"},
    "methods": BASE | {"kernels", "data", "schedules"},
    "checkpoints": BASE | {"kernels", "data", "models", "methods", "result"},
    "engine": BASE | {"kernels", "data", "schedules", "models", "methods"},
}
"""What the lower layers may import of swiftem, besides themselves."""

DONE_FIRST = ("experiments", "report", "reports", "cli")
"""Each of these may import those before it, not those after it: numbers, words, command."""

ROOMS = {
    "theory.experiments": "experiments", "theory.reports": "reports",
    "engine.numba": "kernels", "engine.reference": "kernels", "engine.threads": "kernels",
    "engine.snapshots": "kernels",
}  # fmt: skip
"""Rooms of a layer that are a layer of their own."""

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


def violations(layer, source, *, late=frozenset()):
    """Return a sentence for each import that a file of ``layer`` must not have; ``late`` are allowed.

    PyTorch and Triton are for few files, also within functions: these are imported if a device is asked for.
    Estimators derive from scikit-learn's classes, and are themselves imported when they are used.
    """
    late = late | ({"sklearn"} if layer == "estimators" else set())
    found = []
    for name, at_import in imports(ast.parse(source)):
        package, _, rest = name.partition(".")
        if package in ("torch", "triton"):
            if package not in late:
                found.append(f"imports {package}")
        elif package in HEAVY - late and at_import:
            found.append(f"imports {package} outside a function")
        elif package == "swiftem":
            target = layer_of(rest)
            if layer in ALLOWED:
                # An import of swiftem itself would go through algorithm.
                allowed = target in ALLOWED[layer] | {layer}
            else:
                above = set() if layer in TOP | {"__init__", "__main__"} else TOP if layer in RUN else UPPER
                allowed = target not in (above | {""} if above else above)
                if layer in DONE_FIRST:
                    allowed = target not in DONE_FIRST[DONE_FIRST.index(layer) + 1 :]
            if not allowed:
                found.append(f"{layer} imports {name}")
    return found


def layer_of(module):
    """Return the layer of a module's dotted name below swiftem."""
    first, _, rest = module.partition(".")
    return ROOMS.get(f"{first}.{rest.partition('.')[0]}", first)


def module_of(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SOURCE)) for path in FILES])
def test_imports(path):
    compiled = SOURCE / "engine" / "numba" in path.parents
    on_device = SOURCE / "engine" / "gpu" in path.parents or path.name == "_checks.py"
    late = {"numba"} if compiled else {"distributed"} if path.name == "worker_plugin.py" else set()
    late |= {"torch", "triton"} if on_device else set()
    assert violations(layer_of(module_of(path)), path.read_text(), late=late) == []


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("models", "from swiftem.methods import EM"),
        ("methods", "import swiftem.models.plsa"),
        ("methods", "from swiftem import models"),
        ("methods", "def f():\n    from swiftem.models import plsa"),
        ("models", "from swiftem.schedules import constant"),
        ("kernels", "from swiftem.data.source import Batch"),
        ("data", "from swiftem.schedules import constant"),
        ("schedules", "import swiftem"),
        ("engine", "from swiftem.algorithm import run"),
        ("result", "from swiftem import testing"),
        ("recording", "import swiftem"),
        ("cli", "import torch"),
        ("experiments", "from swiftem.report.page import page"),
        ("report", "def f():\n    from swiftem.cli import main"),
        ("report", "import matplotlib.pyplot as plt"),
        ("report", "class A:\n    import sklearn"),
        ("estimators", "import matplotlib.pyplot as plt"),
        ("estimators", "import numba"),
        ("engine", "from swiftem.estimators import GaussianMixture"),
        ("engine", "from swiftem.checkpoints import Store"),
        ("checkpoints", "from swiftem.engine.lane import Current"),
        ("checkpoints", "import swiftem"),
        ("algorithm", "from swiftem.estimators.mixture.plan import make_plan"),
        ("certificate", "from swiftem.theory import V"),
        ("models", "def f():\n    from swiftem.theory.gradient import V"),
        ("kernels", "try:\n    import numba\nexcept ImportError:\n    pass"),
    ],
)
def test_the_rule_is_enforced(layer, source):
    assert len(violations(layer, source)) >= 1


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("methods", "from swiftem.schedules import inverse\nfrom swiftem.data.source import Batch"),
        ("report", "def f():\n    import matplotlib.pyplot"),
        ("report", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import matplotlib"),
        ("cli", "from swiftem import run, experiments"),
        ("report", "from swiftem.theory.experiments.experiment import Experiment"),
        ("engine", "from swiftem.models.model import BoundModel"),
    ],
)
def test_what_the_rule_allows(layer, source):
    assert violations(layer, source) == []


def test_files_were_found():
    layers = {layer_of(module_of(path)) for path in FILES}
    assert {"algorithm", "models", "methods", "data", "kernels", "engine"} <= layers
