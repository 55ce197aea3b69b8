"""Arithmetic for a cluster that is not at hand: ``python -m benchmarks.scale_on_paper``.

It computes the time of an em pass, what travels, and what the scheduler and stragglers cost, from the few
constants below. ``docs/many_machines.md`` has the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt

__all__ = ["Cluster", "Constants", "Pass", "estimate", "table"]


@dataclass(frozen=True)
class Constants:
    """Seconds per number and per task are measured, the others are assumed.

    Attributes
    ----------
    flop_seconds : float
        Seconds per row, component and d²: 0.26 s for n = 10⁶, M = 32, d = 16 on two threads.
    task_seconds : float
        CPU of client and scheduler per task, rounded: 1.4 to 1.6 ms on a busy machine.
    task_bytes : float
        Bytes of a task in addition to its result.
    round_trip : float
        Seconds from a submitted graph to the first result, with the parameters sent to a worker.
    bandwidth : float
        Bytes per second of one network connection, 10 Gbit/s.
    spread : float
        Standard deviation of the logarithm of a task's time.
    """

    flop_seconds: float = 2 * 0.26 / (1e6 * 32 * 16**2)
    task_seconds: float = 1e-3
    task_bytes: float = 4096.0
    round_trip: float = 0.03
    bandwidth: float = 1.25e9
    spread: float = 0.1


@dataclass(frozen=True)
class Cluster:
    """``rows`` in ``units``, on ``workers`` of ``cores`` each with ``memory`` bytes."""

    rows: float = 1e11
    workers: int = 1000
    cores: int = 16
    memory: float = 128e9
    units: int = 20_000


@dataclass(frozen=True)
class Pass:
    """Seconds of the parts of a pass, and bytes.

    Attributes
    ----------
    compute : float
        Of a worker, for its units.
    scheduler : float
        Of the scheduler, for all tasks; it works while workers do.
    results, parameters : float
        Seconds to bring the statistics to the client, and θ to all workers (each one sends it on).
    stragglers : float
        How much later the last worker ends than the average one.
    total : float
        Of the pass.
    bytes_results, bytes_parameters, unit_bytes : float
        What travels, and the size of a unit.
    """

    compute: float
    scheduler: float
    results: float
    parameters: float
    stragglers: float
    total: float
    bytes_results: float
    bytes_parameters: float
    unit_bytes: float


def statistics(components: int, d: int) -> int:
    """Return q for full covariances.

    >>> statistics(32, 16)
    4896
    """
    return components * (1 + d + d * (d + 1) // 2)


def estimate(components: int, d: int, cluster: Cluster, known: Constants) -> Pass:
    """Return the parts of an em pass."""
    q = statistics(components, d)
    compute = known.flop_seconds * cluster.rows * components * d**2 / (cluster.workers * cluster.cores)
    per_worker = cluster.units / cluster.workers
    scheduler = cluster.units * known.task_seconds
    bytes_results = cluster.units * (8.0 * q + known.task_bytes)
    bytes_parameters = cluster.workers * 8.0 * q
    # All results enter the client by one connection; θ spreads in rounds, which double those who have it.
    results = bytes_results / known.bandwidth
    parameters = 8.0 * q / known.bandwidth * log(cluster.workers, 2) + known.round_trip
    # The largest of W sums of lognormal times, by the quantile of the normal distribution.
    factor = sqrt(exp(known.spread**2) - 1.0) / sqrt(per_worker)
    stragglers = compute * factor * sqrt(2.0 * log(cluster.workers))
    total = max(compute + stragglers, scheduler, results) + parameters
    return Pass(
        compute, scheduler, results, parameters, stragglers, total, bytes_results, bytes_parameters,
        8.0 * cluster.rows * d / cluster.units,
    )  # fmt: skip


def table(cluster: Cluster, known: Constants) -> list[str]:
    """Return the table of the documentation, in Markdown."""
    cases = [estimate(components, d, cluster, known) for components, d in ((32, 16), (256, 64))]
    lines = [
        "| per em pass | M = 32, d = 16 | M = 256, d = 64 |", "|---|--:|--:|",
        f"| numbers per unit, q | {statistics(32, 16):,} | {statistics(256, 64):,} |",
    ]  # fmt: skip
    for words, name in (
        ("compute, per worker", "compute"), ("last worker after the average one", "stragglers"),
        ("scheduler, for all tasks", "scheduler"), ("results to the client", "results"),
        ("parameters to all workers", "parameters"), ("**whole pass**", "total"),
    ):  # fmt: skip
        lines.append(f"| {words} | " + " | ".join(f"{getattr(case, name):,.1f} s" for case in cases) + " |")
    lines.append("| results | " + " | ".join(f"{case.bytes_results / 1e9:,.1f} GB" for case in cases) + " |")
    lines.append("| a unit | " + " | ".join(f"{case.unit_bytes / 1e9:,.2f} GB" for case in cases) + " |")
    data = [8.0 * cluster.rows * d for d in (16, 64)]
    shares = [size / (cluster.workers * cluster.memory) for size in data]
    lines.append(
        "| all rows, share of memory | "
        + " | ".join(f"{size / 1e12:,.0f} TB, {share:.0%}" for size, share in zip(data, shares, strict=True))
        + " |"
    )
    return lines


if __name__ == "__main__":
    for units in (4_000, 20_000):
        print(f"{units:,} units:\n", *table(Cluster(units=units), Constants()), sep="\n", end="\n\n")
