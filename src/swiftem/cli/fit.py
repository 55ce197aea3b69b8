"""``swiftem fit``: a mixture fitted to a table and written to a file; ``--update`` continues one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from swiftem.cli import options
from swiftem.cli.console import INTERRUPTED, MOST_ROWS, Console, fitted_with_warnings, refuse
from swiftem.cli.options import DATA, FIT, MODEL, Choice, given, option, read_family_option
from swiftem.cli.out_file import model_file, not_the_same, saved
from swiftem.cli.rows import (
    Rows,
    check_sequences,
    family_of,
    in_sequences,
    is_regression,
    open_model,
    read_rows,
    rows_of_model,
)
from swiftem.cli.score import check_labels, show_cross_table
from swiftem.core.process import clock
from swiftem.data.tables import table_files
from swiftem.fit.checkpoint import checkpoint as checkpoints
from swiftem.fit.config import config_context, get_config
from swiftem.show.numbers import counted, criterion_text, mean_text

NOT_WRITTEN = "not written, as --out names no file"
UPDATES = {"tables", "update", "out", "columns", "weights", "missing"}
"""What --update takes; all else belongs to a new fit."""


def fit(
    context: typer.Context,
    tables: options.Tables,
    columns: options.Columns = None,
    missing: options.Missing = None,
    weights: options.Weights = None,
    label: options.Label = None,
    response: options.Response = None,
    sequence: Annotated[
        str | None,
        option(DATA, "COLUMN", help="Fit a hidden Markov model to sequences, named by this column."),
    ] = None,
    n_components: options.Components = None,
    family: options.Family = None,
    covariance_type: options.Covariance = None,
    reg_covar: Annotated[float | None, option(MODEL, "X")] = None,
    method: options.Method = None,
    max_iter: Annotated[int | None, option(FIT, "N")] = None,
    tol: Annotated[float | None, option(FIT, "X", help="Least gain of the log-likelihood per pass.")] = None,
    random_state: options.Seed = 0,
    device: options.Device = None,
    memory_limit: options.MemoryLimit = None,
    checkpoint: Annotated[Path | None, option(FIT, "DIR", help="Folder for a checkpoint.")] = None,
    resume: Annotated[bool, option(FIT, "", "--resume", help="Resume from --checkpoint.")] = False,
    update: Annotated[
        Path | None, option(FIT, "MODEL", help="Update this model with new rows instead.")
    ] = None,
    out: options.ModelFile = None,
) -> None:
    """Fit a mixture to a table, show it, and write it to a file.

    Ctrl-C ends the fit and keeps the current model.
    """
    not_the_same(out, *tables)
    choice = Choice.of(columns, missing, weights=weights, label=label, response=response)
    if update is not None:
        refuse(context, UPDATES, "the model of --update keeps the one that it was fitted with.")
        _update(update, tables, choice, update if out is None else out)
        return
    if n_components is None:
        raise ValueError("n_components must be given for a new fit; swiftem select compares several.")
    if resume and checkpoint is None:
        raise ValueError("resume must have the folder of --checkpoint.")
    if sequence is not None:
        check_sequences(choice)
        choice = choice if choice.columns is not None else replace(choice, drop=[*choice.drop, sequence])
    console = Console()
    wanted = family_option_of(family, response)
    parameters = given(
        family=wanted,
        covariance_type=covariance_type,
        reg_covar=reg_covar,
        method=method,
        max_iter=max_iter,
        tol=tol,
        device=device,
        missing="ignore" if missing == "ignore" and response is None else None,
    )
    mixture = _estimator(n_components, response, parameters, is_sequential=sequence is not None)
    mixture.set_params(random_state=random_state, verbose=int(console.is_terminal))
    with config_context(memory_limit=memory_limit):
        rows = _read(console, tables, choice, mixture, wanted)
        if sequence is not None:
            rows = in_sequences(rows, tables, sequence)
        (data, keywords), began = rows.for_fit, clock()
        place = nullcontext() if checkpoint is None else checkpoints(checkpoint, resume=resume)
        with place:
            is_interrupted = fitted_with_warnings(lambda: mixture.fit(*data, **keywords))
    mixture.verbose = 0  # the bar was for this terminal, not for whoever loads the model
    after = f"after {counted(mixture.n_iter_, 'pass')} of {mixture.method_} in {clock() - began:.1f} s"
    rows.name(mixture)
    if sequence is not None:
        mixture.sequence_name_ = sequence
    with saved(mixture, out):
        console.say(mixture.summary().head(MOST_ROWS, "column"))
        console.say()
        if is_interrupted:
            written = f"the model so far is in {out}" if out else NOT_WRITTEN
            more = "; --resume continues the fit" if checkpoint is not None else ""
            console.say(f"Interrupted {after}: {written}{more}.")
            raise typer.Exit(INTERRUPTED)
        if label is not None:
            show_cross_table(console, mixture, rows, label)
            console.say()
        _show_end(console, mixture, rows, after)
        console.say(f"Model: {out or NOT_WRITTEN}{'' if out else '.'}")


def family_option_of(family: str | None, response: str | None) -> Any:
    """Return a family as given; None for :class:`swiftem.GaussianMixture`."""
    if response is not None:
        return family or "gaussian"
    return None if family in (None, "gaussian") else read_family_option(str(family))


def _estimator(
    n_components: int, response: str | None, parameters: dict[str, Any], *, is_sequential: bool
) -> Any:
    """Return the unfitted estimator, which has checked its parameters."""
    from swiftem.estimators import GaussianMixture, HiddenMarkovModel, Mixture, RegressionMixture

    made: Any = Mixture if "family" in parameters else GaussianMixture
    if response is not None or is_sequential:
        made = RegressionMixture if response is not None else HiddenMarkovModel
    for name in parameters:
        if name not in made().get_params():
            raise ValueError(f"{name} must be left out here: {made.__name__} has no such parameter.")
    mixture: Any = made(n_components, **parameters)
    mixture._validate_params()
    return mixture


def _read(console: Console, tables: Sequence[Path], choice: Choice, mixture: Any, family: Any) -> Rows:
    """Return the rows of a fit, and say what is fitted; the estimator gets its family's columns."""
    with console.doing(f"Reading {tables[0]}"):
        of_rows = None if choice.response is not None else family
        rows = read_rows(tables, choice, of_rows, get_config()["memory_limit"])
    check_labels(rows.labels, choice.label)
    rows.check_enough(mixture.n_components)
    said = f"{mixture.get_params().get('covariance_type')} covariance"
    if family is not None:
        mixture.family, said = family_of(family, rows)
        said = f"family {said}" if isinstance(family, str) and family != "auto" else said
    if choice.response is not None:
        said = f"regressions of {rows.response or 'the last column'}, {said}"
    console.say(f"{rows.said}; {counted(mixture.n_components, 'component')}, {said}.")
    return rows


def _show_end(console: Console, mixture: Any, rows: Rows, after: str) -> None:
    """Print how a fit ended, its log-likelihood and BIC."""
    from swiftem.mixture.estimator import criteria

    distance, mean = mixture.stationarity_, mixture.log_likelihood_
    ended = (
        f"Converged {after}" if mixture.converged_ else f"Not converged {after}: raise --max-iter or --tol"
    )
    near = "" if distance != distance else f"; distance from a stationary point {distance:.1e}"
    bic = criteria(rows.total * mean, rows.total, mixture.n_parameters_)["bic"]
    console.say(f"{ended}{near}.")
    console.say(f"Mean log-likelihood {mean_text(mean)}, BIC {criterion_text(bic)}.")


def _update(model: Path, tables: Sequence[Path], choice: Choice, out: Path) -> None:
    """Update the model with each table in turn, and write it; the old file is kept until then."""
    console = Console()
    mixture = open_model(model, instead="--update takes a model, written by swiftem fit")
    if is_regression(mixture) and mixture.family == "poisson":
        raise ValueError(f"update must have another model than {model}, of Poisson responses: fit all rows.")
    model_file(out)
    began, n = clock(), 0
    for table in (file for path in tables for file in table_files(path)):
        rows = rows_of_model(mixture, table, choice)
        mixture.partial_fit(*rows.data, sample_weight=rows.weights)
        n += len(rows.X)
        console.say(
            f"{table}: {counted(len(rows.X), 'row')}, mean log-likelihood "
            f"{mean_text(mixture.lower_bound_)} before the update."
        )
    with saved(mixture, out):
        console.say(mixture.summary().head(MOST_ROWS, "column"))
        console.say()
        console.say(f"Updated with {counted(n, 'row')} in {clock() - began:.1f} s.")
        console.say(f"Model: {out}")
