"""Reading of a model file, and of the rows that it is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from swiftem.cli.failures import tell
from swiftem.cli.table_options import TableChoice
from swiftem.core.checks import shortened
from swiftem.data.columns import UnknownColumnError, Wanted, as_label
from swiftem.data.tables import Table, is_table, read_names, read_places, read_table

__all__ = [
    "KINDS",
    "MIXTURES",
    "is_regression",
    "names_of",
    "open_model",
    "read",
    "read_header",
    "responses_of",
    "rows_for",
]

KINDS = {"full": "full", "tied": "tied", "diag": "diagonal", "spherical": "spherical"}
"""How covariances are called in sentences."""
MODEL_FIRST = "the model comes first, then the table"
MIXTURES = ("GaussianMixture", "Mixture", "RegressionMixture")
"""Estimators that rows have components of."""


def read_header(path: Path) -> dict[str, Any]:
    """Return the description in a model file: format, kind, header, and the versions that wrote it."""
    from swiftem.fit.model_file import read_header

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
        raise IsADirectoryError(f"{path} must be a model file, got a folder.")
    if not path.exists():
        raise FileNotFoundError(f"{path} must be a model file, but does not exist.")
    if is_table(path):
        raise ValueError(f"{path} is a table, not a model: {instead}.")


def names_of(model: Any) -> tuple[str, ...]:
    """Return the names of the columns that the model was fitted to; empty if they had none."""
    return tuple(str(name) for name in getattr(model, "feature_names_in_", ()))


def rows_for(mixture: Any, path: Path, choice: TableChoice, *, needs_response: bool = True) -> Table:
    """Return the model's columns of a table: by name if both have names, else by position.

    Values may be missing if the model takes them. The response of a regression is the last column; it may be
    absent unless it is needed.
    """
    allowed = getattr(mixture, "missing", "ignore") == "ignore"
    choice = replace(choice, ignore_missing=allowed and not choice.skip_missing)
    names, width = names_of(mixture), int(mixture.n_features_in_)
    found = read_names(path) if names and choice.columns is None else ()
    if not names and choice.columns is None and not choice.drop:
        choice = _as_fitted(mixture, path, choice)
    response = getattr(mixture, "response_name_", None)
    if is_regression(mixture):
        if found and (needs_response or response in found):
            choice = replace(choice, response=response)
    else:
        _number_categories(mixture, names)
        places = mixture.__dict__.get("_texts", {})
        chosen = names if found else choice.columns or [str(j) for j in range(width)]
        text = [chosen[place] for place in places if place < len(chosen)]
        choice = replace(choice, text=text if hasattr(mixture, "family_") else None)
    # They are matched here; scikit-learn would warn of arrays, which have none.
    mixture.__dict__.pop("feature_names_in_", None)
    if found:
        table = _by_name(path, choice, names, found)
    else:
        more = {0, 1} if not needs_response else {1}
        widths = {width + one for one in more} if is_regression(mixture) else {width}
        table = _by_position(path, choice, names, widths)
    for note in table.notes:
        tell(note)
    return _with_categories(mixture, path, table, names)


def _as_fitted(mixture: Any, path: Path, choice: TableChoice) -> TableChoice:
    """Return the choice with the columns that were fitted, for a table that is like the one of the fit."""
    layout = getattr(mixture, "_layout", ())
    columns = [str(place) for place in layout[1:]]
    if not layout or {choice.label, choice.weights} & {*columns} or read_names(path):
        return choice
    # A table without names of any other width has no such layout.
    return replace(choice, columns=columns) if read_places(path, Wanted(["0"]))[:1] == layout[:1] else choice


def is_regression(model: Any) -> bool:
    """Tell whether a model is a mixture of regressions."""
    return hasattr(model, "coef_")


def responses_of(model: Any, table: Table) -> tuple[Any, ...]:
    """Return what the model's methods take of a table: X, or X and y; X alone if there is no response."""
    if not is_regression(model):
        return (table.cells,)
    d = int(model.n_features_in_)
    if table.values.shape[1] == d:
        return (table.values,)
    return table.values[:, :d], table.values[:, d]


def _number_categories(mixture: Any, names: Sequence[str]) -> None:
    """Give categories the number of their column in place of its name: rows are read without names."""
    texts = mixture.__dict__.get("_texts")
    if texts is not None:
        places = {name: place for place, name in enumerate(names)}
        mixture._texts = {places.get(name, name): parts for name, parts in texts.items()}


def _with_categories(mixture: Any, path: Path, table: Table, names: Sequence[str]) -> Table:
    """Return a table with the model's categories in place of their text."""
    texts = dict(table.texts)
    for place, levels in mixture.__dict__.get("_texts", {}).items():
        known: dict[str | None, Any] = {as_label(level): level for level in levels} | {None: None}
        unseen = list(dict.fromkeys(cell for cell in texts[place].tolist() if cell not in known))
        if unseen:
            column = names[place] if names else f"column {place}"
            raise ValueError(
                f"{path} must have the categories of the model in column {column!r} "
                f"({shortened([as_label(level) for level in levels])}), got {shortened(unseen)}: correct "
                "them, or leave out such rows."
            )
        texts[place] = np.array([known[cell] for cell in texts[place].tolist()], dtype=object)
    return replace(table, texts=texts)


def read(path: Path, choice: TableChoice) -> Table:
    """Return the chosen columns of a table."""
    return read_table(
        path,
        choice.columns,
        choice.weights,
        drop=choice.drop,
        label=choice.label,
        skip_missing=choice.skip_missing,
        allow_missing=choice.ignore_missing,
        response=choice.response,
        text=choice.text,
    )


def _by_name(path: Path, choice: TableChoice, names: Sequence[str], found: Sequence[str]) -> Table:
    wanted = [*names, *([] if choice.response is None else [choice.response])]
    missing = [name for name in wanted if name not in found]
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


def _by_position(path: Path, choice: TableChoice, names: Sequence[str], widths: set[int]) -> Table:
    table = read(path, choice)
    got, width = table.values.shape[1], max(widths)
    if got not in widths:
        wanted = f"{width} ({shortened(names)})" if names else str(width)
        if choice.columns is not None:
            raise typer.BadParameter(f"the model has {wanted} columns, got {got}.", param_hint="'--columns'")
        has = f"{got} ({shortened(table.names)})" if table.names else str(got)
        raise ValueError(
            f"{path} must have as many numeric columns as the model, {wanted}, got {has}: "
            "choose them with --columns or --drop."
        )
    return table
