"""``swiftem predict``, ``score``, ``impute`` and ``fit --update``: a saved mixture applied to tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from swiftem.cli.components import screen, show_components
from swiftem.cli.cross_table import check_labels, show_cross_table
from swiftem.cli.failures import one_sentence, tell, writing
from swiftem.cli.model_file import is_regression, names_of, open_model, responses_of, rows_for
from swiftem.cli.out_file import model_file, write_csv, write_table
from swiftem.cli.screen import VisibleOutput
from swiftem.cli.table_options import TableChoice
from swiftem.cli.table_rows import saved
from swiftem.core.checks import shortened
from swiftem.core.process import clock
from swiftem.data.columns import as_label
from swiftem.data.tables import read_cells, table_files
from swiftem.show.numbers import criterion_text, mean_text

__all__ = ["impute", "predict", "score", "update"]


def predict(
    model: Path, table: Path, choice: TableChoice, *, proba: bool, log_likelihood: bool, out: Path | None
) -> None:
    """Write the label, log-likelihood and probabilities of each row to a file or to standard output.

    If rows may be skipped, the first column has the row numbers.
    """
    with one_sentence():
        mixture = open_model(model)
        rows = rows_for(mixture, table, choice, needs_response=log_likelihood or proba)
        data = responses_of(mixture, rows)
        found: dict[str, NDArray[Any]] = {}
        if choice.skip_missing:
            found["row"] = np.arange(len(rows.values)) if rows.rows is None else rows.rows
        regresses = is_regression(mixture)
        if regresses:
            found["prediction"] = mixture.predict(data[0])
        if not regresses or len(data) > 1:
            found["label"] = mixture.predict_class(*data) if regresses else mixture.predict(*data)
        if log_likelihood:
            found["log_likelihood"] = (mixture.log_likelihoods if regresses else mixture.score_samples)(*data)
        if proba:
            shares = (mixture.responsibilities if regresses else mixture.predict_proba)(*data)
            found |= {f"probability_{m}": shares[:, m] for m in range(shares.shape[1])}
        if out is None:
            write_csv(VisibleOutput(), found)
            return
        with writing(out):
            write_table(out, found)
        if "label" not in found:
            tell(f"{out}: {len(rows.values):,} rows, without their response: predictions alone.")
            return
        counts = np.bincount(found["label"], minlength=mixture.n_components)
        each = shortened([str(count) for count in counts])
        tell(f"{out}: {len(rows.values):,} rows, by component {each}.")


def impute(
    model: Path, table: Path, choice: TableChoice, *, random_state: int | None, out: Path | None
) -> None:
    """Write the table with missing cells of the model's columns filled in: by means, or by draws."""
    with one_sentence():
        mixture = open_model(model)
        if not is_regression(mixture):
            mixture.set_params(missing="ignore")
        names = names_of(mixture)
        response = getattr(mixture, "response_name_", None)
        rows = rows_for(mixture, table, choice)
        data = responses_of(mixture, rows)
        filled = mixture.impute(*data, random_state=random_state)
        if is_regression(mixture):
            filled, names = np.column_stack([data[0], filled]), (*names, str(response)) if names else ()
        heads = names or tuple(f"column {j}" for j in range(filled.shape[1]))
        columns = {head: _plain(filled[:, j], j in rows.texts) for j, head in enumerate(heads)}
        is_array = out is not None and out.suffix.lower() == ".npy"
        found = columns if is_array or choice.columns is not None else read_cells(table) | columns
        if out is None:
            write_csv(VisibleOutput(), found)
            return
        with writing(out):
            write_table(out, found)
        count = int(np.isnan(rows.values).sum())
        tell(f"{out}: {len(rows.values):,} rows, {count:,} missing cells filled in.")


def _plain(cells: NDArray[Any], is_text: bool) -> NDArray[Any]:
    """Return a column as text, as integers if all numbers are whole, or as numbers."""
    if is_text:
        return np.array([as_label(cell) for cell in cells.tolist()], dtype=object)
    numbers = cells.astype(np.float64)
    is_whole = bool((numbers == np.floor(numbers)).all() and (np.abs(numbers) < 2**53).all())
    return numbers.astype(np.int64) if is_whole else numbers


def score(model: Path, table: Path, choice: TableChoice) -> None:
    """Print the mean log-likelihood and the criteria, one per line; with labels, also a cross table."""
    with one_sentence():
        mixture = open_model(model)
        rows = rows_for(mixture, table, choice)
        check_labels(rows.labels, choice.label)
        data, weight = responses_of(mixture, rows), rows.weights
        lines = {"rows": f"{len(rows.values)}"}
        if weight is not None:
            lines["sum of weights"] = f"{weight.sum():.10g}"
        lines["mean log-likelihood"] = mean_text(mixture.score(*data, sample_weight=weight))
        for name, criterion in (("BIC", mixture.bic), ("AIC", mixture.aic), ("ICL", mixture.icl)):
            lines[name] = criterion_text(criterion(*data, sample_weight=weight))
        width = max(map(len, lines))
        for name, value in lines.items():
            typer.echo(f"{name:{width}}  {value}")
        if rows.labels is not None and choice.label is not None:
            typer.echo()
            labels = mixture.predict_class(*data) if is_regression(mixture) else mixture.predict(*data)
            show_cross_table(screen(), labels, rows.labels, mixture.n_components, choice.label, weight)


def update(model: Path, tables: Sequence[Path], choice: TableChoice, out: Path) -> None:
    """Update the model with each table in turn, and write it; the old file is kept until then."""
    with one_sentence():
        console = screen()
        mixture = open_model(model, instead="--update takes a model, written by swiftem fit")
        if is_regression(mixture) and mixture.family == "poisson":
            raise ValueError(
                f"--update needs another model than {model}, of Poisson responses: fit all rows."
            )
        model_file(out)
        names, began, n = names_of(mixture), clock(), 0
        for table in (file for path in tables for file in table_files(path)):
            if names:
                mixture.feature_names_in_ = np.array(names, dtype=object)
            rows = rows_for(mixture, table, choice)
            mixture.partial_fit(*responses_of(mixture, rows), sample_weight=rows.weights)
            n += len(rows.values)
            console.print(
                f"{table}: {len(rows.values):,} rows, mean log-likelihood "
                f"{mean_text(mixture.lower_bound_)} before the update.",
                soft_wrap=True,
            )
        with saved(mixture, names, out):
            show_components(console, mixture, names)
            console.print(f"Updated with {n:,} rows in {clock() - began:.1f} s.", soft_wrap=True)
            console.print(f"Model: {out}", soft_wrap=True)
