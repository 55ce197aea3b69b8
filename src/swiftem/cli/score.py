"""``swiftem score``: how well a model fits a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from swiftem.cli.failures import one_sentence, tell
from swiftem.cli.model_file import open_model, rows_for

__all__ = ["score"]


def score(model: Path, table: Path, *, columns: Sequence[str] | None, weights: str | None) -> None:
    """Print the mean log-likelihood and the criteria, a line each."""
    with one_sentence():
        mixture = open_model(model)
        rows = rows_for(mixture, table, columns, weights)
        for note in rows.notes:
            tell(note)
        X, weight = rows.values, rows.weights
        lines = {"rows": f"{len(X)}"}
        if weight is not None:
            lines["sum of weights"] = f"{weight.sum():.10g}"
        lines["mean log-likelihood"] = f"{mixture.score(X, sample_weight=weight):.8g}"
        for name, criterion in (("BIC", mixture.bic), ("AIC", mixture.aic), ("ICL", mixture.icl)):
            lines[name] = f"{criterion(X, sample_weight=weight):.10g}"
        width = max(map(len, lines))
        for name, value in lines.items():
            typer.echo(f"{name:{width}}  {value}")
