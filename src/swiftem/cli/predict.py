"""``swiftem predict``: the component of each row of a table."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from swiftem.cli import options
from swiftem.cli.console import tell
from swiftem.cli.options import OUTPUT, Choice, option
from swiftem.cli.out_file import not_the_same, write_result
from swiftem.cli.rows import is_regression, open_model, rows_of_model
from swiftem.core.checks import shortened
from swiftem.show.numbers import counted

PROBA = "Add the log-likelihood of each row and the probability of each component."


def predict(
    model: options.Model,
    table: options.Table,
    missing: options.Skip = None,
    proba: Annotated[bool, option(OUTPUT, "", "--proba", help=PROBA)] = False,
    out: options.Result = None,
) -> None:
    """Assign each row of a table to a component.

    Columns are matched by name if model and table have names, otherwise by position.

    If rows are skipped, the first column of the result has the row numbers.
    """
    not_the_same(out, model, table)
    choice = Choice.of(missing=missing)
    mixture = open_model(model)
    rows = rows_of_model(mixture, table, choice, needs_response=proba)
    data, regresses = rows.data, is_regression(mixture)
    columns: dict[str, NDArray[Any]] = {}
    if choice.skips:
        columns["row"] = np.arange(len(rows.X)) if rows.index is None else rows.index
    if regresses:
        columns["prediction"] = mixture.predict(data[0])
    if not regresses or len(data) > 1:
        columns["label"] = mixture.predict_class(*data) if regresses else mixture.predict(*data)
    if proba:
        columns["log_likelihood"] = (mixture.log_likelihoods if regresses else mixture.score_samples)(*data)
        shares = mixture.predict_proba(*data)
        columns |= {f"probability_{m}": shares[:, m] for m in range(shares.shape[1])}
    write_result(out, columns)
    if out is None:
        return
    what = "without their response: predictions alone"
    if "label" in columns:
        counts = np.bincount(columns["label"], minlength=mixture.n_components)
        what = f"by component {shortened([str(count) for count in counts])}"
    tell(f"{out}: {counted(len(rows.X), 'row')}, {what}.")
