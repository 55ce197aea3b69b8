"""A pass of em on Gaussian mixtures with covariances, compared with scikit-learn's E-step and M-step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

import swiftem
from benchmarks.full_pass import passes
from benchmarks.mixture_fit import overlapping
from benchmarks.row import Row
from benchmarks.runs import agree
from benchmarks.timing import interleaved, least
from swiftem import data, methods, models
from swiftem.core.compute import Placement

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Pass of a mixture with covariances"
LEAD = ("model",)
NOTE = """Speed-up over scikit-learn's GaussianMixture on one thread; from the same parameters, both
give the same result, to 1e-9 (checked first). The mean is the geometric one of the three full rows. The last
row is a pass of a fit whose components have become narrow, so that it is done from differences, compared with
the first pass of that fit, with expanded squares."""
COMPONENTS = 20
CASES = (
    ("full", 200_000, 16, 3.0),
    ("full", 200_000, 2, 3.0),
    ("full", 50_000, 64, 3.0),
    ("tied", 200_000, 16, 10.0),
    ("diag", 200_000, 16, 3.0),
    ("spherical", 200_000, 16, 3.0),
)
MEAN_GOAL = 5.0
LATE, LATE_COMPONENTS, LATE_GOAL = 12, 32, 1.3
"""Iterations before the late pass; its time may be that of as many products and the differences."""


def rows(quick: bool, repeats: int, cases: Sequence[tuple[str, int, int, float]] = CASES) -> Iterator[Row]:
    found = []
    for kind, n, d, goal in cases:
        found.append(_row(kind, n // 20 if quick else n, d, goal, repeats))
        yield found[-1]
    full = [row for row in found if row.setting == "full"]
    value, peer_value = (
        prod(number ** (1 / len(full)) for number in numbers)
        for numbers in ([row.value for row in full], [float(row.peer_value or 1) for row in full])
    )
    yield Row(
        figure="mixture-pass", model="full, mean", method="em", setting="mean", n=0, d="", b=0,
        components=COMPONENTS, iterations=1, repeats=repeats, value=value, unit="ns/iteration",
        peer="scikit-learn", peer_value=peer_value, compared="speed-up", goal=MEAN_GOAL,
    )  # fmt: skip
    yield _late(10_000 if quick else 200_000, 16, repeats)


def _late(n: int, d: int, repeats: int) -> Row:
    """A pass after some iterations of em, compared with the first."""
    y = overlapping(n, 0, d, LATE_COMPONENTS)
    model, source = (
        models.GaussianMixtureModel(LATE_COMPONENTS, covariance="full", reg_covar=1e-6),
        data.ArraySource(y),
    )
    first = model.theta(
        means=y[np.random.default_rng(0).choice(n, LATE_COMPONENTS, replace=False)],
        covariances=np.stack([np.cov(y.T)] * LATE_COMPONENTS),
    )
    late = swiftem.run(model, source, methods.EM(), theta0=first, n_iter=LATE).theta
    value, peer_value = least([passes(model, source, theta, 1) for theta in (late, first)], repeats)
    return Row(
        figure="mixture-pass", model=f"full, d = {d}, late", method="em", setting="late", n=n, d=str(d), b=n,
        components=LATE_COMPONENTS, iterations=1, repeats=repeats, value=value, unit="ns/iteration",
        peer="first pass", peer_value=peer_value, compared="ratio", goal=LATE_GOAL,
    )  # fmt: skip


def _row(kind: str, n: int, d: int, goal: float, repeats: int) -> Row:
    model, source, theta = problem(kind, n, d)
    theirs = scikit_learn_pass(kind, source.y, theta)
    e_step = model.bind(source).compute(source, Placement())
    agree(f"{TITLE}, {kind}", model.bind(source).m_step(e_step.full(theta))[:3], theirs()[:3])
    ours = passes(model, source, theta, 1)
    value, peer_value = least([ours, lambda: interleaved([theirs], 1)[0]], repeats)
    return Row(
        figure="mixture-pass", model=f"{kind}, d = {d}", method="em", setting=kind, n=n, d=str(d), b=n,
        components=COMPONENTS, iterations=1, repeats=repeats, value=value, unit="ns/iteration",
        peer="scikit-learn", peer_value=peer_value, compared="speed-up", goal=goal,
    )  # fmt: skip


def problem(kind: str, n: int, d: int) -> tuple[Any, Any, Any]:
    """Return model, source and θ after an iteration of em from the model's own start."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=2.0, size=(COMPONENTS, d))
    y = centres[rng.integers(COMPONENTS, size=n)] + rng.normal(size=(n, d))
    model, source = (
        models.GaussianMixtureModel(COMPONENTS, covariance=kind, reg_covar=1e-6),
        data.ArraySource(y),
    )
    bound = model.bind(source)
    e_step = bound.compute(source, Placement())
    return model, source, bound.m_step(e_step.full(bound.initial_theta(rng)))


def scikit_learn_pass(kind: str, y: Any, theta: Any) -> Callable[[], Any]:
    """Return a call of one E-step and M-step; ``fit`` would add checks, a start and a last E-step."""
    from sklearn.mixture import GaussianMixture

    peer = GaussianMixture(len(theta.weights), covariance_type=kind)

    def call() -> Any:
        peer.weights_, peer.means_, peer.covariances_, peer.precisions_cholesky_ = theta
        _, log_responsibility = peer._e_step(y)
        peer._m_step(y, log_responsibility)
        return peer.weights_, peer.means_, peer.covariances_

    return call
