"""Options of all commands that read tables: columns, weights, labels and rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "ColumnsOption",
    "DropOption",
    "IgnoreMissingOption",
    "LabelOption",
    "ModelArgument",
    "ResponseOption",
    "SeedOption",
    "SkipMissingOption",
    "TableArgument",
    "TableChoice",
    "TablesArgument",
    "WeightsOption",
]

FORMATS = "CSV (.csv, .tsv, .txt), .parquet or .npy"

TableArgument = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help=f"{FORMATS}; text is left out, unless it has categories."),
]
TablesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="TABLE",
        help=f"{FORMATS}: one file, several, or a folder; text is left out, unless it has categories.",
    ),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, written by swiftem fit.")]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        "-c",
        metavar="A,B,...",
        help="Columns to use, by name or by number from 0.",
        show_default="all numeric",
    ),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        "-d",
        metavar="A,B,...",
        help="Columns not to use, by name or by number from 0. Can be repeated.",
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label",
        "-l",
        metavar="COLUMN",
        help="Column of known groups, text or numbers: not fitted, but compared with components.",
    ),
]
WeightsOption = Annotated[
    str | None,
    typer.Option(
        "--weights",
        "-w",
        metavar="COLUMN",
        help="Column with the weights of the rows, by name or by number from 0.",
    ),
]
SkipMissingOption = Annotated[
    bool,
    typer.Option("--skip-missing", help="Leave out rows with missing values; by default they are an error."),
]
IgnoreMissingOption = Annotated[
    bool,
    typer.Option(
        "--ignore-missing",
        help="Fit rows with missing values by their other cells, as missing at random, instead of an error.",
    ),
]
ResponseOption = Annotated[
    str | None,
    typer.Option(
        "--response",
        "-r",
        metavar="COLUMN",
        help="Fit regressions of this column on the others, with coefficients by component: --family "
        "gaussian for numbers, poisson for counts.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option("--seed", "-s", metavar="N", min=0, max=2**32 - 1, help="Seed of starts and draws."),
]


@dataclass(frozen=True)
class TableChoice:
    """The chosen parts of a table, as in :func:`swiftem.data.read_table`."""

    columns: Sequence[str] | None = None
    weights: str | None = None
    drop: Sequence[str] = ()
    label: str | None = None
    skip_missing: bool = False
    ignore_missing: bool = False
    response: str | None = None
    text: Sequence[str] | None = None

    @classmethod
    def of(
        cls,
        columns: str | None,
        weights: str | None = None,
        drop: Sequence[str] | None = None,
        label: str | None = None,
        skip_missing: bool = False,
        ignore_missing: bool = False,
        response: str | None = None,
    ) -> TableChoice:
        """Return the choice given by the options.

        >>> TableChoice.of('a,"b, in cm"', drop=["c,d", "e"])
        TableChoice(columns=['a', 'b, in cm'], weights=None, drop=['c', 'd', 'e'], label=None, ...)
        """
        dropped = [name for names in drop or [] for name in _split(names)]
        if skip_missing and ignore_missing:
            raise typer.BadParameter(
                "it leaves no missing values: use one of the two.", param_hint="'--skip-missing'"
            )
        chosen = None if columns is None else _split(columns)
        return cls(chosen, weights, dropped, label, skip_missing, ignore_missing, response)


def _split(names: str) -> list[str]:
    """Return the names in an option: as in a line of CSV, so that a name may have a comma in quotes."""
    return [name.strip() for name in next(csv.reader([names], skipinitialspace=True), [])]
