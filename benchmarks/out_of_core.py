"""An em pass on files four times larger than the memory limit, compared with the same rows in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import swiftem
from benchmarks.row import Row
from benchmarks.runs import agree
from benchmarks.timing import Laps, least, threads
from swiftem import methods, models
from swiftem.data import ArraySource, open_source

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Rows in files, em pass and M-step"
LEAD = ("setting",)
NOTE = """Ratio: time of the file divided by that of the same rows in memory, two threads each, warm page
cache. Results agree to rounding (checked first). The file is four times larger than memory_limit."""
GOALS = {"npy": 1.5, "parquet": 3.0, "csv": None}
D, M = 16, 32
LIMIT = "100MB"


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    n = 2_000 if quick else 3_200_000  # 410 MB
    rng = np.random.default_rng(0)
    y = rng.normal(size=(n, D))
    y += rng.normal(scale=4.0, size=(M, D))[rng.integers(M, size=n)]
    model = models.GaussianMixtureModel(M, covariance="full", reg_covar=1e-6)
    in_memory = ArraySource(y)
    theta = model.bind(in_memory).initial_theta(rng)
    with tempfile.TemporaryDirectory() as folder:
        for kind, file in _files(Path(folder), y).items():
            source = open_source(file)
            calls = [_pass(model, source, theta), _pass(model, in_memory, theta)]
            agree(f"{TITLE}, {kind}", *(call()[1] for call in calls), tolerance=1e-9)
            value, peer_value = least([lambda call=call: call()[0] for call in calls], repeats)  # type: ignore[misc]
            yield Row(
                figure="out-of-core", model="full covariance", method="em", setting=kind, n=source.n,
                d=str(D), components=M, b=source.n, threads=2, iterations=1, repeats=repeats, value=value,
                unit="ns/iteration", peer="in memory", peer_value=peer_value, compared="ratio",
                goal=GOALS[kind],
            )  # fmt: skip


def _files(folder: Path, y: Any) -> dict[str, Path]:
    """Write the rows in each format; Parquet in row groups of 50,000, uncompressed as numbers are noise."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    table = pa.table({f"c{place}": y[:, place] for place in range(D)})
    found = {kind: folder / f"rows.{kind}" for kind in GOALS}
    np.save(found["npy"], y)
    parquet.write_table(
        table, found["parquet"], row_group_size=50_000, use_dictionary=False, compression="none"
    )
    csv.write_csv(table, found["csv"])
    return found


def _pass(model: Any, source: Any, theta: Any) -> Callable[[], tuple[float, Any]]:
    """Return a measurement of a pass and M-step by two threads, in nanoseconds: the better of two."""
    s0 = swiftem.run(model, source, methods.EM(), theta0=theta, n_iter=0).s

    def measure() -> tuple[float, Any]:
        laps = Laps()
        with threads(2):
            result = swiftem.run(
                model, source, methods.EM(), theta0=theta, s0=s0, n_iter=2, memory_limit=LIMIT,
                record_every=1, record=lambda iterate: None, callback=laps,
            )  # fmt: skip
        return 1e9 * laps.least(), result.theta

    return measure
