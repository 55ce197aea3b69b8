"""``swiftem impute``: the missing values of a table, by a model of its columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem.cli import options
from swiftem.cli.console import tell
from swiftem.cli.options import Choice
from swiftem.cli.out_file import not_the_same, write_result
from swiftem.cli.rows import is_regression, names_of, open_model, rows_of_model
from swiftem.data.columns import as_label
from swiftem.data.tables import read_cells
from swiftem.show.numbers import counted


def impute(
    model: options.Model,
    table: options.Table,
    random_state: options.Draws = None,
    out: options.Result = None,
) -> None:
    """Fill in the missing values of a table, by a model of its columns.

    A missing number becomes its mean given the row's other cells, a category its most likely level.

    Other columns are copied. A model of regressions fills in the response.
    """
    not_the_same(out, model, table)
    mixture = open_model(model)
    regresses, names = is_regression(mixture), names_of(mixture)
    if not regresses:
        mixture.set_params(missing="ignore")
    rows = rows_of_model(mixture, table, Choice(missing="ignore"))
    filled = mixture.impute(*rows.data, random_state=random_state)
    if regresses:
        filled, names = np.column_stack([rows.X, filled]), (*names, str(rows.response)) if names else ()
    heads = names or tuple(f"column {j}" for j in range(filled.shape[1]))
    columns = {head: _plain(filled[:, j], j in rows.texts) for j, head in enumerate(heads)}
    if out is None or out.suffix.lower() != ".npy":
        columns = read_cells(table) | columns
    write_result(out, columns)
    if out is not None:
        tell(f"{out}: {counted(len(rows.X), 'row')}, {counted(rows.n_missing, 'missing cell')} filled in.")


def _plain(cells: NDArray[Any], is_text: bool) -> NDArray[Any]:
    """Return a column as text, as integers if all numbers are whole, or as numbers."""
    if is_text:
        return np.array([as_label(cell) for cell in cells.tolist()], dtype=object)
    numbers = cells.astype(np.float64)
    is_whole = bool((numbers == np.floor(numbers)).all() and (np.abs(numbers) < 2**53).all())
    return numbers.astype(np.int64) if is_whole else numbers
