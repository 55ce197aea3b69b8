"""Where fits end: log-likelihood on rows that were fitted and on rows held out, and seconds, over seeds.

``python -m benchmarks.optima [DATA ...] [--seeds 10] [--components 10] [--kinds full] [--who auto]`` does
some of it. Each fit is a line of ``results/optima.csv``, written when it has ended; a run with the same file
continues where the last one was stopped: remove it for new fits. ``results/optima.svg`` shows time against
log-likelihood.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.optima_data import CHOOSING, REPORTING, Split, load
from benchmarks.optima_fits import OURS, PEERS, Fitted, fits, read_fits, stored
from benchmarks.row import Row

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Where fits end, on data that no constant was chosen on"
LEAD = ("model", "setting", "method")
NOTE = """Two threads, for scikit-learn too. Minus the mean log-likelihood of a row, the mean, best and
worst over seeds, on the rows fitted (80 %) and on those held out; seconds are medians. Peer: scikit-learn's
default, or its n_init=10; our worst on rows fitted is compared with the peer's mean. Every fit is a line of
results/optima.csv, which is continued if it is there, and a point of results/optima.svg."""
SEEDS = 10
COMPONENTS, KINDS = (5, 10, 20), ("full", "diag")
PER_NUMBER = 10
"""Rows for each number that is estimated, below which full covariances are left out."""
FOLDER = Path("results")
SETTINGS = (
    ("rows fitted, mean", "train", np.mean, np.mean, 0.0),
    ("rows fitted, best", "train", np.max, np.max, None),
    ("rows fitted, worst", "train", np.min, np.mean, 0.0),
    ("held out, mean", "held_out", np.mean, np.mean, 0.0),
    ("held out, best", "held_out", np.max, np.max, None),
    ("held out, worst", "held_out", np.min, np.min, None),
)
"""What is compared: by which of our fits, by which of the peer's, and the goal of the difference."""


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    names = ("digits", "overlap-0.1b") if quick else REPORTING
    file = None if quick else FOLDER / "optima.csv"
    everything = *PEERS, *OURS
    for name in names:
        split = load(name, 1500 if quick else None)
        if split is not None:
            counts = (5,) if quick else COMPONENTS
            for found in _problems(name, split, counts, KINDS, 1 if quick else SEEDS, everything, file):
                yield from _rows(found, split)
    if file is not None:
        draw(read_fits(file), file.with_suffix(".svg"))


def _problems(
    name: str, split: Split, counts: Sequence[int], kinds: Sequence[str], seeds: int, who: Sequence[str],
    file: Path | None,
) -> Iterator[list[Fitted]]:  # fmt: skip
    """Yield the fits of each problem with a data set; a table of earlier ones, if given, is continued."""
    d = split.train.shape[1]
    for components in counts:
        for kind in kinds:
            if kind == "full" and len(split.train) < PER_NUMBER * components * (1 + d + d * (d + 1) // 2):
                continue
            done = [] if file is None else read_fits(file)
            new = fits(name, split, kind, components, range(seeds), who, done)
            found = [fit for fit in done if fit[:3] == (name, kind, components) and fit.who in who]
            yield found + list(new if file is None else stored(new, file))


def _rows(found: list[Fitted], split: Split) -> Iterator[Row]:
    first = found[0]

    def values(who: str, what: str) -> np.ndarray[Any, Any]:
        return np.array([getattr(fit, what) for fit in found if fit.who == who])

    for who in OURS:
        peer = "scikit-learn n_init=10" if "n_init" in OURS[who] else "scikit-learn"
        shared: dict[str, Any] = {
            "figure": "optima", "model": f"{first.data}, {first.kind}, M = {first.components}", "method": who,
            "n": len(split.train), "d": str(split.train.shape[1]), "components": first.components, "b": 0,
            "threads": 2, "iterations": 1, "repeats": len(values(who, "seed")), "peer": peer,
        }  # fmt: skip
        for setting, what, of_ours, of_peer, goal in SETTINGS:
            yield Row(
                **shared, setting=setting, unit="nats", value=-float(of_ours(values(who, what))),
                peer_value=-float(of_peer(values(peer, what))), compared="difference", goal=goal,
            )  # fmt: skip
        compared, goal = _time_goal(len(split.train))
        yield Row(
            **shared, setting="seconds", unit="s", value=float(np.median(values(who, "seconds"))),
            peer_value=float(np.median(values(peer, "seconds"))), compared=compared,
            goal=goal if who == "auto" else None,
        )  # fmt: skip


def _time_goal(n: int) -> tuple[Literal["difference", "speed-up"], float]:
    """Return the goal of the time of a default fit to n rows, against scikit-learn's."""
    if n < 5000:
        return "difference", 0.1
    return "speed-up", 2.0 if n <= 100_000 else 8.0


def draw(done: list[Fitted], file: Path) -> None:
    """Draw the fits, if Matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator
    except ImportError:
        return
    problems = list(dict.fromkeys((fit.data, fit.kind, fit.components) for fit in done))
    colours = {who: f"C{place}" for place, who in enumerate((*PEERS, *OURS))}  # the same in all panels
    across = min(4, len(problems))
    down = -(-len(problems) // across)
    figure = Figure(figsize=(4 * across, 3 * down), layout="constrained")
    for place, problem in enumerate(problems):
        axes = figure.add_subplot(down, across, place + 1)
        here = [fit for fit in done if (fit.data, fit.kind, fit.components) == problem]
        for who in dict.fromkeys(fit.who for fit in here):
            points = [(fit.seconds, fit.train) for fit in here if fit.who == who]
            axes.plot(*zip(*points, strict=True), "o", color=colours[who], markersize=4, alpha=0.7, label=who)
        axes.set(xscale="log", title="{}, {}, M = {}".format(*problem), xlabel="seconds")
        axes.set_ylabel("mean log-likelihood")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=5))
        axes.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="x", labelsize=7)
    figure.axes[0].legend(fontsize="x-small")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)


def main() -> None:
    """Do some of the fits, and print a line for each mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=list(REPORTING), help=", ".join(CHOOSING + REPORTING))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--components", type=int, nargs="+", default=COMPONENTS)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--who", nargs="+", default=[*PEERS, *OURS], help="Some of the fits; all by default.")
    parser.add_argument("--out", type=Path, default=FOLDER / "optima.csv", help="Continued if it exists.")
    given = parser.parse_args()
    for name in given.data:
        split = load(name)
        if split is not None:
            for found in _problems(
                name, split, given.components, given.kinds, given.seeds, given.who, given.out
            ):
                if found:
                    print("\n".join(_lines(found)), flush=True)
    draw(read_fits(given.out), given.out.with_suffix(".svg"))


def _lines(found: list[Fitted]) -> Iterator[str]:
    """Yield what is printed about the fits of one problem."""
    first = found[0]
    yield f"{first.data}, {first.kind}: n = {first.rows:,}, M = {first.components}"
    for who in dict.fromkeys(fit.who for fit in found):
        own = [fit for fit in found if fit.who == who]
        train, held_out = (np.array([getattr(fit, what) for fit in own]) for what in ("train", "held_out"))
        still = max((fit.still for fit in own if fit.converged), default=float("nan"))
        yield (
            f"  {who:24} train {train.mean():8.4f} (worst {train.min():8.4f}), held out "
            f"{held_out.mean():8.4f}, {np.mean([fit.seconds for fit in own]):6.2f} s, converged "
            f"{np.mean([fit.converged for fit in own]):.0%}, em still gains {still:.1e}"
        )


if __name__ == "__main__":
    main()
