"""The objective as a function of the statistics: V(s), its gradient, and the matrix B(s) between the two.

And the surrogate that incremental EM minimises: it majorises the loss, with equality at θ'.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from paper.theory.family import family_of, full_pass, matrix_B
from swiftem.core.checks import as_floats
from swiftem.core.model import Model
from swiftem.core.problem import certificate
from swiftem.core.types import Array, Theta

LARGEST = 10_000
"""Rows of the largest matrix B(s) that is formed: 800 megabytes."""


def V(model: Model, data: Any, s: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    r"""Return :math:`V(s) = \overline{\mathcal L}(\bar\theta(s))`, equation (em_sspace).

    Parameters
    ----------
    model : GaussianMixtureModel with unit variances, or PLSAModel
        The model.
    data, sample_weight
        As in :func:`swiftem.run`.
    s : array-like, shape (q,)
        Statistics in the paper's coordinates. For the mixture: (s¹_1, ..., s¹_(M−1), s²_1, ..., s²_(M−1),
        s³), 2M − 1 numbers for data (n,). For pLSA: documents by topics, then topics by words, K(D + V)
        numbers. Those of a run, ``result.s``, are also allowed: for the mixture they have one number more.

    Examples
    --------
    >>> import numpy as np
    >>> from paper import theory
    >>> from swiftem import models
    >>> model, y = models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), np.linspace(-2.0, 2.0, 100)
    >>> s = np.array([0.4, 0.3, 0.0])
    >>> round(theory.V(model, y, s), 3)
    3.024
    """
    family, source = family_of(model, data, sample_weight)
    return full_pass(family, source, family.theta(family.coordinates(s))).objective


def residual(model: Model, data: Any, s: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Array:
    r"""Return :math:`s - \bar s(\bar\theta(s))`, shape (q,): minus the mean direction of a step.

    Arguments are those of :func:`V`.
    """
    family, source = family_of(model, data, sample_weight)
    x = family.coordinates(s)
    return x - full_pass(family, source, family.theta(x)).s


def gradient_V(model: Model, data: Any, s: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Array:
    r"""Return :math:`\nabla V(s) = \mathrm B(s)\,(s - \bar s(\bar\theta(s)))`, shape (q,), equation (grd_v).

    Arguments are those of :func:`V`. B(s) is applied, not formed: the cost is one pass.

    Examples
    --------
    >>> import numpy as np
    >>> from paper import theory
    >>> from swiftem import models
    >>> model, y = models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), np.linspace(-2.0, 2.0, 100)
    >>> s, step = np.array([0.4, 0.3, 0.0]), np.array([1e-6, 0.0, 0.0])
    >>> slope = (theory.V(model, y, s + step) - theory.V(model, y, s - step)) / 2e-6
    >>> bool(abs(theory.gradient_V(model, y, s)[0] - slope) < 1e-7)
    True
    """
    family, source = family_of(model, data, sample_weight)
    x = family.coordinates(s)
    return family.times_B(x, x - full_pass(family, source, family.theta(x)).s)


def B(model: Model, data: Any, s: ArrayLike) -> Array:
    r"""Return :math:`\mathrm B(s)`, equation (Bss), shape (q, q), in closed form.

    Arguments are those of :func:`V`; only the shape of the data matters. With known weights the mixture's B
    has rank M; pLSA's has D + K zero eigenvalues.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from paper import theory
    >>> model = swiftem.models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0)
    >>> np.linalg.eigvalsh(theory.B(model, [0.0, 1.0], [0.5, 0.3, 0.5])).round(2)
    array([0.25, 1.26, 1.86])
    """
    family, _ = family_of(model, data)
    if family.q > LARGEST:
        raise ValueError(
            f"data must give at most {LARGEST:,} statistics for B(s) as a matrix, got {family.q:,}: "
            "gradient_V and stationarity do not need it."
        )
    return matrix_B(family, family.coordinates(s))


def gradient_objective(
    model: Model, data: Any, theta: Theta, *, sample_weight: ArrayLike | None = None
) -> Array:
    r"""Return :math:`\nabla_\theta \overline{\mathcal L}(\theta)`, shape (p,), by Fisher's identity (fisher).

    It is :math:`\nabla(\mathrm{Pen} + \psi)(\theta) - J_\phi(\theta)^\top \bar s(\theta)`, in the paper's
    coordinates of θ. For the mixture: (ω_1, ..., ω_(M−1), μ_1, ..., μ_M). For pLSA: each distribution without
    its last probability.

    Parameters
    ----------
    model, data, sample_weight
        As in :func:`V`.
    theta : NamedTuple
        Parameters, from ``model.theta``.
    """
    family, source = family_of(model, data, sample_weight)
    theta = family.bound.check_theta(theta, "theta")
    if not np.isfinite(family.phi(theta)).all():
        raise ValueError("theta must have positive probabilities, got a zero: there is no gradient there.")
    mean = full_pass(family, source, theta).s
    return family.gradient_penalty_psi(theta) - family.jacobian_phi(theta).T @ mean


class Stationarity(NamedTuple):
    r"""Distances from a stationary point; all are zero if one more E-step changes nothing.

    Attributes
    ----------
    residual : float
        :math:`\|s - \bar s(\bar\theta(s))\|^2`, in the paper's coordinates.
    gradient : float
        :math:`\|\nabla V(s)\|^2`, bounded by Theorem 2.
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
    r"""Return the distances of statistics from a stationary point, by one pass over the data.

    Parameters
    ----------
    model, data, s, sample_weight
        As in :func:`V`; a source that can only be read in order is enough.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from paper import theory
    >>> from swiftem import methods
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
    >>> from paper import theory
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
