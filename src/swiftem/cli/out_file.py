"""Output files of commands, checked before anything is computed, and tables in files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import typer
from numpy.typing import NDArray

from swiftem.cli.console import INTERRUPTED, VisibleOutput, tell
from swiftem.core.checks import either
from swiftem.core.files import replacing
from swiftem.core.process import uninterrupted


def model_file(path: Path | None) -> Path | None:
    """Return the file for a model, if any; raise BadParameter if it cannot be written."""
    from swiftem.data.tables import is_table

    if path is None:
        return None
    if is_table(path):
        raise typer.BadParameter(
            f"{path} has the ending of a table: use {path.with_suffix('.model').name}, for example."
        )
    return _writable(path)


def table_file(path: Path | None) -> Path | None:
    """Return the file for predictions; raise BadParameter if it cannot be written."""
    if path is None:
        return None
    try:
        _ending(path)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return _writable(path)


def writable_folder(folder: Path) -> Path:
    """Return a folder; raise BadParameter if it cannot be written to."""
    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"{folder} is a file: name a folder for the results.")
    _try(folder, f"{folder} cannot be written to", "name another folder")
    return folder


def not_the_same(out: Path | None, *others: Path) -> None:
    """Raise BadParameter if an output file is also an input."""
    for other in others:
        if out is not None and out.resolve() == other.resolve():
            raise typer.BadParameter(
                f"{other} is also an input file: choose another --out.", param_hint="'--out'"
            )


def _writable(path: Path) -> Path:
    target = path.resolve()
    if target.is_dir():
        raise typer.BadParameter(f"{path} is a folder: name a file.")
    if target.exists() and not target.is_file():
        raise typer.BadParameter(f"{path} is not an ordinary file: name another one.")
    _try(path.parent, f"{path} cannot be written", "name another file")
    return path


def _ending(path: Path) -> str:
    """Return the ending of a table; raise ValueError for another file."""
    ending = path.suffix.lower()
    if ending not in WRITTEN:
        raise ValueError(f"{path} must end in {either(WRITTEN)}, got {ending or 'no ending'}.")
    return ending


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Create the folder of a file, and add the file's name to an error of the system."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OSError(f"{out} cannot be written ({reason}).") from None


def _try(folder: Path, what: str, instead: str) -> None:
    """Write a nameless file to a folder; raise BadParameter if that fails.

    Folders that were created for the check are removed: a failed command leaves nothing behind.
    """
    import tempfile

    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise typer.BadParameter(f"{what} ({reason}): {instead}.") from None
    finally:
        for path in made:
            with suppress(OSError):
                path.rmdir()


WRITTEN = (".csv", ".tsv", ".parquet", ".npy")
ROWS = 10_000
"""Rows converted to text at a time."""


def write_result(out: Path | None, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns to a file, or as CSV to standard output."""
    if out is None:
        write_csv(VisibleOutput(), columns)
        return
    with writing(out):
        write_table(out, columns)


def write_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    r"""Write columns (n,) of equal length to a file, atomically; its folder must exist.

    ``.npy`` has no names: one column is an array (n,), several are one array (n, d) of a common type.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from swiftem.data import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "table.csv")
    ...     write_table(file, {"a": np.array([1, 2]), "b": np.array([0.1, 0.2])})
    ...     file.read_text()
    'a,b\n1,0.1\n2,0.2\n'
    """
    if path.suffix.lower() != ".npy":
        write_table_blocks(path, [columns])
        return
    with replacing(path) as file:
        parts = list(columns.values())
        np.save(file, parts[0] if len(parts) == 1 else np.column_stack(parts), allow_pickle=False)


def write_table_blocks(path: Path, blocks: Iterable[Mapping[str, NDArray[Any]]]) -> None:
    r"""Write blocks of columns with the same names one after the other: CSV, TSV or Parquet, atomically.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "table.csv")
    ...     write_table_blocks(file, ({"a": np.array([number])} for number in (1, 2)))
    ...     file.read_text()
    'a\n1\n2\n'
    """
    ending = _ending(path)
    with replacing(path) as file:
        if ending == ".parquet":
            _write_parquet(file, blocks)
            return
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        for number, columns in enumerate(blocks):
            write_csv(text, columns, "\t" if ending == ".tsv" else ",", header=number == 0)
        text.detach()


def write_csv(
    text: Any, columns: Mapping[str, NDArray[Any]], delimiter: str = ",", *, header: bool = True
) -> None:
    """Write columns as text; numbers are read back exactly."""
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(columns)
    n = len(next(iter(columns.values())))
    for start in range(0, n, ROWS):
        parts = [column[start : start + ROWS].tolist() for column in columns.values()]
        writer.writerows(zip(*parts, strict=True))
    text.flush()


def _write_parquet(file: BinaryIO, blocks: Iterable[Mapping[str, NDArray[Any]]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    tables = (pa.table(dict(columns)) for columns in blocks)
    first = next(tables)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


@contextmanager
def saved(mixture: Any, out: Path | None) -> Iterator[None]:
    """Write a model, if ``out`` is a file, and then show it in the context.

    Ctrl-C does not interrupt the writing. In the context it ends the program and says where the model is.
    """
    is_written = False
    try:
        if out is not None:
            with uninterrupted():
                with writing(out):
                    mixture.save(out)
                is_written = True
        yield
    except KeyboardInterrupt:
        tell(f"Interrupted; the model is in {out}." if is_written else "Interrupted; nothing was written.")
        raise typer.Exit(INTERRUPTED) from None
