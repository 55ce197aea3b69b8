"""What a run is, in a form that can be compared with another process's."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import platform
from types import CodeType
from typing import Any

import numpy as np

from swiftem.kernels.threads import get_threads

__all__ = ["VERSIONS", "describe", "digest", "environment"]

VERSIONS = ("swiftem", "numpy", "numba", "python")
"""What must be the same for a run to go on to the last bit."""
DEEPEST = 8


def describe(value: Any, depth: int = 0) -> Any:
    """Return what JSON can hold of a model, a method or their hyper-parameters: equal where these are.

    Dataclasses are told by type and fields, arrays by a hash, functions by name, code, defaults and what
    they enclose. Of other objects only the type is known.

    >>> from swiftem import methods
    >>> describe(methods.OnlineEM(step_size=0.5))["batch_size"]
    1
    """
    if depth > DEEPEST or value is None or isinstance(value, bool | int | str):
        return str(type(value)) if depth > DEEPEST else value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, np.generic):
        return f"{value.dtype.str} {value.item()!r}"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype.str} {value.shape} {digest(value)}"
    if isinstance(value, tuple | list):
        return [describe(part, depth + 1) for part in value]
    if isinstance(value, dict):
        return {str(key): describe(part, depth + 1) for key, part in value.items()}
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {
            field.name: describe(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value)
        }
        return {"is": name} | parts
    function = getattr(value, "py_func", value)  # Numba's functions have Python's inside
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
        inside = [describe(part, depth + 1) for part in (*cells, *(function.__defaults__ or ()))]
        return {"is": f"{function.__module__}.{function.__qualname__}", "code": _code(code), "with": inside}
    return {"is": name}


def _code(code: CodeType) -> str:
    """Return a hash of what a function does; lines and files do not matter."""
    hashed = hashlib.blake2b(code.co_code, digest_size=8)
    for constant in code.co_consts:
        hashed.update(_code(constant).encode() if isinstance(constant, CodeType) else repr(constant).encode())
    hashed.update(repr(code.co_names).encode())
    return hashed.hexdigest()


def digest(*values: Any) -> str:
    """Return a hash of nested tuples of arrays and numbers, types and shapes included.

    >>> digest(np.zeros(2)) == digest(np.zeros(2, dtype=np.float32))
    False
    """
    hashed = hashlib.blake2b(digest_size=12)

    def add(value: Any) -> None:
        if isinstance(value, tuple | list):
            hashed.update(f"{type(value).__name__}{len(value)}".encode())
            for part in value:
                add(part)
        elif isinstance(value, np.ndarray):
            hashed.update(f"{value.dtype.str}{value.shape}".encode())
            hashed.update(np.ascontiguousarray(value).data)
        else:
            hashed.update(repr(value).encode())

    add(values)
    return hashed.hexdigest()


def environment() -> dict[str, Any]:
    """Return versions, machine and threads; only :data:`VERSIONS` must agree.

    >>> sorted(set(environment()) - set(VERSIONS))
    ['machine', 'threads']
    """
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, Any] = {"numpy": np.__version__, "python": platform.python_version()}
    for name in ("swiftem", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    return found | {"machine": machine, "threads": get_threads()}
