"""``swiftem score``: how well a model fits a table; components beside known groups."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from swiftem.cli import options
from swiftem.cli.console import Console
from swiftem.cli.options import Choice
from swiftem.cli.rows import Rows, is_regression, open_model, rows_of_model
from swiftem.show.numbers import criterion_text, mean_text
from swiftem.show.table import Table

MOST_LABELS = 100
"""A column of more different values is no column of groups."""


def score(
    model: options.Model,
    table: options.Table,
    label: options.Label = None,
    weights: options.Weights = None,
    missing: options.Skip = None,
) -> None:
    """Measure how well a model fits a table: mean log-likelihood, BIC, AIC and ICL.

    Lower values of BIC, AIC and ICL are better.
    """
    console, mixture = Console(), open_model(model)
    rows = rows_of_model(mixture, table, Choice.of(missing=missing, weights=weights, label=label))
    check_labels(rows.labels, label)
    weight = rows.weights
    lines = {"rows": str(len(rows.X))}
    if weight is not None:
        lines["sum of weights"] = f"{weight.sum():.10g}"
    lines["mean log-likelihood"] = mean_text(mixture.score(*rows.data, sample_weight=weight))
    for name in ("bic", "aic", "icl"):
        value = getattr(mixture, name)(*rows.data, sample_weight=weight)
        lines[name.upper()] = criterion_text(value)
    console.say_facts(lines)
    if rows.labels is not None and label is not None:
        console.say()
        show_cross_table(console, mixture, rows, label)


def check_labels(labels: NDArray[Any] | None, column: object) -> None:
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
