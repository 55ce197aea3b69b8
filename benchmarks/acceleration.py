"""Passes of em and of accelerated em to the same optimum; seconds are not measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np

from benchmarks.row import Row

__all__ = ["LEAD", "NOTE", "TITLE", "Found", "measured", "rows"]

TITLE = "Passes of accelerated em to the optimum"
LEAD = ("model", "method", "setting")
NOTE = """Passes until the objective is within 1e-9 of the optimum, to which all runs go: they start from the
parameters that the rows were drawn with. Means differ by about as much as the components are wide. Counts do
not depend on the machine."""
N, D, M, SEEDS, GAP = 50_000, 4, 6, (0, 1, 2), 1e-9
GOAL = 0.25
MOST = 20_000
NAMES = ("squarem", "anderson")


class Found(NamedTuple):
    """Passes of a run, and how far its objective then is from the optimum."""

    passes: float
    gap: float


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    from swiftem.methods import EM, Accelerated

    n = 2_000 if quick else N
    for seed in SEEDS[:1] if quick else SEEDS:
        plain, *quicker = measured(n, seed, [EM(), *(Accelerated(EM(), name) for name in NAMES)])
        for name, found in zip(NAMES, quicker, strict=True):
            yield Row(
                figure="acceleration", model="full, overlapping", method=name, setting=f"seed {seed}", n=n,
                d=str(D), components=M, b=n, iterations=1, repeats=1, value=found.passes, unit="passes",
                peer="em", peer_value=plain.passes, compared="ratio", goal=GOAL,
            )  # fmt: skip


def measured(n: int, seed: int, methods: Sequence[Any]) -> list[Found]:
    """Return the passes of each method to the optimum; a run that ends elsewhere has infinitely many."""
    import swiftem
    from swiftem._run import run_problem
    from swiftem.core.problem import Problem
    from swiftem.methods import EM, Accelerated

    rng = np.random.default_rng(seed)
    weights, means = rng.dirichlet(np.full(M, 8.0)), rng.normal(size=(M, D))
    shapes = np.eye(D) + 0.2 * rng.normal(size=(M, D, D))
    labels = rng.choice(M, n, p=weights)
    y = means[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, D)))
    model = swiftem.models.GaussianMixtureModel(M, covariance="full", reg_covar=1e-6)
    theta0 = model.theta(weights=weights, means=means, covariances=shapes @ shapes.transpose(0, 2, 1))
    problem = Problem(model, swiftem.data.ArraySource(y))

    def run(method: Any, optimum: float = -inf) -> tuple[float, list[float]]:
        """Return passes and objectives until the optimum is reached, or nothing has changed for long."""
        values: list[float] = []

        def look(iterate: Any) -> bool:
            values.append(problem.compute.objective(iterate.theta))
            return values[-1] < optimum + GAP or (len(values) > 100 and values[-100] - values[-1] < 1e-13)

        result = run_problem(
            problem, method, theta0=theta0, n_iter=MOST, record=lambda iterate: None, callback=look
        )
        return result.passes, values

    optimum = min(run(Accelerated(EM(), "squarem"))[1])
    found = []
    for method in methods:
        passes, values = run(method, optimum)
        gap = values[-1] - optimum
        found.append(Found(passes if abs(gap) < GAP else inf, gap))
    return found
