"""Tables in CSV files: by pyarrow where it is installed, else by Python's reader, with the same result."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.data.rows.csv_layout import Layout, is_missing, layout_of, number_in, records
from swiftem.data.rows.finite_rows import first_bad_cell, what_it_is
from swiftem.data.rows.table_columns import Column, Columns, choose_columns, label
from swiftem.data.sample_weight import bad_weights, wanted_of_weight

__all__ = ["StumbledError", "read_csv", "stream_by_pyarrow", "stream_by_python"]

BLOCK_BYTES = 1 << 18
"""Text that pyarrow reads at a time where a file is streamed; it has some dozens of such blocks in hand."""
PYTHON_CELLS = 1 << 16
"""Numbers that Python's reader gathers at a time."""


class StumbledError(Exception):
    """Pyarrow could not read a file, or found what Python's reader has to name."""


def read_csv(
    file: Path, columns: Sequence[Column] | None, weights: Column | None
) -> tuple[NDArray[Any], NDArray[Any] | None, Columns, Layout]:
    """Return rows (n, d) in float64, weights (n,), the choice of columns and the layout."""
    layout = layout_of(file)
    chosen = choose_columns(file, layout.names, layout.unfit, columns, weights)
    found = _by_pyarrow(file, layout, chosen)
    if found is None:
        # Also where something is wrong: this one knows the line.
        found = _by_python(file, layout, chosen)
    if chosen.weights is None:
        return found, None, chosen, layout
    return np.ascontiguousarray(found[:, :-1]), found[:, -1].copy(), chosen, layout


def _by_pyarrow(file: Path, layout: Layout, chosen: Columns) -> Array | None:
    """Return the columns (n, len(chosen.all)), or None where pyarrow is missing or stumbles over the file."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    wanted = [f"c{number}" for number in chosen.all]
    try:
        table = csv.read_csv(file, **_options(layout, chosen))
    except pa.ArrowException:
        return None
    found = np.empty((table.num_rows, len(wanted)))
    for place, name in enumerate(wanted):
        found[:, place] = table.column(name).to_numpy()
    unusable = chosen.weights is not None and len(bad_weights(found[:, -1]))
    return None if unusable or first_bad_cell(found) is not None else found


def _options(layout: Layout, chosen: Columns, **reading: Any) -> dict[str, Any]:
    """Return how pyarrow is to read."""
    import pyarrow as pa
    from pyarrow import csv

    wanted = [f"c{number}" for number in chosen.all]
    return {
        "read_options": csv.ReadOptions(
            column_names=[f"c{number}" for number in range(len(layout.unfit))],
            skip_rows=layout.header_lines,
            **reading,
        ),
        "parse_options": csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=True),
        "convert_options": csv.ConvertOptions(
            include_columns=wanted,
            column_types={name: pa.float64() for name in wanted},
            null_values=[],
            decimal_point=layout.decimal,
        ),
    }


def stream_by_pyarrow(file: Path, layout: Layout, chosen: Columns) -> Iterator[Array] | None:
    """Yield the columns (., len(chosen.all)) by and by, or return None where pyarrow is missing.

    Where it stumbles over the file, or finds what is not finite or a weight that cannot be used,
    StumbledError is raised: Python's reader then knows the line.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return None
    return _pieces_by_pyarrow(file, layout, chosen)


def _pieces_by_pyarrow(file: Path, layout: Layout, chosen: Columns) -> Iterator[Array]:
    import pyarrow as pa
    from pyarrow import csv

    try:
        options = _options(layout, chosen, block_size=BLOCK_BYTES, use_threads=False)
        # Its own allocator would keep what is free again.
        with csv.open_csv(file, **options, memory_pool=pa.system_memory_pool()) as reader:
            for batch in reader:
                found = np.empty((batch.num_rows, len(chosen.all)))
                for place in range(len(chosen.all)):
                    found[:, place] = batch.column(place).to_numpy(zero_copy_only=False)
                unusable = chosen.weights is not None and len(bad_weights(found[:, -1]))
                if unusable or first_bad_cell(found) is not None:
                    raise StumbledError
                if len(found):
                    yield found
    except pa.ArrowException:
        raise StumbledError from None


def _by_python(file: Path, layout: Layout, chosen: Columns) -> Array:
    """Return the columns (n, len(chosen.all)), or say in which line something is wrong."""
    return np.concatenate([*stream_by_python(file, layout, chosen), np.empty((0, len(chosen.all)))])


def stream_by_python(file: Path, layout: Layout, chosen: Columns) -> Iterator[Array]:
    """Yield the columns (., len(chosen.all)) by and by, or say in which line something is wrong."""
    width, wanted, decimal = len(layout.unfit), chosen.all, layout.decimal
    flat = array("d")
    for line, cells in records(file, layout.delimiter):
        if line <= layout.header_lines:
            continue
        if len(cells) != width:
            raise ValueError(
                f"{file} must have {_cells(width)} in every line, as in its first, "
                f"got {_cells(len(cells))} in line {line}."
            )
        for number in wanted:
            value = number_in(cells[number], decimal)
            # An infinity minus itself is NaN, and NaN is not equal to anything.
            if value is None or value - value != 0.0:
                raise ValueError(_complaint(file, cells[number], value, label(layout.names, number), line))
            if number == chosen.weights and (wanted_weight := wanted_of_weight(value)):
                raise ValueError(
                    f"{file} must have weights that are {wanted_weight}, got {value:g} in line {line}."
                )
            flat.append(value)
        if len(flat) >= PYTHON_CELLS:
            yield np.frombuffer(flat, dtype=np.float64).reshape(-1, len(wanted)).copy()
            flat = array("d")
    if flat:
        yield np.frombuffer(flat, dtype=np.float64).reshape(-1, len(wanted)).copy()


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _complaint(file: Path, cell: str, value: float | None, name: str, line: int) -> str:
    where = f"in column {name!r}, line {line}"
    if is_missing(cell):
        got = f"a missing value ({cell.strip()})" if cell.strip() else "a missing value"
        return f"{file} must have a number in every cell, got {got} {where}: remove or fill in such lines."
    if value is None:
        shown = cell if len(cell) <= 40 else cell[:37] + "..."
        return (
            f"{file} must have a number in every cell, got {shown!r} {where}: correct it, or omit the column."
        )
    return f"{file} must hold finite numbers, got {what_it_is(value)} {where}: remove or replace such lines."
