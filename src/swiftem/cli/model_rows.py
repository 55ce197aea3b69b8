"""Models in files, and the rows of a table that a model takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from swiftem.cli.options import Choice
from swiftem.cli.rows import Rows, read_one, rows_of
from swiftem.core.checks import shortened
from swiftem.data.columns import Wanted, as_label
from swiftem.data.tables import Table, is_table, read_names, read_places

MODEL_FIRST = "the model comes first, then the table"


def open_model(path: Path, instead: str = MODEL_FIRST) -> Any:
    """Return the model in a file; ``instead`` is the advice for a table."""
    import swiftem

    check_model_file(path, instead)
    return swiftem.load(path)


def check_model_file(path: Path, instead: str) -> None:
    """Raise an error for a folder, a file that is not there, and a table, with this advice."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} must be a model file, got a folder.")
    if not path.exists():
        raise FileNotFoundError(f"{path} must be a model file, but does not exist.")
    if is_table(path):
        raise ValueError(f"{path} is a table, not a model: {instead}.")


def names_of(model: Any) -> tuple[str, ...]:
    """Return the names of the columns that the model was fitted to; empty if they had none."""
    return tuple(str(name) for name in getattr(model, "feature_names_in_", ()))


def is_regression(model: Any) -> bool:
    """Return whether a model is a mixture of regressions."""
    return hasattr(model, "coef_")


def rows_of_model(model: Any, path: Path, choice: Choice, *, needs_response: bool = True) -> Rows:
    """Return the model's columns of a table: by name if both have names, else by position.

    Values may be missing if the model takes them. The response of a regression is the last column; it may be
    absent unless it is needed.
    """
    if not hasattr(model, "weights_"):
        raise ValueError("The model must be a mixture, got topics: use swiftem topics --apply.")
    if choice.missing is None:
        choice = replace(choice, missing=getattr(model, "missing", "ignore"))
    names, width = names_of(model), int(model.n_features_in_)
    sequence = getattr(model, "sequence_name_", None)
    if sequence is not None and not names:
        choice = replace(choice, drop=[*choice.drop, sequence])
    found = read_names(path) if names and choice.columns is None else ()
    if not names and choice.columns is None and not choice.drop:
        choice = _as_fitted(model, path, choice)
    levels = _levels(model, names)
    if hasattr(model, "family_"):
        n_columns = len(read_names(path)) or (*read_places(path, Wanted(["0"])), 1)[0]
        chosen = names if found else choice.columns or [str(j) for j in range(min(width, n_columns))]
        choice = replace(choice, text=[chosen[place] for place in levels if place < len(chosen)])
    if found:
        response = getattr(model, "response_name_", None)
        if response is not None and (needs_response or response in found):
            choice = replace(choice, response=response)
        table = _by_name(path, choice, names, found)
    else:
        widths = {width + is_regression(model)} | ({width} if not needs_response else set())
        table = _by_position(path, choice, names, widths)
    table = _with_levels(path, table, levels, names)
    rows = rows_of(table, table.values.shape[1] > width)
    return rows if sequence is None else in_sequences(rows, [path], choice, sequence)


def check_sequences(choice: Choice) -> None:
    """Raise ValueError for what sequences cannot have."""
    needed = {"weights": choice.weights, "response": choice.response, "missing": choice.skips or None}
    for name in (name for name, value in needed.items() if value is not None):
        raise ValueError(f"{name} must be left out with sequence: all steps of a sequence count alike.")


def in_sequences(rows: Rows, paths: Sequence[Path], choice: Choice, sequence: str) -> Rows:
    """Return rows with the numbers of steps of the sequences that a column of the files names."""
    from swiftem.hmm.read import lengths_in_files

    check_sequences(choice)
    return replace(rows, lengths=lengths_in_files(paths, sequence))


def _levels(model: Any, names: Sequence[str]) -> dict[int, tuple[Any, ...]]:
    """Return the categories of columns of text by place."""
    places = {name: place for place, name in enumerate(names)}
    return {places.get(name, name): parts for name, parts in vars(model).get("_texts", {}).items()}


def _as_fitted(model: Any, path: Path, choice: Choice) -> Choice:
    """Return the choice with the columns that were fitted, for a table that is like the one of the fit."""
    layout = getattr(model, "_layout", ())
    columns = [str(place) for place in layout[1:]]
    if not layout or {choice.label, choice.weights} & {*columns} or read_names(path):
        return choice
    # A table without names of any other width has no such layout.
    return replace(choice, columns=columns) if read_places(path, Wanted(["0"]))[:1] == layout[:1] else choice


def _by_name(path: Path, choice: Choice, names: Sequence[str], found: Sequence[str]) -> Table:
    wanted = [*names, *([] if choice.response is None else [choice.response])]
    missing = [name for name in wanted if name not in found]
    if missing:
        what = f"column {missing[0]!r} is" if len(missing) == 1 else f"columns {shortened(missing)} are"
        raise ValueError(
            f"{path} must have the columns of the model, but {what} missing: it has {shortened(found)}."
        )
    for name in ("weights", "label"):
        if (column := getattr(choice, name)) in names:
            raise ValueError(f"{name} must be another column than those of the model, got {column!r}.")
    # The columns are the model's, and none of them is left out.
    return read_one(path, replace(choice, columns=names, drop=()))


def _by_position(path: Path, choice: Choice, names: Sequence[str], widths: set[int]) -> Table:
    table = read_one(path, choice)
    got = table.values.shape[1]
    if got not in widths:
        wanted = f"{max(widths)} ({shortened(names)})" if names else str(max(widths))
        has = f"{got} ({shortened(table.names)})" if table.names else str(got)
        raise ValueError(f"{path} must have as many numeric columns as the model, {wanted}, got {has}.")
    return table


def _with_levels(path: Path, table: Table, levels: dict[int, tuple[Any, ...]], names: Sequence[str]) -> Table:
    """Return a table with the model's categories in place of their text."""
    texts = dict(table.texts)
    for place, known in levels.items():
        by_label: dict[str | None, Any] = {as_label(level): level for level in known} | {None: None}
        unseen = list(dict.fromkeys(cell for cell in texts[place].tolist() if cell not in by_label))
        if unseen:
            raise ValueError(
                f"{path} must have the categories of the model in column "
                f"{names[place] if names else f'column {place}'!r} "
                f"({shortened([as_label(level) for level in known])}), got {shortened(unseen)}: correct "
                "them, or leave out such rows."
            )
        texts[place] = np.array([by_label[cell] for cell in texts[place].tolist()], dtype=object)
    return replace(table, texts=texts)
