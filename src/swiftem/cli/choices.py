"""Values of options with a fixed set of choices, and the options of ``topics``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from swiftem.cli.table_options import TableChoice
from swiftem.methods import METHODS

__all__ = [
    "Acceleration",
    "AlphaOption",
    "BackgroundOption",
    "BetaOption",
    "CorpusFormat",
    "Covariance",
    "Criterion",
    "DecorrelationOption",
    "TopicsRequest",
    "check_limit",
    "check_size",
    "read_alpha",
    "read_counts",
    "thinned",
]

MOST = 10_000
"""Largest number of components or topics."""


def read_counts(text: str, what: str = "components") -> list[int]:
    """Return the numbers given by a text: ``4``, ``1:20`` (both included), ``2,4,8``.

    >>> read_counts("1:4"), read_counts("2,8,6:7")
    ([1, 2, 3, 4], [2, 6, 7, 8])
    """
    counts: set[int] = set()
    for part in text.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,9})\s*(?::\s*([0-9]{1,9})\s*)?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 1 <= first <= last <= MOST:
            raise typer.BadParameter(
                f"{text!r} is not a number of {what}, a range such as 1:20, or a list such as 2,4,8.",
                param_hint=f"'--{what}'",
            )
        counts.update(range(first, last + 1))
    return sorted(counts)


def thinned(counts: list[int], most: int = 8) -> list[int]:
    """Return at most ``most`` of the numbers, from the first to the last, in about equal ratios.

    >>> thinned(list(range(10, 101)))
    [10, 14, 19, 27, 37, 52, 72, 100]
    """
    if len(counts) <= most:
        return counts
    ratio = counts[-1] / counts[0]
    wanted = [counts[0] * ratio ** (place / (most - 1)) for place in range(most)]
    return sorted({min(counts, key=lambda count: abs(count - one)) for one in wanted})


def read_alpha(text: str | None) -> float | str:
    """Return the value of ``--alpha``: a number, or ``learn``.

    >>> read_alpha("0.05"), read_alpha("learn"), read_alpha(None)
    (0.05, 'learn', 0.1)
    """
    if text is None or text == "learn":
        return text or 0.1
    found = re.fullmatch(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?|\.[0-9]+", text)
    if not found:
        raise typer.BadParameter(f"{text!r} is neither a number nor learn.", param_hint="'--alpha'")
    return float(text)


AlphaOption = Annotated[
    str | None,
    typer.Option(
        metavar="X|learn",
        help="Counts added to each document's topics: fewer make documents of few topics. learn finds the "
        "number of each topic from the documents.",
        show_default="0.1",
    ),
]
BetaOption = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        min=0.0,
        help="Counts added to each topic's words: fewer make sparse topics.",
        show_default="0.05, or 1 over the number of topics if that is less",
    ),
]
BackgroundOption = Annotated[
    bool | None,
    typer.Option(
        "--background/--no-background",
        help="Whether topic 0 is a background, which takes the words that are common to all topics.",
        show_default="with 8 topics or more",
    ),
]
DecorrelationOption = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        min=0.0,
        help="How strongly topics repel each other: more makes them more distinct, 0 predicts best.",
        show_default="30 with a background",
    ),
]


class Covariance(StrEnum):
    """Kinds of covariances of a mixture."""

    full = "full"
    tied = "tied"
    diag = "diag"
    spherical = "spherical"


class Criterion(StrEnum):
    """Criteria of ``select``."""

    bic = "bic"
    aic = "aic"
    icl = "icl"


class Acceleration(StrEnum):
    """Accelerations of em."""

    squarem = "squarem"
    anderson = "anderson"


class CorpusFormat(StrEnum):
    """Formats that ``topics`` reads."""

    auto = "auto"
    text = "text"
    folder = "folder"
    csv = "csv"
    parquet = "parquet"
    uci = "uci"
    lda_c = "lda-c"
    matrixmarket = "matrixmarket"
    npz = "npz"


@dataclass(frozen=True)
class TopicsRequest:
    """Arguments of the command."""

    corpus: Path
    topics: int | tuple[int, ...]
    out: Path
    words: int = 5000
    method: str = "auto"
    seed: int = 0
    max_passes: int = 200
    format: str = "auto"
    text_column: str | None = None
    vocabulary: Path | None = None
    by: str | None = None
    names: Path | None = None
    stop_words: str = "english"
    phrases: bool = False
    drop_common: float | None = None
    background: bool | str = "auto"
    decorrelation: float | str = "auto"
    alpha: float | str = 0.1
    beta: float | str = "auto"
    memory_limit: str | None = None
    scratch: Path | None = None
    device: str = "cpu"

    @property
    def command(self) -> str:
        """The command line that repeats the request."""
        words = ["swiftem", "topics", str(self.corpus)]
        words += ["--topics", self.numbers, "--words", str(self.words), "--method", self.method]
        words += ["--seed", str(self.seed), "--max-passes", str(self.max_passes)]
        words += ["--format", self.format] if self.format != "auto" else []
        words += ["--text-column", self.text_column] if self.text_column else []
        words += ["--vocabulary", str(self.vocabulary)] if self.vocabulary else []
        words += ["--by", self.by] if self.by else []
        words += ["--names", str(self.names)] if self.names else []
        words += ["--stop-words", self.stop_words] if self.stop_words != "english" else []
        words += ["--phrases"] if self.phrases else []
        words += ["--drop-common", str(self.drop_common)] if self.drop_common is not None else []
        if self.background != "auto":
            words += ["--background" if self.background else "--no-background"]
        words += [] if self.decorrelation == "auto" else ["--decorrelation", f"{self.decorrelation:g}"]
        words += [] if self.alpha == 0.1 else ["--alpha", str(self.alpha)]
        words += [] if self.beta == "auto" else ["--beta", str(self.beta)]
        words += ["--memory-limit", self.memory_limit] if self.memory_limit else []
        words += ["--scratch", str(self.scratch)] if self.scratch else []
        words += ["--device", self.device] if self.device != "cpu" else []
        return shlex.join([*words, "--out", str(self.out)])

    @property
    def numbers(self) -> str:
        """Number of topics, or the numbers to compare."""
        return str(self.topics) if isinstance(self.topics, int) else ",".join(map(str, self.topics))

    @property
    def title(self) -> str:
        """Name of the corpus in the report."""
        return self.corpus.resolve().name or str(self.corpus)

    def fit_options(self) -> dict[str, Any]:
        """Return the arguments of :class:`swiftem.PLSA`, without the number of topics and the seed."""
        return {
            "method": self.method,
            "max_iter": self.max_passes,
            "background": self.background,
            "decorrelation": self.decorrelation,
            "alpha": self.alpha,
            "beta": self.beta,
            "device": self.device,
        }

    def word_options(self) -> dict[str, Any]:
        """Return the arguments of :func:`swiftem.data.read_corpus` that choose words of texts."""
        given: Any = None if self.stop_words == "none" else self.stop_words
        if given and Path(given).is_file():
            try:
                given = Path(given).read_text(encoding="utf-8").split()
            except UnicodeDecodeError:
                raise ValueError(f"{given} must be a text file of stop words in UTF-8.") from None
        return {
            "stop_words": given,
            "phrases": self.phrases,
            "drop_common": self.drop_common,
        }

    def check_for(self, format: str) -> None:
        """Raise ValueError for an option that a format of the corpus does not use."""
        from swiftem.data.documents.corpus import check_for_format

        given = {"text_column": self.text_column, "label_column": self.by} | self.word_options()
        check_for_format(self.corpus, format, **given)


def method_name(name: str) -> str:
    """Return the name of a method; raise BadParameter if it is unknown."""
    return one_of(name, ("auto", *METHODS))


def device_name(name: str) -> str:
    """Return the name of a device; raise BadParameter if it is not one."""
    if not re.fullmatch(r"auto|cpu|torch:cpu|cuda(:\d+)?", name):
        raise typer.BadParameter(f"{name!r} is not cpu, cuda or cuda:0.")
    return name


def one_of(name: str, names: Sequence[str]) -> str:
    """Return a name; raise BadParameter if it is not one of these."""
    if name not in names:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, names))}.")
    return name


def check_acceleration(method: str, acceleration: Acceleration | None) -> None:
    """Raise BadParameter for the acceleration of another method than em."""
    if acceleration is not None and method not in ("auto", "em"):
        raise typer.BadParameter(
            f"only em's passes are accelerated, not {method}: leave --method out.",
            param_hint="'--acceleration'",
        )


def check_size(size: str, option: str) -> None:
    """Raise BadParameter for a text that is not a size."""
    from swiftem.core.problem import read_memory_limit

    try:
        read_memory_limit(size)
    except ValueError:
        said = f"{size!r} is not a size such as 500MB or 2GiB."
        raise typer.BadParameter(said, param_hint=f"'{option}'") from None


def check_limit(memory_limit: str | None, scratch: Path | None, choice: TableChoice | None = None) -> None:
    """Raise BadParameter for an invalid size, an unsupported limit, or a folder that cannot be used."""
    if memory_limit is not None:
        check_size(memory_limit, "--memory-limit")
    if memory_limit is not None and choice is not None and (choice.skip_missing or choice.label is not None):
        raise typer.BadParameter(
            "it needs the whole table in memory: leave --memory-limit out"
            + ("." if choice.skip_missing else ", or use --drop to leave the column out."),
            param_hint="'--skip-missing'" if choice.skip_missing else "'--label'",
        )
    if scratch is not None and memory_limit is None:
        raise typer.BadParameter("it is used only with --memory-limit.", param_hint="'--scratch'")
    if scratch is not None and not scratch.is_dir():
        raise typer.BadParameter(f"{scratch} is not a folder.", param_hint="'--scratch'")
