"""Values as bytes, without pickle (JSON and ``.npy``), and as descriptions that processes can compare."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import struct
import sys
from types import CodeType, MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.checkpoints.types import TYPES
from swiftem.files.durable import array_bytes, read_array
from swiftem.result import Iterate

__all__ = [
    "VERSIONS", "UnknownTypeError", "decode", "describe", "digest", "encode", "find_type", "without_code",
]  # fmt: skip

LENGTH = struct.Struct("<Q")
PLAIN = (bool, int, float, str, type(None))


class UnknownTypeError(ValueError):
    """A type in a checkpoint that is neither in the table nor in an imported module."""


def encode(value: Any, what: str = "value") -> bytes:
    """Return nested tuples, lists, dicts, named tuples, numbers, texts and arrays as bytes.

    Parameters
    ----------
    value : nested structure
        The content. Types are kept, too: Python numbers, NumPy's, dtypes, memory orders, named tuples.
    what : str
        Its name in the error for a value of another type.

    Returns
    -------
    bytes
        Lengths, a JSON text and arrays in ``.npy`` format, for :func:`decode`.

    Examples
    --------
    >>> import numpy as np
    >>> decode(encode({"k": 3, "parts": (1.5, np.arange(2))}))
    {'k': 3, 'parts': (1.5, array([0, 1]))}
    """
    arrays: list[NDArray[Any]] = []
    text = json.dumps(_to_json(value, arrays, what)).encode()
    parts = [LENGTH.pack(len(text)), text]
    for array in arrays:
        part = array_bytes(array)
        parts += [LENGTH.pack(len(part)), part]
    return b"".join(parts)


def decode(content: bytes) -> Any:
    """Return the argument of :func:`encode`; nothing in ``content`` is executed or imported.

    Raises
    ------
    ValueError
        If the bytes are not from :func:`encode`, or name an unknown type.
    """
    view, parts, position = memoryview(content), [], 0
    try:
        while position < len(view):
            (length,) = LENGTH.unpack_from(view, position)
            position += LENGTH.size
            if length > len(view) - position:
                raise ValueError("it ends too early")
            parts.append(view[position : position + length])
            position += length
        return _from_json(json.loads(bytes(parts[0])), [read_array(part) for part in parts[1:]])
    except ValueError:
        raise
    except Exception as error:  # bytes of another origin may make the reader fail in any way
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None


def _to_json(value: Any, arrays: list[NDArray[Any]], what: str) -> Any:
    kind = type(value)
    if kind in PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject or array.dtype.names:
            raise TypeError(f"{what} must hold numbers to be saved in a checkpoint, got dtype {array.dtype}.")
        arrays.append(array)
        return {"array" if isinstance(value, np.ndarray) else "number": len(arrays) - 1}
    if kind is Iterate:
        return {"iterate": [_to_json(getattr(value, name), arrays, what) for name in _ITERATE]}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        name = name_of(kind)
        if find_type(name) is not kind:
            raise TypeError(
                f"{what} has the type {kind.__qualname__}, which a later process would not find: a named "
                "tuple in a checkpoint must be defined at the top of a module, not in a function."
            )
        parts = [_to_json(part, arrays, what) for part in value]
        return {"named": name, "fields": dict(zip(value._fields, parts, strict=True))}  # type: ignore[attr-defined]
    if kind in (tuple, list):
        return {kind.__name__: [_to_json(part, arrays, what) for part in value]}
    if kind is dict and all(type(key) is str for key in value):
        return {"dict": {key: _to_json(part, arrays, what) for key, part in value.items()}}
    raise TypeError(
        f"{what} must be made of numbers, texts, arrays, tuples, lists and dicts in a checkpoint, "
        f"got {kind.__qualname__}."
    )


_ITERATE = ("k", "passes", "theta", "s", "rejected")


def _from_json(found: Any, arrays: list[NDArray[Any]]) -> Any:
    if type(found) in PLAIN:
        return found
    if "named" in found:
        kind = find_type(found["named"])
        if kind is None:
            raise UnknownTypeError(
                f"it has a {str(found['named'])[:100]!r}, which no imported module defines"
            )
        if tuple(kind._fields) != tuple(found["fields"]):
            raise ValueError(f"{found['named']!r} in it has other fields now")
        return kind(*(_from_json(part, arrays) for part in found["fields"].values()))
    ((tag, inside),) = found.items()
    if tag == "array":
        return arrays[inside]
    if tag == "number":
        return arrays[inside][()]
    if tag == "dict":
        return {key: _from_json(part, arrays) for key, part in inside.items()}
    parts = [_from_json(part, arrays) for part in inside]
    if tag == "iterate":
        return Iterate(*parts)
    return {"tuple": tuple, "list": list}[tag](parts)


def name_of(kind: Any) -> str:
    """Return the name of a named tuple in files: short for those of the table, else ``module:name``."""
    name: str = kind.__name__
    return name if TYPES.get(name) is kind else f"{kind.__module__}:{kind.__qualname__}"


def find_type(name: str) -> Any:
    """Return a named tuple by its name in files: of the table, or of a module that is imported, or None.

    Nothing is imported or called because of the content of a file. Types of users are in the modules of their
    models and methods, types of estimators in the modules that resume fits.

    >>> find_type("State").__name__
    'State'
    >>> find_type("os:system") is None
    True
    """
    if name in TYPES:
        return TYPES[name]
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, "__dict__", {}).get(part)  # getattr of a module may import another
    is_named = isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")
    return found if is_named else None


VERSIONS = ("swiftem", "numpy", "numba", "python")
"""Packages whose versions must agree for a run to resume with the same bits."""
DEEPEST = 8


def describe(value: Any, depth: int = 0) -> Any:
    """Return a JSON value for a model, a method or their hyper-parameters: equal if these are equal.

    Dataclasses are identified by type and fields, arrays by a hash, functions by name, code, defaults and
    closures. Of other objects only the type is used. NumPy's numbers are equal to Python's.

    >>> from swiftem import methods
    >>> describe(methods.OnlineEM(step_size=0.5))["batch_size"]
    1
    """
    if depth > DEEPEST:
        return str(type(value))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, np.bool_ | np.integer | np.str_):
        return value.item()
    if isinstance(value, int | str):
        return value
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
    name = f"{type(value).__module__}.{type(value).__qualname__}"
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
        inside = (cells, function.__defaults__, function.__kwdefaults__)
        name = f"{function.__module__}.{function.__qualname__}"
        return {"is": name, "code": _code(code), "with": describe(inside, depth + 1)}
    return {"is": name}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def _code(code: CodeType) -> str:
    """Return a hash of a function's code; lines and files do not matter."""
    parts = (_constant(code.co_consts), code.co_names)
    return hashlib.blake2b(code.co_code + repr(parts).encode(), digest_size=8).hexdigest()


def _constant(value: Any) -> Any:
    """Return a constant of a function in a form whose repr is the same in every process."""
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, tuple):
        return tuple(_constant(part) for part in value)
    if isinstance(value, frozenset):
        return "set", sorted(repr(_constant(part)) for part in value)
    return value


def without_code(described: Any) -> Any:
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


def digest(*values: Any) -> str:
    """Return a hash of nested tuples of arrays and numbers, including types and shapes.

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
