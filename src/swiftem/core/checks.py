"""Checks of arguments: one sentence that names the argument, what was wrong and what would be right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.types import Array

__all__ = [
    "TEXTS",
    "TOO_LARGE",
    "MemoryLimitError",
    "arrow_reason",
    "as_floats",
    "as_integers",
    "as_numbers",
    "check_choice",
    "check_dense",
    "check_finite",
    "check_int",
    "check_not_lazy",
    "check_real",
    "check_simplex",
    "in_columns",
    "in_numpy",
    "is_tensor",
    "not_numbers",
    "refuse_columns",
    "refuse_masked",
    "refuse_values",
    "shortened",
    "shown",
    "torch_of",
    "unmasked",
]

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
OF_DTYPE = {
    "U": "text",
    "S": "bytes",
    "T": "text",
    "M": "dates",
    "m": "durations",
    "c": "complex numbers",
}
OF_TYPE: tuple[tuple[Any, str], ...] = (
    (str, "text"),
    (bytes, "bytes"),
    (timedelta | np.timedelta64, "durations"),
    (date | np.datetime64, "dates"),
    (time, "times"),
    (Decimal, "decimals"),
    (list | tuple | set | np.ndarray, "lists"),
    (complex | np.complexfloating, "complex numbers"),
)
OF_NAME = {"Period": "dates", "Interval": "intervals"}
"""Types of pandas."""
OF_POLARS = {
    "String": "text",
    "Utf8": "text",
    "Categorical": "categories",
    "Enum": "categories",
    "Date": "dates",
    "Datetime": "dates",
    "Time": "times",
    "Duration": "durations",
    "Decimal": "decimals",
    "List": "lists",
    "Array": "lists",
    "Struct": "structures",
    "Binary": "bytes",
}


def torch_of(why: str) -> Any:
    """Return PyTorch, or raise ImportError with a sentence that begins with ``why``."""
    try:
        import torch
    except ImportError:
        raise ImportError(f"{why} needs PyTorch: pip install 'swiftem[gpu]'.") from None
    return torch


def is_tensor(data: Any) -> bool:
    """Return whether data are an array of another library: of PyTorch, CuPy, JAX, anything with DLPack.

    >>> is_tensor(np.zeros(3)), is_tensor([1.0])
    (False, False)
    """
    if isinstance(data, np.ndarray | np.generic) or type(data).__module__.startswith("pyarrow"):
        return False  # columns of pyarrow have DLPack, and names and missing values, which it lacks
    return hasattr(data, "__dlpack_device__")


def check_dense(tensor: Any) -> None:
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


def as_integers(name: str, values: ArrayLike) -> NDArray[np.intp]:
    """Return ``values`` as an integer array; floats raise TypeError, even whole ones."""
    array = np.asarray(in_numpy(values))
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


def not_numbers(X: Any) -> dict[Any, str]:
    """Return what is in columns that are no numbers, by name or number; empty if there are none.

    Objects of unknown types are not named: they may have a value as a number.

    >>> from datetime import date
    >>> not_numbers(np.array([[date(2020, 1, 1), 1.0, "a"]], dtype=object))
    {0: 'dates', 2: 'text'}
    """
    library = type(X).__module__.partition(".")[0]
    found: Iterable[tuple[Any, str]] = ()
    if library == "pandas" and hasattr(X, "iloc") and X.ndim == 2:
        found = ((_name(name, j), _of_pandas(X, j)) for j, name in enumerate(X.columns))
    elif library == "polars" and hasattr(X, "get_columns"):
        found = ((part.name, _of_polars(part)) for part in X.get_columns())
    elif library == "pyarrow" and hasattr(X, "column_names"):
        found = zip(X.column_names, map(arrow_reason, X.schema.types), strict=True)
    elif isinstance(X, np.ndarray):
        found = _of_array(X)
    elif isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple):
        width = len(X[0])
        if all(isinstance(row, list | tuple) and len(row) == width for row in X):
            what = [_of_types(map(type, column)) for column in zip(*X, strict=True)]
            found = () if set(what) == {"lists"} else enumerate(what)  # else it has three axes
    return {name: what for name, what in found if what}


def _name(name: Any, number: int) -> Any:
    return name if isinstance(name, str) else number


def _of_array(X: np.ndarray[Any, Any]) -> Iterable[tuple[Any, str]]:
    if X.dtype.names is not None:
        return ((name, _of_dtype(X.dtype[name])) for name in X.dtype.names)
    what = _of_dtype(X.dtype)
    if X.ndim != 2 or what == "complex numbers":
        return ()
    if what or X.dtype.kind != "O":
        return ((j, what) for j in range(X.shape[1]))
    return ((j, _of_types(map(type, X[:, j].tolist()))) for j in range(X.shape[1]))


def _of_dtype(dtype: Any) -> str:
    return "lists" if dtype.shape else OF_DTYPE.get(dtype.kind, "")


def _of_types(types: Iterable[type]) -> str:
    """Return what values of these types are, or nothing for numbers and missing values."""
    for kind in dict.fromkeys(types):
        if kind.__name__ == "NaTType":  # a missing value, though it is a datetime
            continue
        if kind.__name__ in OF_NAME:
            return OF_NAME[kind.__name__]
        for known, what in OF_TYPE:
            if issubclass(kind, known):
                return what
    return ""


def refuse_values(name: str, values: np.ndarray[Any, Any]) -> None:
    """Raise ValueError for an array whose values are no numbers."""
    is_object = values.dtype.kind == "O"
    what = _of_types(map(type, values.ravel().tolist())) if is_object else _of_dtype(values.dtype)
    if what:
        known = "Complex data not supported: " if what == "complex numbers" else ""  # scikit-learn's words
        raise ValueError(f"{known}{name} must have numbers, got {what}.")


def _of_pandas(frame: Any, place: int) -> str:
    dtype = frame.dtypes.iloc[place]
    if hasattr(dtype, "categories"):
        return "categories"
    if hasattr(dtype, "pyarrow_dtype"):
        return arrow_reason(dtype.pyarrow_dtype)
    kind = getattr(dtype, "kind", "O")
    if kind != "O":
        return OF_DTYPE.get(kind, "")
    if type(dtype).__name__ == "StringDtype":
        return "text"
    return _of_types(map(type, frame.iloc[:, place].tolist()))


def _of_polars(series: Any) -> str:
    name = str(series.dtype.base_type())
    return _of_types(map(type, series.to_list())) if name == "Object" else OF_POLARS.get(name, "")


def arrow_reason(kind: Any) -> str:
    """Return what a column of an Arrow type has if it has no numbers, or nothing; a bool is 0 or 1."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind):
        return ""
    for is_of_kind, what in (
        (types.is_decimal, "decimals"),
        (types.is_string, "text"),
        (types.is_large_string, "text"),
        (types.is_string_view, "text"),
        (types.is_dictionary, "categories"),
        (types.is_duration, "durations"),
        (types.is_interval, "durations"),
        (types.is_time, "times"),
        (types.is_temporal, "dates"),
        (types.is_struct, "structures"),
        (types.is_nested, "lists"),
    ):
        if is_of_kind(kind):
            return what
    return str(kind)


def in_columns(found: Mapping[Any, str]) -> str:
    """Return what is in which columns.

    >>> in_columns({"when": "dates", 2: "text", "region": "text"})
    "dates in column 'when', text in columns 2, 'region'"
    """
    said = []
    for what in dict.fromkeys(found.values()):
        columns = [repr(column) for column, one in found.items() if one == what]
        said.append(f"{what} in column{'s' * (len(columns) > 1)} {shortened(columns)}")
    return ", ".join(said)


def refuse_columns(name: str, X: Any, *, takes_text: bool = False, for_text: str = "") -> None:
    """Raise ValueError for columns that are no numbers, with their names and an advice ``for_text``."""
    found = {column: what for column, what in not_numbers(X).items() if not (takes_text and what in TEXTS)}
    if found:
        instead = for_text if any(what in TEXTS for what in found.values()) else ""
        raise ValueError(
            f"{name} must have numbers in every column, got {in_columns(found)}: leave out such "
            f"columns, or convert them to numbers{instead}."
        )
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        raise ValueError(
            f"{name} must be rows and columns, (n, d), got a structured array: pass it as a data frame, or "
            "by numpy.lib.recfunctions.structured_to_unstructured."
        )
