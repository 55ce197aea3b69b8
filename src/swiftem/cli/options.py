"""Options of several commands; what a parameter of the library says of itself is their help and default."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from swiftem.cli.out_file import model_file, table_file
from swiftem.data.columns import Wanted
from swiftem.methods import METHODS

ARGUMENTS = "swiftem.arguments"
"""Key of the words of the command line in the context's ``meta``."""
DATA, MODEL, FIT, OUTPUT = "Data", "Model", "Fit", "Output"
"""Panels of the help."""
MOST = 10_000
"""Largest number of components or topics."""


def read_seed(seed: int | None) -> int | None:
    """Return a seed; raise BadParameter if NumPy does not take it."""
    if seed is not None and not 0 <= seed < 2**32:
        raise typer.BadParameter(f"it must be from 0 to {2**32 - 1}, got {seed}.")
    return seed


def option(panel: str, metavar: str, *names: str, help: str | None = None, **more: Any) -> Any:
    """Return an option in a panel of the help."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **more)


def given(**parameters: Any) -> dict[str, Any]:
    """Return the parameters that are on the command line."""
    return {name: value for name, value in parameters.items() if value is not None}


FORMATS = "CSV (.csv, .tsv, .txt), .parquet or .npy"
METHOD = f"{', '.join(METHODS)} or auto."
FAMILY = 'gaussian (default), poisson, ..., auto, or by column: "poisson=a,b;gamma=c".'
COLUMNS = "Columns by name or number, or all but -A,-B."
SKIP = "Rows with missing values: fail, or skip them."
IGNORE = "Rows with missing values: fail, skip them, or ignore the missing cells."
DRAWS = "Fill in random draws of this seed, given the observed cells."
LIMIT = "Memory limit, such as 500MB, for files read in parts."

Table = Annotated[Path, typer.Argument(metavar="TABLE", help=f"{FORMATS}.")]
Tables = Annotated[
    list[Path], typer.Argument(metavar="TABLE", help=f"{FORMATS}: a file, several, or a folder.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, written by swiftem fit.")]
Columns = Annotated[
    str | None,
    option(DATA, "A,B,...", "--columns", "-c", help=COLUMNS, show_default="all numeric"),
]
Label = Annotated[
    str | None,
    option(DATA, "COLUMN", "--label", "-l", help="Known groups to compare with the components."),
]
Weights = Annotated[str | None, option(DATA, "COLUMN", "--weights", "-w", help="Weights of the rows.")]
Response = Annotated[
    str | None, option(DATA, "COLUMN", "--response", "-r", help="Fit regressions of this column.")
]
Missing = Annotated[str | None, option(DATA, "error|skip|ignore", help=IGNORE, show_default=False)]
Skip = Annotated[
    str | None,
    option(
        DATA, "error|skip", "--missing", help=SKIP, show_default="ignore the missing cells, if the fit did"
    ),
]
Components = Annotated[int | None, option(MODEL, "K", "--components", "-k", show_default=False)]
Covariance = Annotated[str | None, option(MODEL, "KIND")]
Family = Annotated[str | None, option(MODEL, "NAME", help=FAMILY, show_default=False)]
Method = Annotated[str | None, option(FIT, "NAME", help=METHOD, show_default=False)]
Seed = Annotated[int, option(FIT, "N", "--seed", "-s", callback=read_seed, help="Seed of starts and draws.")]
Draws = Annotated[
    int | None,
    option(OUTPUT, "N", "--seed", "-s", help=DRAWS, callback=read_seed, show_default="means"),
]
Device = Annotated[str | None, option(FIT, "NAME", help="cpu, cuda or cuda:1.", show_default=False)]
MemoryLimit = Annotated[str | None, option(FIT, "SIZE", help=LIMIT, show_default=False)]
ModelFile = Annotated[
    Path | None,
    option(
        OUTPUT,
        "MODEL",
        "--out",
        "-o",
        callback=model_file,
        help="File for the model, which is otherwise only shown.",
    ),
]
Result = Annotated[
    Path | None,
    option(
        OUTPUT,
        "FILE",
        "--out",
        "-o",
        callback=table_file,
        help="File for the result: .csv, .tsv, .parquet or .npy.",
        show_default="CSV to standard output",
    ),
]


@dataclass(frozen=True)
class Choice(Wanted):
    """Columns of a table, and what to do with missing cells: "error", "skip", "ignore"; None if not said."""

    missing: str | None = None

    @classmethod
    def of(cls, columns: str | None = None, missing: str | None = None, **purposes: Any) -> Choice:
        """Return the choice given by the options.

        >>> Choice.of('a,"b, in cm"').columns, Choice.of("-c,-d").drop
        (['a', 'b, in cm'], ['c', 'd'])
        """
        if missing not in (None, "error", "skip", "ignore"):
            raise ValueError(f"missing must be 'error', 'skip' or 'ignore', got {missing!r}.")
        # As in a line of CSV, so that a name may have a comma, in quotes.
        names = next(csv.reader([columns or ""], skipinitialspace=True), [])
        names = [name.strip() for name in names]
        drop = [name[1:] for name in names if name.startswith("-")]
        if drop and len(drop) < len(names):
            raise ValueError(f"columns must be all to use, or all not to use (-A,-B), got {columns!r}.")
        chosen = None if columns is None or drop else names
        return cls(columns=chosen, drop=drop, **purposes, missing=missing)

    @property
    def skips(self) -> bool:
        """Whether rows with missing values are left out."""
        return self.missing == "skip"


def read_counts(text: str, name: str = "n_components") -> list[int]:
    """Return the numbers given by a text: ``4``, ``1:20`` (both included), ``2,4,8``.

    >>> read_counts("1:4"), read_counts("2,8,6:7")
    ([1, 2, 3, 4], [2, 6, 7, 8])
    """
    counts: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,9})\s*(?::\s*([0-9]{1,9})\s*)?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last <= MOST:
            raise ValueError(
                f"{name} must be a number, a range such as 1:20, or a list such as 2,4,8, got {text!r}."
            )
        counts.update(range(first, last + 1))
    return sorted(counts)


NAME = re.compile(r"\s*[\w-]+\s*(\((?:[^()]|\([^()]*\))*\))?")
"""A family with options."""


def read_family_option(text: str) -> str | dict[str, list[str]]:
    """Return a name, or the columns of each family; raise ValueError for an unknown family.

    >>> read_family_option("poisson=visits;binomial(trials=10)=yes, member")
    {'poisson': ['visits'], 'binomial(trials=10)': ['yes', 'member']}
    """
    from swiftem.mixture.families import read_family

    found: dict[str, list[str]] = {}
    for block in text.strip().rstrip(";").split(";"):
        name = NAME.match(block)
        rest = block[name.end() :].strip() if name else ""
        family = name[0].strip() if name else block
        if family != "auto":
            read_family(family)
        if rest.startswith("="):
            found.setdefault(family, []).extend(column.strip() for column in rest[1:].split(","))
        elif rest or ";" in text.strip().rstrip(";"):
            found[family] = [""]
        else:
            return family
    if not all(column for columns in found.values() for column in columns):
        raise ValueError(f"family must be of the form family=column,column;family=column, got {text!r}.")
    return found
