"""Descriptions of models, methods and parameters that another process can compare, and hashes of arrays."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import platform
from importlib import metadata
from types import CellType, CodeType, MethodType
from typing import Any

import numpy as np

from swiftem.core.types import Tree

DEEPEST = 8


def describe(value: object, depth: int = 0) -> object:
    """Return a JSON value for a model, a method or their hyper-parameters: equal if these are equal.

    Dataclasses are identified by type and fields, arrays by a hash, functions by name, code, defaults and
    closures. Of other objects only the type is used. NumPy's numbers are equal to Python's.

    >>> from swiftem import methods
    >>> describe(methods.OnlineEM(step_size=0.5))["batch_size"]
    1
    """
    if depth > DEEPEST:
        return str(type(value))
    if isinstance(value, np.bool_ | np.integer | np.str_):
        value = value.item()
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, np.generic):
        return f"{value.dtype.str} {value.item()!r}"
    if isinstance(value, np.ndarray):
        return f"array {value.dtype.str} {value.shape} {digest(value)}"
    if isinstance(value, tuple | list):
        return [describe(part, depth + 1) for part in value]
    if isinstance(value, set | frozenset):  # their order differs between processes
        return {"set": sorted((describe(part, depth + 1) for part in value), key=json.dumps)}
    if isinstance(value, dict):
        return {str(key): describe(part, depth + 1) for key, part in value.items()}
    name = _name_of(type(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {
            field.name: describe(getattr(value, field.name), depth + 1) for field in dataclasses.fields(value)
        }
        return {"is": name} | parts
    if isinstance(value, functools.partial):
        return {"is": name, "with": describe((value.func, value.args, value.keywords), depth + 1)}
    if isinstance(value, MethodType):
        return {"is": name, "with": describe((value.__self__, value.__func__), depth + 1)}
    function = getattr(value, "py_func", value)  # Numba's functions wrap Python's
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        cells = [_content(cell) for cell in getattr(function, "__closure__", None) or ()]
        defaults = (getattr(function, name, None) for name in ("__defaults__", "__kwdefaults__"))
        inside = describe((cells, *defaults), depth + 1)
        return {"is": _name_of(function), "code": _code(code), "with": inside}
    return {"is": name}


def _name_of(value: Any) -> str:
    """Return the name of a type or a function; modules of the library may move."""
    is_ours = value.__module__ == "swiftem" or str(value.__module__).startswith("swiftem.")
    return value.__qualname__ if is_ours else f"{value.__module__}.{value.__qualname__}"


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def _code(code: CodeType) -> str:
    """Return a hash of a function's code; lines and files do not matter."""
    parts = (_constant(code.co_consts), code.co_names)
    return hashlib.blake2b(code.co_code + repr(parts).encode(), digest_size=8).hexdigest()


def _constant(value: object) -> object:
    """Return a constant of a function in a form whose repr is the same in every process."""
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, tuple):
        return tuple(_constant(part) for part in value)
    if isinstance(value, frozenset):
        return "set", sorted(repr(_constant(part)) for part in value)
    return value


def without_code(described: Tree) -> Tree:
    """Return a description without the code of functions, which differs between versions of Python.

    >>> without_code({"is": "module.f", "code": "0123", "with": [1]})
    {'is': 'module.f', 'with': [1]}
    """
    if isinstance(described, dict):
        is_function = {"is", "code", "with"} == set(described)
        return {
            key: without_code(part) for key, part in described.items() if not (is_function and key == "code")
        }
    if isinstance(described, list):
        return [without_code(part) for part in described]
    return described


def digest(*values: object) -> str:
    """Return a hash of nested tuples of arrays and numbers, including types and shapes.

    >>> digest(np.zeros(2)) == digest(np.zeros(2, dtype=np.float32))
    False
    """
    hashed = hashlib.blake2b(digest_size=12)

    def add(value: object) -> None:
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


def environment(*packages: str) -> dict[str, str]:
    """Return versions, machine and processor.

    Parameters
    ----------
    *packages : str
        Further packages whose versions a report names.

    Examples
    --------
    >>> sorted(environment("scipy"))
    ['machine', 'numba', 'numpy', 'processor', 'python', 'scipy', 'swiftem']
    """
    found = versions("swiftem", "numpy", "numba", *packages) | {"python": platform.python_version()}
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    return found | {"machine": machine, "processor": _processor()}


def _processor() -> str:
    """Return the processor's name, if the system provides it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def versions(*packages: str) -> dict[str, str]:
    """Return the installed versions of packages.

    >>> versions("no such package")
    {'no such package': 'not installed'}
    """
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
