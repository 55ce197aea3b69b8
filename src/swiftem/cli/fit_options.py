"""Options of ``swiftem fit`` for checkpoints and updates, and checks before any file is read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from swiftem.cli.choices import Acceleration, device_name, method_name, one_of
from swiftem.cli.out_file import model_file
from swiftem.methods import METHODS

__all__ = [
    "GAUSSIAN",
    "CheckpointEveryOption",
    "CheckpointOption",
    "DeviceMemoryLimitOption",
    "DeviceOption",
    "FamilyOption",
    "MaxPassesOption",
    "MemoryLimitOption",
    "MethodOption",
    "ResumeOption",
    "SchedulerOption",
    "ScratchOption",
    "StartsOption",
    "TolOption",
    "UpdateOption",
    "check_fit",
    "is_given",
    "missing_components",
    "model_file_if_any",
    "read_family_option",
    "refuse_given",
    "refuse_options_of_a_fit",
    "refuse_options_of_gaussians",
    "refuse_options_of_one_machine",
    "refuse_options_of_rows",
]

CheckpointOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for checkpoints: a fit that was killed can then be resumed."),
]
CheckpointEveryOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Number of passes of em, or epochs of other methods, between checkpoints.",
        show_default="1, if that takes little time",
    ),
]
MemoryLimitOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory limit of the fit, such as 500MB; files are then read on demand.",
        show_default="files are loaded",
    ),
]
MaxPassesOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Maximum number of passes of a fit over the rows.")
]
StartsOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Number of starts of each fit; the best one is kept.")
]
TolOption = Annotated[
    float,
    typer.Option(
        metavar="X",
        min=0.0,
        help="The fit stops if a pass improves the mean log-likelihood by less than this.",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Dask scheduler, tcp://host:8786, whose workers read the files (.parquet, .npy) and fit.",
    ),
]
ScratchOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder for the memory of iem and fiem if it does not fit into --memory-limit.",
        show_default="the system's for temporary files",
    ),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Resume the fit in the folder of --checkpoint.")]
GAUSSIAN = "gaussian"
"""The family that has an estimator of its own."""

UpdateOption = Annotated[
    Path | None,
    typer.Option(metavar="MODEL", help="Update this model with the rows of new tables, each read once."),
]

OF_UPDATE = {"tables", "update", "out", "columns", "drop", "weights", "skip_missing"}
"""What --update takes; all else belongs to a new fit."""


def model_file_if_any(path: Path | None) -> Path | None:
    """Return the file for the model, if given; raise BadParameter if it cannot be written."""
    return None if path is None else model_file(path)


def missing_components() -> typer.BadParameter:
    """Return the error for a new fit without a number of components."""
    return typer.BadParameter(
        "it is required unless --update is given: swiftem select compares several numbers.",
        param_hint="'--components'",
    )


def refuse_options_of_a_fit(context: typer.Context) -> None:
    """Raise BadParameter for options that do not apply to an existing model."""
    names = (option.name or "" for option in context.command.params)
    said = "the model of --update keeps the one that it was fitted with: leave it out."
    refuse_given(context, [name for name in names if name not in OF_UPDATE], said)


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option is on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_given(context: typer.Context, names: Iterable[str], said: str) -> None:
    """Raise BadParameter with this text for the first of these options that is on the command line."""
    options = {option.name: option.opts[0] for option in context.command.params}
    for name in names:
        if is_given(context, name):
            raise typer.BadParameter(said, param_hint=f"'{options[name]}'")


def family_name(name: str) -> str:
    """Return the name of a family, or blocks of columns as given; raise BadParameter if invalid."""
    if not _has_blocks(name):
        _check_family(name, GAUSSIAN)
        return name
    for block, columns in _blocks(name):
        _check_family(block)
        if not all(columns):
            raise typer.BadParameter(f"{name!r} is not of the form family=column,column;family=column.")
    return name


def _check_family(name: str, *first: str) -> None:
    """Raise BadParameter for an unknown family, or an option that the family does not have."""
    from swiftem.mixture.families import FAMILIES, read_family

    if name == "auto" and first:
        return
    if "(" not in name and name.replace("-", "") not in {known.replace("-", "") for known in FAMILIES}:
        one_of(name, tuple(dict.fromkeys((*first, *FAMILIES))))
    try:
        read_family(name)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None


def _has_blocks(text: str) -> bool:
    """Tell whether columns are given: an equals sign outside the options of a family."""
    return any("=" in block[_end_of_options(block) :] for block in text.split(";"))


def _end_of_options(block: str) -> int:
    """Return the end of ``binomial(trials=3)`` in a text; zero if there are no options."""
    found = re.match(r"\s*[\w-]+\s*\([^)]*\)", block)
    return found.end() if found else 0


def _blocks(text: str) -> list[tuple[str, list[str]]]:
    """Return the families and columns in ``poisson=a,b;binomial(trials=3)=c``."""
    found = []
    for block in text.strip().rstrip(";").split(";"):
        end = _end_of_options(block)
        name, _, columns = block[end:].partition("=")
        name = block[:end] + name
        found.append((name.strip(), [part.strip() for part in columns.split(",")]))
    return found


def read_family_option(text: str) -> str | dict[str, list[str]]:
    """Return a name, or the columns of each family.

    >>> read_family_option("poisson=visits;binomial(trials=10)=yes, member")
    {'poisson': ['visits'], 'binomial(trials=10)': ['yes', 'member']}
    """
    if not _has_blocks(text):
        return text
    found: dict[str, list[str]] = {}
    for name, columns in _blocks(text):
        found.setdefault(name, []).extend(columns)
    return found


FamilyOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        callback=family_name,
        help='Family of the components: gaussian, poisson, "binomial(trials=10)", ..., or auto, by values; '
        'columns of several kinds are "poisson=visits;bernoulli=yes,member".',
    ),
]
MethodOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        callback=method_name,
        help=f"{', '.join(METHODS)}; auto is em for few rows, sem-vr for many.",
    ),
]

DeviceOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", callback=device_name, help="Device that computes passes: cpu, cuda or cuda:1."
    ),
]

DeviceMemoryLimitOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory limit on the GPU, such as 4GB; rows that do not fit are copied in every pass.",
        show_default="all of it",
    ),
]

AccelerationOption = Annotated[
    Acceleration | None,
    typer.Option(
        metavar="NAME",
        help="Acceleration of em, for fewer passes: squarem or anderson.",
        show_default="none",
    ),
]


def refuse_options_of_one_machine(context: typer.Context) -> None:
    """Raise BadParameter for options of local files if workers read the rows."""
    names = ("drop", "label", "skip_missing", "memory_limit", "scratch")
    refuse_given(context, names, "workers read the rows: leave it out.")


def refuse_options_of_rows(context: typer.Context, family: str) -> None:
    """Raise BadParameter for options that regressions do not have, and for other families of responses."""
    if family not in ("gaussian", "poisson"):
        raise typer.BadParameter(f"responses are gaussian or poisson, got {family}.", param_hint="'--family'")
    if family == "poisson":
        if context.params.get("method", "auto") not in ("auto", "em"):
            said = "responses of --family poisson are fitted by em: leave it out."
            raise typer.BadParameter(said, param_hint="'--method'")
        refuse_given(context, ("acceleration",), "responses of --family poisson have none: leave it out.")
    on_device = "device", "device_memory_limit"
    names = ("covariance", "reg_covar", "memory_limit", "scratch", "scheduler", *on_device)
    refuse_given(context, names, "regressions (--response) do not have it: leave it out.")


def refuse_options_of_gaussians(context: typer.Context, family: str) -> None:
    """Raise BadParameter for options of Gaussians if the family is another, which may have its own."""
    if family == GAUSSIAN:
        return
    from swiftem.mixture.families import FAMILIES, has_option

    name = family.partition("(")[0].strip()
    for option, of_family, value in (("covariance", "covariance", "'diag'"), ("reg_covar", "floor", "1e-6")):
        said = f"only --family gaussian has it, got {family}: leave it out"
        if name in FAMILIES and has_option(name, of_family):
            said += f', or give --family "{name}({of_family}={value})"'
        refuse_given(context, (option,), f"{said}.")


def check_fit(checkpoint: Path | None, checkpoint_every: int | None, resume: bool) -> None:
    """Raise BadParameter for options of checkpoints without a folder."""
    if checkpoint is None and (resume or checkpoint_every is not None):
        option = "'--resume'" if resume else "'--checkpoint-every'"
        raise typer.BadParameter("name the folder with --checkpoint.", param_hint=option)
