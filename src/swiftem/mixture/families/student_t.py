r"""Numbers with heavy tails: multivariate t distributions, in which distant rows have less weight.

A row has a second latent variable u ~ Gamma(ν/2, rate ν/2), and given it y ~ N(μ, Σ / u). With
z = (y − centre) / scale, m and A for μ and Σ in these units, and P = A⁻¹, the complete log-density is

.. math:: u \left(m^T P z - \tfrac12 z^T P z - \tfrac12 m^T P m\right) + \tfrac\nu2 (\log u - u)
   + \tfrac\nu2 \log\tfrac\nu2 - \log\Gamma(\tfrac\nu2) - \tfrac12 \log|2\pi\Sigma| + \log h(u),

so that there are two further channels: r·u with features (1, z, products of z) and r·(log u − u) with the
feature 1. E-step, δ = (z − m)ᵀP(z − m): E[u] = (ν + d) / (ν + δ), E[log u] = ψ((ν + d)/2) − log((ν + δ)/2).
M-step, over the rows of a component: m = E[uz] / E[u], A = E[uzzᵀ] − E[u]·mmᵀ, and ν solves
log(ν/2) − ψ(ν/2) + 1 + E[log u − u] = 0, by Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from swiftem.core.checks import check_choice, check_real
from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Params
from swiftem.mixture.families.gamma import solve_shape
from swiftem.mixture.families.gaussian import Standardised

LEAST, MOST = 0.1, 1000.0
"""Range of the degrees of freedom."""
START = -1.1033
"""E[log u − u] at ten degrees of freedom, for rows of the prior and of a start, where E[u] = 1."""


@dataclass(frozen=True)
class StudentT(Standardised):
    """Numbers; ``params_`` has ``means`` (M, d), ``scales`` (M, d, d) or (M, d), ``degrees_of_freedom`` (M,).

    ``scales`` are the matrices Σ, or their diagonals; the covariance is Σ·ν / (ν − 2). A row has one u for
    all columns of the family.

    Parameters
    ----------
    covariance : {"full", "diag"}
        Whether Σ is a full or a diagonal matrix.
    degrees_of_freedom : float, optional
        ν of all components; by default it is estimated for each component, from 0.1 to 1000.
    floor : float
        Smallest eigenvalue of Σ, for columns scaled to a variance of one.
    centre, scale : tuple of float, optional
        Of the columns; by default mean and standard deviation of the data.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(3.0, size=(2000, 2)) + np.where(rng.random((2000, 1)) < 0.3, 0.0, 9.0)
    >>> mixture = swiftem.Mixture(2, family="student-t", random_state=0).fit(X)
    >>> np.sort(mixture.params_["means"], axis=0).round() + 0.0
    array([[0., 0.],
           [9., 9.]])
    """

    name = "student-t"
    channels = (1.0, START)
    remedy = "leave out such rows, or give student-t(covariance='diag')"

    covariance: str = "full"
    degrees_of_freedom: float | None = None
    floor: float = 1e-6

    def __post_init__(self) -> None:
        check_choice("covariance", self.covariance, ("full", "diag"))
        check_real("floor", self.floor, minimum=0.0)
        if self.degrees_of_freedom is not None:
            check_real("degrees_of_freedom", self.degrees_of_freedom, minimum=LEAST, maximum=MOST)

    def shapes(self, n_components: int, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of means, scales and degrees of freedom."""
        scales = (n_components, d, d) if self.covariance == "full" else (n_components, d)
        return {"means": (n_components, d), "scales": scales, "degrees_of_freedom": (n_components,)}

    def features(self, y: Rows) -> Rows:
        """Return 1, z and products of z, of the channel r·u; then 1, of r·(log u − u)."""
        z = self.for_start(y)
        one = np.ones((len(z), 1))
        i, j = self._products(z.shape[1])
        return np.concatenate([one, z, z[:, i] * z[:, j], one], axis=1)

    @property
    def takes_missing(self) -> bool:
        """Whether columns are independent given u."""
        return self.covariance == "diag"

    def widths(self, d: int) -> tuple[int, ...]:
        """Return zero features for r, and the numbers for the two other channels."""
        return 0, 1 + d + len(self._products(d)[0]), 1

    def _products(self, d: int) -> tuple[Any, Any]:
        """Return the indices of the products of columns that are features."""
        return np.tril_indices(d) if self.covariance == "full" else (np.arange(d), np.arange(d))

    def matrices(self, params: Params) -> tuple[Array, Array]:
        """Return m (M, d) and A, (M, d, d) or (M, d)."""
        centre, scale = self.unit(params["means"].shape[1])
        unit = np.outer(scale, scale) if self.covariance == "full" else scale * scale
        return (params["means"] - centre) / scale, params["scales"] / unit

    def _log_det(self, params: Params) -> Array:
        """Return log|Σ|, (M,)."""
        if self.covariance == "full":
            return np.asarray(np.linalg.slogdet(params["scales"])[1])
        return np.asarray(np.log(params["scales"]).sum(axis=1))

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return φ and c of the complete log-density."""
        from scipy.special import gammaln

        (m, a), half = self.matrices(params), 0.5 * params["degrees_of_freedom"]
        if self.covariance == "full":
            precision = np.linalg.inv(a)
            linear = np.einsum("mij,mj->mi", precision, m)
            i, j = np.tril_indices(m.shape[1])
            squares = precision[:, i, j] * np.where(i == j, -0.5, -1.0)
        else:
            linear, squares = m / a, -0.5 / a
        phi = np.column_stack([-0.5 * (m * linear).sum(axis=1), linear, squares, half])
        log_det = self._log_det(params) + m.shape[1] * np.log(2.0 * np.pi)
        return phi, half * np.log(half) - gammaln(half) - 0.5 * log_det

    def e_step(self, y: Rows, params: Params) -> tuple[Array, list[Array]]:
        """Return log f, E[u | y, m] and E[log u − u | y, m]."""
        from scipy.special import gammaln, psi

        (m, a), nu = self.matrices(params), params["degrees_of_freedom"]
        z, d, square = self.for_start(y), y.shape[1], np.empty((len(y), len(m)))
        for k in range(len(m)):  # of differences, which keep the digits of rows far away
            away = z - m[k]
            if self.covariance == "full":
                away = away @ np.linalg.inv(np.linalg.cholesky(a[k])).T
            else:
                away = away / np.sqrt(a[k])
            square[:, k] = (away * away).sum(axis=1)
        half = 0.5 * (nu + d)
        constant = gammaln(half) - gammaln(0.5 * nu) - 0.5 * (d * np.log(nu * np.pi) + self._log_det(params))
        u = (nu + d) / (nu + square)
        return constant - half * np.log1p(square / nu), [u, psi(half) - np.log(0.5 * (nu + square)) - u]

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return means, scales and degrees of freedom, or None if E[u] is not positive."""
        d = self._width(means.shape[1])
        size, total, products, last = np.split(means, [1, 1 + d, means.shape[1] - 1], axis=1)
        if not (size > 0.0).all():
            return None
        m = total / size
        i, j = self._products(d)
        return self.solve(m, products - total[:, i] * m[:, j], last[:, 0])

    def solve(self, m: Array, products: Array, last: Array) -> Params | None:
        """Return parameters for m and mean products of z − m, and for means of log u − u, or None."""
        d = m.shape[1]
        centre, scale = self.unit(d)
        if self.covariance == "full":
            i, j = np.tril_indices(d)
            a = np.empty((len(m), d, d))
            a[:, i, j] = a[:, j, i] = products
            scales = _above(a, self.floor) * np.outer(scale, scale)
        else:
            scales = np.maximum(products, self.floor) * (scale * scale)
        known = self.degrees_of_freedom
        nu = _degrees(last) if known is None else np.full(len(m), known)
        params = {"means": centre + scale * m, "scales": scales, "degrees_of_freedom": nu}
        return params if self._is_positive(scales) else None

    def _is_positive(self, scales: Array) -> bool:
        """Return whether Σ is positive definite in all components."""
        return bool(((np.linalg.eigvalsh(scales) if self.covariance == "full" else scales) > 0.0).all())

    def _width(self, p: int) -> int:
        """Return d from the number of features."""
        if self.centre is not None:
            return len(self.centre)
        return (p - 2) // 2 if self.covariance == "diag" else int((np.sqrt(9 + 8 * (p - 2)) - 3) / 2 + 0.5)

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return rows of the t distributions."""
        means, scales = params["means"][labels], params["scales"]
        half = 0.5 * params["degrees_of_freedom"][labels]
        away = rng.normal(size=means.shape) / np.sqrt(rng.gamma(half, 1.0 / half))[:, None]
        if self.covariance == "diag":
            return np.asarray(means + away * np.sqrt(scales)[labels])
        for k in np.unique(labels):
            away[labels == k] = away[labels == k] @ np.linalg.cholesky(scales[k]).T
        return np.asarray(means + away)

    def check_params(self, params: Params) -> None:
        """Raise ValueError for scales that are not positive definite, or degrees of freedom out of range."""
        scales, nu = params["scales"], params["degrees_of_freedom"]
        is_full = self.covariance == "full"
        is_symmetric = not is_full or np.allclose(scales, scales.swapaxes(1, 2), rtol=1e-5, atol=0.0)
        if not (is_symmetric and self._is_positive(scales)):
            raise ValueError("scales must be positive, or symmetric and positive definite.")
        if not ((nu >= LEAST * (1 - 1e-6)) & (nu <= MOST * (1 + 1e-6))).all():
            raise ValueError(f"degrees_of_freedom must be from {LEAST:g} to {MOST:g}.")

    def n_free(self, n_components: int, d: int) -> int:
        """Return the number of free parameters, with the symmetric Σ counted once."""
        return n_components * (d + len(self._products(d)[0]) + (self.degrees_of_freedom is None))


def _above(matrices: Array, floor: float) -> Array:
    """Return symmetric matrices (M, d, d) with eigenvalues of at least ``floor``."""
    values, vectors = np.linalg.eigh(matrices)
    if (values >= floor).all():
        return matrices
    return np.asarray((vectors * np.maximum(values, floor)[:, None, :]) @ np.swapaxes(vectors, 1, 2))


def _degrees(last: Array) -> Array:
    """Return ν with log(ν/2) − ψ(ν/2) = −1 − last, within its bounds.

    >>> _degrees(np.array([START, -1.0, -50.0])).round(2)
    array([1.e+01, 1.e+03, 1.e-01])
    """
    half = solve_shape(np.maximum(-1.0 - last, 0.25 / MOST))
    return np.clip(2.0 * half, LEAST, MOST)
