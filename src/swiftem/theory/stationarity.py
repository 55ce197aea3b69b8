"""How far statistics are from a stationary point, in the paper's measures and in that of the estimators."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from swiftem.certificate import certificate
from swiftem.models.model import Model
from swiftem.theory.family import family_of
from swiftem.theory.full_pass import full_pass

__all__ = ["Stationarity", "stationarity"]


class Stationarity(NamedTuple):
    r"""Distances from a stationary point; all are zero where one more E-step changes nothing.

    Attributes
    ----------
    residual : float
        :math:`\|s - \bar s(\bar\theta(s))\|^2`, in the paper's coordinates.
    gradient : float
        :math:`\|\nabla V(s)\|^2`, what Theorem 2 bounds.
    certificate : float
        The relative residual without a unit that the estimators report as ``stationarity_``.
    objective : float
        V(s).
    """

    residual: float
    gradient: float
    certificate: float
    objective: float


def stationarity(
    model: Model, data: Any, s: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> Stationarity:
    r"""Return how far statistics are from a stationary point, by one pass over the data.

    Parameters
    ----------
    model : GaussianMixtureModel with unit variances, or PLSAModel
        The model.
    data, sample_weight
        As in :func:`swiftem.run`; a source that can only be read in order will do.
    s : array-like
        Statistics: ``result.s`` of a run, or the paper's coordinates.

    Returns
    -------
    Stationarity

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import methods, theory
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500) + np.where(rng.random(500) < 0.5, 2.0, -2.0)
    >>> model = swiftem.models.GaussianMixtureModel(n_components=2)
    >>> early, late = (swiftem.run(model, y, methods.EM(), n_iter=k, seed=0).s for k in (1, 100))
    >>> theory.stationarity(model, y, early).certificate > 1e-3
    True
    >>> theory.stationarity(model, y, late).gradient < 1e-20
    True
    """
    family, source = family_of(model, data, sample_weight)
    x = family.coordinates(s)
    after, objective = full_pass(family, source, family.theta(x))
    h = x - after
    gradient = family.times_B(x, h)
    relative = certificate(family.bound, family.library_statistics(x), family.library_statistics(after))
    return Stationarity(float(h @ h), float(gradient @ gradient), relative, objective)
