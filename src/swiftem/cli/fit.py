"""``swiftem fit``: a mixture to a table, with a progress bar, and the model in a file."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from swiftem._clock import clock
from swiftem._typing import Array
from swiftem.cli.components import screen, show_components
from swiftem.cli.failures import INTERRUPTED, one_sentence, tell, writing
from swiftem.cli.model_file import KINDS
from swiftem.data.rows.open_source import open_source
from swiftem.data.rows.table_columns import shortened
from swiftem.data.rows.tables import read_table

if TYPE_CHECKING:
    from swiftem.estimators import GaussianMixture, Mixture

__all__ = ["FitRequest", "fit"]


@dataclass(frozen=True)
class FitRequest:
    """What was asked for: files and columns, and the parameters of the estimator."""

    tables: Sequence[Path]
    out: Path
    columns: Sequence[str] | None
    weights: str | None
    parameters: dict[str, Any]

    @property
    def table(self) -> str:
        """What the data are called in sentences."""
        more = len(self.tables) - 1
        return f"{self.tables[0]}" + (f" and {more} more" if more else "")


@dataclass(frozen=True)
class Rows:
    """What is fitted: rows as the estimator takes them, and what is known of them."""

    X: Any
    weights: Array | None
    names: tuple[str, ...]
    notes: tuple[str, ...]
    n: int
    d: int


def _read(request: FitRequest) -> Rows:
    """Read one table; with a limit to memory, or of several, read what is needed when it is."""
    if (
        request.parameters["memory_limit"] is None
        and len(request.tables) == 1
        and not request.tables[0].is_dir()
    ):
        table = read_table(request.tables[0], request.columns, request.weights)
        n = len(table.values) if table.weights is None else int(np.count_nonzero(table.weights))
        return Rows(table.values, table.weights, table.names, table.notes, n, table.values.shape[1])
    source = open_source(list(request.tables), request.columns, request.weights)
    return Rows(source, None, source.names, source.notes, source.n, int(np.prod(source.tail, dtype=int)))


def fit(request: FitRequest) -> int:
    """Read, fit, write the model, show it, and return the exit code: 0, or 130 after Ctrl-C."""
    with one_sentence():
        console = screen()
        with console.status(f"Reading {request.table}") if console.is_terminal else nullcontext():
            table = _read(request)
        for note in table.notes:
            tell(note)
        _check_rows(request, table)
        console.print(_task(request, table), soft_wrap=True)
        mixture = _mixture(request, verbose=console.is_terminal)
        began = clock()
        interrupted = _fit(mixture, table)
        seconds = clock() - began
        if not hasattr(mixture, "weights_"):
            tell("Interrupted before there was a model; nothing was written.")
            return INTERRUPTED
        _save(mixture, table, request.out)
        try:
            show_components(console, mixture, table.names)
            for line in _summary(request, mixture, table, seconds, interrupted):
                console.print(line, soft_wrap=True)
        except KeyboardInterrupt:
            tell(f"Interrupted; the model is in {request.out}.")
            interrupted = True
    return INTERRUPTED if interrupted else 0


def _check_rows(request: FitRequest, table: Rows) -> None:
    n, components = table.n, request.parameters["n_components"]
    if n < max(components, 2):
        what = "row" if n == 1 else "rows"
        having = " of positive weight" if request.weights is not None else ""
        if components <= 2:
            raise ValueError(f"{request.table} must have at least two rows, got {n} {what}{having}.")
        raise typer.BadParameter(
            f"{components} components need as many rows, but {request.table} has {n} {what}{having}.",
            param_hint="'--components'",
        )


def _task(request: FitRequest, table: Rows) -> str:
    n, d = table.n if table.weights is None else len(table.X), table.d
    columns = shortened(table.names) if table.names else ("1 column" if d == 1 else f"{d} columns")
    given = request.parameters
    kind = (
        f"family {given['family']}" if "family" in given else f"{KINDS[given['covariance_type']]} covariance"
    )
    what = "1 component" if given["n_components"] == 1 else f"{given['n_components']} components"
    return f"{request.table}: {n:,} rows of {columns}; {what}, {kind}."


def _mixture(request: FitRequest, verbose: bool) -> GaussianMixture | Mixture:
    from swiftem.estimators import GaussianMixture, Mixture

    made = Mixture if "family" in request.parameters else GaussianMixture
    return made(**request.parameters, verbose=int(verbose))


def _fit(mixture: GaussianMixture | Mixture, table: Rows) -> bool:
    """Fit, pass on what the estimator warns of, and return whether Ctrl-C ended it."""
    from sklearn.exceptions import ConvergenceWarning

    interrupted = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mixture.fit(table.X, sample_weight=table.weights)
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
        if is_of_fit and ("interrupted" in sentence or "did not converge" in sentence):
            interrupted = interrupted or "interrupted" in sentence  # both are in the summary
        elif issubclass(warning.category, UserWarning) and sentence not in told:
            told.add(sentence)
            tell(sentence)
    return interrupted


def in_options(sentence: str) -> str:
    """Return what the estimator says of checkpoints and memory in the words of the command line.

    >>> in_options("checkpoint='a' holds a run already: take resume=True to go on from it.")
    "--checkpoint 'a' holds a run already: take --resume to go on from it."
    """
    changed = sentence.replace("checkpoint='", "--checkpoint '").replace("resume=True", "--resume")
    changed = changed.replace("memory_limit must", "--memory-limit must")
    return changed.replace(": take resume='auto' to begin one", ": leave --resume out to begin one")


def _save(mixture: GaussianMixture | Mixture, table: Rows, out: Path) -> None:
    """Write the model with the names of its columns."""
    mixture.verbose = 0  # the bar was for this terminal, not for whoever loads the model
    if table.names:
        mixture.feature_names_in_ = np.array(table.names, dtype=object)
    with writing(out):
        mixture.save(out.resolve())  # a link stays one: a new file takes the name of its target
    # scikit-learn would warn of the array, which has no names, in what follows.
    mixture.__dict__.pop("feature_names_in_", None)


def _summary(
    request: FitRequest, mixture: GaussianMixture | Mixture, table: Rows, seconds: float, interrupted: bool
) -> list[str]:
    passes = "1 pass" if mixture.n_iter_ == 1 else f"{mixture.n_iter_} passes"
    after = f"after {passes} of {mixture.method_} in {seconds:.1f} s"
    if interrupted:
        go_on = "" if request.parameters["checkpoint"] is None else ", and --resume goes on"
        return [f"Interrupted {after}: the model so far is in {request.out}{go_on}."]
    if mixture.converged_:
        ended = f"Converged {after}"
    else:
        ended = f"Not converged {after}: raise --max-passes or --tol"
    lines = [f"{ended}; distance from a stationary point {mixture.stationarity_:.1e}."]
    mean = mixture.score(table.X, sample_weight=table.weights)
    bic = mixture.bic(table.X, sample_weight=table.weights)
    lines.append(f"Mean log-likelihood {mean:.5f}, BIC {bic:.1f}.")
    lines.append(f"Model: {request.out}")
    return lines
