"""Nested values as bytes, without pickle: JSON for the structure, ``.npy`` for the arrays."""

from __future__ import annotations

import io
import json
import struct
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.result import Iterate

__all__ = ["array_bytes", "decode", "encode", "find_type", "read_array"]

LENGTH = struct.Struct("<Q")
PLAIN = (bool, int, float, str, type(None))


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
        name = f"{kind.__module__}:{kind.__qualname__}"
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
        if kind is None or tuple(kind._fields) != tuple(found["fields"]):
            raise ValueError(f"the type {found['named']} in it does not exist, or has other fields now")
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


def find_type(name: str) -> Any:
    """Return the named tuple ``module:name`` of an imported module, or None.

    Nothing is imported or called because of the content of a file.

    >>> find_type("swiftem.result:State").__name__
    'State'
    >>> find_type("os:system") is None
    True
    """
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, "__dict__", {}).get(part)  # getattr of a module may import another
    is_named = isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")
    return found if is_named else None


def array_bytes(array: NDArray[Any]) -> bytes:
    """Return an array in ``.npy`` format; no objects."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def read_array(part: bytes | memoryview) -> NDArray[Any]:
    """Return the array of an .npy part, with its size checked, and no objects."""
    stream = io.BytesIO(part)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize != len(part) - stream.tell():
        raise ValueError("an array in it has another size than stated")
    stream.seek(0)
    found: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return found
