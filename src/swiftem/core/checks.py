"""Checks of arguments: one sentence that names the argument, what was wrong and what would be right."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.types import Array, Index

SIMPLEX_TOLERANCE = 1e-6
STRONGEST = 1e100
"""Largest penalty or prior: divided by the sum of small weights, it must be finite."""
SHOWN = 80
"""Maximum number of characters of a value in a sentence."""
TOO_LARGE = "{} must have numbers that a float can hold, got an integer above 1e308: use another unit."
LISTED = 10
"""Maximum number of words listed in a sentence."""
CPU = 1
"""DLPack's number of the CPU."""
TEXTS = ("text", "categories")
"""What columns may have if they are to be categories."""
TYPES = {
    "text": "str string large_string string_view stringdtype utf",
    "bytes": "bytes binary large_binary binary_view fixed_size_binary",
    "dates": "date datetime timestamp period",
    "times": "time",
    "durations": "timedelta duration month_day_nano_interval",
    "intervals": "interval",
    "decimals": "decimal",
    "categories": "category categorical dictionary",
    "lists": "list tuple set ndarray array large_list fixed_size_list list_view map dense_union sparse_union",
    "structures": "struct",
    "complex numbers": "complex",
}
"""What is no number, and the names of its types in Python, NumPy, pandas, polars and Arrow, without sizes."""
CONTENTS = {name: content for content, names in TYPES.items() for name in names.split()}
LEAST, MOST = 1e-100, 1e100
"""Range of positive weights, so that squares, sums and products with counts are finite."""
RANGE = f"zero or from {LEAST:g} to {MOST:g}"
ARROW_NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool", "null")


def torch_of(why: str) -> Any:
    """Return PyTorch, or raise an ImportError that begins with ``why``."""
    try:
        import torch
    except ImportError:
        raise ImportError(f"{why} needs PyTorch: pip install 'swiftem[gpu]'.") from None
    return torch


def is_tensor(data: object) -> bool:
    """Return whether data are an array of another library: of PyTorch, CuPy, JAX, anything with DLPack.

    >>> is_tensor(np.zeros(3)), is_tensor([1.0])
    (False, False)
    """
    if isinstance(data, np.ndarray | np.generic) or type(data).__module__.startswith("pyarrow"):
        return False  # columns of pyarrow have DLPack, and names and missing values, which it lacks
    return hasattr(data, "__dlpack_device__")


def check_dense(tensor: object) -> None:
    """Raise TypeError for a sparse tensor of PyTorch."""
    layout = str(getattr(tensor, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise TypeError(f"tensors must be dense here, got {layout}: convert it with .to_dense().")


def in_numpy(data: Any) -> Any:
    """Return a tensor as an array of NumPy; other data unchanged.

    >>> in_numpy([1.0])
    [1.0]
    """
    if not is_tensor(data):
        return data
    if hasattr(data, "detach"):  # of PyTorch, which may have a gradient
        check_dense(data)
        tensor = data.detach().cpu()
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    if int(data.__dlpack_device__()[0]) == CPU:
        return np.from_dlpack(data)
    return torch_of("an array on a device").from_dlpack(data).cpu().numpy()


class MemoryLimitError(ValueError):
    """The run does not fit into the memory limit."""


def shown(value: object) -> str:
    """Return a value for a sentence: on one line, and shortened if it is long.

    >>> shown("full"), shown(np.zeros((2, 2)))
    ("'full'", 'array([[0., 0.], [0., 0.]])')
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def check_int(name: str, value: object, *, minimum: int, maximum: int | None = None) -> int:
    """Return ``value`` as an int that is at least ``minimum``, and at most ``maximum`` if given."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {shown(value)}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {shown(value)}.")
    number = int(value)
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {shown(value)}.")
    return number


def check_real(name: str, value: object, *, minimum: float, maximum: float = math.inf) -> float:
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


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be {either(map(repr, choices))}, got {shown(value)}.")
    return str(value)


def either(words: Iterable[str]) -> str:
    """Return alternatives as part of a sentence.

    >>> either(["'cpu'", "'cuda'", "None"])
    "'cpu', 'cuda' or None"
    """
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def check_not_lazy(name: str, data: object) -> None:
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
    is_array = hasattr(kind, "__array__") or hasattr(kind, "__len__")
    if callable(getattr(kind, "collect", None)) and not is_array:
        raise TypeError(
            f"{name} must be rows of numbers, got a {kind.__name__}, which is lazy: pass its collect()."
        )


def refuse_masked(name: str, values: object) -> None:
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


def as_numbers(name: str, values: ArrayLike, allow_missing: bool = False) -> np.ndarray:
    """Return ``values`` as an array of real numbers, unchanged in dtype; masked entries may become NaN."""
    if allow_missing:
        values = unmasked(values)
    values = in_numpy(values)
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


def as_integers(name: str, values: ArrayLike) -> Index:
    """Return ``values`` as an integer array; floats raise TypeError, even whole ones."""
    array = np.asarray(in_numpy(values))
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got dtype {array.dtype}.")
    return array.astype(np.intp, copy=False)


def check_finite(name: str, array: np.ndarray, allow_missing: bool = False) -> None:
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


def first_bad_weight(weight: Array) -> tuple[int, str] | None:
    """Return the position of the first invalid weight, and what it must be; None if there is none.

    >>> first_bad_weight(np.array([2.0, -1.0])), first_bad_weight(np.array([1e308]))
    ((1, 'not negative'), (0, 'zero or from 1e-100 to 1e+100'))
    """
    bad = np.flatnonzero(~((weight == 0.0) | ((weight >= LEAST) & (weight <= MOST))))
    if not len(bad):
        return None
    value = weight[bad[0]]
    if not np.isfinite(value):
        return int(bad[0]), "finite"
    return int(bad[0]), "not negative" if value < 0.0 else RANGE


def check_weights(name: str, weight: Array, one: str = "position", many: str = "weights") -> None:
    """Raise ValueError for the first invalid weight, or count of words.

    Extreme numbers have infinite sums, or squares that are zero.
    """
    bad = first_bad_weight(weight)
    if bad is not None:
        place, wanted = bad
        must = "must not be negative" if wanted == "not negative" else f"must be {wanted}"
        advice = f": divide all {many} by one number" if wanted == RANGE else ""
        raise ValueError(f"{name} {must}, got {weight[place]:g} at {one} {place}{advice}.")


def check_weight_column(weight: Array, locate: Callable[[int], tuple[Path | str, int]]) -> None:
    """Raise ValueError for the first invalid weight of a table.

    Parameters
    ----------
    weight : ndarray, shape (b,)
        Weights of some rows.
    locate : callable
        Returns the file of one of these rows, and its index there.
    """
    bad = first_bad_weight(weight)
    if bad is not None:
        place, wanted = bad
        file, row = locate(place)
        raise ValueError(
            f"{file} must have weights that are {wanted}, got {weight[place]:g} in row {row} (from 0)."
        )


def read_sample_weight(
    sample_weight: ArrayLike | None, n: int, what: str = "row", *, may_be_zero: bool = False
) -> Array | None:
    """Return weights of shape (n,), one per ``what``, or None if none are given.

    Weights apply to statistics, not to draws: with uniform draws, the proxy is the mean of n·w_i/W times a
    sample's statistics, where W is the sum of weights. Draws in proportion to the weights would have less
    variance, but seeded draws would depend on the weights.

    Raises
    ------
    ValueError
        If a weight is negative, not finite or out of range, if their number is wrong, or if all are zero
        unless they ``may_be_zero``.
    """
    if sample_weight is None:
        return None
    weight = as_floats("sample_weight", sample_weight)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight per {what}, got {weight.shape}.")
    check_weights("sample_weight", weight)
    if not (may_be_zero or (weight > 0).any()):
        raise ValueError("sample_weight must have a positive entry, got only zeros.")
    return np.ascontiguousarray(weight)


def extent_of(*numbers: Array) -> tuple[float, float]:
    """Return the smallest and the largest of all positive numbers.

    >>> extent_of(np.array([0.0, 2.0]), np.array([0.5]))
    (0.5, 2.0)
    """
    least, most = np.inf, 0.0
    for array in (np.asarray(each, dtype=np.float64) for each in numbers):
        least = min(least, float(np.min(array, initial=np.inf, where=array > 0)))
        most = max(most, float(np.max(array, initial=0.0)))
    return least, most


def shortened(words: Sequence[str], most: int = LISTED) -> str:
    """Return words separated by commas, at most the first ``most``.

    >>> shortened([str(i) for i in range(12)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more'
    """
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more:,} more" if more > 0 else "")


def not_numbers(X: Any) -> dict[Any, str]:
    """Return what is in columns that are no numbers, by name or number; empty if there are none.

    Objects of unknown types are not named: they may have a value as a number.

    >>> from datetime import date
    >>> not_numbers(np.array([[date(2020, 1, 1), 1.0, "a"]], dtype=object))
    {0: 'dates', 2: 'text'}
    """
    library = type(X).__module__.partition(".")[0]
    contents: Iterable[tuple[Any, str]] = ()
    if library == "pandas" and hasattr(X, "iloc") and X.ndim == 2:
        names = (name if isinstance(name, str) else j for j, name in enumerate(X.columns))
        contents = zip(names, (_column_content(X.iloc[:, j]) for j in range(X.shape[1])), strict=True)
    elif library == "polars" and hasattr(X, "get_columns"):
        contents = ((column.name, _column_content(column)) for column in X.get_columns())
    elif library == "pyarrow" and hasattr(X, "column_names"):
        contents = zip(X.column_names, map(arrow_reason, X.schema.types), strict=True)
    elif isinstance(X, np.ndarray) and X.dtype.names is not None:
        contents = ((name, _dtype_content(X.dtype[name])) for name in X.dtype.names)
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind not in "biufc":
        contents = ((j, _array_content(X[:, j])) for j in range(X.shape[1]))
    elif isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple):
        width = len(X[0])
        if all(isinstance(row, list | tuple) and len(row) == width for row in X):
            what = [_values_content(column) for column in zip(*X, strict=True)]
            contents = () if set(what) == {"lists"} else enumerate(what)  # else it has three axes
    return {name: what for name, what in contents if what}


def _content(type_name: str) -> str:
    """Return what values of a type are, or nothing for numbers and unknown types."""
    name = re.match("[a-z_]*", type_name.lower())
    return CONTENTS.get(name[0], "") if name else ""


def _values_content(values: Iterable[object]) -> str:
    """Return what is among values that are no numbers and not missing, or nothing."""
    for kind in dict.fromkeys(map(type, values)):
        if kind.__name__ != "NaTType":  # a missing value, though it is a datetime
            for base in kind.__mro__:
                if what := _content(base.__name__):
                    return what
    return ""


def _dtype_content(dtype: np.dtype) -> str:
    return "lists" if dtype.shape else _content(dtype.name)


def _array_content(values: np.ndarray) -> str:
    return (
        _values_content(values.ravel().tolist()) if values.dtype.kind == "O" else _dtype_content(values.dtype)
    )


def _column_content(column: Any) -> str:
    """Return what is in a column of pandas or polars."""
    name = str(column.dtype).replace("Enum", "Categorical")
    return _values_content(column.to_list()) if name.lower() == "object" else _content(name)


def refuse_values(name: str, values: np.ndarray) -> None:
    """Raise ValueError for an array whose values are no numbers."""
    if what := _array_content(values):
        known = "Complex data not supported: " if what == "complex numbers" else ""  # scikit-learn's words
        raise ValueError(f"{known}{name} must have numbers, got {what}.")


def arrow_reason(kind: object) -> str:
    """Return what a column of an Arrow type has if it has no numbers, or nothing; a bool is 0 or 1."""
    is_number = re.fullmatch(rf"({'|'.join(ARROW_NUMBERS)})\d*", str(kind))
    return "" if is_number else _content(str(kind)) or str(kind)


def in_columns(contents: Mapping[Any, str]) -> str:
    """Return what is in which columns.

    >>> in_columns({"when": "dates", 2: "text", "region": "text"})
    "dates in column 'when', text in columns 2, 'region'"
    """
    parts = []
    for what in dict.fromkeys(contents.values()):
        columns = [repr(column) for column, content in contents.items() if content == what]
        parts.append(f"{what} in column{'s' * (len(columns) > 1)} {shortened(columns)}")
    return ", ".join(parts)


def refuse_columns(name: str, X: object, *, takes_text: bool = False, for_text: str = "") -> None:
    """Raise ValueError for columns that are no numbers, with their names and an advice ``for_text``."""
    wrong = {column: what for column, what in not_numbers(X).items() if not (takes_text and what in TEXTS)}
    if wrong:
        instead = for_text if any(what in TEXTS for what in wrong.values()) else ""
        raise ValueError(
            f"{name} must have numbers in every column, got {in_columns(wrong)}: leave out such "
            f"columns, or convert them to numbers{instead}."
        )
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        raise ValueError(
            f"{name} must be rows and columns, (n, d), got a structured array: pass it as a data frame, or "
            "by numpy.lib.recfunctions.structured_to_unstructured."
        )
