"""Proven bounds of the constants for the mixture of numbers with unit variances."""

from __future__ import annotations

from typing import NamedTuple, SupportsFloat

import numpy as np

from paper.theory.constants import Box, Constant, Constants
from paper.theory.gaussian_mixture import MixtureFamily
from paper.theory.polygon import Polygon
from swiftem.core.source import Source
from swiftem.core.types import Array

__all__ = ["Cells", "component_cells", "mixture_bounds"]

CELLS = 2048
"""Number of parts of the range of a weight. More parts make the bounds slightly smaller."""


class Cells(NamedTuple):
    r"""The possible statistics of one component on S_ρ, divided into cells by its weight; arrays (CELLS,).

    Bounds use monotonicity in weight and mean, cell by cell: this excludes the corner of an empty component
    with a far mean, which does not exist.

    Attributes
    ----------
    a, a_high : ndarray
        Smallest and largest :math:`s^1_m + \epsilon` of each cell.
    c, c_high : ndarray
        Smallest and largest :math:`s^1_m + \delta`.
    mu : ndarray
        Upper bound of :math:`|\mu_m|`.
    mu_range : tuple of float
        Range of all μ_m.
    """

    a: Array
    a_high: Array
    c: Array
    c_high: Array
    mu: Array
    mu_range: tuple[float, float]


def component_cells(y: Array, rho: float, delta: float, epsilon: float) -> Cells:
    r"""Return the possible :math:`(s^1_m, s^2_m)` of a component on S_ρ.

    On S_0 the pair is a point of a polygon, :class:`paper.theory.polygon.Polygon`, whatever M is; on S_ρ it
    is at most ρ away from it in each coordinate. In a cell of weights σ to σ' the second is then at most the
    polygon's maximum between σ − ρ and σ' + ρ, plus ρ; and :math:`\mu_m = s^2_m / (s^1_m + \delta)`.
    """
    polygon = Polygon(y)
    edge = np.linspace(-rho, 1.0 + rho, CELLS + 1)
    low, high = edge[:-1], edge[1:]
    top = polygon.highest(low - rho, high + rho) + rho
    bottom = polygon.lowest(low - rho, high + rho) - rho
    c, c_high = low + delta, high + delta
    largest = np.where(top > 0, top / c, top / c_high).max()
    smallest = np.where(bottom < 0, bottom / c, bottom / c_high).min()
    mu = np.maximum(np.abs(top), np.abs(bottom)) / c
    return Cells(low + epsilon, high + epsilon, c, c_high, mu, (float(smallest), float(largest)))


def _eigenvalues(a: Array, c: Array, mu: Array, known: bool) -> tuple[Array, Array]:
    r"""Return the eigenvalues of :math:`[[1/a + \mu^2/c, -\mu/c], [-\mu/c, 1/c]]`, smaller and larger."""
    first = 0.0 if known else 1.0 / a
    trace, determinant = first + (1.0 + mu**2) / c, first / c
    larger = 0.5 * (trace + np.sqrt(trace**2 - 4.0 * determinant))
    return determinant / larger, larger


def mixture_bounds(family: MixtureFamily, source: Source, rho: float) -> Constants:
    r"""Return the bounds, with these proofs.

    Write E for the matrix that adds the last component: the statistics of component m are the m-th pair of
    E·s (plus a constant). Since :math:`x^\top B(s) x = \sum_m x_m^\top B_m x_m` with pairs x_m of E·x and
    :math:`B_m = [[1/a + \mu_m^2/c, -\mu_m/c], [-\mu_m/c, 1/c]]`, :math:`a = s^1_m + \epsilon`,
    :math:`c = s^1_m + \delta`, everything about B reduces to 2 × 2 matrices on :class:`Cells`.

    - **υ_max**: :math:`\|E\|^2` times the largest eigenvalue of any B_m. It grows with the size of μ, 1/a
      and 1/c: in a cell it is at most that at the cell's smallest a and c and largest μ.
    - **υ_min**: the smallest eigenvalue of EᵀE times the smallest of any B_m, which falls with μ (the
      determinant does not depend on μ, the trace grows), a and c.
    - **L_B**: along a unit change of the pair, :math:`1/a` changes by at most :math:`1/a^2`,
      :math:`gg^\top/c` with g = (−μ, 1) by :math:`(1+\mu^2)/c^2` for c and by
      :math:`|\dot\mu| (|\mu| + \sqrt{1+\mu^2})/c` for μ, where :math:`|\dot\mu| \le \sqrt{1+\mu^2}/c`. For x
      in the directions of S_ρ, along which s³ does not change, a pair of E·x is at most
      :math:`\max(1, \sqrt{M-1})` as long as x; :math:`\|E\|^2` comes in as before.
    - **L_θ**: :math:`\dot\omega = \dot s^1/(1 + M\epsilon)` and
      :math:`\dot\mu_m = (\dot s^2_m - \mu_m \dot s^1_m)/c`, at most :math:`\sqrt{1+\mu^2}/c` times the pair.
      The squares of the pairs of a unit x sum to at most M, s³ unchanged; for M = 2 both pairs are equally
      long and their weights sum to 1, so the cells of the second are those of the first, in reverse.
    - **C_φ**: the norm of a matrix is at most that of the matrix of bounds on its entries' absolute values.
    - **L_φ**: the derivative of J_φ along (h, k), weights and means, is a row of blocks: the first of norm at
      most :math:`(1 + (M-1)^{3/2})\|h\|/\omega_{\min}^2`, or
      :math:`(\omega_{\min}^{-2} - \omega_{\max}^{-2})|h|` for M = 2, the second at most
      :math:`\sqrt{M-1}\,\|k\|`.
    - **L_p**: the gradient of p_z in the logits is :math:`t \sum_j q_j (e_z - e_j)`, a mean of differences
      times :math:`t = p_z(1-p_z) \le 1/4`; the norm is convex, so one difference gives the largest.
    - **C_Z**: exact. **C_S**: the diameter of a mean of sets is at most the mean of their diameters;
      to a point of S_ρ, which is within :math:`\rho\sqrt{2(M-1)}` of S_0, that much is added.

    Means over conv θ̄(S_ρ) are bounded on the box that contains it: weights at least
    :math:`(\epsilon - \rho)/(1 + M\epsilon)`, means in ``mu_range``.
    """
    if family.d != 1:
        raise ValueError(
            f"data must be numbers (n,) for the constants, the paper's mixture, got {family.d} columns."
        )
    M, known = family.M, family.known is not None
    if M < 2:
        raise ValueError("n_components must be at least 2: with one, statistics do not change.")
    y = source.take(np.arange(source.n)).y.ravel().astype(np.float64)
    cells = component_cells(y, rho, family.delta, family.epsilon)
    a, a_high, c, c_high, mu, (mu_low, mu_high) = cells
    squares = np.linalg.eigvalsh(family.E.T @ family.E)

    def bound(value: SupportsFloat, how: str) -> Constant:
        return Constant(float(value), "bound", how)

    upsilon_max = bound(squares[-1] * _eigenvalues(a, c, mu, known)[1].max(), "‖E‖²·max λ(B_m) over cells")
    if known:
        upsilon_min = bound(0.0, "weights are known: B has rank M")
    else:
        smallest = _eigenvalues(a_high, c_high, mu, known)[0].min()
        upsilon_min = bound(squares[0] * smallest, "λ_min(EᵀE)·min λ(B_m) over cells")
    moves = np.sqrt(1.0 + mu**2)
    change = (moves**2 + moves * (mu + moves)) / c**2 + (0.0 if known else 1.0 / a**2)
    L_B = bound(squares[-1] * max(1.0, np.sqrt(M - 1)) * change.max(), "‖E‖²·max ‖dB_m‖ over cells")

    pair = (moves / c) ** 2
    means = (pair + pair[::-1]).max() if M == 2 else M * pair.max()
    weights = 0.0 if known else (1.0 + M * family.epsilon) ** -2
    L_theta = bound(np.sqrt(weights + means), "(dω² + dμ²)^(1/2) over cells")

    w_low = (family.epsilon - rho) / (1.0 + M * family.epsilon)
    w_high = 1.0 - (M - 1) * w_low
    largest_mu = max(abs(mu_low), abs(mu_high))
    C_phi = bound(
        np.linalg.norm(_jacobian_bound(M, w_low, w_high, largest_mu, known), 2), "‖|J_φ|‖ on the box"
    )
    by_means = np.sqrt(max(1.0, M - 1))
    by_weights = 0.0
    if not known:
        by_weights = w_low**-2 - w_high**-2 if M == 2 else (1.0 + (M - 1) ** 1.5) / w_low**2
    L_phi = bound(max(by_weights, by_means), "‖dJ_φ‖ on the box")
    logit = 0.0 if known else (1.0 / w_low + 1.0 / w_high if M == 2 else np.sqrt(M + 2.0) / w_low)
    reach = max(y.max() - mu_low, mu_high - y.min())
    L_p = bound(0.25 * np.sqrt(logit**2 + 2.0 * reach**2), "¼·‖dlogit_z − dlogit_j‖ on the box")

    C_Z = bound(((M - 1) * np.sqrt(1.0 + 2.0 * y**2) + np.abs(y)).max(), "exact")
    diameter = np.sqrt((1.0 if M == 2 else 2.0) * (1.0 + y**2))
    around = rho * np.sqrt(2.0 * (M - 1))
    C_S = bound(diameter.mean() + 2.0 * around, "mean_i diam conv S(·, y_i) + 2ρ√(2(M−1))")
    C_S_sample = bound(diameter.max(), "max_i diam conv S(·, y_i), exact")
    C_S_residual = bound(diameter.mean() + around, "mean_i diam conv S(·, y_i) + ρ√(2(M−1))")
    if known:
        assert family.known is not None
        lows, highs = family.known, family.known
    else:
        lows, highs = np.full(M, w_low), np.full(M, w_high)
    return Constants.composed(
        n=source.n,
        rho=rho,
        C_S=C_S,
        C_S_sample=C_S_sample,
        C_S_residual=C_S_residual,
        C_Z=C_Z,
        C_phi=C_phi,
        L_phi=L_phi,
        L_p=L_p,
        L_theta=L_theta,
        L_B=L_B,
        upsilon_min=upsilon_min,
        upsilon_max=upsilon_max,
        box=Box(np.append(lows, np.full(M, mu_low)), np.append(highs, np.full(M, mu_high))),
    )


def _jacobian_bound(M: int, w_low: float, w_high: float, mu: float, known: bool) -> Array:
    """Return bounds (2M − 1, p) on the absolute values of the entries of J_φ, (jacob), on the box."""
    others = M - 1
    one, zero = np.ones((others, 1)), np.zeros((others, others))
    both = 1.0 / w_low + (1.0 / w_high if M == 2 else 1.0 / w_low)
    weights = np.full((others, others), 1.0 / w_low)
    np.fill_diagonal(weights, both)
    rows = [
        [weights, mu * np.eye(others), mu * one],
        [zero, np.eye(others), one],
        [np.zeros((1, others)), np.zeros((1, others)), np.ones((1, 1))],
    ]
    return np.block([row[1:] if known else row for row in rows])
