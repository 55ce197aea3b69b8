"""Components beside known groups: the number of rows for each pair."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from swiftem.cli.model_rows import is_regression
from swiftem.cli.rows import Rows
from swiftem.cli.screen import Console
from swiftem.show.table import Table

MOST_LABELS = 100
"""A column of more different values is no column of groups."""


def check_labels(labels: NDArray[Any] | None, column: str | None) -> None:
    """Raise BadParameter if almost every row of the label column has its own value."""
    found = 0 if labels is None else len(set(labels.tolist()))
    if found > MOST_LABELS:
        raise typer.BadParameter(
            f"the column must have at most {MOST_LABELS} different values, got {found:,} in {column!r}: "
            "name a column of groups.",
            param_hint="'--label'",
        )


def show_cross_table(console: Console, mixture: Any, rows: Rows, label: str) -> None:
    """Print the number or weight of rows by component and label, and the agreement of both groupings."""
    assert rows.labels is not None
    found = (mixture.predict_class if is_regression(mixture) else mixture.predict)(*rows.data)
    name = f"column {label}" if label.isdigit() else label
    groups = sorted({str(group) for group in rows.labels.tolist()} - {""})
    with suppress(ValueError):
        groups.sort(key=float)
    groups += [""] * ("" in rows.labels)
    weight = np.ones(len(found), dtype=int) if rows.weights is None else rows.weights
    cells = [
        [m, *(weight[(found == m) & (rows.labels == group)].sum() for group in groups)]
        for m in range(mixture.n_components)
    ]
    what = "Rows" if rows.weights is None else "Weights of rows"
    heads = ["component", *(group or "(missing)" for group in groups)]
    known = rows.labels != ""
    notes = []
    if rows.weights is None and known.any():
        from sklearn.metrics import adjusted_rand_score

        agreement = adjusted_rand_score(rows.labels[known].astype(str), found[known])
        notes = [
            f"Adjusted Rand index {agreement:.4f} (1: components and {name} are the same groups, 0: as by "
            "chance)."
        ]
    formats = dict.fromkeys(heads, lambda count: f"{count:,.6g}")
    console.say(Table(f"{what} by component and {name}:", heads, cells, notes, formats=formats))
