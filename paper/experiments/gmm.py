"""Common parts of the paper's two Gaussian experiments: the data, the start, and the limit of batch EM."""

from __future__ import annotations

from collections.abc import Callable
from math import log10
from typing import NamedTuple

import numpy as np

from paper.experiments.experiment import complete
from swiftem._run import run
from swiftem.core.result import Iterate
from swiftem.core.types import Array
from swiftem.methods import EM
from swiftem.models import GaussianMixtureModel, GaussianMixtureTheta

__all__ = ["Limit", "batch_em_limit", "gmm_data", "squared_error"]

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
    at: Callable[[float], None] = lambda share: None,
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
    at : callable, optional
        Called with the completed share, an estimate.

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
        if change > smallest_change and iterate.k:
            # EM converges linearly, so the logarithm of the change measures the progress.
            at(min(1.0, max(0.0, log10(change) / log10(smallest_change))))
        return iterate.k > 0 and change <= smallest_change

    result = run(
        model, y, EM(), theta0=theta0, n_iter=MOST_PASSES, record=lambda iterate: None, callback=at_rest
    )
    complete(result)
    return Limit(result.theta, result.n_iter, result.status == "stopped")
