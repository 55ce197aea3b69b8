"""Passes of other families, compared with StepMix, the unit-variance mixture and the spherical Gaussian.

StepMix is left out if it is not installed (``pip install stepmix``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import swiftem
from benchmarks.full_pass import passes
from benchmarks.row import Row
from benchmarks.timing import interleaved, least
from swiftem import data, methods, models

__all__ = ["LEAD", "NOTE", "TITLE", "rows"]

TITLE = "Passes of other families"
LEAD = ("model",)
NOTE = """Two threads. "StepMix" is one E-step and M-step of StepMix 3.0 from the same parameters; the
rows in nats are the difference of the mean log-likelihoods after 100 iterations from the same start, without
a prior. "unit variance" and "spherical" are swiftem's own passes over numbers of the same shape. "no holes"
is the pass over the same rows before cells were left out."""
THREADS, M, ITERATIONS = 2, 20, 100
MISSING = 0.1
"""Share of missing cells."""


class Case(NamedTuple):
    """Rows, our model, StepMix's names, and the parameters that StepMix has for ours."""

    name: str
    y: Any
    model: Any
    measurement: str
    options: dict[str, Any]
    sizes: tuple[int, ...]


def rows(quick: bool, repeats: int) -> Iterator[Row]:
    with threadpool_limits(THREADS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make in (bernoulli, categorical, gaussian):
            case = make(max(make(1).sizes) // (100 if quick else 1))
            if find_spec("stepmix"):
                yield _difference(make(20_000))
                yield _difference(with_holes(make(20_000)))
            for n in case.sizes:
                size = n // 100 if quick else n
                source = data.ArraySource(case.y[:size])
                theta = start(case.model, source)
                if find_spec("stepmix"):
                    yield _row(
                        case, source, theta, repeats, "StepMix", stepmix(case, source.y, theta)[1], 6.0
                    )
                if case.name == "bernoulli":
                    yield _row(case, source, theta, repeats, "unit variance", _unit(source.y), 1.2)
        n, d, m = (2_000, 16, 8) if quick else (1_000_000, 128, 64)
        yield directions(n, d, m, repeats)
        yield missing_cells(2_000 if quick else 200_000, repeats)


def bernoulli(n: int) -> Case:
    """Answers yes and no: 50 columns."""
    rng = np.random.default_rng(0)
    likely = rng.uniform(0.1, 0.9, size=(M, 50))
    y = (rng.random((n, 50)) < likely[rng.integers(M, size=n)]).astype(np.float64)
    return Case(
        "bernoulli", y, models.MixtureModel(M, "bernoulli", smoothing=0.0), "binary", {}, (10**5, 10**6)
    )


def categorical(n: int) -> Case:
    """20 columns of 10 levels."""
    rng = np.random.default_rng(0)
    ends = np.cumsum(rng.dirichlet(np.ones(10), size=(M, 20)), axis=2)
    kind, at = rng.integers(M, size=n), rng.random((n, 20))
    y = np.minimum((at[:, :, None] > ends[kind]).sum(axis=2), 9).astype(np.float64)
    family = swiftem.families.Categorical(levels=(10,) * 20)
    return Case("categorical", y, models.MixtureModel(M, family, smoothing=0.0), "categorical", {}, (10**5,))


def gaussian(n: int) -> Case:
    """16 columns of numbers, with a variance each."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=2.0, size=(M, 16))
    y = centres[rng.integers(M, size=n)] + rng.normal(size=(n, 16))
    model = models.MixtureModel(M, swiftem.families.Gaussian(floor=0.0), smoothing=0.0)
    return Case("gaussian", y, model, "gaussian_diag", {"reg_covar": 0.0}, (10**5,))


def with_holes(case: Case) -> Case:
    """Return a case with missing cells."""
    y = case.y.copy()
    y[np.random.default_rng(1).random(y.shape) < MISSING] = np.nan
    return case._replace(
        y=y, model=replace(case.model, missing="ignore"), measurement=f"{case.measurement}_nan", options={}
    )


def start(model: Any, source: Any) -> Any:
    """Return θ after two passes from the model's own start."""
    return swiftem.run(model, source, methods.EM(), n_iter=2, seed=0).theta


def stepmix(case: Case, y: Any, theta: Any) -> tuple[Any, Callable[[], Any]]:
    """Return StepMix with our parameters, and a call of its E-step and M-step."""
    from stepmix.stepmix import StepMix

    peer = StepMix(
        len(theta.weights), measurement=case.measurement, measurement_params=case.options, random_state=0
    )
    peer._check_initial_parameters(y)
    peer._initialize_parameters(y, np.random.RandomState(0))
    peer.weights_ = theta.weights.copy()
    params = theta.params
    if case.measurement == "gaussian_diag_nan":
        peer._mm.parameters = {"means": params["means"].copy(), "covariances": params["variances"].copy()}
    elif case.name == "gaussian":
        peer._mm.means_, peer._mm.covariances_ = params["means"].copy(), params["variances"].copy()
        peer._mm.precisions_cholesky_ = 1.0 / np.sqrt(params["variances"])
    else:
        peer._mm.parameters["pis"] = params["probabilities"].reshape(len(theta.weights), -1).copy()

    def call() -> Any:
        _, log_responsibility = peer._e_step(y)
        peer._m_step(y, np.exp(log_responsibility))

    return peer, call


def _row(
    case: Case, source: Any, theta: Any, repeats: int, peer: str, theirs: Callable[[], Any], goal: float
) -> Row:
    ours = passes(case.model, source, theta, THREADS)
    measure = theirs if peer == "unit variance" else lambda: interleaved([theirs], 1)[0]
    value, peer_value = least([ours, measure], repeats)
    return Row(
        figure="families", model=f"{case.name}, n = {source.n:.0e}", method="em",
        setting=f"{peer} {source.n}", n=source.n, d=str(source.y.shape[1]), b=source.n, components=M,
        threads=THREADS, iterations=1,
        repeats=repeats, value=value, unit="ns/iteration", peer=peer, peer_value=peer_value,
        compared="speed-up" if peer == "StepMix" else "ratio", goal=goal,
    )  # fmt: skip


def _unit(y: Any) -> Callable[[], float]:
    """Return a measurement of the pass of unit variances over numbers of the same shape."""
    source = data.ArraySource(np.random.default_rng(1).normal(size=y.shape))
    model = models.GaussianMixtureModel(M)
    return passes(model, source, start(model, source), THREADS)


def _difference(case: Case) -> Row:
    """Return the difference of mean log-likelihoods after the same number of iterations."""
    has_holes = case.model.missing == "ignore"
    source, n = data.ArraySource(case.y, allow_missing=has_holes), len(case.y)
    theta = start(case.model, source)
    peer, call = stepmix(case, source.y, theta)
    for _ in range(ITERATIONS):
        call()
    theirs = float(peer._e_step(source.y)[0])
    found = swiftem.run(case.model, source, methods.EM(), theta0=theta, n_iter=ITERATIONS).theta
    ours = -float(swiftem.objective(case.model, source, found))
    return Row(
        figure="families", model=f"{case.name}{' with holes' if has_holes else ''}, likelihood", method="em",
        setting="difference", n=n,
        d=str(source.y.shape[1]), b=n, components=M, threads=THREADS, iterations=ITERATIONS, repeats=1,
        value=abs(ours - theirs), unit="nats", peer="StepMix", compared="value", goal=1e-6,
    )  # fmt: skip


def directions(n: int, d: int, m: int, repeats: int) -> Row:
    """Return the pass of directions, compared with that of spherical Gaussians on the same rows."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(m, d))[rng.integers(m, size=n)] + rng.normal(size=(n, d))
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    source = data.ArraySource(y)
    model = models.MixtureModel(m, "von-mises-fisher", smoothing=0.0)
    peer = models.GaussianMixtureModel(m, covariance="spherical")
    value, peer_value = least(
        [passes(each, source, start(each, source), THREADS) for each in (model, peer)], repeats
    )
    return Row(
        figure="families", model="von Mises–Fisher", method="em", setting="directions", n=n, d=str(d), b=n,
        components=m, threads=THREADS, iterations=1, repeats=repeats, value=value, unit="ns/iteration",
        peer="spherical", peer_value=peer_value, compared="ratio", goal=1.2,
    )  # fmt: skip


def missing_cells(n: int, repeats: int) -> Row:
    """Return the pass of full covariances with missing cells, compared with that over the complete rows."""
    m, d, rng = 8, 10, np.random.default_rng(0)
    maps, kind = rng.normal(size=(m, d, d)), rng.integers(m, size=n)
    y = 4.0 * rng.normal(size=(m, d))[kind] + np.einsum("nij,nj->ni", maps[kind], rng.normal(size=(n, d)))
    holes = np.where(rng.random(y.shape) < MISSING, np.nan, y)
    sources = data.ArraySource(y), data.ArraySource(holes, allow_missing=True)
    made = [
        models.GaussianMixtureModel(m, covariance="full", missing=missing) for missing in ("error", "ignore")
    ]
    theta = start(made[0], sources[0])
    peer_value, value = least(
        [passes(model, source, theta, THREADS) for model, source in zip(made, sources, strict=True)], repeats
    )
    return Row(
        figure="families", model="full covariances with holes", method="em", setting="missing", n=n, d=str(d),
        b=n, components=m, threads=THREADS, iterations=1, repeats=repeats, value=value, unit="ns/iteration",
        peer="no holes", peer_value=peer_value, compared="ratio", goal=6.0,
    )  # fmt: skip
