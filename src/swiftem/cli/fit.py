"""``swiftem fit``: fits a mixture to a table, with a progress bar, and writes the model to a file."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from rich.text import Text

from swiftem.cli.components import screen, show_components
from swiftem.cli.cross_table import show_cross_table
from swiftem.cli.failures import INTERRUPTED, in_options, one_sentence, tell
from swiftem.cli.model_file import KINDS
from swiftem.cli.screen import Console
from swiftem.cli.table_options import TableChoice
from swiftem.cli.table_rows import (
    Rows,
    check_rows,
    check_text,
    chosen_family,
    name_of,
    numbered,
    on_cluster,
    read_rows,
    read_units,
    said_of,
    saved,
)
from swiftem.core.checks import shortened
from swiftem.core.process import clock
from swiftem.fit.checkpoint import checkpoint
from swiftem.fit.config import Config, config_context
from swiftem.show.numbers import criterion_text, mean_text, passes_text

__all__ = ["FitRequest", "fit"]

NOT_KEPT = "not written, as --out names no file"


class CheckpointOptions(TypedDict):
    """Arguments of :func:`swiftem.checkpoint`."""

    folder: Path
    every: int | None
    resume: bool


@dataclass(frozen=True)
class FitRequest:
    """Arguments of the command: files, columns, parameters of the estimator, limits; ``out`` may be None."""

    tables: Sequence[Path]
    out: Path | None
    choice: TableChoice
    parameters: dict[str, Any]
    limits: Config
    checkpoint: CheckpointOptions | None = None
    scheduler: str | None = None


def fit(request: FitRequest) -> int:
    """Read, fit, write the model, show it, and return the exit code: 0, or 130 after Ctrl-C."""
    with one_sentence(), on_cluster(request.scheduler) as client:
        console = screen()
        reading = Text(f"Reading {name_of(request.tables)}")  # a name may have what looks like markup
        with console.status(reading) if console.is_terminal else nullcontext():
            family = request.parameters.get("family")
            limit = request.limits.get("memory_limit")
            assert not isinstance(limit, int)
            if client is None:
                by_text = None if request.choice.response is not None else family
                table = read_rows(request.tables, request.choice, limit, by_text)
            else:
                table = read_units(request.tables, request.choice, client)
        for note in table.notes:
            tell(note)
        check_rows(request.tables, request.choice, table, request.parameters["n_components"])
        if family is not None and table.y is None:
            chosen = request.parameters | {"family": chosen_family(family, table)}
            request = replace(request, parameters=chosen)
        console.print(_task(request, table), soft_wrap=True)
        mixture = _mixture(request, table, verbose=console.is_terminal)
        began = clock()
        with config_context(**request.limits):
            interrupted = _fit(mixture, table, request.checkpoint)
        seconds = clock() - began
        if not hasattr(mixture, "weights_"):
            tell("Interrupted before there was a model; nothing was written.")
            return INTERRUPTED
        mixture.verbose = 0  # the bar was for this terminal, not for whoever loads the model
        try:
            measured = None if interrupted else _measured(mixture, table)
        except KeyboardInterrupt:
            measured, interrupted = None, True
        if table.y is not None:
            mixture.response_name_ = table.response
        mixture._layout = table.layout
        with saved(mixture, table.names, request.out):
            show_components(console, mixture, table.names)
            if table.labels is not None and not interrupted:
                _compare(console, request, mixture, table)
            for line in _summary(request, mixture, measured, seconds):
                console.print(line, soft_wrap=True)
    return INTERRUPTED if interrupted else 0


def _task(request: FitRequest, table: Rows) -> str:
    given = request.parameters
    family = given.get("family")
    kind = f"family {family}" if family else f"{KINDS[given.get('covariance_type', 'full')]} covariance"
    if table.y is not None:
        kind = f"regressions of {table.response or 'the last column'}, family {family}"
    if isinstance(family, dict):
        kind = "; ".join(f"{name} for {shortened(columns)}" for name, columns in family.items())
    what = "1 component" if given["n_components"] == 1 else f"{given['n_components']} components"
    return f"{said_of(request.tables, table)}; {what}, {kind}."


def _mixture(request: FitRequest, table: Rows, verbose: bool) -> Any:
    from swiftem.estimators import GaussianMixture, Mixture, RegressionMixture

    parameters = request.parameters
    if table.y is not None:
        return RegressionMixture(**parameters, verbose=int(verbose))
    if isinstance(parameters.get("family"), dict):
        parameters = parameters | {"family": numbered(parameters["family"], table)}
        check_text(parameters["family"], table, table.names)
    made = Mixture if "family" in parameters else GaussianMixture
    return made(**parameters, verbose=int(verbose))


def _fit(mixture: Any, table: Rows, options: CheckpointOptions | None) -> bool:
    """Fit, print the warnings of the estimator, and return whether Ctrl-C ended the fit."""
    from sklearn.exceptions import ConvergenceWarning

    from swiftem.fit.interrupted import InterruptedWarning

    interrupted = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with nullcontext() if options is None else checkpoint(**options):
                mixture.fit(*table.data, sample_weight=table.weights)
        except KeyboardInterrupt:  # outside of the passes, which end in order
            interrupted = True
        except OSError as error:
            raise OSError(in_options(error.strerror or str(error))) from None
        except ValueError as error:
            raise ValueError(in_options(str(error))) from None
    told = set()
    for warning in caught:
        sentence = str(warning.message)
        is_of_fit = issubclass(warning.category, ConvergenceWarning)
        if issubclass(warning.category, InterruptedWarning):
            interrupted = True
        elif is_of_fit and "did not converge" in sentence:
            pass  # it is in the summary
        elif issubclass(warning.category, UserWarning) and sentence not in told:
            told.add(sentence)
            tell(in_options(_own_advice(sentence, warning.category)))
    return interrupted


def _own_advice(sentence: str, category: type[Warning]) -> str:
    """Return the warning of the estimator with the advice that the command has options for."""
    from swiftem.estimators import SpuriousComponentWarning

    if not issubclass(category, SpuriousComponentWarning):
        return sentence
    what, use, _ = sentence.replace("reg_covar", "--reg-covar").rpartition(". Use ")
    return f"{what}{use}a larger --reg-covar, fewer --components, fewer --columns, or another --family."


def _measured(mixture: Any, table: Rows) -> tuple[float, float]:
    """Return the mean log-likelihood, which is also saved in the model file, and BIC."""
    mixture.log_likelihood_ = mean = float(mixture.score(*table.data, sample_weight=table.weights))
    return mean, float(mixture.bic(*table.data, sample_weight=table.weights))


def _compare(console: Console, request: FitRequest, mixture: Any, table: Rows) -> None:
    """Show the cross table of components and labels."""
    assert table.labels is not None
    assert request.choice.label is not None
    found = mixture.predict(table.X) if table.y is None else mixture.predict_class(*table.data)
    show_cross_table(console, found, table.labels, mixture.n_components, request.choice.label, table.weights)
    console.print()


def _summary(
    request: FitRequest,
    mixture: Any,
    measured: tuple[float, float] | None,
    seconds: float,
) -> list[str]:
    after = f"after {passes_text(mixture)} of {mixture.method_} in {seconds:.1f} s"
    if measured is None:
        resume = "" if request.checkpoint is None else "; --resume continues the fit"
        kept = NOT_KEPT if request.out is None else f"the model so far is in {request.out}{resume}"
        return [f"Interrupted {after}: {kept}."]
    if mixture.converged_:
        ended = f"Converged {after}"
    else:
        ended = f"Not converged {after}: raise --max-passes or --tol"
    distance = mixture.stationarity_
    lines = [
        f"{ended}." if distance != distance else f"{ended}; distance from a stationary point {distance:.1e}."
    ]
    mean, bic = measured
    lines.append(f"Mean log-likelihood {mean_text(mean)}, BIC {criterion_text(bic)}.")
    lines.append(f"Model: {request.out}" if request.out else f"Model: {NOT_KEPT}.")
    return lines
