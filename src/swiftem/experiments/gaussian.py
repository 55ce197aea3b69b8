"""The paper's Gaussian example with a fixed sample size: five methods, their precision by epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log10
from time import perf_counter
from typing import NamedTuple

import numpy as np

from swiftem._checks import check_int
from swiftem._typing import Array
from swiftem.algorithm import run
from swiftem.methods import EM, FastIncrementalEM, IncrementalEM, Method, OnlineEM, VarianceReducedEM
from swiftem.models import GaussianMixtureModel, GaussianMixtureTheta
from swiftem.result import Iterate
from swiftem.schedules import inverse

__all__ = [
    "GaussianConvergence", "Limit", "Row",
    "batch_em_limit", "gaussian_convergence", "gaussian_data", "paper_methods",
]  # fmt: skip

Progress = Callable[[str, float], None]
"""Told the stage (``"reference"`` or a method's name) and the share of it that is done, from 0 to 1."""

MODEL = GaussianMixtureModel(n_components=2, covariance="unit", delta=1e-3, epsilon=1e-3)
START = MODEL.theta(weights=[0.5, 0.5], means=[[1.0], [-1.0]])
SMALLEST_CHANGE = 1e-15
"""Batch EM has converged to double precision when its means, which are about 0.5, change by no more."""
MOST_PASSES = 50_000


class Row(NamedTuple):
    r"""One method after one epoch.

    Attributes
    ----------
    method : str
        As users write it, such as ``"sem-vr"``.
    epoch : int
        Epochs done: n iterations each, one for ``"em"``.
    passes : float
        E-step evaluations divided by n, the first pass included.
    seconds : float
        Time since the method's run began.
    squared_error : float
        :math:`|\mu - \mu^\star|^2`.
    """

    method: str
    epoch: int
    passes: float
    seconds: float
    squared_error: float


class Limit(NamedTuple):
    r"""Where batch EM ends: :math:`\theta^\star`, the iterations it took, and whether it came to rest."""

    theta: GaussianMixtureTheta
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class GaussianConvergence:
    """What :func:`gaussian_convergence` returns.

    Attributes
    ----------
    n, seed : int
        Size of the sample, and the seed of sample and draws.
    limit : Limit or None
        The reference; None when Ctrl-C came before it was known.
    rows : tuple of Row
        Method after method, epochs 0, 1, ...
    interrupted : bool
        Whether Ctrl-C cut the experiment short: ``rows`` then holds the epochs that were complete.
    """

    n: int
    seed: int
    limit: Limit | None
    rows: tuple[Row, ...]
    interrupted: bool

    @property
    def errors(self) -> dict[str, list[float]]:
        """Squared error by method; the place in the list is the epoch."""
        series: dict[str, list[float]] = {}
        for row in self.rows:
            series.setdefault(row.method, []).append(row.squared_error)
        return series


def gaussian_data(n: int, rng: np.random.Generator) -> Array:
    """Return ``n`` samples of an equal mixture of two Gaussians of unit variance with means ±0.5.

    Parameters
    ----------
    n : int
        Number of samples.
    rng : numpy.random.Generator
        Where the randomness comes from.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.experiments.gaussian import gaussian_data
    >>> y = gaussian_data(100_000, np.random.default_rng(0))
    >>> bool(abs(y.var() - 1.25) < 0.02)  # 1 within the components, 0.25 between them
    True
    """
    centre = np.where(rng.random(n) < 0.5, 0.5, -0.5)
    return centre + rng.normal(size=n)


def paper_methods() -> tuple[Method, ...]:
    """Return the five methods with the paper's step sizes, one sample an iteration.

    >>> [method.name for method in paper_methods()]
    ['em', 'sem', 'iem', 'sem-vr', 'fiem']
    """
    return (
        EM(),
        OnlineEM(step_size=inverse(3, 10)),
        IncrementalEM(),
        VarianceReducedEM(step_size=0.003),
        FastIncrementalEM(step_size=0.003),
    )


def batch_em_limit(y: Array, progress: Progress = lambda stage, share: None) -> Limit:
    r"""Return :math:`\theta^\star`: where batch EM from the paper's start comes to rest in double precision.

    Parameters
    ----------
    y : ndarray, shape (n,)
        The sample.
    progress : callable, optional
        Told ``"reference"`` and the share done, an estimate.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C: half a reference is none.

    Examples
    --------
    >>> import numpy as np
    >>> from swiftem.experiments.gaussian import batch_em_limit, gaussian_data
    >>> limit = batch_em_limit(gaussian_data(1000, np.random.default_rng(0)))
    >>> limit.converged, limit.theta.means.shape
    (True, (2, 1))
    """
    last = START.means

    def at_rest(iterate: Iterate) -> bool:
        nonlocal last
        change = float(np.abs(iterate.theta.means - last).max())
        last = iterate.theta.means
        if change > SMALLEST_CHANGE and iterate.k:
            # EM converges linearly, so the logarithm of the change is an honest measure of time.
            progress("reference", min(1.0, max(0.0, log10(change) / log10(SMALLEST_CHANGE))))
        return iterate.k > 0 and change <= SMALLEST_CHANGE

    result = run(
        MODEL, y, EM(), theta0=START, n_iter=MOST_PASSES, record=lambda iterate: None, callback=at_rest
    )
    if result.status == "interrupted":
        raise KeyboardInterrupt
    progress("reference", 1.0)
    return Limit(result.theta, result.n_iter, result.status == "stopped")


def gaussian_convergence(
    n: int = 10_000, epochs: int = 100, seed: int = 0, progress: Progress = lambda stage, share: None
) -> GaussianConvergence:
    r"""Run the five methods of the paper on one sample and measure :math:`|\mu - \mu^\star|^2` each epoch.

    An epoch is n iterations; of batch EM it is one, a pass. All methods start from means (1, −1) and equal
    weights.

    Parameters
    ----------
    n : int
        Number of samples.
    epochs : int
        Epochs of each method; the paper shows 100.
    seed : int
        For the sample and the draws.
    progress : callable, optional
        Called with the stage and the share of it that is done.

    Returns
    -------
    GaussianConvergence

    Examples
    --------
    >>> from swiftem.experiments.gaussian import gaussian_convergence
    >>> result = gaussian_convergence(n=100, epochs=2)
    >>> [(row.method, row.epoch, row.passes) for row in result.rows[:4]]
    [('em', 0, 1.0), ('em', 1, 2.0), ('em', 2, 3.0), ('sem', 0, 1.0)]
    >>> sorted(result.errors)
    ['em', 'fiem', 'iem', 'sem', 'sem-vr']
    """
    check_int("n", n, minimum=2)
    check_int("epochs", epochs, minimum=1)
    check_int("seed", seed, minimum=0)
    y = gaussian_data(n, np.random.default_rng(seed))
    limit: Limit | None = None
    rows: list[Row] = []
    try:
        limit = batch_em_limit(y, progress)
        for method in paper_methods():
            done, completed = _errors_by_epoch(method, y, limit, epochs, seed, progress)
            rows += done
            if not completed:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        return GaussianConvergence(n, seed, limit, tuple(rows), interrupted=True)
    return GaussianConvergence(n, seed, limit, tuple(rows), interrupted=False)


def _errors_by_epoch(
    method: Method, y: Array, limit: Limit, epochs: int, seed: int, progress: Progress
) -> tuple[list[Row], bool]:
    """Return the rows of one method, and whether all its epochs were done."""
    epoch = method.epoch(len(y))
    start = perf_counter()

    def measure(iterate: Iterate) -> Row:
        squared_error = float(((iterate.theta.means - limit.theta.means) ** 2).sum())
        return Row(method.name, iterate.k // epoch, iterate.passes, perf_counter() - start, squared_error)

    def report(iterate: Iterate) -> None:
        progress(method.name, iterate.k / (epochs * epoch))

    result = run(
        MODEL, y, method, theta0=START, n_iter=epochs * epoch, seed=seed,
        record_every=epoch, record=measure, callback=report,
    )  # fmt: skip
    return result.path, result.status == "completed"
