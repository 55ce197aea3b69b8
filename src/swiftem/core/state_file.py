"""Nested structures in files: a line of JSON, the bytes of the arrays, and a hash. Nothing is pickled."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from hashlib import blake2b
from importlib import import_module
from math import prod
from typing import BinaryIO, Literal

import numpy as np

from swiftem.core.types import Tree

MODULES = {
    "core.algorithm": "Averages Iterate State",
    "core.method": "AnchorState MemoryState NoState",
    "mixture.starts.settings": "Start",
    "regression.newton_em": "Regressions",
    "fit.driver": "Moment",
    "methods.accelerated": "AcceleratedState AndersonState SquaremState",
    "methods.opt_fiem": "OptFIEMState",
    "mixture.components": "MixtureStatistics",
    "mixture.covariance": "GaussianMixtureTheta GaussianTheta GaussianStatistics",
    "mixture.model": "MixtureTheta",
    "topics.compute.documents": "DocumentSnapshot",
    "topics.compute.tokens": "Tables",
    "topics.tokens": "PLSAStatistics PLSATheta",
}
"""Modules of the library whose types are in files; files have only the names, so that modules can move."""
REGISTERED = {name: f"swiftem.{module}" for module, names in MODULES.items() for name in names.split()}

Order = Literal["C", "F"]
"""Memory order of an array."""
PLAIN = (bool, int, float, str, type(None))
DIGEST_SIZE = 32


def write_tree(
    stream: BinaryIO, label: str, value: Tree, what: str = "value", previous: bytes = b""
) -> bytes:
    """Write nested tuples, lists, dicts, named tuples, numbers, texts and arrays; return their hash.

    Parameters
    ----------
    stream : file
        Open for writing.
    label : str
        First line: the kind of file and the number of its format.
    value : nested structure
        The content. Types are kept, too: Python numbers, NumPy's, dtypes, memory orders, named tuples.
    what : str
        Name of the content in the error for a value of another type.
    previous : bytes
        Hashed, too: the hash of the structure before it in the same file.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO()
    >>> _ = write_tree(stream, "toy, format 1", {"k": 3, "parts": (1.5, np.arange(2))})
    >>> _ = stream.seek(0)
    >>> read_tree(stream, "toy, format 1")[0]
    {'k': 3, 'parts': (1.5, array([0, 1]))}
    """
    arrays: list[np.ndarray] = []
    content = _to_json(value, arrays, what)
    forms = [(array.dtype.str, array.shape, _order(array)) for array in arrays]
    text = json.dumps({"content": content, "arrays": forms})
    hashed = blake2b(previous, digest_size=DIGEST_SIZE)
    parts: list[bytes | memoryview] = [f"{label}\n{text}\n".encode(), *map(_bytes_of, arrays)]
    for part in parts:
        stream.write(part)
        hashed.update(part)
    stream.write(hashed.digest())
    return hashed.digest()


def _order(array: np.ndarray) -> Order:
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def _bytes_of(array: np.ndarray) -> memoryview:
    """Return the bytes of an array, without a copy if it is contiguous."""
    return array.ravel(_order(array)).view(np.uint8).data


def read_tree(
    stream: BinaryIO, label: str, previous: bytes = b"", largest_text: int = -1
) -> tuple[Tree, bytes]:
    """Return the argument of :func:`write_tree` and its hash; nothing that is read is executed.

    Parameters
    ----------
    stream, label, previous
        As in :func:`write_tree`.
    largest_text : int
        Maximum bytes of the JSON, which may take thirty times as much in memory; by default any.

    Raises
    ------
    ValueError
        If the bytes are not from :func:`write_tree`, or have another format.
    ImportError
        If a type in it is neither registered nor in an imported module.
    """
    begin = stream.tell()
    size = stream.seek(0, os.SEEK_END) - begin
    stream.seek(begin)
    first = stream.readline(len(label) + 1)
    if first != f"{label}\n".encode():
        raise ValueError(f"its first line is not {label!r}")
    text = stream.readline(largest_text)
    if not text.endswith(b"\n"):
        raise ValueError("its text is too long" if len(text) == largest_text else "it ends too early")
    try:
        found = json.loads(text)
        forms = [_array_form(*form) for form in found["arrays"]]
        # Before anything is allocated: a damaged file may claim any size.
        if len(first) + len(text) + sum(prod(shape) * dtype.itemsize for dtype, shape, _ in forms) > size:
            raise ValueError("it ends too early")
        hashed = blake2b(previous + first + text, digest_size=DIGEST_SIZE)
        arrays = [_read_array(stream, hashed, *form) for form in forms]
        if stream.read(DIGEST_SIZE) != hashed.digest():
            raise ValueError("its hash is wrong")
        return _from_json(found["content"], arrays), hashed.digest()
    except (ValueError, ImportError, OSError, MemoryError):
        raise
    except Exception as error:  # bytes of another origin may make the reader fail in any way
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None


def _array_form(name: str, shape: list[int], order: Order) -> tuple[np.dtype, tuple[int, ...], Order]:
    """Return dtype, shape and memory order of an array, if they are possible."""
    dtype = np.dtype(str(name))
    if dtype.hasobject or dtype.names or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError("an array in it is not of numbers")
    return dtype, tuple(shape), order


def _read_array(
    stream: BinaryIO, hashed: blake2b, dtype: np.dtype, shape: tuple[int, ...], order: Order
) -> np.ndarray:
    """Read an array, and hash its bytes."""
    array = np.empty(shape, dtype, order)
    content = _bytes_of(array)
    stream.readinto(content)  # type: ignore[attr-defined]
    hashed.update(content)
    return array


def _to_json(value: Tree, arrays: list[np.ndarray], what: str) -> object:
    kind = type(value)
    if kind in PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject or array.dtype.names:
            raise TypeError(f"{what} must hold numbers to be saved, got dtype {array.dtype}.")
        arrays.append(array)
        return {"array" if isinstance(value, np.ndarray) else "number": len(arrays) - 1}
    if kind in (tuple, list):
        return {kind.__name__: [_to_json(part, arrays, what) for part in value]}
    if kind is dict and all(type(key) is str for key in value):
        return {"dict": {key: _to_json(part, arrays, what) for key, part in value.items()}}
    name = _name_of(kind)
    fields = _fields(kind, name)
    if fields is not None:
        if find_type(name) is not kind:
            raise TypeError(
                f"{what} has the type {kind.__qualname__}, which a later process would not find: define the "
                "named tuple at the top of a module, not in a function."
            )
        parts = {field: _to_json(getattr(value, field), arrays, what) for field in fields}
        return {"type": name, "fields": parts}
    raise TypeError(
        f"{what} must be made of numbers, texts, arrays, tuples, lists and dicts to be saved, "
        f"got {kind.__qualname__}."
    )


def _from_json(found: Tree, arrays: list[np.ndarray]) -> Tree:
    if type(found) in PLAIN:
        return found
    if "type" in found:
        name = found["type"]
        kind = find_type(name)
        if kind is None:
            raise ImportError(f"it has a {str(name)[:100]!r}, which no imported module defines")
        if _fields(kind, name) != tuple(found["fields"]):
            raise ValueError(f"{name!r} in it has other fields now")
        return kind(*(_from_json(part, arrays) for part in found["fields"].values()))
    ((tag, inside),) = found.items()
    if tag == "array":
        return arrays[inside]
    if tag == "number":
        return arrays[inside][()]
    if tag == "dict":
        return {key: _from_json(part, arrays) for key, part in inside.items()}
    return {"tuple": tuple, "list": list}[tag](_from_json(part, arrays) for part in inside)


def _name_of(kind: type) -> str:
    """Return the name of a type in files: the registered one, or ``module:name``."""
    is_registered = REGISTERED.get(kind.__name__) == kind.__module__
    return kind.__name__ if is_registered else f"{kind.__module__}:{kind.__qualname__}"


def _fields(kind: type, name: str) -> tuple[str, ...] | None:
    """Return the fields of a named tuple or of a registered dataclass, None for other types."""
    if name in REGISTERED and dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None) if issubclass(kind, tuple) else None


def find_type(name: str) -> type | None:
    """Return a type by its name in files: a registered one, or a named tuple of an imported module, or None.

    Only modules of swiftem are imported: types of users are in the modules of their models and methods.

    >>> find_type("State").__name__
    'State'
    >>> find_type("os:system") is None
    True
    """
    if name in REGISTERED:
        registered: type = getattr(import_module(REGISTERED[name]), name)
        return registered
    module, _, path = name.partition(":")
    found: object = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, "__dict__", {}).get(part)  # getattr of a module may import another
    return found if isinstance(found, type) and _fields(found, name) is not None else None
