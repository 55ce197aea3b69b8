"""``swiftem predict``, ``score`` and ``fit --update``: a saved mixture applied to tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from swiftem._clock import clock
from swiftem.cli.components import criterion_text, mean_text, screen, show_components
from swiftem.cli.cross_table import check_labels, show_cross_table
from swiftem.cli.failures import one_sentence, tell, writing
from swiftem.cli.model_file import names_of, open_model, rows_for
from swiftem.cli.out_file import model_file, write_csv, write_table
from swiftem.cli.table_options import TableChoice
from swiftem.data.rows.table_columns import shortened

__all__ = ["predict", "score", "update"]


def predict(
    model: Path, table: Path, choice: TableChoice, *, proba: bool, log_likelihood: bool, out: Path | None
) -> None:
    """Write the label, log-likelihood and probabilities of each row to a file or to standard output.

    If rows may be skipped, the first column has the row numbers.
    """
    with one_sentence():
        mixture = open_model(model)
        rows = rows_for(mixture, table, choice)
        found: dict[str, NDArray[Any]] = {}
        if choice.skip_missing:
            found["row"] = np.arange(len(rows.values)) if rows.rows is None else rows.rows
        found["label"] = mixture.predict(rows.values)
        if log_likelihood:
            found["log_likelihood"] = mixture.score_samples(rows.values)
        if proba:
            shares = mixture.predict_proba(rows.values)
            found |= {f"probability_{m}": shares[:, m] for m in range(shares.shape[1])}
        if out is None:
            write_csv(sys.stdout, found)
            return
        with writing(out):
            write_table(out.resolve(), found)
        counts = np.bincount(found["label"], minlength=mixture.n_components)
        each = shortened([str(count) for count in counts])
        tell(f"{out}: {len(rows.values):,} rows, by component {each}.")


def score(model: Path, table: Path, choice: TableChoice) -> None:
    """Print the mean log-likelihood and the criteria, one per line; with labels, also a cross table."""
    with one_sentence():
        mixture = open_model(model)
        rows = rows_for(mixture, table, choice)
        check_labels(rows.labels, choice.label)
        X, weight = rows.values, rows.weights
        lines = {"rows": f"{len(X)}"}
        if weight is not None:
            lines["sum of weights"] = f"{weight.sum():.10g}"
        lines["mean log-likelihood"] = mean_text(mixture.score(X, sample_weight=weight))
        for name, criterion in (("BIC", mixture.bic), ("AIC", mixture.aic), ("ICL", mixture.icl)):
            lines[name] = criterion_text(criterion(X, sample_weight=weight))
        width = max(map(len, lines))
        for name, value in lines.items():
            typer.echo(f"{name:{width}}  {value}")
        if rows.labels is not None and choice.label is not None:
            typer.echo()
            show_cross_table(
                screen(), mixture.predict(X), rows.labels, mixture.n_components, choice.label, weight
            )


def update(model: Path, tables: Sequence[Path], choice: TableChoice, out: Path) -> None:
    """Update the model with each table in turn, and write it; the old file is kept until then."""
    with one_sentence():
        console = screen()
        mixture = open_model(model, instead="--update takes a model, written by swiftem fit")
        model_file(out)
        names, began, n = names_of(mixture), clock(), 0
        for table in tables:
            if names:
                mixture.feature_names_in_ = np.array(names, dtype=object)
            rows = rows_for(mixture, table, choice)
            mixture.partial_fit(rows.values, sample_weight=rows.weights)
            n += len(rows.values)
            console.print(
                f"{table}: {len(rows.values):,} rows, mean log-likelihood "
                f"{mean_text(mixture.lower_bound_)} before the update.",
                soft_wrap=True,
            )
        if names:
            mixture.feature_names_in_ = np.array(names, dtype=object)
        with writing(out):
            mixture.save(out.resolve())
        show_components(console, mixture, names)
        console.print(f"Updated with {n:,} rows in {clock() - began:.1f} s.", soft_wrap=True)
        console.print(f"Model: {out}", soft_wrap=True)
