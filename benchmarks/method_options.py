"""What the options of the methods gain: order of draws, averages, growing batches, opt-FIEM's coefficient.

``python -m benchmarks.method_options`` prints the tables of docs/methods.md; ``--quick`` does a tenth of it.
Errors are ‖ŝ − s*‖, s* from em; medians over seeds.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import swiftem
from swiftem import methods, models, schedules
from swiftem.core.compute import Compute
from swiftem.data import ArraySource

MODEL = models.GaussianMixtureModel(2)
START = MODEL.theta(weights=[0.5, 0.5], means=[[2.0], [-0.5]])


def sample(n: int, mean: float = 1.5) -> Any:
    """Return a sample of two components, with means ±1.5: noise then matters more than slow progress."""
    rng = np.random.default_rng(0)
    return rng.normal(size=n) + np.where(rng.random(n) < 0.5, mean, -mean)


def error(y: Any, method: methods.Method, passes: float, best: Any, seeds: int, **options: Any) -> float:
    """Return the median distance from the optimum after about as many passes."""
    n_iter = round(passes * method.epoch(len(y)) / max(1, method.evaluations))
    runs = [
        swiftem.run(MODEL, y, method, theta0=START, n_iter=n_iter, seed=seed, **options).s
        for seed in range(seeds)
    ]
    return float(np.median([np.linalg.norm(s - best) for s in runs]))


def optimum(y: Any, **options: Any) -> Any:
    """Return s*."""
    return swiftem.run(MODEL, y, methods.EM(), theta0=START, n_iter=3000, **options).s


def orders(n: int, seeds: int) -> None:
    """Print errors of both orders, and with heavy weights of draws by weight."""
    y, root = sample(n), int(np.sqrt(n))
    best = optimum(y)
    weight = np.random.default_rng(1).pareto(1.5, size=n) + 0.01
    heavy = optimum(y, sample_weight=weight)
    print(
        "\n| method | passes | iid | shuffled | iid, weights | weighted, weights |\n|---|---|---|---|---|---|"
    )
    for kind, given in (
        (methods.OnlineEM, {}),
        (methods.IncrementalEM, {}),
        (methods.VarianceReducedEM, {}),
        (methods.FastIncrementalEM, {}),
        (methods.OptFIEM, {}),
        (methods.SpiderEM, {"batch_size": root, "step_size": 0.5}),
    ):
        for passes in (5, 20):
            found = [
                error(y, kind(order=order, **given), passes, best, seeds) for order in ("iid", "shuffled")
            ]
            found += [
                error(y, kind(order=order, **given), passes, heavy, seeds, sample_weight=weight)
                for order in ("iid", "weighted")
            ]
            print(f"| `{kind.name}` | {passes} | " + " | ".join(f"{value:.1e}" for value in found) + " |")


def averages(n: int, seeds: int) -> None:
    """Print errors of sem with and without averages."""
    y = sample(n)
    best = optimum(y)
    print("\n| step of `sem` | passes | last | suffix | window n |\n|---|---|---|---|---|")
    for name, step in (
        ("3 / (k + 10)", schedules.inverse(3, 10)),
        ("(k + 5)^-0.6", schedules.power(1, 0.6, 5)),
    ):
        for passes in (5, 20):
            found = [
                error(
                    y,
                    methods.OnlineEM(step)
                    if average is None
                    else methods.Averaged(methods.OnlineEM(step), average),
                    passes,
                    best,
                    seeds,
                )
                for average in (None, "suffix", n)
            ]
            print(f"| {name} | {passes} | " + " | ".join(f"{value:.1e}" for value in found) + " |")


def growth(n: int, seeds: int) -> None:
    """Print errors and iterations of sem with constant and growing batches, after 20 passes."""
    y = sample(n)
    best = optimum(y)
    print("\n| `sem` | error after 20 passes | iterations |\n|---|---|---|")
    for name, method in (
        ("b = 10, γ = 0.1", methods.OnlineEM(0.1, 10)),
        (f"b = {n // 50}, γ = 0.1", methods.OnlineEM(0.1, n // 50)),
        ("b = 10, γ = 3 / (k + 10)", methods.OnlineEM(batch_size=10)),
    ):
        ends = [
            swiftem.run(
                MODEL, y, method, theta0=START, n_iter=20 * n, seed=seed, record_every=10,
                record=lambda iterate: None, callback=lambda iterate: iterate.passes >= 21,
            )
            for seed in range(seeds)
        ]  # fmt: skip
        value = np.median([np.linalg.norm(end.s - best) for end in ends])
        print(f"| {name} | {value:.1e} | {np.median([end.n_iter for end in ends]):.0f} |")


def coefficient(n: int) -> None:
    """Print λ, the best one, and the variance of the proxy over that of fiem, along a run of opt-fiem.

    The sample is the paper's, whose components overlap: statistics then change much along the run.
    """
    y, method = sample(n, 0.5), methods.OptFIEM()
    source = ArraySource(y)
    e_step = Compute(MODEL.bind(source), source)
    everyone = e_step.take(np.arange(n))
    print("\n| passes | λ | best λ | variance over fiem's |\n|---|---|---|---|")
    result = swiftem.run(MODEL, y, method, theta0=START, n_iter=0, seed=0)
    for more in (n // 10, n // 10, 3 * n // 10, n // 2, n, 3 * n):
        result = swiftem.run(
            MODEL, y, method, theta0=result.theta, s0=result.s, state=result.state, n_iter=more
        )
        now, kept = e_step.rows(everyone, result.theta), result.state.method.memory
        now, kept = (np.hstack([part, part * y[:, None]]) for part in (now, kept))
        now, kept = now - now.mean(axis=0), kept - kept.mean(axis=0)
        best, learned = np.sum(now * kept) / np.sum(kept**2), result.state.method.moments[2]
        ratio = np.sum((now - learned * kept) ** 2) / np.sum((now - kept) ** 2)
        print(f"| {result.passes:.1f} | {learned:.3f} | {best:.3f} | {ratio:.3f} |")


def main() -> None:
    """Print all tables."""
    n, seeds = (1000, 3) if "--quick" in sys.argv else (10_000, 3)
    for table in (orders, averages, growth):
        table(n, seeds)
    coefficient(n)


if __name__ == "__main__":
    main()
