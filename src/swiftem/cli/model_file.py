"""Reading of a model file, and of the rows that it is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from swiftem.cli.failures import tell
from swiftem.cli.table_options import TableChoice
from swiftem.data.rows.table_columns import UnknownColumnError, shortened
from swiftem.data.rows.tables import Table, is_table, read_names, read_table

if TYPE_CHECKING:
    from swiftem.estimators import GaussianMixture, Mixture

__all__ = ["KINDS", "MIXTURES", "names_of", "open_model", "read", "read_header", "rows_for"]

KINDS = {"full": "full", "tied": "tied", "diag": "diagonal", "spherical": "spherical"}
"""How covariances are called in sentences."""
MODEL_FIRST = "the model comes first, then the table"
MIXTURES = ("GaussianMixture", "Mixture")
"""Estimators that rows have components of."""


def read_header(path: Path) -> dict[str, Any]:
    """Return the description in a model file: format, kind, header, and the versions that wrote it."""
    from swiftem.estimators.persistence import read_header

    _check_file(path, "swiftem fit makes a model of it")
    return read_header(path)


def open_model(path: Path, kind: str | None = None, instead: str = MODEL_FIRST) -> Any:
    """Return the model in a file; end the command with a sentence if it cannot be read.

    It must be of this kind, or any mixture if no kind is given; ``instead`` is the advice for a table.
    """
    import swiftem

    _check_file(path, instead)
    if kind is None:
        found = read_header(path)["kind"]
        kind = found if found in MIXTURES else MIXTURES[0]
    return getattr(swiftem, kind).load(path)


def _check_file(path: Path, instead: str) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} must be a model's file, got a folder.")
    if not path.exists():
        raise FileNotFoundError(f"{path} must be a model's file, but does not exist.")
    if is_table(path):
        raise ValueError(f"{path} is a table, not a model: {instead}.")


def names_of(model: Any) -> tuple[str, ...]:
    """Return the names of the columns that the model was fitted to; empty if they had none."""
    return tuple(str(name) for name in getattr(model, "feature_names_in_", ()))


def rows_for(mixture: GaussianMixture | Mixture, path: Path, choice: TableChoice) -> Table:
    """Return the model's columns of a table: by name if both have names, else by position.

    Values may be missing if the model takes them.
    """
    choice = replace(choice, ignore_missing=mixture.missing == "ignore" and not choice.skip_missing)
    names, width = names_of(mixture), int(mixture.n_features_in_)
    # They are matched here; scikit-learn would warn of arrays, which have none.
    mixture.__dict__.pop("feature_names_in_", None)
    found = read_names(path) if names and choice.columns is None else ()
    table = _by_name(path, choice, names, found) if found else _by_position(path, choice, names, width)
    for note in table.notes:
        tell(note)
    return table


def read(path: Path, choice: TableChoice) -> Table:
    """Return the chosen columns of a table."""
    return read_table(
        path, choice.columns, choice.weights, drop=choice.drop, label=choice.label,
        skip_missing=choice.skip_missing, allow_missing=choice.ignore_missing,
    )  # fmt: skip


def _by_name(path: Path, choice: TableChoice, names: Sequence[str], found: Sequence[str]) -> Table:
    missing = [name for name in names if name not in found]
    if missing:
        what = f"column {missing[0]!r} is" if len(missing) == 1 else f"columns {shortened(missing)} are"
        raise ValueError(
            f"{path} must have the columns of the model, but {what} missing: it has {shortened(found)}."
        )
    asked = {"weights": [choice.weights], "label": [choice.label], "drop": choice.drop}
    for option, columns in asked.items():
        for column in columns:
            if column in names:
                raise typer.BadParameter(
                    f"{column!r} is a column of the model's data.", param_hint=f"'--{option}'"
                )
    try:
        return read(path, replace(choice, columns=names))
    except UnknownColumnError as error:
        if error.argument != "columns":
            raise
        raise ValueError(str(error)) from None  # the model asked for columns, not an option


def _by_position(path: Path, choice: TableChoice, names: Sequence[str], width: int) -> Table:
    table = read(path, choice)
    got = table.values.shape[1]
    if got != width:
        wanted = f"{width} ({shortened(names)})" if names else str(width)
        if choice.columns is not None:
            raise typer.BadParameter(f"the model has {wanted} columns, got {got}.", param_hint="'--columns'")
        has = f"{got} ({shortened(table.names)})" if table.names else str(got)
        raise ValueError(
            f"{path} must have as many numeric columns as the model, {wanted}, got {has}: "
            "choose them with --columns or --drop."
        )
    return table
