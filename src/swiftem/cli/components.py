"""Tables that fit the screen, and the table of a mixture's components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from swiftem.cli.screen import Console
from swiftem.core.messages import visible
from swiftem.core.types import Array
from swiftem.mixture.families import Blocks, Family
from swiftem.show.numbers import counted

if TYPE_CHECKING:
    from swiftem.estimators import GaussianMixture

__all__ = ["deviations", "numbers", "screen", "show_components", "show_table", "width_of"]

PLAIN_WIDTH = 120
"""Width of tables in files and pipes."""
MOST_ROWS, LONGEST_CELL = 60, 40
"""Of a table: rows, and letters of a cell."""
Column = tuple[str, Sequence[str]]
"""Head and cells."""
LARGEST, SMALLEST = 1e7, 1e-5
"""Numbers beyond are written with an exponent."""


def screen() -> Console:
    """Return a console for standard output; lines are wrapped only in a terminal."""
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=100_000)


def width_of(console: Console) -> int:
    """Return the maximum width of a table: that of the terminal, or of a page if there is none."""
    return console.width if console.is_terminal else PLAIN_WIDTH


def deviations(mixture: GaussianMixture) -> Array:
    """Return the standard deviations of components and columns, shape (M, d)."""
    variances: Array = np.asarray(mixture.covariances_, dtype=np.float64)
    if mixture.covariance_type in ("full", "tied"):
        variances = np.diagonal(variances, axis1=-2, axis2=-1)
    elif mixture.covariance_type == "spherical":
        variances = variances[:, None]
    return np.asarray(np.sqrt(np.broadcast_to(variances, mixture.means_.shape)))


def numbers(means: Array, spreads: Array, sign: str = "±") -> list[str]:
    """Return means and standard deviations of one column, with two digits of the smallest deviation.

    >>> import numpy as np
    >>> numbers(np.array([12345.678, 2.0]), np.array([0.5, 30.0]))
    ['12345.68 ± 0.50', '2.00 ± 30.00']
    >>> numbers(np.array([1e-9]), np.array([1e-9]))
    ['1.00e-09 ± 1.0e-09']
    """
    largest = float(max(np.abs(means).max(), spreads.max()))
    smallest = float(spreads.min())
    if not (isfinite(largest) and smallest > SMALLEST and largest < LARGEST):
        return [f"{mean:.2e} {sign} {spread:.1e}" for mean, spread in zip(means, spreads, strict=True)]
    places = min(6, max(0, 1 - floor(log10(smallest))))
    return [
        f"{mean:.{places}f} {sign} {spread:.{places}f}" for mean, spread in zip(means, spreads, strict=True)
    ]


def show_components(console: Console, mixture: Any, names: Sequence[str], full: bool = False) -> None:
    """Print the weights, and means with standard deviations, coefficients, or parameters of other families.

    There is one row per component if that fits, otherwise one row per column if that fits; otherwise columns
    are cut, with a count of those, unless ``full``.
    """
    sign = "±" if console.encoding.startswith("utf") else "+-"
    columns = _cells(mixture, sign, names)
    heads = list(names) if len(names) else [f"column {j}" for j in range(len(columns))]
    heads = heads[: len(columns)]
    if hasattr(mixture, "coef_"):
        (heads, columns) = _coefficients(mixture, names)
    weights = [f"{weight:.4f}" if weight >= 5e-5 else f"{weight:.1e}" for weight in mixture.weights_]
    labels = [str(m) for m in range(len(weights))]
    across = [("component", labels), ("weight", weights), *zip(heads, columns, strict=True)]
    down = [("", ["weight", *heads])] + [
        (f"component {m}", [weights[m], *(cells[m] for cells in columns)]) for m in range(len(weights))
    ]
    width = width_of(console)
    if not full and _fitting(width, across) < len(across) and _fitting(width, down) == len(down):
        show_table(console, down, fixed=1, what="column", of_rows="column")
    else:
        show_table(console, across, fixed=2, what="column", of_rows="component", full=full)


def show_table(
    console: Console,
    columns: Sequence[Column],
    *,
    fixed: int,
    what: str,
    of_rows: str = "row",
    full: bool = False,
) -> None:
    """Print a table that is not wider than the screen and not too long, with a count of what was cut.

    Parameters
    ----------
    console : Console
        Where to print.
    columns : sequence of (head, cells)
        Cells are right-justified, except in a column without a head.
    fixed : int
        Number of columns that are always shown, in addition to one more.
    what, of_rows : str
        What another column and a row are, for the count of those that were cut.
    full : bool
        Whether to cut nothing.
    """
    columns = [(_short(head), [_short(cell) for cell in cells]) for head, cells in columns]
    shown = len(columns) if full else max(_fitting(width_of(console), columns), fixed + 1)
    n_rows = len(columns[0][1])
    most = n_rows if full or n_rows <= MOST_ROWS + 5 else MOST_ROWS
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head, _ in columns[:shown]:
        table.add_column(Text(head), justify="right" if head else "left", no_wrap=True)
    for row in range(most):
        table.add_row(*(Text(cells[row]) for _, cells in columns[:shown]))
    console.print(table)
    cut = [(len(columns) - shown, what), (n_rows - most, of_rows)]
    left = " and ".join(counted(count, f"more {kind}") for count, kind in cut if count > 0)
    if left:
        console.print(f"  ... and {left}.", soft_wrap=True)


def _short(cell: str) -> str:
    cell = visible(cell).replace("\n", "\\n")  # before it is measured
    return cell if len(cell) <= LONGEST_CELL else cell[: LONGEST_CELL - 1] + "…"


def _coefficients(mixture: Any, names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return names and cells of the coefficients, and of the standard deviation of the noise."""
    found = {}
    for name, parts in mixture.profile_.items():
        ((what, values),) = parts.items()
        head = f"{name} ±" if what == "variance" else name
        found[head] = [f"{value:.4g}" for value in (np.sqrt(values) if what == "variance" else values)]
    heads = list(found)
    first = int(mixture.fit_intercept)
    heads[first : first + len(names)] = names
    return heads, list(found.values())


def _cells(mixture: Any, sign: str, names: Sequence[str]) -> list[list[str]]:
    """Return the cells of each column and component."""
    if hasattr(mixture, "coef_"):
        return []
    if hasattr(mixture, "means_"):
        means, spreads = np.asarray(mixture.means_, dtype=np.float64), deviations(mixture)
        return [numbers(means[:, j], spreads[:, j], sign) for j in range(means.shape[1])]
    family = mixture.family_
    places = {name: place for place, name in enumerate(names)}
    levels = {places.get(name, name): parts for name, parts in getattr(mixture, "categories_", {}).items()}
    if not isinstance(family, Blocks):
        d = mixture.n_features_in_
        return _of_family(family, mixture.params_, mixture.n_components, range(d), levels)
    found: list[list[str]] = [[""] * mixture.n_components for _ in range(mixture.n_features_in_)]
    for part, columns in zip(family.families, family.columns, strict=True):
        cells = _of_family(part, mixture.params_[part.name], mixture.n_components, columns, levels)
        for column, cell in zip(columns, cells, strict=False):
            found[int(column)] = cell
    return found


def _of_family(
    family: Family, params: Any, n_components: int, columns: Sequence[Any], levels: Mapping[Any, Any]
) -> list[list[str]]:
    """Return the parameters of each column and component, if they are given by column.

    For categories it is the most probable one, with its probability.
    """
    d = len(columns)
    if family.is_coded:
        (chances,) = params.values()
        found = []
        for j, column in enumerate(columns):
            names = levels.get(int(column), range(chances.shape[2]))
            found.append([f"{names[int(part.argmax())]}: {part.max():.2f}" for part in chances[:, j]])
        return found
    by_column = [part for part in params.values() if part.shape[:2] == (n_components, d) and part.ndim == 2]
    return [
        [", ".join(f"{part[m, j]:.4g}" for part in by_column) for m in range(n_components)]
        for j in range(d if by_column else 0)
    ]


def _fitting(width: int, columns: Sequence[Column]) -> int:
    """Return how many columns fit."""
    used = 2
    for count, (head, cells) in enumerate(columns):
        used += max(len(head), *(len(cell) for cell in cells)) + 2
        if used > width:
            return count
    return len(columns)
