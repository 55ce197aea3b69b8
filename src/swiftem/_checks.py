"""Checks of arguments: one sentence that names the argument, what was wrong and what would be right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._columns import refuse_columns
from swiftem._typing import Array

__all__ = [
    "TOO_LARGE", "MemoryLimitError", "as_floats", "as_integers", "as_numbers", "check_choice", "check_finite",
    "check_int", "check_not_lazy", "check_real", "check_simplex", "refuse_masked", "shortened", "shown",
    "unmasked",
]  # fmt: skip

SIMPLEX_TOLERANCE = 1e-6
STRONGEST = 1e100
"""Largest penalty or prior: divided by the sum of small weights, it must be finite."""
SHOWN = 80
"""Maximum number of characters of a value in a sentence."""
TOO_LARGE = "{} must have numbers that a float can hold, got an integer above 1e308: use another unit."
LISTED = 10
"""Maximum number of words listed in a sentence."""


class MemoryLimitError(ValueError):
    """The run does not fit into the memory limit."""


def shown(value: Any) -> str:
    """Return a value for a sentence: on one line, and shortened if it is long.

    >>> shown("full"), shown(np.zeros((2, 2)))
    ("'full'", 'array([[0., 0.], [0., 0.]])')
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def check_int(name: str, value: Any, *, minimum: int, maximum: int | None = None) -> int:
    """Return ``value`` as an int that is at least ``minimum``, and at most ``maximum`` if given."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {shown(value)}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {shown(value)}.")
    number = int(value)
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {shown(value)}.")
    return number


def check_real(name: str, value: Any, *, minimum: float, maximum: float = math.inf) -> float:
    """Return ``value`` as a finite float that is at least ``minimum`` and at most ``maximum``."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {shown(value)}.")
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 308 digits
        number = math.inf
    if not (math.isfinite(number) and number >= minimum):
        raise ValueError(f"{name} must be finite and at least {minimum:g}, got {shown(value)}.")
    if number > maximum:
        raise ValueError(f"{name} must be at most {maximum:g}, got {shown(value)}.")
    return number


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        wanted = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be {wanted}, got {shown(value)}.")
    return str(value)


def check_not_lazy(name: str, data: Any) -> None:
    """Raise TypeError for a lazy table, such as polars' LazyFrame, instead of computing it implicitly.

    >>> class LazyFrame:
    ...     def collect(self): ...
    >>> check_not_lazy("data", LazyFrame())
    Traceback (most recent call last):
    ...
    TypeError: data must be rows of numbers, got a LazyFrame, which is lazy: pass its collect().
    """
    # Only the type is checked: an access to the object may compute something, or warn.
    kind = type(data)
    if callable(getattr(kind, "collect", None)) and not (
        hasattr(kind, "__array__") or hasattr(kind, "__len__")
    ):
        raise TypeError(
            f"{name} must be rows of numbers, got a {kind.__name__}, which is lazy: pass its collect()."
        )


def refuse_masked(name: str, values: Any) -> None:
    """Raise ValueError for masked entries: values below a mask would be taken for data."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} must have no masked entries: leave out or fill them first.")


def unmasked(values: Any) -> Any:
    """Return a masked array with NaN in place of masked entries, and other values unchanged.

    >>> unmasked(np.ma.masked_equal([1, 2], 2))
    array([ 1., nan])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return np.asarray(values)
    kind = values.dtype if values.dtype.kind in "fO" else np.dtype(np.float64)
    return np.ma.filled(values.astype(kind), np.nan)


def as_numbers(name: str, values: ArrayLike, allow_missing: bool = False) -> NDArray[Any]:
    """Return ``values`` as an array of real numbers, unchanged in dtype; masked entries may become NaN."""
    if allow_missing:
        values = unmasked(values)
    refuse_masked(name, values)
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise TypeError(
            f"{name} must be a dense array here, got a sparse matrix: convert it with .toarray()."
        )
    refuse_columns(name, values)
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{name} must be a rectangular array of numbers, got rows of unequal length."
        ) from None
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except OverflowError:
            raise ValueError(TOO_LARGE.format(name)) from None
        except (TypeError, ValueError):
            raise TypeError(f"{name} must hold real numbers, got objects that are not numbers.") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    return array


def as_floats(name: str, values: ArrayLike, *, shape: tuple[int | None, ...] | None = None) -> Array:
    """Return ``values`` as a finite float64 array; ``None`` in ``shape`` means any length."""
    array = as_numbers(name, values).astype(np.float64, copy=False)
    if shape is not None:
        fits = array.ndim == len(shape) and all(
            want in (None, have) for want, have in zip(shape, array.shape, strict=True)
        )
        if not fits:
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise ValueError(f"{name} must have shape ({wanted}), got {array.shape}.")
    check_finite(name, array)
    return array


def as_integers(name: str, values: ArrayLike) -> NDArray[np.intp]:
    """Return ``values`` as an integer array; floats raise TypeError, even whole ones."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}.")
    return array.astype(np.intp, copy=False)


def check_finite(name: str, array: NDArray[Any], allow_missing: bool = False) -> None:
    """Raise ValueError for NaN, unless ``allow_missing``, and infinities, with the first position."""
    # The sum needs no temporary array of the data's size in the usual case, without NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype.kind != "f" or np.isfinite(array.sum(dtype=np.float64)):
            return
    bad = np.isinf(array) if allow_missing else ~np.isfinite(array)
    if not bad.any():
        return
    if not array.ndim:
        raise ValueError(f"{name} must be finite, got {array.item()}.")
    place = tuple(int(axis[0]) for axis in np.nonzero(bad))
    what = "NaN" if np.isnan(array[place]) else "an infinity"
    where = f"position {place[0] if len(place) == 1 else place}"
    raise ValueError(f"{name} must be finite, got {what} at {where}: remove or replace such values first.")


def check_simplex(name: str, array: Array) -> None:
    """Raise ValueError if rows (the last axis) are not probability vectors."""
    if (array < 0).any():
        raise ValueError(f"{name} must be probabilities, got a negative entry {array.min():g}.")
    sums = array.sum(axis=-1)
    worst = float(np.ravel(sums)[np.argmax(np.abs(np.ravel(sums) - 1.0))])
    if abs(worst - 1.0) > SIMPLEX_TOLERANCE:
        raise ValueError(f"{name} must sum to 1, got a sum of {worst:.9g}.")


def shortened(words: Sequence[str], most: int = LISTED) -> str:
    """Return words separated by commas, at most the first ``most``.

    >>> shortened([str(i) for i in range(12)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more'
    """
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more:,} more" if more > 0 else "")
