"""EM iterations of hidden Markov models, compared with hmmlearn, and passes of stochastic methods with em's.

hmmlearn is left out if it is not installed (``pip install hmmlearn``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import swiftem
from benchmarks.row import Row
from benchmarks.runs import agree
from benchmarks.timing import Laps, least, threads
from swiftem import methods, models
from swiftem.core.problem import Problem
from swiftem.data import ArraySource
from swiftem.hmm.model import MarkovModel
from swiftem.hmm.sequences import SequenceSource

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Hidden Markov models, EM iteration"
LEAD = ("setting",)
NOTE = """"scaling" and "log" are hmmlearn's implementations, on one thread, from the same parameters; results
agree (checked first). Rows in passes: until the log-likelihood is within 1e-6 per step of the end of
em's fit (tol 1e-6), from the same poor start, the median of five seeds; em's passes are the peer's."""


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    small = 100 if quick else 1
    cases = [
        ("10,000 sequences of 100 steps", "diag", 10, 8, 10_000 // small, 100),
        ("one sequence of 10⁶ steps", "full", 5, 2, 1, 1_000_000 // small),
    ]
    for setting, kind, k, d, n, length in cases:
        source, model, theta = problem_of(kind, k, d, n, length)
        for number in (1, 2) if n > 1 else (1,):
            for implementation in ("scaling", "log") if find_spec("hmmlearn") else ():
                if implementation == "log" and number > 1:
                    continue
                goals = {("scaling", 1): 4.0 if n > 1 else 3.0, ("scaling", 2): 7.0, ("log", 1): 20.0}
                theirs = hmmlearn(source, theta, kind, implementation)
                calls = [em(source, model, theta, number), theirs]
                agree(setting, *(call()[1] for call in calls), tolerance=1e-8)
                value, peer_value = least([lambda call=call: call()[0] for call in calls], min(repeats, 3))  # type: ignore[misc]
                yield Row(
                    figure="hmm", model=kind, method="em", setting=setting, n=source.n, d=str(d), b=source.n,
                    components=k, threads=number, iterations=1, repeats=repeats, value=value,
                    unit="ns/iteration", peer=implementation, peer_value=peer_value, compared="speed-up",
                    goal=goals[implementation, number],
                )  # fmt: skip
    yield from _passes(100 if quick else 10_000)


def problem_of(kind: str, k: int, d: int, n: int, length: int) -> tuple[SequenceSource, MarkovModel, Any]:
    """Return n sequences, the model, and parameters that are not those of the data."""
    rng = np.random.default_rng(0)
    transitions = 0.8 * np.eye(k) + 0.2 * rng.dirichlet(np.ones(k), size=k)
    params = truth_of(k, d)
    truth = swiftem.HiddenMarkovModel.from_parameters(
        np.full(k, 1.0 / k), transitions, params, random_state=0
    )
    y, _ = truth.sample(n * length)
    source = SequenceSource(ArraySource(y), np.full(n, length))
    model = MarkovModel(models.GaussianMixtureModel(k, covariance=kind))
    covariances = np.tile(4.0 * np.eye(d), (k, 1, 1)) if kind == "full" else np.full((k, d), 4.0)
    start = np.full(k, 1.0 / k), np.full((k, k), 1.0 / k)
    return source, model, model.theta(*start, means=y[: 50 * k : 50], covariances=covariances)


def truth_of(k: int, d: int) -> dict[str, Any]:
    """Return the parameters of the states."""
    means = 1.5 * np.random.default_rng(1).normal(size=(k, d))
    return {"means": means, "covariances": np.ones((k, d))}


def em(
    source: SequenceSource, model: MarkovModel, theta: Any, number: int
) -> Callable[[], tuple[float, Any]]:
    """Return a measurement of an iteration by some threads, in nanoseconds, and its means."""

    def measure() -> tuple[float, Any]:
        laps = Laps()
        with threads(number):
            result = swiftem.run(
                model, source, methods.EM(), theta0=theta, n_iter=2, record_every=1,
                record=lambda iterate: None, callback=laps,
            )  # fmt: skip
        return 1e9 * laps.least(), result.theta.emissions.means

    return measure


def hmmlearn(
    source: SequenceSource, theta: Any, kind: str, implementation: str
) -> Callable[[], tuple[float, Any]]:
    """Return the same measurement of hmmlearn; what it does around an iteration is not counted."""
    from hmmlearn.hmm import GaussianHMM

    class Timed(GaussianHMM):  # type: ignore[misc]
        """hmmlearn's model with the time of each iteration."""

        def _do_mstep(self, stats: Any) -> None:
            super()._do_mstep(stats)
            self.laps(None)

    y, lengths = source.rows.rows_in_memory, source.lengths

    def measure() -> tuple[float, Any]:
        peer = Timed(
            len(theta.start), kind, n_iter=3, tol=-np.inf, init_params="", min_covar=0.0, covars_prior=0.0,
            covars_weight=0.0, implementation=implementation,
        )  # fmt: skip
        peer.laps = Laps()
        peer.n_features, peer.startprob_, peer.transmat_ = source.rows.tail[0], theta.start, theta.transitions
        peer.means_, peer.covars_ = theta.emissions.means, theta.emissions.covariances
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            peer.n_iter = 2
            peer.fit(y, lengths)
            means = peer.means_.copy()
        return 1e9 * peer.laps.least(), means

    return measure


def _passes(n: int) -> Iterator[Row]:
    """Yield the passes of stochastic methods until em's final log-likelihood."""
    source, model, theta = problem_of("diag", 6, 4, n, 50)
    params = {"means": 0.3 * truth_of(6, 4)["means"], "covariances": np.full((6, 4), 4.0)}
    chain = {"startprob_init": theta.start, "transmat_init": theta.transitions}
    y = source.rows.rows_in_memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = swiftem.HiddenMarkovModel(
            6, **chain, params_init=params, reg_covar=0.0, tol=1e-6, max_iter=500
        )
        fitted.fit(y, lengths=source.lengths)
    problem = Problem(model, source)
    theta = model.theta(theta.start, theta.transitions, **params)
    b = max(1, n // 128)
    for method in (
        methods.VarianceReducedEM(step_size=0.3, batch_size=b),
        methods.FastIncrementalEM(
            step_size=0.3, batch_size=b, memory_dtype="float32", memory_order="shuffled"
        ),
    ):
        passes = []
        for seed in range(5):
            reached: list[float] = []

            def is_reached(iterate: Any, reached: list[float] = reached) -> bool:
                if iterate.k and -problem.compute.objective(iterate.theta) >= fitted.log_likelihood_ - 1e-6:
                    reached.append(iterate.passes)
                return bool(reached)

            swiftem.run(
                model, problem, method, theta0=theta, seed=seed, n_iter=40 * method.epoch(n),
                record_every=method.epoch(n), record=lambda iterate: None, callback=is_reached,
            )  # fmt: skip
            passes.append(reached[0] if reached else np.inf)
        yield Row(
            figure="hmm", model="diag", method=method.name, setting="passes", n=source.n, d="4", components=6,
            b=b, iterations=1, repeats=5, value=median(passes), unit="passes", peer="em",
            peer_value=float(fitted.n_iter_), compared="ratio", goal=1.0 / 3.0,
        )  # fmt: skip
