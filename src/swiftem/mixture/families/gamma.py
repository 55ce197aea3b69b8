r"""Positive amounts: independent gamma columns, with a shape and a rate for each component and column.

With z = y / scale and B = rate · scale, T(y) = (z, log z), φ = (−B, a), h(y) = Π_j 1 / y_j and
c = Σ_j (a_j log B_j − log Γ(a_j)); the scale is the mean of the data. M-step: the shape a solves
log a − ψ(a) = log E[z] − E[log z], by Newton's method (12 steps from a start with an error below 2 %; about
five give full precision), and B = a / E[z].
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from swiftem.core.checks import check_real
from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Columns, Family, Params
from swiftem.mixture.families.log_normal import check_positive

LARGEST = 1e8
"""Largest shape: at larger ones the log-density would lose digits."""
STEPS = 12
"""Newton steps: from the start used here five give full precision."""
LARGE = 50.0
"""From this shape on, series replace differences of close numbers."""


@dataclass(frozen=True)
class Gamma(Family):
    """Positive amounts; ``params_`` has ``shapes`` and ``rates``, (M, d) each. The means are shapes / rates.

    Parameters
    ----------
    floor : float
        Smallest squared coefficient of variation, 1 / shape, relative to its value for all data.
    scale, variation : tuple of float, optional
        Mean and squared coefficient of variation of each column; by default from the data.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(5.0, np.where(rng.random((5000, 1)) < 0.3, [[1.0, 30.0]], [[20.0, 2.0]]))
    >>> mixture = swiftem.Mixture(2, family="gamma", random_state=0).fit(X)
    >>> (mixture.params_["shapes"] / mixture.params_["rates"]).round()
    array([[101.,  10.],
           [  5., 149.]])
    >>> mixture.params_["shapes"].round()
    array([[5., 5.],
           [5., 5.]])
    """

    name = "gamma"
    kinds = 2
    parameters = (("shapes", "positive"), ("rates", "positive"))
    learnt = ("scale", "variation")

    floor: float = 1e-6
    scale: tuple[float, ...] | None = field(default=None, repr=False)
    variation: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_real("floor", self.floor, minimum=0.0)

    def learn(self, columns: Columns) -> Family:
        """Set scale and variation from the data; a constant column has a variation of one."""
        mean = np.where(columns.mean > 0.0, columns.mean, 1.0)  # others are refused by the check of rows
        variation = np.square(np.sqrt(columns.variance) / mean)
        variation = np.where(variation > 0.0, variation, 1.0)
        scales, variations = tuple(mean.tolist()), tuple(variation.tolist())
        return replace(self, scale=self.scale or scales, variation=self.variation or variations)

    def unit(self, d: int) -> tuple[Array, Array]:
        """Return scale and variation, (d,) each."""
        one = (1.0,) * d
        return np.array(self.scale or one), np.array(self.variation or one)

    def check_rows(self, y: Rows) -> None:
        """Raise ValueError for amounts that are not positive."""
        check_positive(y)

    def features(self, y: Rows) -> Rows:
        """Return z and log z."""
        z = y / self.unit(y.shape[1])[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.concatenate([z, np.log(z)], axis=1)

    def for_start(self, y: Rows) -> Rows:
        """Return log z."""
        return self.features(y)[:, y.shape[1] :]

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return (−B, a) and Σ (a log B − log Γ(a))."""
        phi = np.concatenate([-self._rates(params), params["shapes"]], axis=1)
        return phi, self.constants(params).sum(axis=1)

    def constants(self, params: Params) -> Array:
        """Return a log B − log Γ(a)."""
        from scipy.special import gammaln

        a = params["shapes"]
        return np.asarray(a * np.log(self._rates(params)) - gammaln(a))

    def _rates(self, params: Params) -> Array:
        """Return B, the rates of z."""
        return np.asarray(params["rates"] * self.unit(params["rates"].shape[1])[0])

    def expected(self, params: Params) -> Array:
        """Return a / b."""
        return np.asarray(params["shapes"] / params["rates"])

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return shapes and rates; None if a mean is not positive."""
        z, logs = np.split(means, 2, axis=1)
        if not (z > 0.0).all():
            return None
        scale, variation = self.unit(z.shape[1])
        least = 0.5 * np.maximum(self.floor * variation, 1.0 / LARGEST)  # log a − ψ(a) is about 1 / 2a
        a = solve_shape(np.maximum(np.log(z) - logs, least))
        return {"shapes": a, "rates": a / (z * scale)}

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return amounts, at least the smallest positive number."""
        found = rng.gamma(params["shapes"][labels], 1.0 / params["rates"][labels])
        return np.asarray(np.maximum(found, np.finfo(np.float64).tiny))

    def log_bases(self, y: Rows) -> Array | None:
        """Return −log y."""
        return -np.log(y.astype(np.float64))


def solve_shape(target: Array) -> Array:
    """Return the shapes a > 0 with log a − ψ(a) = target > 0, by Newton's method.

    >>> solve_shape(np.array([0.5772156649015329, 5.000833333e-4])).round(6)
    array([   1., 1000.])
    """
    from scipy.special import polygamma, psi

    a = (3.0 - target + np.sqrt((target - 3.0) ** 2 + 24.0 * target)) / (12.0 * target)
    for _ in range(STEPS):
        i = 1.0 / np.maximum(a, LARGE)
        value = np.where(
            a < LARGE, np.log(a) - psi(a), i * (0.5 + i * (1 / 12 - i * i * (1 / 120 - i * i / 252)))
        )
        slope = np.where(
            a < LARGE, 1.0 / a - polygamma(1, a), -i * i * (0.5 + i * (1 / 6 - i * i * (1 / 30 - i * i / 42)))
        )
        step = (value - target) / slope
        a = np.maximum(a - step, 0.5 * a)
    return a
