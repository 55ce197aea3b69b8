"""``python -m paper NAME``: run the paper's experiments and compare its claims with the numbers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from paper.reproduce import NAMES, Request, reproduce


def request(arguments: Sequence[str] | None = None) -> Request:
    """Return the request that the command line makes; exit with code 2 if it is wrong."""
    parser = argparse.ArgumentParser(
        "python -m paper",
        description="Run the paper's experiments and compare its claims with the numbers. Writes the raw "
        "numbers (CSV), figures (PNG, SVG) and report.html, which opens in any browser. Ctrl-C keeps what is "
        "done.",
    )
    parser.add_argument(
        "name",
        choices=(*NAMES, "all"),
        help="gmm-precision and gmm-scaling: the two panels of the paper's Gaussian figure; plsa: its "
        "topic-model figure; theory: its theorems in numbers; methods: all methods, also later ones, on five "
        "problems; all: everything in one report",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="smaller samples, only known weights, fewer epochs and runs of plsa and theory; two minutes",
    )
    parser.add_argument(
        "--runs",
        type=_at_least(1),
        metavar="N",
        help="repetitions, each with its own data or start and its own draws; by default 5, for plsa 3 (with "
        "--quick 1), for theory with --quick 2",
    )
    parser.add_argument(
        "--seed", type=_at_least(0), default=0, metavar="N", help="seed of the samples, starts and draws"
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="for plsa: a text file, one document per line, instead of the docstrings of installed packages; "
        "may be given several times",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results/paper"),
        metavar="DIR",
        help="folder for numbers, figures and report; by default results/paper",
    )
    given = parser.parse_args(arguments)
    if given.corpus and given.name not in ("plsa", "all"):
        parser.error("--corpus: only plsa and all read a corpus.")
    for folder in (given.out, *given.out.parents):
        if folder.exists() and not folder.is_dir():
            parser.error(f"--out: {folder} is a file: name a folder for the results.")
    return Request(given.name, given.quick, given.runs, given.seed, given.corpus, given.out)


def _at_least(minimum: int) -> type[int]:
    """Return the type of an option that is an integer of this size."""

    def read(text: str) -> int:
        if int(text) < minimum:
            raise argparse.ArgumentTypeError(f"{text} is less than {minimum}")
        return int(text)

    read.__name__ = "integer"
    return read  # type: ignore[return-value]


if __name__ == "__main__":
    sys.exit(reproduce(request()))
