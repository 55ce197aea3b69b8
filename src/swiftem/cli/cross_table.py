"""Cross table of components and known groups: the number of rows for each pair."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from swiftem.cli.components import show_table
from swiftem.cli.screen import Console
from swiftem.core.types import Array

__all__ = ["check_labels", "show_cross_table"]

MOST_LABELS = 100
"""A column of more different values is no column of groups."""
MISSING = "(missing)"


def check_labels(labels: NDArray[Any] | None, column: str | None) -> None:
    """Raise BadParameter if almost every row of the label column has its own value."""
    found = 0 if labels is None else len(set(labels.tolist()))
    if found > MOST_LABELS:
        raise typer.BadParameter(
            f"the column must have at most {MOST_LABELS} different values, got {found:,} in {column!r}: "
            "name a column of groups, or use --drop to leave it out.",
            param_hint="'--label'",
        )


def show_cross_table(
    console: Console,
    found: NDArray[Any],
    labels: NDArray[Any],
    n_components: int,
    name: str,
    weights: Array | None,
) -> None:
    """Print the number or weight of rows by component and label, and the agreement of both groupings.

    Parameters
    ----------
    console : Console
        Where to print.
    found : ndarray of int, shape (n,)
        The most probable component of each row.
    labels : ndarray of str, shape (n,)
        The labels; an empty text is a missing label.
    n_components : int
        M.
    name : str
        The column of labels, by name or number.
    weights : ndarray, shape (n,), or None
        Weights of the rows.
    """
    name = f"column {name}" if name.isdigit() else name
    heads = _sorted(set(labels.tolist()))
    place = {head: number for number, head in enumerate(heads)}
    cell = found * len(heads) + np.array([place[label] for label in labels.tolist()])
    counts = np.bincount(cell, weights, minlength=n_components * len(heads)).reshape(n_components, -1)
    console.print(
        f"{'Rows' if weights is None else 'Weights of rows'} by component and {name}:", soft_wrap=True
    )
    columns = [("component", [str(m) for m in range(n_components)])]
    columns += [(head or MISSING, [_shown(count) for count in counts[:, j]]) for j, head in enumerate(heads)]
    show_table(console, columns, fixed=1, what="label")
    known = labels != ""
    if weights is None and known.any():
        from sklearn.metrics import adjusted_rand_score

        agreement = adjusted_rand_score(labels[known].astype(str), found[known])
        console.print(
            f"Adjusted Rand index {agreement:.4f} (1: components and {name} are the same groups, 0: as by "
            "chance).",
            soft_wrap=True,
        )


def _sorted(labels: set[str]) -> list[str]:
    """Return the labels sorted as numbers if all are numbers, otherwise as text; missing ones are last."""
    known: Sequence[str] = sorted(labels - {""})
    with suppress(ValueError):
        known = sorted(known, key=float)
    return [*known, *(labels & {""})]


def _shown(count: float) -> str:
    return f"{count:,.0f}" if count == int(count) else f"{count:,.6g}"
