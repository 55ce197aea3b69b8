r"""Blocks of columns, each with its own family, independent given the component.

log f(y; θ_m) = Σ_block log f_block(y_block; θ_m), so that features, natural parameters and statistics of the
blocks are concatenated: first the features of channel r, block by block, then of further channels, then the
indicators of codes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import shown
from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Columns, Family, Params


def _any(name: str) -> Any:
    """Return a property of :class:`Blocks`: whether one of the families has it."""
    return property(lambda blocks: any(getattr(family, name) for family in blocks.families))


@dataclass(frozen=True)
class Blocks(Family):
    """Several families; parameters are a dict of dicts, by family and by name.

    Parameters
    ----------
    families : tuple of Family
        One per block; their names must differ.
    columns : tuple of tuple of int or str
        The columns of each, in the order of its parameters.

    Examples
    --------
    >>> from swiftem.mixture.families import read_family
    >>> blocks = read_family({"poisson": [0, 3], "bernoulli": ["yes", 2]}).named(["a", "yes", "b", "c"])
    >>> blocks.columns
    ((0, 3), (1, 2))
    >>> blocks.shapes(5, 4)
    {'poisson': {'rates': (5, 2)}, 'bernoulli': {'probabilities': (5, 2)}}
    """

    families: tuple[Family, ...]
    columns: tuple[tuple[int | str, ...], ...]

    @classmethod
    def read(cls, families: Sequence[Family], columns: Mapping[Any, Any]) -> Blocks:
        """Return blocks from a user's dict: a family or its name, and the columns of each."""
        names = [family.name for family in families]
        if not names:
            raise ValueError("family must have at least one block of columns, got none.")
        found = []
        for name, given in zip(names, columns.values(), strict=True):
            if names.count(name) > 1:
                raise ValueError(f"family must name each kind of block once, got {name!r} twice.")
            if isinstance(given, str | Integral):
                given = [given]
            if not isinstance(given, Sequence | np.ndarray) or not len(given):
                raise TypeError(
                    f"family must give {name!r} a list of columns, names or numbers, got {shown(given)}."
                )
            found.append(tuple(_column(name, column) for column in given))
        return cls(tuple(families), tuple(found))

    def named(self, names: Sequence[str] | None) -> Blocks:
        """Return the same with numbers instead of names of columns."""
        places: dict[int | str, int] = {str(name): j for j, name in enumerate(() if names is None else names)}
        for column in chain.from_iterable(self.columns):
            if isinstance(column, str) and column not in places:
                have = ", ".join(map(str, places)) or "no names: give their numbers"
                raise ValueError(
                    f"family must have names of columns of the data, got {column!r}; they have {have}."
                )
        numbers = (tuple(places.get(column, column) for column in columns) for columns in self.columns)
        return replace(self, columns=tuple(numbers))

    def check_columns(self, d: int) -> None:
        """Raise ValueError unless each of ``d`` columns is in exactly one block."""
        counts = Counter(map(int, chain.from_iterable(self.named(None).columns)))
        for column, count in counts.items():
            if column >= d:
                raise ValueError(f"family must have columns from 0 to {d - 1}, got {column}.")
            if count > 1:
                raise ValueError(f"family must have each column in one block, got column {column} twice.")
        left = sorted(set(range(d)) - set(counts))
        if left:
            which = ", ".join(map(str, left[:10])) + (", ..." if len(left) > 10 else "")
            raise ValueError(f"family must have every column in a block, got none for column {which}.")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of all blocks."""
        return " + ".join(family.name for family in self.families)

    @property
    def d(self) -> int:
        """Number of columns."""
        return sum(map(len, self.columns))

    @property
    def _sizes(self) -> list[tuple[Family, int]]:
        """Each family, and the number of its columns."""
        return list(zip(self.families, map(len, self.columns), strict=True))

    @cached_property
    def _parts(self) -> list[tuple[Family, Index, slice | Index]]:
        """Each family, its columns, and what selects them: a slice if they are contiguous, without a copy."""
        parts: list[tuple[Family, Index, slice | Index]] = []
        for family, named in zip(self.families, self.columns, strict=True):
            columns = np.array(named, dtype=np.intp)
            is_range = (np.diff(columns) == 1).all()
            parts.append((family, columns, slice(columns[0], columns[-1] + 1) if is_range else columns))
        return parts

    @cached_property
    def _widths(self) -> list[tuple[int, ...]]:
        """Features of the channels of each block."""
        return [family.widths(count) for family, count in self._sizes]

    @cached_property
    def places(self) -> list[Index]:
        """Positions of the features of each block, for r, for further channels, and of its codes."""
        pairs = zip(self.families, self._widths, strict=True)
        sizes = np.array([(widths[0], sum(widths[1:]), family.n_codes) for family, widths in pairs])
        ends = sizes.T.cumsum().reshape(3, -1).T
        return [
            np.concatenate([np.arange(end - size, end) for size, end in zip(*block, strict=True)])
            for block in zip(sizes, ends, strict=True)
        ]

    def clipped(self, counts: Array, sums: Array) -> Array:
        """Return sums within the bounds of each block."""
        sums = sums.copy()
        for family, place in zip(self.families, self.places, strict=True):
            sums[:, place] = family.clipped(counts, sums[:, place])
        return sums

    takes_missing, is_coded, needs_data = _any("takes_missing"), _any("is_coded"), _any("needs_data")

    @property
    def channels(self) -> tuple[float, ...]:  # type: ignore[override]
        """Factors of all blocks."""
        return tuple(value for family in self.families for value in family.channels)

    def learn(self, columns: Columns) -> Family:
        """Let each block learn from its columns."""
        learnt = (
            family.learn(columns.part(here)) if family.needs_data else family
            for family, _, here in self._parts
        )
        return replace(self, families=tuple(learnt))

    def streamed(self, columns: Columns) -> Family:
        """Let each block learn from more rows."""
        learnt = (family.streamed(columns.part(here)) for family, _, here in self._parts)
        return replace(self, families=tuple(learnt))

    def coded_columns(self, d: int) -> tuple[int, ...]:
        """Return the columns of blocks of codes."""
        return tuple(int(j) for family, columns, _ in self._parts if family.is_coded for j in columns)

    def level_codes(self) -> list[tuple[int, ...]]:
        """Return the codes of the levels of all blocks."""
        return [codes for family in self.families for codes in family.level_codes()]

    def shapes(self, n_components: int, d: int) -> dict[str, Any]:
        """Return the shapes of the parameters of each block."""
        return {family.name: family.shapes(n_components, count) for family, count in self._sizes}

    def widths(self, d: int) -> tuple[int, ...]:
        """Return the features of channel r, then of each further channel."""
        more = [width for widths in self._widths for width in widths[1:]]
        return (sum(widths[0] for widths in self._widths), *more)

    def check_rows(self, y: Rows) -> None:
        """Let each block check its columns."""
        for family, _, here in self._parts:
            family.check_rows(y[:, here])

    def checked(self, y: Rows, first: int) -> Rows:
        """Return the features; errors name the row and the family."""
        for family, columns, here in self._parts:
            with _named_columns(columns):
                family.checked(y[:, here], first)
        return self.features(y)

    def features(self, y: Rows) -> Rows:
        """Return the concatenated features."""
        parts = [
            np.split(family.features(y[:, here]), widths[:1], axis=1)
            for (family, _, here), widths in zip(self._parts, self._widths, strict=True)
        ]
        return np.concatenate([part for channel in zip(*parts, strict=True) for part in channel], axis=1)

    def for_start(self, y: Rows) -> Rows:
        """Return the blocks' rows for k-means, each column with a variance of one."""
        rows = np.concatenate([family.for_start(y[:, here]) for family, _, here in self._parts], axis=1)
        spread = rows.std(axis=0, dtype=np.float64)
        return np.asarray(rows / np.where(spread > 0.0, spread, 1.0).astype(rows.dtype))

    @property
    def n_codes(self) -> int:
        """Indicators of all blocks."""
        return sum(family.n_codes for family in self.families)

    def codes(self, y: Rows, first: int = 0) -> NDArray[np.int32]:
        """Return which indicators are one, block after block."""
        parts, before = [np.empty((0, len(y)), dtype=np.int32)], 0
        for family, columns, here in self._parts:
            with _named_columns(columns):
                parts.append(family.codes(y[:, here], first).T + np.int32(before))
            before += family.n_codes
        return np.concatenate(parts).T

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return φ of all features, and the sum of the constants."""
        pairs = [family.natural(params[family.name]) for family in self.families]
        phi = np.empty((len(pairs[0][1]), sum(map(len, self.places))))
        for (part, _), place in zip(pairs, self.places, strict=True):
            phi[:, place] = part
        return phi, np.sum([constant for _, constant in pairs], axis=0)

    def e_step(self, y: Rows, params: Params) -> tuple[Array, list[Array]]:
        """Return the sum of log f over blocks, and the factors of all channels."""
        pairs = []
        for family, columns, here in self._parts:
            with _named_columns(columns):
                pairs.append(family.e_step(y[:, here], params[family.name]))
        return np.sum([logits for logits, _ in pairs], axis=0), [part for _, more in pairs for part in more]

    def log_base(self, y: Rows) -> Array | None:
        """Return the sum of log h over blocks."""
        parts = [family.log_base(y[:, here]) for family, _, here in self._parts]
        known = [part for part in parts if part is not None]
        return np.sum(known, axis=0) if known else None

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return the parameters of each block, or None if a block has none."""
        pairs = zip(self.families, self.places, strict=True)
        params = {family.name: family.m_step(counts, means[:, place]) for family, place in pairs}
        return None if None in params.values() else params

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return random rows, block by block."""
        rows = np.empty((len(labels), self.d))
        for family, _, here in self._parts:
            rows[:, here] = family.draw(params[family.name], labels, rng)
        return rows

    def drawn(self, y: Rows, params: Params, labels: Index, rng: np.random.Generator) -> Rows:
        """Return rows with random values in missing cells, block by block."""
        rows = np.empty((len(labels), self.d))
        for family, _, here in self._parts:
            rows[:, here] = family.drawn(y[:, here], params[family.name], labels, rng)
        return rows

    def imputed(self, y: Rows, rows: Array, params: Params) -> Array:
        """Return rows with missing cells replaced, block by block."""
        filled = np.array(y, dtype=np.float64)
        for family, _, here in self._parts:
            if np.isnan(filled[:, here]).any():
                filled[:, here] = family.imputed(filled[:, here], rows, params[family.name])
        return filled

    def check_params(self, params: Params) -> None:
        """Let each block check its own parameters."""
        for family in self.families:
            family.check_params(params[family.name])

    def n_free(self, n_components: int, d: int) -> int:
        """Return the sum over blocks."""
        return sum(family.n_free(n_components, count) for family, count in self._sizes)


@contextmanager
def _named_columns(columns: Index) -> Iterator[None]:
    """Context in which errors of a block, which counts its own columns, have the numbers of all columns."""
    try:
        yield
    except ValueError as error:
        said = re.sub(r"in column (\d+)", lambda at: f"in column {columns[int(at[1])]}", str(error))
        raise ValueError(said) from None


def _column(name: str, column: Any) -> int | str:
    if isinstance(column, str):
        return str(column)
    if not isinstance(column, Integral) or isinstance(column, bool) or column < 0:
        raise TypeError(f"family must give {name!r} names or numbers of columns, got {shown(column)}.")
    return int(column)
