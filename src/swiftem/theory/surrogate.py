"""The surrogate that incremental EM minimises: it majorises the loss, with equality at θ'."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swiftem._checks import as_floats
from swiftem._typing import Array, Theta
from swiftem.models.model import Model
from swiftem.theory.family import family_of

__all__ = ["mean_surrogate", "surrogate"]


def surrogate(model: Model, data: Any, theta: Theta, rows: ArrayLike) -> Array:
    r"""Return :math:`Q_i(\theta; \theta')` of each sample, equation (definition-surrogate).

    In an exponential family it is :math:`\psi(\theta) - \langle \bar s_i(\theta'), \phi(\theta) \rangle -
    \log h(y_i) + \sum_z p_i(z; \theta') \log p_i(z; \theta')`: it depends on θ' only through its posterior.

    Parameters
    ----------
    model : GaussianMixtureModel with unit variances, or PLSAModel
        The model.
    data
        As in :func:`swiftem.run`, without weights.
    theta : NamedTuple
        θ.
    rows : array-like, shape (n, M) or (n, K)
        Posterior of each sample at its θ', such as the memory of iem, ``result.state.method.memory``.

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import theory
    >>> model = swiftem.models.GaussianMixtureModel(2)
    >>> theta = model.theta(means=[[1.0], [-1.0]])
    >>> half = np.full((2, 2), 0.5)
    >>> theory.surrogate(model, [0.0, 2.0], theta, half).round(3)  # at 0 both are indeed equally likely
    array([1.419, 3.419])
    """
    family, source = family_of(model, data)
    theta = family.bound.check_theta(theta, "theta")
    posterior = as_floats("rows", rows, shape=(source.n, family.columns))
    phi, psi = family.phi(theta), family.psi(theta)
    values = np.empty(source.n)
    for batch in source.blocks(1024):  # few at a time: each has q statistics here
        p = posterior[batch.index]
        entropy = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=1)
        values[batch.index] = psi - family.each_statistics(batch, p) @ phi - family.log_h(batch) - entropy
    return values


def mean_surrogate(model: Model, data: Any, theta: Theta, rows: ArrayLike) -> float:
    r"""Return :math:`\mathrm{Pen}(\theta) + n^{-1} \sum_i Q_i(\theta; \theta'_i)`, minimised by (mstep_iem).

    Arguments are those of :func:`surrogate`. No iteration of iem increases it.
    """
    family, _ = family_of(model, data)
    return family.bound.penalty(theta) + float(surrogate(model, data, theta, rows).mean())
