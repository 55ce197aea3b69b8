"""``python -m paper NAME``.

Run the paper's experiments and compare its claims with the numbers: gmm-precision and gmm-scaling are the two
panels of the paper's Gaussian figure, plsa is its topic-model figure, theory its theorems in numbers, methods
compares all methods on five problems. Writes the raw numbers (CSV), figures (PNG, SVG) and report.html, which
opens in any browser. Ctrl-C keeps what is done.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from paper.reproduce import EXPERIMENTS, Request, reproduce


def request(arguments: Sequence[str] | None = None) -> Request:
    """Return the request that the command line makes; exit with code 2 if it is wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser("python -m paper", description=__doc__.partition("\n")[2])
    seed = "seed of samples, starts and draws"
    quick = "smaller samples, fewer epochs and runs; two minutes"
    runs = "repetitions, by default 5, for plsa 3 (with --quick 1), for theory with --quick 2"
    corpus = "a text file for plsa, one document per line; may be given several times"
    out = "folder for numbers, figures and report; by default results/paper"
    parser.add_argument("name", choices=(*EXPERIMENTS, "all"), help="an experiment, or all of them")
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--runs", type=int, metavar="N", help=runs)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=seed)
    parser.add_argument("--corpus", type=Path, action="append", default=[], metavar="FILE", help=corpus)
    parser.add_argument("--out", type=Path, default=Path("results/paper"), metavar="DIR", help=out)
    given = parser.parse_args(arguments)
    for name, least in (("runs", 1), ("seed", 0)):
        if (value := getattr(given, name)) is not None and value < least:
            parser.error(f"--{name}: {value} is less than {least}.")
    if given.corpus and given.name not in ("plsa", "all"):
        parser.error("--corpus: only plsa and all read a corpus.")
    for folder in (given.out, *given.out.parents):
        if folder.exists() and not folder.is_dir():
            parser.error(f"--out: {folder} is a file: name a folder for the results.")
    return Request(**vars(given), command=shlex.join(["python", "-m", "paper", *arguments]))


if __name__ == "__main__":
    sys.exit(reproduce(request()))
