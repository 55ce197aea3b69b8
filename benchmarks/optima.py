"""Where fits end: log-likelihood on rows that were fitted and on rows held out, and seconds, over seeds.

``python -m benchmarks.optima [DATA ...] [--seeds 10] [--components 10]`` does some of it: it writes a line
for each fit to ``results/optima.csv`` and draws ``results/optima.svg``, time against log-likelihood.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.optima_data import CHOOSING, REPORTING, Split, load
from benchmarks.row import Row
from benchmarks.timing import threads

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Where fits end, on data that no constant was chosen on"
LEAD = ("model", "setting", "method")
NOTE = """Two threads, for scikit-learn too. Minus the mean log-likelihood of a row, the mean and the worst
over seeds, on the rows fitted (80 %) and on those held out; peer: the mean of scikit-learn's default, or of
its n_init=10. Every fit is a line of results/optima.csv and a point of results/optima.svg."""
SEEDS, BEST_SEEDS = 10, 2
"""Of the fits, and of those with n_init=10."""
COMPONENTS = (5, 10, 20)
PER_NUMBER = 10
"""Rows for each number that is estimated, below which full covariances are left out."""
OURS: dict[str, dict[str, Any]] = {
    "auto": {}, "n_init=10": {"n_init": 10}, "em": {"method": "em"}, "sem-vr": {"method": "sem-vr"},
    "fiem": {"method": "fiem"},
}  # fmt: skip
FOLDER = Path("results")


class Fitted(NamedTuple):
    """A fit: whose, of what, how long, and where it ended."""

    data: str
    kind: str
    components: int
    who: str
    seed: int
    seconds: float
    train: float
    held_out: float
    converged: bool
    still: float


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    done: list[Fitted] = []
    names = ("digits", "overlap-0.1b") if quick else REPORTING
    for name in names:
        split = load(name, 1500 if quick else None)
        if split is None:
            continue
        for components in (5,) if quick else COMPONENTS:
            for kind in ("full", "diag"):
                if kind == "full" and len(split.train) < PER_NUMBER * components * _numbers(split):
                    continue
                found = list(fits(name, split, kind, components, 1 if quick else SEEDS))
                done += found
                yield from _rows(found, split)
    if not quick:
        keep(done)


def _numbers(split: Split) -> int:
    d = split.train.shape[1]
    return 1 + d + d * (d + 1) // 2


def fits(name: str, split: Split, kind: str, components: int, seeds: int) -> Iterator[Fitted]:
    """Yield the fits of both libraries; the first fit of a kind, which may compile, is done twice."""
    from sklearn import mixture

    import swiftem

    shared = {"n_components": components, "covariance_type": kind}
    with threads(2), threadpool_limits(2), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that did not converge
        for options in OURS.values():
            swiftem.GaussianMixture(**shared, **options, max_iter=10).fit(split.train[:3000])
        for seed in range(seeds):
            for who, options in [
                ("scikit-learn", {}),
                ("scikit-learn n_init=10", {"n_init": 10}),
                *OURS.items(),
            ]:
                if "n_init" in options and seed >= BEST_SEEDS:
                    continue
                kind_of = mixture.GaussianMixture if who.startswith("scikit") else swiftem.GaussianMixture
                model = kind_of(**shared, **options, random_state=seed)
                began = perf_counter()
                model.fit(split.train)
                seconds = perf_counter() - began
                score = model.score(split.train)
                yield Fitted(
                    name, kind, components, who, seed, seconds, score, model.score(split.held_out),
                    bool(model.converged_), _still(model, split) - score,
                )  # fmt: skip


def _still(model: Any, split: Split) -> float:
    """Return where em comes to if it goes on for long from the end of a fit."""
    import swiftem

    if not isinstance(model, swiftem.GaussianMixture):
        return float("nan")
    more = swiftem.GaussianMixture.from_parameters(
        model.weights_, model.means_, model.covariances_, covariance_type=model.covariance_type,
        method="em", tol=1e-10, max_iter=300, warm_start=True,
    )  # fmt: skip
    return float(more.fit(split.train).score(split.train))


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
        for setting, what, best in (
            ("rows fitted, mean", "train", np.mean), ("rows fitted, worst", "train", np.min),
            ("held out, mean", "held_out", np.mean),
        ):  # fmt: skip
            yield Row(
                **shared, setting=setting, unit="nats", value=-float(best(values(who, what))),
                peer_value=-float(values(peer, what).mean()), compared="difference", goal=0.0,
            )  # fmt: skip
        yield Row(
            **shared, setting="seconds", unit="s", value=float(values(who, "seconds").mean()),
            peer_value=float(values(peer, "seconds").mean()), compared="speed-up",
        )  # fmt: skip


def keep(done: list[Fitted]) -> None:
    """Write the fits to a table, and draw them."""
    FOLDER.mkdir(exist_ok=True)
    with open(FOLDER / "optima.csv", "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(Fitted._fields)
        writer.writerows(done)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    problems = list(dict.fromkeys((fit.data, fit.kind, fit.components) for fit in done))
    across = min(4, len(problems))
    down = -(-len(problems) // across)
    figure = Figure(figsize=(4 * across, 3 * down), layout="constrained")
    for place, problem in enumerate(problems):
        axes = figure.add_subplot(down, across, place + 1)
        here = [fit for fit in done if (fit.data, fit.kind, fit.components) == problem]
        for who in dict.fromkeys(fit.who for fit in here):
            points = [(fit.seconds, fit.train) for fit in here if fit.who == who]
            axes.plot(*zip(*points, strict=True), "o", markersize=4, alpha=0.7, label=who)
        axes.set(xscale="log", title="{}, {}, M = {}".format(*problem), xlabel="seconds")
        axes.set_ylabel("mean log-likelihood")
    figure.axes[0].legend(fontsize="x-small")
    figure.savefig(FOLDER / "optima.svg")


def main() -> None:
    """Do some of the fits, and print a line for each of them and each mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="*", default=list(REPORTING), help=", ".join(CHOOSING + REPORTING))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--components", type=int, nargs="+", default=COMPONENTS)
    parser.add_argument("--kind", default="full")
    given = parser.parse_args()
    done: list[Fitted] = []
    for name in given.data:
        split = load(name)
        for components in given.components if split is not None else ():
            found = list(fits(name, split, given.kind, components, given.seeds))
            done += found
            print(f"{name}: n = {len(split.train):,}, d = {split.train.shape[1]}, M = {components}")
            for who in dict.fromkeys(fit.who for fit in found):
                own = [fit for fit in found if fit.who == who]
                train, held_out = (
                    np.array([getattr(fit, what) for fit in own]) for what in ("train", "held_out")
                )
                still = max((fit.still for fit in own if fit.converged), default=float("nan"))
                print(
                    f"  {who:24} train {train.mean():8.4f} (worst {train.min():8.4f}), held out "
                    f"{held_out.mean():8.4f}, {np.mean([fit.seconds for fit in own]):6.2f} s, converged "
                    f"{np.mean([fit.converged for fit in own]):.0%}, em still gains {still:.1e}", flush=True,
                )  # fmt: skip
    keep(done)


if __name__ == "__main__":
    main()
