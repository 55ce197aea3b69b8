"""Models in files, without pickle: arrays, and a header that describes them.

A file may come from anyone, and compiled code trusts shapes: :class:`ModelContent` checks what it reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import in_numpy
from swiftem.core.files import replacing
from swiftem.core.schedules import constant, inverse, power, sample_size
from swiftem.core.state_file import read_tree, write_tree
from swiftem.fit.driver import Moment
from swiftem.fit.history import History
from swiftem.methods import METHODS, Accelerated, Anderson, Averaged, Squarem

__all__ = [
    "LARGEST",
    "PARTS",
    "PLAIN",
    "ModelContent",
    "load_arrays",
    "read_header",
    "save_arrays",
    "shown",
    "to_header",
]

FORMAT = "swiftem model, format 4"
LARGEST_TEXT = 16 << 20
"""Maximum bytes of the text in a file: JSON takes up to thirty times as much in memory."""
LARGEST = 1e150
"""Largest magnitude of a number: squares of larger ones are infinite."""
MOST = 2**63
PLAIN = (bool, int, float, str, type(None))
Types = Mapping[str, type[Any]]
WRAPPERS: tuple[type[Any], ...] = (Accelerated, Anderson, Averaged, Squarem)
SCHEDULES: tuple[type[Any], ...] = (constant, inverse, power, sample_size)
PARTS: Types = {part.__name__: part for part in (*METHODS.values(), *WRAPPERS, *SCHEDULES)}
"""Classes of methods and of their fields, by the names that files have."""


def save_arrays(path: str | Path, kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays and a header to a file, atomically.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist. An existing file is replaced and keeps its permissions; a
        link is replaced, and its target stays as it is.
    kind : str
        Kind of the content, such as ``"GaussianMixture"``.
    header : dict
        Content for JSON.
    arrays : dict of str to ndarray
        Numbers; no objects.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from swiftem.fit.model_file import load_arrays, save_arrays
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_arrays(pathlib.Path(folder, "toy"), "Toy", {"a": 1}, {"x": np.arange(3)})
    ...     load_arrays(pathlib.Path(folder, "toy"), "Toy")
    ({'a': 1}, {'x': array([0, 1, 2])})
    """
    import swiftem

    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"path must be a file, got the folder {path}.")
    if target.exists() and not target.is_file():
        raise ValueError(f"path must be an ordinary file, got {path}.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path must be in a folder that exists, got {path}.")
    size = len(json.dumps(header, default=str))  # arrays are not in the text
    if size > LARGEST_TEXT:
        raise ValueError(
            f"{path} cannot hold the names of so many columns ({size:,} bytes; {LARGEST_TEXT:,} are "
            "allowed): delete feature_names_in_ first."
        )
    content = {
        "swiftem": swiftem.__version__,
        "numpy": np.__version__,
        "kind": kind,
        "header": plain(header),
        "arrays": {name: np.asarray(array, order="C") for name, array in arrays.items()},
    }
    try:
        with replacing(target) as file:
            write_tree(file, FORMAT, content, "a model")
    except OSError as error:
        raise type(error)(error.errno, f"{path} cannot be written: {error.strerror}.") from None


def read_header(path: str | Path) -> dict[str, Any]:
    """Return the description of a file of :func:`save_arrays`: kind, header, versions of swiftem and NumPy.

    Raises
    ------
    FileNotFoundError, PermissionError, ValueError
        As :func:`load_arrays`.
    """
    content = _read(Path(path))
    del content["arrays"]
    return content


def load_arrays(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of a file of :func:`save_arrays`; nothing in it is executed.

    Raises
    ------
    FileNotFoundError, PermissionError, ValueError
        If the file is missing, cannot be read, is damaged, is not a swiftem model, is of another kind or of
        another version; the message is one sentence.
    """
    content = _read(Path(path))
    if content["kind"] != kind:
        raise ValueError(f"{path} holds a {shown(content['kind'])}, not a {kind}.")
    return content["header"], content["arrays"]


def _read(target: Path) -> dict[str, Any]:
    """Return the content of a file, with its header as a dict."""
    if not target.is_file():
        raise FileNotFoundError(f"There is no file {target}.")
    try:
        with open(target, "rb") as file:
            content, _ = read_tree(file, FORMAT, largest_text=LARGEST_TEXT)
            if file.read(1):
                raise ValueError("it is too long")
        if not isinstance(content["header"], dict):
            raise TypeError("its header is of another type")
        arrays = {name: array for name, array in content["arrays"].items() if isinstance(array, np.ndarray)}
        return {**content, "kind": content["kind"], "arrays": arrays}
    except MemoryError:
        raise MemoryError(f"{target} needs more memory than is available") from None
    except OSError as error:
        raise type(error)(f"{target} cannot be read ({(error.strerror or str(error)).lower()}).") from None
    except Exception as error:  # a damaged or foreign file may make the reader fail in any way
        reason = str(error) if type(error) is ValueError else "its content cannot be read"
        raise ValueError(
            f"{target} is damaged, or not a model file of this version of swiftem ({reason})."
        ) from None


def shown(value: Any) -> str:
    """Return a name or a version from a file as part of a sentence.

    >>> shown("1.2"), shown({"a": 1}), shown("")
    ('1.2', '(unknown)', '(unknown)')
    """
    is_short = isinstance(value, str) and 0 < len(value) <= 100
    return value if is_short and value.isascii() and value.isprintable() else "(unknown)"


def plain(value: Any) -> Any:
    """Return nested dicts, lists and tuples with Python's numbers in place of NumPy's.

    >>> plain({"n": np.int64(3), "moments": [(np.float64(0.5), "em")]})
    {'n': 3, 'moments': [(0.5, 'em')]}
    """
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(plain, value))
    return value.item() if isinstance(value, np.generic) else value


def to_header(value: Any, types: Types = PARTS) -> Any:
    """Return a value as a file can hold it; raise TypeError for functions, generators and unknown types.

    Parameters
    ----------
    value : object
        Numbers, texts, None, arrays, dataclasses of ``types``, and lists, tuples and dicts of these.
    types : mapping
        Dataclasses by their names in files.

    Examples
    --------
    >>> from swiftem.methods import Averaged, OnlineEM
    >>> to_header(Averaged(OnlineEM(batch_size=64)))["fields"]["method"]
    {'type': 'OnlineEM', 'fields': {'batch_size': 64, 'order': 'iid'}}
    """
    if isinstance(value, (np.generic, *PLAIN)):
        return plain(value)
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(to_header(part, types) for part in value)
    if isinstance(value, Mapping):
        return {"dict": [(to_header(key, types), to_header(part, types)) for key, part in value.items()]}
    kind = type(value).__name__
    if types.get(kind) is type(value):
        left_out = getattr(value, "left_out", ())
        names = [part.name for part in fields(value) if part.init and part.name not in left_out]
        return {"type": kind, "fields": {part: to_header(getattr(value, part), types) for part in names}}
    array = np.asarray(in_numpy(value))
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{kind} cannot be saved")
    return array


class ModelContent:
    """The header and the arrays of a file; every method raises ValueError if its part is invalid.

    Parameters
    ----------
    header : dict
        The parsed JSON.
    arrays : dict of str to ndarray
        Of any type except objects.
    types : mapping
        Dataclasses by their names in files.

    Examples
    --------
    >>> import numpy as np
    >>> content = ModelContent({"n": 3}, {"x": np.array([1, 2], dtype=">f8")})
    >>> content.integer("n"), content.array("x", (2,))
    (3, array([1., 2.]))
    >>> content.array("x", (3,))
    Traceback (most recent call last):
    ValueError: x must have shape (3,), got (2,)
    """

    def __init__(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]], types: Types = PARTS) -> None:
        self.header, self.arrays, self._types = header, arrays, types

    def within(self, name: str) -> ModelContent:
        """Return the content whose header is an entry of this header."""
        return ModelContent(self._dict(name), self.arrays, self._types)

    def array(
        self, name: str, shape: tuple[int | None, ...], *, single: bool = False, finite: bool = True
    ) -> NDArray[Any]:
        """Return an array of numbers in native byte order, float64 or, if ``single``, also float32.

        ``None`` in ``shape`` is any length. Numbers are finite and at most 1e150, unless ``finite`` is False.
        """
        if name not in self.arrays:
            raise ValueError(f"{name} is missing")
        found = self.arrays[name]
        fits = len(found.shape) == len(shape) and all(
            want in (None, have) for want, have in zip(shape, found.shape, strict=True)
        )
        if not fits:
            wanted = str(shape).replace("None", "any")
            raise ValueError(f"{name} must have shape {wanted}, got {_short(found.shape)}")
        kinds = (4, 8) if single else (8,)
        if found.dtype.kind != "f" or found.dtype.itemsize not in kinds:
            what = "float32 or float64" if single else "float64"
            raise ValueError(f"{name} must be of type {what}, got {_short(found.dtype)}")
        if finite and not (np.abs(found) <= min(LARGEST, float(np.finfo(found.dtype).max))).all():
            raise ValueError(f"{name} must have finite numbers of at most {LARGEST:g}")
        return np.array(found, dtype=found.dtype.newbyteorder("="), order="C")

    def value(self, found: Any) -> Any:
        """Return the value that :func:`to_header` wrote."""
        if isinstance(found, list | tuple):
            return (list if isinstance(found, list) else tuple)(map(self.value, found))
        if isinstance(found, np.ndarray):
            if found.dtype.kind not in "biuf" or found.dtype.itemsize > 8:
                raise ValueError(f"values must be numbers, got {_short(found.dtype)}")
            return np.array(found, dtype=found.dtype.newbyteorder("="), order="C")
        if not isinstance(found, dict):
            is_valid = _is_text(found) if isinstance(found, str) else type(found) in PLAIN
            if not is_valid or (type(found) is int and not is_integer(found)):
                raise ValueError(f"values must be texts and numbers of at most 64 bits, got {_short(found)}")
            return found
        if "type" not in found:
            return {self.value(key): self.value(part) for key, part in found["dict"]}
        if found["type"] not in self._types:
            raise ValueError(f"{_short(found['type'])} is unknown: import the module that defines it first")
        given = {name: self.value(part) for name, part in found["fields"].items()}
        return self._types[found["type"]](**given)

    def parameters(self) -> dict[str, Any]:
        """Return the estimator's parameters."""
        return {name: self.value(part) for name, part in self._dict("parameters").items()}

    def integer(self, name: str, least: int = 0) -> int:
        """Return a whole number of the header."""
        found = self._entry(name)
        if type(found) is not int or not least <= found < MOST:
            raise ValueError(f"{name} must be an integer of at least {least}, got {_short(found)}")
        return found

    def layout(self) -> tuple[int, ...]:
        """Return the number of columns of the fitted file, and the numbers of those that are data."""
        found = self._entry("layout")
        is_valid = isinstance(found, list) and len(found) > 1 and all(type(part) is int for part in found)
        if not is_valid or not all(0 <= part < found[0] < MOST for part in found[1:]):
            raise ValueError(f"layout must be a list of columns, got {_short(found)}")
        return tuple(found)

    def real(self, name: str, least: float = -np.inf, *, finite: bool = True) -> float:
        """Return a number of the header."""
        found = self._entry(name)
        number = float(found) if type(found) is float or is_integer(found) else nan
        is_wrong = not isfinite(number) if finite else type(found) not in (int, float)
        if is_wrong or number < least:
            which = "" if least == -np.inf else f" of at least {least:g}"
            raise ValueError(f"{name} must be a number{which}, got {_short(found)}")
        return number

    def result(self, name: str, kind: type) -> Any:
        """Return a result of the fit: a value of this type, or None if it was unknown."""
        found = self._entry(name)
        if found is None:
            return None
        if kind is float:
            return self.real(name, finite=False)
        if kind is int:
            return self.integer(name)
        if type(found) is not kind or (kind is str and not _is_text(found)):
            raise ValueError(f"{name} must be of type {kind.__name__}, got {_short(found)}")
        return found

    def names(self, count: int) -> NDArray[Any] | None:
        """Return the names of ``count`` columns, or None if there are none."""
        found = self.header.get("feature_names_in_")
        if found is None:
            return None
        if not isinstance(found, list) or len(found) != count or not all(map(_is_text, found)):
            raise ValueError(f"feature_names_in_ must be {count} texts")
        return np.array(found, dtype=object)

    def history(self) -> History:
        """Return the history of a fit."""
        found = self._entry("history")
        kinds: list[tuple[type, ...]] = [(int, float)] * 4 + [(int,), (str,)]
        moments: list[Any] = found if isinstance(found, list) else [None]
        for moment in moments:
            if not isinstance(moment, list) or len(moment) != len(kinds):
                raise ValueError(f"history must have {len(kinds)} values per entry")
            for value, kind in zip(moment, kinds, strict=True):
                if type(value) not in kind or (type(value) is int and not is_integer(value)):
                    raise ValueError(f"history must hold numbers and names of methods, got {_short(value)}")
        moves = self.integer("moves") if "moves" in self.header else 0
        return History([Moment._make(moment) for moment in moments], moves)

    def _entry(self, name: str) -> Any:
        if name not in self.header:
            raise ValueError(f"{name} is missing")
        return self.header[name]

    def _dict(self, name: str) -> dict[str, Any]:
        found = self._entry(name)
        if not isinstance(found, dict):
            raise ValueError(f"{name} must have names and values, got {_short(found)}")
        return found


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of at most 64 bits."""
    return type(value) is int and -MOST < value < MOST


def _is_text(value: Any) -> bool:
    """Return whether a value is a text that can be written to a file or a terminal."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _short(value: Any) -> str:
    """Return any value as part of a sentence."""
    text = ascii(value) if not isinstance(value, int) or is_integer(value) else "a longer one"
    return text if len(text) <= 100 else f"{text[:100]}..."
