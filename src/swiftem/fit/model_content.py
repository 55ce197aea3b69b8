"""Validated content of a model's file: it may come from anyone, and compiled code trusts shapes."""

from __future__ import annotations

from dataclasses import fields
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.schedules import check_step, constant, inverse, power, sample_size
from swiftem.fit.history import History, Moment
from swiftem.methods import METHODS, Accelerated, Anderson, Averaged, Method, Squarem

__all__ = ["LARGEST", "ModelContent", "check_parameters", "method_from_header", "method_to_header"]

LARGEST = 1e150
"""Largest magnitude of a number: squares of larger ones are infinite."""
MOST = 2**63
PLAIN = (bool, int, float, str, type(None))
WRAPPERS: tuple[type[Any], ...] = (Accelerated, Anderson, Averaged, Squarem)
SCHEDULES: tuple[type[Any], ...] = (constant, inverse, power, sample_size)
PARTS: dict[str, type[Any]] = {part.__name__: part for part in (*METHODS.values(), *WRAPPERS, *SCHEDULES)}
"""Classes of methods and of their fields, by the names that files have."""


class ModelContent:
    """The header and the arrays of a file; every method raises ValueError if its part is invalid.

    Parameters
    ----------
    header : dict
        The parsed JSON.
    arrays : dict of str to ndarray
        Of any type except objects.

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

    def __init__(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.header, self.arrays = header, arrays

    def within(self, name: str) -> ModelContent:
        """Return the content whose header is an entry of this header."""
        return ModelContent(self._dict(name), self.arrays)

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

    def numbers(self, name: str) -> NDArray[Any] | None:
        """Return an array of real numbers of any shape and type, or None if there is none."""
        found = self.arrays.get(name)
        if found is None:
            return None
        if found.dtype.kind not in "biuf" or found.dtype.itemsize > 8:
            raise ValueError(f"{name} must hold numbers, got {_short(found.dtype)}")
        return np.array(found, dtype=found.dtype.newbyteorder("="), order="C")

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

    def parameters(self, left_out: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the estimator's parameters: numbers, texts and None; ``left_out`` are never in a file."""
        found = self._dict("parameters")
        for name, value in found.items():
            if name in left_out or not (value is None or isinstance(value, bool | int | float | str)):
                raise ValueError(f"parameters must not have {_short(name)}, got {_short(value)}")
            if type(value) is int and not is_integer(value):
                raise ValueError(f"{_short(name)} must be a number of at most 64 bits")
            if isinstance(value, str) and not _is_text(value):
                raise ValueError(f"{_short(name)} must be a text")
        return dict(found)

    def _entry(self, name: str) -> Any:
        if name not in self.header:
            raise ValueError(f"{name} is missing")
        return self.header[name]

    def _dict(self, name: str) -> dict[str, Any]:
        found = self._entry(name)
        if not isinstance(found, dict):
            raise ValueError(f"{name} must have names and values, got {_short(found)}")
        return found


def check_parameters(estimator: Any) -> None:
    """Raise ValueError for parameters that pass the estimator's constraints but that no fit accepts."""
    if type(estimator.n_components) is not int:
        raise ValueError(f"n_components must be an integer, got {_short(estimator.n_components)}")
    step = getattr(estimator, "step_size", "auto")
    if not (step == "auto" or callable(step) or hasattr(step, "resolve")):
        check_step(step)


def method_to_header(method: Method) -> Any:
    """Return a method as JSON can hold it: class and given fields; None if it has functions of the user.

    >>> from swiftem.methods import Averaged, OnlineEM
    >>> method_to_header(Averaged(OnlineEM(batch_size=64)))
    ['Averaged', {'method': ['OnlineEM', {'batch_size': 64, 'order': 'iid'}], 'window': 'suffix'}]
    """

    def header(part: Any) -> Any:
        if isinstance(part, PLAIN):
            return part
        if type(part) not in PARTS.values():
            raise TypeError(f"{type(part).__name__} is not of the library")
        left_out = getattr(part, "left_out", ())
        names = [one.name for one in fields(part) if one.name not in left_out]
        return [type(part).__name__, {name: header(getattr(part, name)) for name in names}]

    try:
        return header(method)
    except TypeError:
        return None


def method_from_header(header: Any) -> Any:
    """Return the method of :func:`method_to_header`, or raise an error.

    >>> method_from_header(["OnlineEM", {"step_size": ["inverse", {"a": 3, "b": 10}]}]).step_size
    inverse(a=3, b=10)
    """
    if isinstance(header, PLAIN):
        return header
    name, values = header
    return PARTS[name](**{key: method_from_header(value) for key, value in values.items()})


def is_integer(value: Any) -> bool:
    """Tell whether a value is an integer of at most 64 bits."""
    return type(value) is int and -MOST < value < MOST


def _is_text(value: Any) -> bool:
    """Tell whether a value is a text that can be written to a file or a terminal."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _short(value: Any) -> str:
    """Return any value as part of a sentence."""
    text = ascii(value) if not isinstance(value, int) or is_integer(value) else "a longer one"
    return text if len(text) <= 100 else f"{text[:100]}..."
