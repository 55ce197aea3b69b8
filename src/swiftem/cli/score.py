"""``swiftem score``: how well a model fits a table."""

from __future__ import annotations

import typer

from swiftem.cli import options
from swiftem.cli.cross_table import check_labels, show_cross_table
from swiftem.cli.failures import one_sentence
from swiftem.cli.model_rows import open_model, rows_of_model
from swiftem.cli.options import Choice
from swiftem.cli.screen import Console
from swiftem.show.numbers import criterion_text, mean_text


def score(
    context: typer.Context,
    model: options.Model,
    table: options.Table,
    label: options.Label = None,
    weights: options.Weights = None,
    missing: options.Skip = None,
) -> None:
    """Measure how well a model fits a table: mean log-likelihood, BIC, AIC and ICL.

    Lower values of BIC, AIC and ICL are better.
    """
    with one_sentence(context):
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
