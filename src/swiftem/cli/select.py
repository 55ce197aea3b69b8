"""``swiftem select``: mixtures of several sizes and kinds, compared by a criterion."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from swiftem.cli import options
from swiftem.cli.console import INTERRUPTED, MOST_ROWS, Console
from swiftem.cli.fit import family_option_of
from swiftem.cli.options import FIT, MODEL, Choice, given, option, read_counts
from swiftem.cli.out_file import not_the_same, saved
from swiftem.cli.rows import family_of, read_rows
from swiftem.show.numbers import counted

RANGE = "A range, or a list such as 2,4,8."
KINDS = "Kind of the covariances; can be repeated."


def select(
    tables: options.Tables,
    columns: options.Columns = None,
    missing: options.Missing = None,
    weights: options.Weights = None,
    response: options.Response = None,
    n_components: Annotated[str, option(MODEL, "A:B", "--components", "-k", help=RANGE)] = "1:10",
    family: options.Family = None,
    covariance_types: Annotated[
        list[str] | None, option(MODEL, "KIND", "--covariance-type", help=KINDS, show_default="all four")
    ] = None,
    criterion: Annotated[str, option(FIT, "bic|aic|icl")] = "bic",
    random_state: options.Seed = 0,
    out: options.ModelFile = None,
) -> None:
    """Find the number of components: fit several mixtures and compare them by a criterion.

    Ctrl-C ends the command and keeps the fits that are complete.
    """
    from sklearn.exceptions import ConvergenceWarning

    from swiftem import select as run_select

    not_the_same(out, *tables)
    counts = read_counts(n_components)
    wanted = family_option_of(family, response)
    choice = Choice.of(columns, missing, weights=weights, response=response)
    parameters = given(
        covariance_types=covariance_types or None,
        missing="ignore" if missing == "ignore" and response is None else None,
    )
    console = Console()
    with console.doing(f"Reading {tables[0]}"):
        rows = read_rows(tables, choice, None if response is not None else wanted, at_once=True)
    rows.check_enough(max(counts))
    if wanted is not None:
        parameters["family"] = family_of(wanted, rows)[0]
    many = f"{counts[0]} to {counts[-1]} components"
    console.say(f"{rows.said}; {many if len(counts) > 1 else counted(counts[0], 'component')}.")
    kinds = 1 if wanted is not None else len(covariance_types or range(4))
    with warnings.catch_warnings(), console.counting("Fitting", len(counts) * kinds) as step:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        found = run_select(
            rows.X,
            counts,
            criterion=criterion,
            sample_weight=rows.weights,
            y=rows.y,
            random_state=random_state,
            verbose=step,
            **parameters,
        )
    rows.name(found.best)
    with saved(found.best, out):
        console.say(found.shown)
        console.say()
        console.say(found.best.summary().head(MOST_ROWS, "column"))
        if found.interrupted:
            console.say()
            console.say(f"Interrupted after {counted(len(found.table), 'fit')}.")
        if not found.ranking[0].converged:
            console.say("The best fit has not converged: fit it with a larger --max-iter.")
        if out is not None:
            console.say()
            console.say(f"Model: {out}")
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)
