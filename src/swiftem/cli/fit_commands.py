"""Options of the commands of tables: fit, select, predict, score, impute and info."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from swiftem.cli.choices import Covariance, Criterion, check_limit, check_size, read_counts
from swiftem.cli.fit_options import (
    GAUSSIAN,
    CheckpointEveryOption,
    CheckpointOption,
    DeviceMemoryLimitOption,
    DeviceOption,
    FamilyOption,
    MaxPassesOption,
    MemoryLimitOption,
    MethodOption,
    ResumeOption,
    SchedulerOption,
    ScratchOption,
    StartsOption,
    TolOption,
    UpdateOption,
    check_fit,
    is_given,
    missing_components,
    model_file_if_any,
    read_family_option,
    refuse_options_of_a_fit,
    refuse_options_of_gaussians,
    refuse_options_of_one_machine,
    refuse_options_of_rows,
)
from swiftem.cli.out_file import not_the_same, picture_file, table_file
from swiftem.cli.table_options import (
    ColumnsOption,
    DropOption,
    IgnoreMissingOption,
    LabelOption,
    ModelArgument,
    ResponseOption,
    SeedOption,
    SkipMissingOption,
    TableArgument,
    TableChoice,
    TablesArgument,
    WeightsOption,
)

__all__ = ["fit", "impute", "info", "predict", "score", "select"]

ResultOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        callback=table_file,
        help="File for the result: .csv, .tsv, .parquet or .npy.",
        show_default="CSV to standard output",
    ),
]


def _model_file(help: str, shown: str | bool = True) -> Any:
    """Return the option of the file for a model."""
    return typer.Option(
        "--out", "-o", metavar="MODEL", callback=model_file_if_any, help=help, show_default=shown
    )


ModelFileOption = Annotated[
    Path | None,
    _model_file(
        "File for the model; an existing one is replaced. Without it, the model is only shown.",
        "none; with --update the model itself",
    ),
]
BestModelOption = Annotated[Path | None, _model_file("File for the best model; an existing one is replaced.")]


def fit(
    context: typer.Context,
    tables: TablesArgument,
    components: Annotated[
        int | None,
        typer.Option(
            "--components",
            "-m",
            metavar="M",
            min=1,
            help="Number of components.",
            show_default="required unless --update is given",
        ),
    ] = None,
    out: ModelFileOption = None,
    covariance: Annotated[
        Covariance,
        typer.Option(
            metavar="KIND", help="Covariances of Gaussian components: full, tied, diag or spherical."
        ),
    ] = Covariance.full,
    family: FamilyOption = GAUSSIAN,
    response: ResponseOption = None,
    method: MethodOption = "auto",
    columns: ColumnsOption = None,
    drop: DropOption = None,
    label: LabelOption = None,
    weights: WeightsOption = None,
    skip_missing: SkipMissingOption = False,
    ignore_missing: IgnoreMissingOption = False,
    max_passes: MaxPassesOption = 100,
    tol: TolOption = 1e-3,
    starts: StartsOption = 1,
    seed: SeedOption = 0,
    reg_covar: Annotated[
        float,
        typer.Option(
            metavar="X", min=0.0, help="Number that is added to the variances, to keep them positive."
        ),
    ] = 1e-6,
    memory_limit: MemoryLimitOption = None,
    scratch: ScratchOption = None,
    checkpoint: CheckpointOption = None,
    checkpoint_every: CheckpointEveryOption = None,
    resume: ResumeOption = False,
    update: UpdateOption = None,
    scheduler: SchedulerOption = None,
    device: DeviceOption = "cpu",
    device_memory_limit: DeviceMemoryLimitOption = None,
) -> None:
    """Fit a mixture to a table, show it, and write it to a file.

    Ctrl-C ends the fit and keeps the current model.
    """
    not_the_same(out, *tables)
    choice = TableChoice.of(columns, weights, drop, label, skip_missing, ignore_missing, response)
    if update is not None:
        from swiftem.cli.apply_model import update as run_update

        refuse_options_of_a_fit(context)
        run_update(update, tables, choice, update if out is None else out)
        raise typer.Exit
    if components is None:
        raise missing_components()
    check_limit(memory_limit, scratch, choice)
    if device_memory_limit is not None:
        check_size(device_memory_limit, "--device-memory-limit")
    if scheduler is not None:
        refuse_options_of_one_machine(context)
    if response is not None:
        refuse_options_of_rows(context, family)
    refuse_options_of_gaussians(context, family)
    check_fit(checkpoint, checkpoint_every, resume)
    from swiftem.cli.fit import CheckpointOptions, FitRequest
    from swiftem.cli.fit import fit as run_fit
    from swiftem.fit.config import Config

    parameters = {
        "n_components": components,
        "method": method,
        "max_iter": max_passes,
        "tol": tol,
        "n_init": starts,
        "random_state": seed,
        "device": device,
        "missing": "ignore" if ignore_missing else "error",
    }
    if response is not None:
        for name in ("device", "missing"):
            del parameters[name]
        parameters["family"] = family
    elif family == GAUSSIAN:
        parameters |= {"covariance_type": covariance.value, "reg_covar": reg_covar}
    else:
        parameters["family"] = read_family_option(family)
    limits: Config = {
        "memory_limit": memory_limit,
        "scratch": scratch,
        "device_memory_limit": device_memory_limit,
    }
    options: CheckpointOptions | None = None
    if checkpoint is not None:
        options = {"folder": checkpoint, "every": checkpoint_every, "resume": resume}
    raise typer.Exit(run_fit(FitRequest(tables, out, choice, parameters, limits, options, scheduler)))


def select(
    context: typer.Context,
    tables: TablesArgument,
    components: Annotated[
        str,
        typer.Option(
            "--components",
            "-m",
            metavar="A:B",
            help="Numbers of components: a range, both ends included, or a list such as 2,4,8.",
        ),
    ] = "1:10",
    covariance: Annotated[
        list[Covariance] | None,
        typer.Option(
            metavar="KIND",
            help="Covariances of Gaussian components: full, tied, diag or spherical. Can be repeated.",
            show_default="all four",
        ),
    ] = None,
    family: FamilyOption = GAUSSIAN,
    response: ResponseOption = None,
    criterion: Annotated[
        Criterion, typer.Option(metavar="NAME", help="Criterion: bic, aic or icl. Lower is better.")
    ] = Criterion.bic,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    label: LabelOption = None,
    weights: WeightsOption = None,
    skip_missing: SkipMissingOption = False,
    ignore_missing: IgnoreMissingOption = False,
    max_passes: MaxPassesOption = 100,
    tol: TolOption = 1e-3,
    starts: StartsOption = 1,
    seed: SeedOption = 0,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            "-p",
            metavar="FILE",
            callback=picture_file,
            help="File for a plot of the criterion: .png, .svg or .pdf.",
        ),
    ] = None,
    out: BestModelOption = None,
) -> None:
    """Find the number of components: fit several mixtures and compare them by a criterion.

    Ctrl-C ends the command and keeps the fits that are complete.
    """
    not_the_same(out, *tables)
    not_the_same(picture, *tables, option="--picture")
    counts = read_counts(components)
    if response is not None:
        refuse_options_of_rows(context, family)
    refuse_options_of_gaussians(context, family)
    from swiftem.cli.select import SelectRequest
    from swiftem.cli.select import select as run_select

    given = {"max_passes": ("max_iter", max_passes), "tol": ("tol", tol)}
    parameters: dict[str, Any] = {
        **dict(value for option, value in given.items() if is_given(context, option)),
        "n_init": starts,
        "random_state": seed,
        "family": read_family_option(family),
        "missing": "ignore" if ignore_missing else "error",
    }
    if response is not None:
        del parameters["missing"]
    elif family == GAUSSIAN and covariance:
        parameters["covariance_types"] = [kind.value for kind in covariance]
    choice = TableChoice.of(columns, weights, drop, label, skip_missing, ignore_missing, response)
    raise typer.Exit(
        run_select(SelectRequest(tables, choice, counts, criterion.value, parameters, picture, out))
    )


def predict(
    model: ModelArgument,
    table: TableArgument,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each component.")] = False,
    log_likelihood: Annotated[
        bool, typer.Option("--log-likelihood", help="Add the log-likelihood of each row.")
    ] = False,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    skip_missing: SkipMissingOption = False,
    out: ResultOption = None,
) -> None:
    """Assign each row of a table to a component.

    Columns are matched by name if model and table have names, otherwise by position.
    """
    not_the_same(out, model, table)
    from swiftem.cli.apply_model import predict as run_predict

    choice = TableChoice.of(columns, drop=drop, skip_missing=skip_missing)
    run_predict(model, table, choice, proba=proba, log_likelihood=log_likelihood, out=out)


def score(
    model: ModelArgument,
    table: TableArgument,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    label: LabelOption = None,
    weights: WeightsOption = None,
    skip_missing: SkipMissingOption = False,
) -> None:
    """Measure how well a model fits a table: mean log-likelihood, BIC, AIC and ICL.

    Lower values of BIC, AIC and ICL are better.
    """
    from swiftem.cli.apply_model import score as run_score

    run_score(model, table, TableChoice.of(columns, weights, drop, label, skip_missing))


def info(
    model: ModelArgument,
    full: Annotated[
        bool, typer.Option("--all", help="Show all columns and components, whatever the width.")
    ] = False,
) -> None:
    """Show the content of a model file."""
    from swiftem.cli.info import info as run_info

    run_info(model, full)


def impute(
    model: ModelArgument,
    table: TableArgument,
    draw: Annotated[
        bool, typer.Option("--draw", help="Fill in random draws, given the observed cells, instead of means.")
    ] = False,
    seed: SeedOption = 0,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    out: ResultOption = None,
) -> None:
    """Fill in the missing values of a table, by a model of its columns.

    A missing number becomes its mean given the other cells of the row, a missing category its most likely
    level. Other columns are copied. A model of regressions fills in the response.
    """
    not_the_same(out, model, table)
    from swiftem.cli.apply_model import impute as run_impute

    choice = TableChoice.of(columns, drop=drop)
    run_impute(model, table, choice, random_state=seed if draw else None, out=out)
