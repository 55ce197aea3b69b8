"""The components of a mixture as a table that fits the screen."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swiftem._typing import Array
from swiftem.models.families import Blocks, Family

if TYPE_CHECKING:
    from swiftem.estimators import GaussianMixture, Mixture

__all__ = ["deviations", "numbers", "screen", "show_components"]

PLAIN_WIDTH = 120
"""Width that is aimed at in files and pipes, where lines may be longer."""
LARGEST, SMALLEST = 1e7, 1e-5
"""Numbers beyond are written with an exponent."""


def screen() -> Console:
    """Return standard output; lines are broken to fit a terminal, and nowhere else."""
    console = Console(highlight=False, markup=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, width=100_000)


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


def show_components(console: Console, mixture: GaussianMixture | Mixture, names: Sequence[str]) -> None:
    """Print weights, and means and standard deviations, or the parameters of another family.

    A row for each component where that fits; else one for each column; else as many columns as fit.
    """
    sign = "±" if console.encoding.startswith("utf") else "+-"
    columns = _cells(mixture, sign)
    heads = list(names) if len(names) else [f"column {j}" for j in range(len(columns))]
    heads = heads[: len(columns)]
    weights = [f"{weight:.4f}" if weight >= 5e-5 else f"{weight:.1e}" for weight in mixture.weights_]
    width = console.width if console.is_terminal else PLAIN_WIDTH
    labels = [str(m) for m in range(len(weights))]

    first, sides = [("component", labels), ("weight", weights)], list(zip(heads, columns, strict=True))
    across = _fitting(width, [*first, *sides])
    rows = [("", ["weight", *heads])] + [
        (f"component {m}", [weights[m], *(cells[m] for cells in columns)]) for m in range(len(weights))
    ]
    left_over = ""
    if across == len(first) + len(sides):
        shown = [*first, *sides]
    elif _fitting(width, rows) == len(rows):
        shown = rows
    elif console.is_terminal:
        shown = [*first, *sides][: max(across, 3)]
        more = len(first) + len(sides) - len(shown)
        left_over = f"  ... and {more} more columns: widen the terminal, or send this to a file."
    else:
        shown = [*first, *sides]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head, cells in shown:
        table.add_column(Text(head), justify="left" if cells is rows[0][1] else "right", no_wrap=True)
    for row in zip(*(cells for _, cells in shown), strict=True):
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
    if left_over:
        console.print(left_over)


def _cells(mixture: GaussianMixture | Mixture, sign: str) -> list[list[str]]:
    """Return what there is to say of each column and component."""
    if hasattr(mixture, "means_"):
        means, spreads = np.asarray(mixture.means_, dtype=np.float64), deviations(mixture)
        return [numbers(means[:, j], spreads[:, j], sign) for j in range(means.shape[1])]
    family = mixture.family_
    if not isinstance(family, Blocks):
        return _of_family(family, mixture.params_, mixture.n_components, mixture.n_features_in_)
    found: list[list[str]] = [[""] * mixture.n_components for _ in range(mixture.n_features_in_)]
    for part, columns in zip(family.families, family.columns, strict=True):
        cells = _of_family(part, mixture.params_[part.name], mixture.n_components, len(columns))
        for column, cell in zip(columns, cells, strict=False):
            found[int(column)] = cell
    return found


def _of_family(family: Family, params: Any, n_components: int, d: int) -> list[list[str]]:
    """Return the parameters of each column and component, of those that are by column.

    Of codes it is the likeliest, and its probability.
    """
    if family.is_coded:
        (chances,) = params.values()
        return [[f"{part.argmax()}: {part.max():.2f}" for part in chances[:, j]] for j in range(d)]
    by_column = [part for part in params.values() if part.shape[:2] == (n_components, d) and part.ndim == 2]
    return [
        [", ".join(f"{part[m, j]:.4g}" for part in by_column) for m in range(n_components)]
        for j in range(d if by_column else 0)
    ]


def _fitting(width: int, columns: Sequence[tuple[str, Sequence[str]]]) -> int:
    """Return how many columns fit."""
    used = 2
    for count, (head, cells) in enumerate(columns):
        used += max(len(head), *(len(cell) for cell in cells)) + 2
        if used > width:
            return count
    return len(columns)
