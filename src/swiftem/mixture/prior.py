"""The conjugate prior on weights, means and covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swiftem.core.checks import STRONGEST, as_floats, check_real
from swiftem.core.types import Array


class BoundPrior(NamedTuple):
    """A prior for given data: centred, and divided by their total weight.

    Attributes
    ----------
    mean : ndarray, shape (d,)
        Centre of the prior on means, in centred coordinates.
    mean_precision : float
        κ: its weight in mean samples.
    degrees : float
        Added to the sum of responsibilities in the covariance's denominator; depends on the kind.
    scale : ndarray, shape (d, d), or (d,) for kinds without matrices
        Added to the scatter in its numerator; its diagonal is enough for "diag" and "spherical".
    """

    mean: Array
    mean_precision: float
    degrees: float
    scale: Array


@dataclass(frozen=True)
class NormalInverseWishart:
    r"""Normal-inverse-Wishart prior of each component, in counts, and a Dirichlet prior on the weights.

    :math:`\Sigma \sim \mathrm{IW}(\Psi, \nu)` and :math:`\mu \mid \Sigma \sim N(m_0, \Sigma / \kappa_0)`:
    as if :math:`\kappa_0` samples at :math:`m_0` and ν samples with scatter Ψ had been seen before. Its form
    for the other kinds of covariance is in :mod:`swiftem.mixture.covariance`.

    Parameters
    ----------
    degrees_of_freedom : float, optional
        ν, above d − 1. It is given with ``scale``; without both there is a prior on the weights only.
    scale : float, or array-like of shape (d,) or (d, d), optional
        Ψ, positive definite; a number or a vector means a diagonal matrix.
    mean_precision : float
        :math:`\kappa_0`; zero means no prior on the means.
    mean : array-like, shape (d,), optional
        :math:`m_0`, by default the mean of the data.
    concentration : float, optional
        α ≥ 1 of a symmetric Dirichlet prior on the weights.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> prior = models.NormalInverseWishart(degrees_of_freedom=4, scale=1.0)
    >>> model = models.GaussianMixtureModel(1, covariance="full", prior=prior)
    >>> one_row = np.array([[3.0, 4.0]])
    >>> swiftem.run(model, one_row, methods.EM(), n_iter=1, seed=0).theta.covariances.round(3)
    array([[[0.125, 0.   ],
            [0.   , 0.125]]])
    """

    degrees_of_freedom: float | None = None
    scale: Any = None
    mean_precision: float = 0.0
    mean: Any = None
    concentration: float | None = None

    def __post_init__(self) -> None:
        if self.concentration is not None:
            check_real("concentration", self.concentration, minimum=1.0, maximum=STRONGEST)
        if not self.is_on_components:
            if self.scale is not None or self.mean_precision or self.mean is not None:
                raise ValueError("degrees_of_freedom must be given for a prior on means and covariances.")
            return
        check_real("degrees_of_freedom", self.degrees_of_freedom, minimum=0.0, maximum=STRONGEST)
        check_real("mean_precision", self.mean_precision, minimum=0.0, maximum=STRONGEST)
        scale = as_floats("scale", self.scale)
        if np.abs(scale).max(initial=0.0) > STRONGEST:
            raise ValueError(f"scale must be at most {STRONGEST:g}, got {np.abs(scale).max():g}.")
        if scale.ndim > 2 or not scale.size or (scale.ndim == 2 and scale.shape[0] != scale.shape[1]):
            raise ValueError(f"scale must be a number, a vector or a square matrix, got shape {scale.shape}.")
        is_symmetric = scale.ndim < 2 or np.allclose(scale, scale.T, rtol=1e-8, atol=0.0)
        if not is_symmetric or (np.linalg.eigvalsh(scale) if scale.ndim == 2 else scale).min() <= 0.0:
            raise ValueError("scale must be symmetric and positive definite.")
        # Tuples, so that priors, and models with them, can be compared and hashed.
        object.__setattr__(self, "scale", _as_tuple(scale))
        if self.mean is not None:
            object.__setattr__(self, "mean", _as_tuple(as_floats("mean", self.mean, shape=(None,))))

    @property
    def is_on_components(self) -> bool:
        """Whether there is a prior on covariances, and perhaps on means."""
        return self.degrees_of_freedom is not None

    def bind(self, centre: Array, *, has_matrices: bool) -> BoundPrior:
        """Return the prior in centred coordinates, still in counts, with ν as its degrees."""
        d = len(centre)
        assert self.degrees_of_freedom is not None
        if not self.degrees_of_freedom > d - 1:
            raise ValueError(
                f"prior.degrees_of_freedom must be above d - 1 = {d - 1}, got {self.degrees_of_freedom:g}."
            )
        scale = np.array(self.scale, dtype=np.float64)
        if scale.ndim and len(scale) != d:
            raise ValueError(f"prior.scale must be for data of {d} columns, got one of shape {scale.shape}.")
        if self.mean is not None and len(self.mean) != d:
            raise ValueError(f"prior.mean must have as many entries as data columns, {d}.")
        if scale.ndim < 2:
            variances = np.broadcast_to(scale, d).copy()
            scale = np.diag(variances) if has_matrices else variances
        elif not has_matrices:
            scale = np.diagonal(scale).copy()
        mean = np.zeros(d) if self.mean is None else np.array(self.mean) - centre
        return BoundPrior(mean, float(self.mean_precision), float(self.degrees_of_freedom), scale)


def _as_tuple(values: Array) -> Any:
    return tuple(map(_as_tuple, values)) if values.ndim else float(values)
