"""Common parts of the Gaussian experiments: data, start, limit of batch EM, runs measured epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from paper.experiments.experiment import complete
from swiftem._run import run
from swiftem.core.algorithm import Iterate
from swiftem.core.draws import Seed
from swiftem.core.model import Model
from swiftem.core.types import Array, Theta
from swiftem.methods import EM, Method
from swiftem.models import GaussianMixtureModel, GaussianMixtureTheta


class Point(NamedTuple):
    """State of a run after an epoch: n iterations, one for ``"em"``.

    Attributes
    ----------
    epoch : int
        Epochs done.
    passes : float
        E-step evaluations divided by n, the first pass included.
    seconds : float
        Time of the run, without the measurements.
    value : float
        The measured value.
    """

    epoch: int
    passes: float
    seconds: float
    value: float


def trace(
    model: Model,
    data: Any,
    method: Method,
    *,
    theta0: Theta,
    epochs: int,
    seed: Seed,
    measure: Callable[[Theta], float],
) -> list[Point]:
    """Run ``method`` for ``epochs`` and measure θ after each, and before the first.

    Parameters
    ----------
    model, data, method, theta0, seed
        As in :func:`swiftem.run`; ``data`` as a source avoids reading it again.
    epochs : int
        Epochs, n iterations each; for ``"em"`` one iteration, which is a full pass.
    measure : callable
        Returns the value of a θ.

    Returns
    -------
    list of Point
        epochs + 1 of them.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C: an incomplete curve would be misleading in an average over runs.

    Examples
    --------
    >>> from swiftem import methods, models
    >>> model = models.GaussianMixtureModel(n_components=1)
    >>> start = model.theta(means=[[0.0]])
    >>> points = trace(
    ...     model, [1.0, 2.0], methods.EM(), theta0=start, epochs=2, seed=0, measure=lambda t: t.means.item()
    ... )
    >>> [(point.epoch, point.passes, round(point.value, 2)) for point in points]
    [(0, 1.0, 0.0), (1, 2.0, 1.5), (2, 3.0, 1.5)]
    """
    points: list[Point] = []
    measuring, began = 0.0, perf_counter()

    def record(iterate: Iterate) -> None:
        nonlocal measuring
        now = perf_counter()
        value = measure(iterate.theta)
        points.append(Point(len(points), iterate.passes, now - began - measuring, value))
        measuring += perf_counter() - now

    every = method.epoch(data.n if hasattr(data, "n") else len(data))
    result = run(
        model,
        data,
        method,
        theta0=theta0,
        n_iter=epochs * every,
        seed=seed,
        record_every=every,
        record=record,
    )
    complete(result)
    return points


def warm_up(model: Model, data: Any, methods: Iterable[Method], theta0: Theta) -> float:
    """Compile or load all kernels of these methods, and return the seconds it took.

    >>> from swiftem import methods, models
    >>> model = models.GaussianMixtureModel(n_components=1)
    >>> warm_up(model, [1.0, 2.0], [methods.EM()], model.theta(means=[[0.0]])) >= 0
    True
    """
    start = perf_counter()
    for method in methods:
        complete(run(model, data, method, theta0=theta0, n_iter=2, seed=0))
    return perf_counter() - start


MEANS = (0.5, -0.5)
START_MEANS = ((1.0,), (-1.0,))
DOUBLE_PRECISION = 1e-15
"""Batch EM has converged to double precision if its means, which are about 0.5, change by no more."""
MOST_PASSES = 50_000


class Limit(NamedTuple):
    r"""Limit of batch EM: :math:`\theta^\star`, its number of iterations, and whether it converged."""

    theta: GaussianMixtureTheta
    n_iter: int
    converged: bool


def gmm_data(n: int, rng: np.random.Generator, first_weight: float = 0.5) -> Array:
    """Return ``n`` samples of two Gaussians of unit variance with means ±0.5.

    Parameters
    ----------
    n : int
        Number of samples.
    rng : numpy.random.Generator
        Source of randomness.
    first_weight : float
        Weight of the component with mean 0.5.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from paper.experiments.gmm import gmm_data
    >>> y = gmm_data(100_000, np.random.default_rng(0))
    >>> bool(abs(y.var() - 1.25) < 0.02)  # 1 within the components, 0.25 between them
    True
    """
    return np.where(rng.random(n) < first_weight, *MEANS) + rng.normal(size=n)


def squared_error(theta: GaussianMixtureTheta, limit: Limit) -> float:
    r"""Return :math:`|\mu - \mu^\star|^2`, summed over the components."""
    return float(((theta.means - limit.theta.means) ** 2).sum())


def batch_em_limit(
    model: GaussianMixtureModel,
    y: Array,
    theta0: GaussianMixtureTheta,
    *,
    smallest_change: float = DOUBLE_PRECISION,
) -> Limit:
    r"""Return :math:`\theta^\star`, the limit of batch EM from ``theta0``.

    Parameters
    ----------
    model : GaussianMixtureModel
        The model.
    y : ndarray, shape (n,)
        The sample.
    theta0 : GaussianMixtureTheta
        The start.
    smallest_change : float
        Change of the means that counts as convergence; the default is double precision.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C: an incomplete reference is useless.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.experiments.gmm import START_MEANS, batch_em_limit, gmm_data
    >>> from swiftem.models import GaussianMixtureModel
    >>> model = GaussianMixtureModel(n_components=2)
    >>> y = gmm_data(1000, np.random.default_rng(0))
    >>> limit = batch_em_limit(model, y, model.theta(means=START_MEANS))
    >>> limit.converged, limit.theta.means.shape
    (True, (2, 1))
    """
    last = theta0.means

    def at_rest(iterate: Iterate) -> bool:
        nonlocal last
        change = float(np.abs(iterate.theta.means - last).max())
        last = iterate.theta.means
        return iterate.k > 0 and change <= smallest_change

    result = run(
        model, y, EM(), theta0=theta0, n_iter=MOST_PASSES, record=lambda iterate: None, callback=at_rest
    )
    complete(result)
    return Limit(result.theta, result.n_iter, result.status == "stopped")
