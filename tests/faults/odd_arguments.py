"""Good, odd and bad arguments for calls: numbers, names, arrays, tables, matrices and weights."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp


class Draw:
    """Decisions from a seed; ``words`` are what was chosen, for a report."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.words: list[str] = []

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def choose(self, options: Mapping[str, Any]) -> Any:
        """Return one of the values, and note its name."""
        return options[self.note(self.pick(list(options)))]

    def note(self, word: Any) -> Any:
        self.words.append(" ".join(str(word).split())[:60])
        return word

    def one_in(self, count: int) -> bool:
        """Return True once in ``count`` times."""
        return self.integer(0, count - 1) == count - 1

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.integer(0, 10**6))


NUMBERS: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 7, 60, 10**30, 10**400, -(10**30), 2**63, 1.0, 2.0, 0.5, -0.5, 0.0,
    -0.0, 1e-9, 1e-300,
    5e-324, 1e300, 1e308, float("nan"), float("inf"), float("-inf"), "", "auto", "2", "em", b"2", 1j,
    Decimal("2"),
    Decimal("nan"), Fraction(1, 2), np.int64(2), np.int8(-1), np.uint8(3), np.float32(0.5), np.float16(0.5),
    np.longdouble("0.5"), np.float64("nan"), np.bool_(True), np.str_("em"), (), (2,), (0.5, 0.5),
]  # fmt: skip


def number(draw: Draw) -> Any:
    """Return a number, or what somebody might take for one."""
    made: list[Callable[[], Any]] = [
        lambda: [], lambda: [2], lambda: {}, lambda: {2}, lambda: np.array(2), lambda: np.array([2]),
        lambda: np.array([]), lambda: np.array("em"), lambda: range(3), lambda: iter([2]), lambda: object(),
        lambda: pd.NA, lambda: pd.Timestamp(0), lambda: pd.Series([2.0]), lambda: sp.eye_array(2),
        lambda: bytearray(2),
    ]  # fmt: skip
    place = draw.integer(0, len(NUMBERS) + len(made) - 1)
    value = NUMBERS[place] if place < len(NUMBERS) else made[place - len(NUMBERS)]()
    draw.note(f"{type(value).__name__} {value!r}")
    return value


def rows(draw: Draw, n: int | None = None, d: int | None = None) -> Any:
    """Return rows (n, d) in memory, mostly well-behaved, then changed in size, place and form."""
    rng = draw.rng()
    n = draw.pick([20, 20, 20, 20, 20, 50, 50, 50, 8, 8, 5, 5, 3, 2, 1, 0]) if n is None else n
    d = draw.pick([2, 2, 2, 2, 2, 2, 2, 1, 1, 3, 3, 5, 0]) if d is None else d
    values = rng.normal(size=(n, d)) + 4.0 * rng.integers(0, 2, size=(n, 1))
    draw.note(f"rows({n}, {d})")
    if draw.one_in(2):
        return values
    for _ in range(draw.pick([0, 0, 1, 1, 2, 3])):
        values = draw.choose(CHANGES)(values, draw)
    return draw.choose(FORMS)(values) if draw.one_in(2) else values


def _at_one_place(value: float) -> Callable[[np.ndarray, Draw], np.ndarray]:
    def change(values: np.ndarray, draw: Draw) -> np.ndarray:
        changed = values.astype(np.float64)
        if changed.size:
            changed.flat[draw.integer(0, changed.size - 1)] = value
        return changed

    return change


def _power(draw: Draw) -> float:
    return 10.0 ** draw.pick([-308, -200, -160, -100, -20, -5, 3, 8, 20, 38, 100, 150, 160, 200, 300, 307])


def _scaled(values: np.ndarray, factor: float) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.clip(values * factor, -1.7e308, 1.7e308)


def _column(values: np.ndarray, fill: float) -> np.ndarray:
    changed = values.astype(np.float64)
    changed[:, :1] = fill
    return changed


CHANGES: dict[str, Callable[[np.ndarray, Draw], np.ndarray]] = {
    "with NaN": _at_one_place(float("nan")),
    "with infinity": _at_one_place(float("inf")),
    "with minus infinity": _at_one_place(float("-inf")),
    "with 1e308": _at_one_place(1e308),
    "with -1e200": _at_one_place(-1e200),
    "with 1e20": _at_one_place(1e20),
    "with 5e-324": _at_one_place(5e-324),
    "of another size": lambda values, draw: _scaled(values, _power(draw)),
    "far away": lambda values, draw: np.clip(values + _power(draw), -1.7e308, 1.7e308),
    "one column of another size": lambda values, draw: (
        values * np.where(np.arange(values.shape[1]), 1.0, 1e-160)
    ),
    "a constant column": lambda values, draw: _column(values, 3.0),
    "all equal": lambda values, draw: np.full_like(values, 0.1),
    "all zero": lambda values, draw: np.zeros_like(values),
    "each twice": lambda values, draw: np.repeat(values, 2, axis=0),
    "equal columns": lambda values, draw: np.repeat(values[:, :1], max(values.shape[1], 1), axis=1),
    "rounded": lambda values, draw: np.round(values),
}


def _read_only(values: np.ndarray) -> np.ndarray:
    copied = values.copy()
    copied.setflags(write=False)
    return copied


def _misaligned(values: np.ndarray) -> np.ndarray:
    raw = np.zeros(values.nbytes + 1, dtype=np.uint8)[1:]
    view = raw.view(np.float64).reshape(values.shape) if values.size else values.copy()
    view[...] = values
    return view


def _to(dtype: Any) -> Callable[[np.ndarray], Any]:
    def cast(values: np.ndarray) -> Any:
        with np.errstate(all="ignore"):
            return values.astype(dtype)

    return cast


def _frame(values: np.ndarray, names: str) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[names.format(place) for place in range(values.shape[1])])


class Boxed:
    """Has ``__array__`` and nothing else."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._values, dtype=dtype)


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "as they are": lambda values: values,
    "Fortran order": np.asfortranarray,
    "every second row": lambda values: np.repeat(values, 2, axis=0)[::2],
    "backwards": lambda values: values[::-1, ::-1],
    "read-only": _read_only,
    "misaligned": _misaligned,
    "big-endian": _to(">f8"),
    **{str(np.dtype(kind)): _to(kind) for kind in ("f2", "f4", "g", "i1", "u1", "i4", "i8", "u8", "?",
    "c16", "O")},
    "matrix": lambda values: np.asmatrix(values),
    "masked": lambda values: np.ma.masked_greater(values, 2.0),
    "list": lambda values: values.tolist(),
    "tuple of tuples": lambda values: tuple(map(tuple, values.tolist())),
    "ragged": lambda values: [*values.tolist(), [1.0]],
    "texts": lambda values: values.astype(str),
    "objects with None": lambda values: np.where(values > 3.0, None, values),
    "objects with text": lambda values: np.where(values > 3.0, "a", values.astype(object)),
    "frame": lambda values: _frame(values, "x{}"),
    "frame, equal names": lambda values: _frame(values, "x"),
    "frame, numbers as names": lambda values: pd.DataFrame(values),
    "frame, nullable": lambda values: _frame(values, "x{}").astype("Float64"),
    "frame, missing": lambda values: _frame(values, "x{}").astype("Float64").mask(values > 3.0),
    "frame, a text column": lambda values: _frame(values, "x{}").assign(kind="a"),
    "frame, categories": lambda values: _frame(np.round(values), "x{}").astype("category"),
    "series": lambda values: pd.Series(values[:, 0] if values.shape[1] else []),
    "one-dimensional": lambda values: values.ravel(),
    "three-dimensional": lambda values: values[:, :, None],
    "one number": lambda values: np.float64(3.0),
    "dates": lambda values: np.zeros(values.shape, dtype="M8[s]"),
    "records": lambda values: np.zeros(len(values), dtype=[("a", float), ("b", float)]),
    "boxed": Boxed,
    "dict": lambda values: {"x": values},
    "set": lambda values: set(values.ravel().tolist()),
    "generator": lambda values: (block for block in np.array_split(values, 2)),
    "list of blocks": lambda values: [values, values],
    "function of blocks": lambda values: lambda: iter(np.array_split(values, 2)),
    "function of pairs": lambda values: lambda: iter([(values, np.ones(len(values)))]),
    "function of nothing": lambda values: lambda: None,
    "path": lambda values: "/no/such/file.npy",
    "empty path": lambda values: "",
    "None": lambda values: None,
    "bytes": lambda values: values.tobytes(),
    "range": lambda values: range(len(values)),
    "pair": lambda values: (values, values),
    **{
        f"sparse {kind}": lambda values, kind=kind: sp.coo_array(np.nan_to_num(values)).asformat(kind)
        for kind in ("csr", "csc", "coo", "bsr", "dia", "dok", "lil")
    },
    "sparse matrix": lambda values: sp.csr_matrix(np.nan_to_num(values)),
}  # fmt: skip


def counts(draw: Draw) -> Any:
    """Return counts of words (D, V): integers as a matrix, dense or sparse, or what :func:`rows` gives."""
    if draw.one_in(10):
        return rows(draw)
    rng = draw.rng()
    shape = draw.pick([30, 30, 12, 12, 5, 2, 1]), draw.pick([6, 6, 6, 6, 20, 2, 1])
    values = rng.poisson(draw.pick([5.0, 1.0, 1.0, 0.1]), size=shape).astype(float)
    draw.note(f"counts{shape}")
    if draw.one_in(2):
        return FORMS[draw.note(draw.pick(["sparse csr", "sparse csr", "as they are"]))](values)
    if draw.one_in(3):
        values = draw.choose(CHANGES)(values, draw)
    elif draw.one_in(4):
        values = values * draw.note(draw.pick([0.3, 1e-9, 1e-300, 1e17, 1e100, 1e300, -1.0]))
    if 1e4 < np.minimum(np.abs(values), 1e18).sum() < 1e17:  # as many tokens would be drawn one by one
        values = np.minimum(values, 9.0)
    if draw.one_in(3):
        return draw.choose(FORMS)(values)
    return FORMS[draw.note(draw.pick(["sparse csr", "as they are"]))](values)


def weights(draw: Draw, values: Any) -> Any:
    """Return weights of rows, or what cannot be that; most often there are none."""
    shape = getattr(values, "shape", None)
    n = int(shape[0]) if shape else (len(values) if isinstance(values, list | tuple) else 3)
    if not draw.one_in(3):
        return None
    draw.note("weights")
    rng = draw.rng()
    good = rng.exponential(size=n)
    options: dict[str, Callable[[], Any]] = {
        "exponential": lambda: good,
        "ones": lambda: np.ones(n),
        "integers": lambda: rng.integers(0, 3, size=n),
        "booleans": lambda: rng.integers(0, 2, size=n).astype(bool),
        "float32": lambda: good.astype(np.float32),
        "float16": lambda: good.astype(np.float16),
        "longdouble": lambda: good.astype(np.longdouble),
        "list": good.tolist,
        "series": lambda: pd.Series(good),
        "read-only": lambda: _read_only(good),
        "every second": lambda: np.repeat(good, 2)[::2],
        "few positive": lambda: np.where(np.arange(n) < 2, 1.0, 0.0),
        "zeros": lambda: np.zeros(n),
        "negative": lambda: good - 1.0,
        "NaN": lambda: np.full(n, np.nan),
        "infinite": lambda: np.full(n, np.inf),
        "huge": lambda: np.full(n, 1e308),
        "tiny": lambda: np.full(n, 1e-310),
        "large": lambda: good * 1e99,
        "small": lambda: np.maximum(good, 1e-3) * 1e-96,
        "of many sizes": lambda: 10.0 ** rng.integers(-100, 101, size=n),
        "too few": lambda: good[:-1],
        "a column": lambda: good[:, None],
        "complex": lambda: good * 1j,
        "texts": lambda: good.astype(str),
        "objects": lambda: good.astype(object),
        "a number": lambda: 2.0,
        "a text": lambda: "balanced",
        "dict": lambda: {0: 1.0},
        "sparse": lambda: sp.csr_array(good[None]),
    }
    return draw.choose(options)()
