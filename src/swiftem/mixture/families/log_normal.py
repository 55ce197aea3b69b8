r"""Positive amounts whose logarithms are normal, with a mean and a variance for each component and column.

T(y), φ and c are as in the normal family for x = log y, and h(y) = Π_j 1 / y_j. M-step: mean and variance
of x. Centre and scale of x are those that log-normal columns with the mean and variance of the data have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Columns, Family, Params
from swiftem.mixture.families.gaussian import Gaussian, standard


def check_positive(y: Rows) -> None:
    """Raise ValueError for amounts that are not positive."""
    if (y <= 0).any():
        raise ValueError(f"must be positive amounts, got {y[y <= 0][0]:g}")


@dataclass(frozen=True)
class LogNormal(Gaussian):
    """Positive amounts; ``params_`` has ``means`` and ``variances`` of their logarithms, (M, d) each.

    Parameters
    ----------
    covariance : {"diag", "spherical"}
        One variance per column, or one for all columns of the family; ``variances`` then has shape (M,).
    floor : float
        Smallest variance of a logarithm, relative to its variance in all data.
    centre, scale : tuple of float, optional
        Of the logarithms; by default from mean and variance of the data.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.lognormal(np.where(rng.random((2000, 1)) < 0.3, [[9.0, 3.0]], [[6.0, 1.0]]))
    >>> mixture = swiftem.Mixture(2, family="log-normal", random_state=0).fit(X)
    >>> mixture.params_["means"].round()
    array([[9., 3.],
           [6., 1.]])
    """

    name = "log-normal"

    def learn(self, columns: Columns) -> Family:
        """Set centre and scale of the logarithms."""
        mean = np.where(columns.mean > 0.0, columns.mean, 1.0)  # others are refused by the check of rows
        variance = np.log1p(np.square(np.sqrt(columns.variance) / mean))
        centre, scale = standard(columns._replace(mean=np.log(mean) - 0.5 * variance, variance=variance))
        return replace(self, centre=self.centre or centre, scale=self.scale or scale)

    def check_rows(self, y: Rows) -> None:
        """Raise ValueError for amounts that are not positive."""
        check_positive(y)

    def for_start(self, y: Rows) -> Rows:
        """Return the logarithms, standardised."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return super().for_start(np.log(y))

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return amounts."""
        return np.exp(super().draw(params, labels, rng))

    def log_bases(self, y: Rows) -> Array | None:
        """Return −log y."""
        return -np.log(y.astype(np.float64))

    def expected(self, params: Params) -> Array:
        """Return exp(μ + σ² / 2)."""
        return np.asarray(np.exp(params["means"] + 0.5 * self._of_columns(params)))
