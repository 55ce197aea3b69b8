"""Fits of both libraries to one problem, in a table that grows line by line, so that a run resumes."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from benchmarks.optima_data import Split
from benchmarks.timing import threads

__all__ = ["OURS", "PEERS", "Fitted", "fits", "read_fits", "stored"]

PEERS: dict[str, dict[str, Any]] = {"scikit-learn": {}, "scikit-learn n_init=10": {"n_init": 10}}
OURS: dict[str, dict[str, Any]] = {
    "auto": {}, "n_init=10": {"n_init": 10}, "em": {"method": "em"}, "sem-vr": {"method": "sem-vr"},
    "fiem": {"method": "fiem"},
}  # fmt: skip
BEST_SEEDS = 2
"""Number of seeds of fits with n_init=10."""


class Fitted(NamedTuple):
    """A fit: whose, of what, how long, and where it ended.

    Attributes
    ----------
    rows : int
        Rows fitted.
    seconds, cpu : float
        Wall-clock time, and that of all threads.
    train, held_out : float
        Mean log-likelihood of a row.
    still : float
        What em gains per row if it continues for long; NaN for scikit-learn.
    """

    data: str
    kind: str
    components: int
    who: str
    seed: int
    rows: int
    seconds: float
    cpu: float
    train: float
    held_out: float
    converged: bool
    still: float


def fits(
    name: str, split: Split, kind: str, components: int, seeds: Sequence[int],
    who: Sequence[str] = (*PEERS, *OURS), done: Sequence[Fitted] = (), *, continued: bool = True,
) -> Iterator[Fitted]:  # fmt: skip
    """Yield the fits of both libraries that are not in ``done``; ours are compiled before they are timed.

    ``continued``: whether em continues after each of our fits, for ``still``.
    """
    from sklearn import mixture

    import swiftem

    have = {fit[:5] for fit in done}
    shared: dict[str, Any] = {"n_components": components, "covariance_type": kind}
    warm: set[str] = set()
    with threads(2), threadpool_limits(2), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that did not converge
        for seed in seeds:
            for one in who:
                options = PEERS[one] if one in PEERS else OURS[one]
                if ("n_init" in options and seed >= BEST_SEEDS) or (
                    name,
                    kind,
                    components,
                    one,
                    seed,
                ) in have:
                    continue
                if one in OURS and one not in warm:
                    swiftem.GaussianMixture(**shared, **options, max_iter=10).fit(split.train[:3000])
                    warm.add(one)
                kind_of = swiftem.GaussianMixture if one in OURS else mixture.GaussianMixture
                model = kind_of(**shared, **options, random_state=seed)
                began, cpu = perf_counter(), process_time()
                model.fit(split.train)
                seconds, cpu = perf_counter() - began, process_time() - cpu
                score = float(model.score(split.train))
                still = _still(model, split) - score if continued and one in OURS else float("nan")
                yield Fitted(
                    name, kind, components, one, seed, len(split.train), seconds, cpu, score,
                    float(model.score(split.held_out)), bool(model.converged_), still,
                )  # fmt: skip


def _still(model: Any, split: Split) -> float:
    """Return where em comes to if it continues for long from the end of a fit."""
    import swiftem

    more = swiftem.GaussianMixture.from_parameters(
        model.weights_, model.means_, model.covariances_, covariance_type=model.covariance_type,
        method="em", tol=1e-10, max_iter=300, warm_start=True,
    )  # fmt: skip
    return float(more.fit(split.train).score(split.train))


def read_fits(file: Path) -> list[Fitted]:
    """Return the fits of a table; none if there is no file."""
    if not file.exists():
        return []
    with open(file, newline="", encoding="utf-8") as stream:
        return [
            Fitted(
                line["data"], line["kind"], int(line["components"]), line["who"], int(line["seed"]),
                int(line["rows"]), *(float(line[key]) for key in ("seconds", "cpu", "train", "held_out")),
                line["converged"] == "True", float(line["still"]),
            )
            for line in csv.DictReader(stream)
        ]  # fmt: skip


def stored(found: Iterator[Fitted], file: Path) -> Iterator[Fitted]:
    """Yield fits after appending each of them to a table."""
    file.parent.mkdir(parents=True, exist_ok=True)
    for fit in found:
        is_new = not file.exists()
        with open(file, "a", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            if is_new:
                writer.writerow(Fitted._fields)
            writer.writerow(fit)
        yield fit
