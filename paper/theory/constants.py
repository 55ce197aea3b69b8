"""The constants of H1 to H5 and of the lemmas for the paper's mixture, each a proven bound or an estimate.

Estimates are observed at sampled points: lower limits of the bounds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal, NamedTuple, SupportsFloat

import numpy as np

from paper.theory.family import family_of, full_pass, matrix_B
from paper.theory.gaussian_mixture import MixtureFamily
from paper.theory.sets import Polygon, radius, sample_S_rho
from swiftem.core.checks import check_int
from swiftem.core.model import Model
from swiftem.core.types import Array

Kind = Literal["bound", "estimate"]
"""Proven for every point of the set, or observed at sampled points."""
ROUNDING = 1e-12
"""S_ρ has corners, at which parameters are on the boundary of the box."""
CELLS = 2048
"""Number of parts of the range of a weight. More parts make the bounds slightly smaller."""

NEAR = 1e-4
"""Distance from a point to its neighbour, as a share of that to another point of the set."""
MOST_SAMPLES = 500
"""Maximum number of samples whose own statistics are evaluated, evenly spaced."""


class Constant(NamedTuple):
    """A number, whether it is a ``"bound"`` or an ``"estimate"``, and its origin, in words."""

    value: float
    kind: Kind
    how: str


def weaker(*parts: Constant) -> Kind:
    """Return the kind of a number computed from these: one estimate makes an estimate."""
    return "bound" if all(part.kind == "bound" for part in parts) else "estimate"


class Box(NamedTuple):
    r"""Bounds ``low`` and ``high`` (·,) of the weights and means of both components, for conv θ̄(S_ρ).

    Constants of parameters, C_φ, L_φ and L_p, are bounds on the whole box: it is convex, too.
    """

    low: Array
    high: Array

    def holds(self, theta: Any) -> bool:
        """Tell whether these weights and means are inside."""
        values = np.concatenate([np.ravel(part) for part in theta[:2]])
        slack = ROUNDING * (1.0 + np.abs(values))
        return bool(((values >= self.low - slack) & (values <= self.high + slack)).all())


@dataclass(frozen=True)
class Constants:
    r"""The paper's constants for one model and data; see :func:`constants`.

    Attributes
    ----------
    n : int
        Samples.
    rho : float
        ρ of the set S_ρ.
    C_S : Constant
        Diameter of S_ρ.
    C_S_sample : Constant
        The meaning of C_S in L_e: the largest diameter of conv S(·, y_i).
    C_S_residual : Constant
        The meaning of C_S in L_V: the largest :math:`\|s - \bar s(\bar\theta(s))\|` on S_ρ.
    C_Z : Constant
        Largest :math:`\sum_z \|S(z, y_i)\|`.
    C_phi, L_phi : Constant
        Norm of the Jacobian of φ, and its Lipschitz constant, on conv θ̄(S_ρ).
    L_p : Constant
        Lipschitz constant of the posterior probabilities in θ, there.
    L_theta, L_B : Constant
        Lipschitz constants of θ̄(s) and of B(s) on S_ρ.
    upsilon_min, upsilon_max : Constant
        Smallest and largest eigenvalue of B(s) on S_ρ.
    L_e : Constant
        :math:`C_\phi C_Z L_p + C_S L_\phi`, Lemma lips_theta.
    L_s, L_V : Constant
        :math:`C_Z L_p L_\theta` and :math:`\upsilon_{\max}(1 + L_s) + L_B C_S`, Lemma smooth.
    box : Box
        Parameters for which C_φ, L_φ and L_p hold.
    """

    n: int
    rho: float
    C_S: Constant
    C_S_sample: Constant
    C_S_residual: Constant
    C_Z: Constant
    C_phi: Constant
    L_phi: Constant
    L_p: Constant
    L_theta: Constant
    L_B: Constant
    upsilon_min: Constant
    upsilon_max: Constant
    L_e: Constant
    L_s: Constant
    L_V: Constant
    box: Box

    @classmethod
    def composed(cls, **found: Any) -> Constants:
        """Return the constants with L_e, L_s and L_V composed from the others, as in the lemmas."""
        C_Z, L_p, L_phi, C_phi = (found[name] for name in ("C_Z", "L_p", "L_phi", "C_phi"))
        upsilon, L_B, sample, residual = (
            found[name] for name in ("upsilon_max", "L_B", "C_S_sample", "C_S_residual")
        )
        e = C_phi.value * C_Z.value * L_p.value + sample.value * L_phi.value
        s = C_Z.value * L_p.value * found["L_theta"].value
        V = upsilon.value * (1.0 + s) + L_B.value * residual.value
        L_s = Constant(s, weaker(C_Z, L_p, found["L_theta"]), "C_Z·L_p·L_θ")
        return cls(
            L_e=Constant(e, weaker(C_phi, C_Z, L_p, sample, L_phi), "C_φ·C_Z·L_p + C_S·L_φ"),
            L_s=L_s,
            L_V=Constant(V, weaker(upsilon, L_s, L_B, residual), "υ_max·(1 + L_s) + L_B·C_S"),
            **found,
        )

    @property
    def L_v(self) -> Constant:
        r"""Return :math:`\overline L_v = \max(L_V, L_s)` of Theorem 2."""
        larger = max(self.L_V, self.L_s, key=lambda constant: constant.value)
        return Constant(larger.value, weaker(self.L_V, self.L_s), "max(L_V, L_s)")

    def named(self) -> dict[str, Constant]:
        """Return the constants by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Constant)}

    def __str__(self) -> str:
        lines = [f"n = {self.n}, ρ = {self.rho:g}"]
        for name, (value, kind, how) in self.named().items():
            lines.append(f"{name:<13} {value:<12.5g} {kind:<9} {how}")
        return "\n".join(lines)


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

    On S_0 the pair is a point of a :class:`paper.theory.sets.Polygon`; on S_ρ it
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


def constants(model: Model, data: Any) -> Constants:
    r"""Return a proven bound for each of the paper's constants, on S_ρ and conv θ̄(S_ρ).

    S_0 is the set of all means of :math:`s_i \in \mathrm{conv}\, S(\cdot, y_i)`, and S_ρ the points of its
    affine hull that are at most ρ away from it in max-norm; ρ is :func:`paper.theory.radius`. Norms are
    Euclidean and spectral. For how much smaller the constants could be see
    :func:`paper.theory.estimate_constants`.

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
      in the directions of S_ρ, along which s³ does not change, a pair of E·x is as long as x;
      :math:`\|E\|^2` comes in as before.
    - **L_θ**: :math:`\dot\omega = \dot s^1/(1 + 2\epsilon)` and
      :math:`\dot\mu_m = (\dot s^2_m - \mu_m \dot s^1_m)/c`, at most :math:`\sqrt{1+\mu^2}/c` times the pair.
      Both pairs are equally long and their weights sum to 1, so the cells of the second are those of the
      first, in reverse.
    - **C_φ**: the norm of a matrix is at most that of the matrix of bounds on its entries' absolute values.
    - **L_φ**: the derivative of J_φ along (h, k), weights and means, is a row of blocks: the first of norm at
      most :math:`(\omega_{\min}^{-2} - \omega_{\max}^{-2})|h|`, the second at most :math:`\|k\|`.
    - **L_p**: the gradient of p_z in the logits is :math:`t (e_z - e_j)` with
      :math:`t = p_z(1-p_z) \le 1/4`.
    - **C_Z**: exact. **C_S**: the diameter of a mean of sets is at most the mean of their diameters;
      to a point of S_ρ, which is within :math:`\rho\sqrt 2` of S_0, that much is added.

    Means over conv θ̄(S_ρ) are bounded on the box that contains it: weights at least
    :math:`(\epsilon - \rho)/(1 + 2\epsilon)`, means in the range of the cells.

    Parameters
    ----------
    model : GaussianMixtureModel with two components of unit variance
        The model, with a penalty.
    data
        Numbers (n,), as in :func:`swiftem.run`; without weights, as the theorems have none.

    Examples
    --------
    >>> from paper import theory
    >>> from swiftem import models
    >>> found = theory.constants(models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), range(9))
    >>> found.rho, found.upsilon_min.kind
    (0.5, 'bound')
    >>> bool(0 < found.upsilon_min.value < 0.25 < found.upsilon_max.value)
    True
    """
    rho = radius(model)
    family, source = family_of(model, data)
    assert isinstance(family, MixtureFamily)
    batch = source.take(np.arange(source.n))
    if family.d != 1 or (batch.weight != 1.0).any():
        raise ValueError(
            "data must be numbers (n,) without weights for the constants of the theorems, got "
            f"{family.d} columns and weights from {batch.weight.min():g} to {batch.weight.max():g}."
        )
    y, known = batch.y.ravel().astype(np.float64), family.known is not None
    a, a_high, c, c_high, mu, (mu_low, mu_high) = component_cells(y, rho, family.delta, family.epsilon)
    squares = np.linalg.eigvalsh(family.E.T @ family.E)

    def bound(value: SupportsFloat, how: str) -> Constant:
        return Constant(float(value), "bound", how)

    upsilon_min = bound(0.0, "weights are known: B has rank M")
    if not known:
        smallest = _eigenvalues(a_high, c_high, mu, known)[0].min()
        upsilon_min = bound(squares[0] * smallest, "λ_min(EᵀE)·min λ(B_m) over cells")
    moves = np.sqrt(1.0 + mu**2)
    change = (moves**2 + moves * (mu + moves)) / c**2 + (0.0 if known else 1.0 / a**2)
    pair = (moves / c) ** 2
    means = (pair + pair[::-1]).max()
    by_weights = 0.0 if known else (1.0 + 2.0 * family.epsilon) ** -2

    w_low = (family.epsilon - rho) / (1.0 + 2.0 * family.epsilon)
    w_high = 1.0 - w_low
    far = max(abs(mu_low), abs(mu_high))
    entries = np.array([[1.0 / w_low + 1.0 / w_high, far, far], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    jacobian = np.linalg.norm(entries[:, 1:] if known else entries, 2)
    logit = 0.0 if known else 1.0 / w_low + 1.0 / w_high
    reach = max(y.max() - mu_low, mu_high - y.min())
    diameter, around = np.sqrt(1.0 + y**2), rho * np.sqrt(2.0)
    weights = np.array([[w_low] * 2, [w_high] * 2]) if family.known is None else np.array([family.known] * 2)
    return Constants.composed(
        n=source.n,
        rho=rho,
        C_S=bound(diameter.mean() + 2.0 * around, "mean_i diam conv S(·, y_i) + 2ρ√2"),
        C_S_sample=bound(diameter.max(), "max_i diam conv S(·, y_i), exact"),
        C_S_residual=bound(diameter.mean() + around, "mean_i diam conv S(·, y_i) + ρ√2"),
        C_Z=bound((np.sqrt(1.0 + 2.0 * y**2) + np.abs(y)).max(), "exact"),
        C_phi=bound(jacobian, "‖|J_φ|‖ on the box"),
        L_phi=bound(max(1.0, 0.0 if known else w_low**-2 - w_high**-2), "‖dJ_φ‖ on the box"),
        L_p=bound(0.25 * np.sqrt(logit**2 + 2.0 * reach**2), "¼·‖dlogit_z − dlogit_j‖ on the box"),
        L_theta=bound(np.sqrt(by_weights + means), "(dω² + dμ²)^(1/2) over cells"),
        L_B=bound(squares[-1] * change.max(), "‖E‖²·max ‖dB_m‖ over cells"),
        upsilon_min=upsilon_min,
        upsilon_max=bound(squares[-1] * _eigenvalues(a, c, mu, known)[1].max(), "‖E‖²·max λ(B_m) over cells"),
        box=Box(np.append(weights[0], [mu_low] * 2), np.append(weights[1], [mu_high] * 2)),
    )


class Smoothness(NamedTuple):
    """L_e of Lemma lips_theta, L_s and L_V of Lemma smooth: the smallest that the observations allow."""

    L_e: Constant
    L_s: Constant
    L_V: Constant


def estimate_constants(
    model: Model, data: Any, *, n_points: int = 200, rng: np.random.Generator | None = None
) -> Constants:
    r"""Return each of the paper's constants as observed at sampled points of S_ρ, labelled an estimate.

    Those of H1 to H5 are the largest (υ_min: smallest) observed value, or quotient of a change and the
    distance of two near points. The true one may be larger: numbers computed from these are estimates, not
    bounds. L_e, L_s and L_V are composed from them as in the lemmas; their own observed values, which are far
    smaller, are in :func:`paper.theory.estimate_smoothness`. C_Z and C_S of a sample are exact and those
    of :func:`paper.theory.constants`.

    Parameters
    ----------
    model, data
        As in :func:`paper.theory.constants`.
    n_points : int
        Number of points of S_ρ, each with a neighbour.
    rng : numpy.random.Generator, optional
        Generator of the points; by default they are always the same.

    Examples
    --------
    >>> import numpy as np
    >>> from paper import theory
    >>> from swiftem import models
    >>> model, y = models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), np.linspace(-2.0, 2.0, 100)
    >>> seen, bound = theory.estimate_constants(model, y, n_points=20), theory.constants(model, y)
    >>> seen.L_V.kind, bool(seen.L_V.value < bound.L_V.value)
    ('estimate', True)
    """
    proven = constants(model, data)
    seen = _largest(model, data, proven.rho, n_points, rng)
    how = f"largest of {n_points} points"
    names = ("C_S", "C_S_residual", "C_phi", "L_phi", "L_p", "L_theta", "L_B", "upsilon_max")
    smallest = Constant(-seen["-upsilon_min"], "estimate", f"smallest of {n_points} points")
    return Constants.composed(
        n=proven.n,
        rho=proven.rho,
        C_S_sample=proven.C_S_sample,
        C_Z=proven.C_Z,
        box=proven.box,
        upsilon_min=smallest if proven.upsilon_min.value else proven.upsilon_min,
        **{name: Constant(seen[name], "estimate", how) for name in names},
    )


def estimate_smoothness(
    model: Model, data: Any, *, n_points: int = 200, rng: np.random.Generator | None = None
) -> Smoothness:
    r"""Return the largest observed change of gradients and statistics between near points of S_ρ.

    The lemmas bound each by a product of worst cases that do not occur together; these values show how much
    is lost by that. With ``dataclasses.replace(constants, **smoothness._asdict())`` the theorems use them.

    Parameters
    ----------
    model, data, n_points, rng
        As in :func:`paper.theory.estimate_constants`.

    Examples
    --------
    >>> import numpy as np
    >>> from paper import theory
    >>> from swiftem import models
    >>> model, y = models.GaussianMixtureModel(2, delta=1.0, epsilon=1.0), np.linspace(-2.0, 2.0, 100)
    >>> seen = theory.estimate_smoothness(model, y, n_points=20)
    >>> seen.L_V.kind, bool(10 * seen.L_V.value < theory.constants(model, y).L_V.value)
    ('estimate', True)
    """
    seen = _largest(model, data, constants(model, data).rho, n_points, rng)
    how = f"largest of {n_points} points"
    return Smoothness(*(Constant(seen[f"{name} itself"], "estimate", how) for name in Smoothness._fields))


def _largest(
    model: Model, data: Any, rho: float, n_points: int, rng: np.random.Generator | None
) -> dict[str, float]:
    """Return the largest value of each constant at points and their neighbours on the way to the next."""
    check_int("n_points", n_points, minimum=1)
    family, source = family_of(model, data)
    batch = source.take(np.unique(np.linspace(0, source.n - 1, MOST_SAMPLES).astype(np.intp)))
    rng = np.random.default_rng(0) if rng is None else rng
    seen: dict[str, float] = defaultdict(lambda: -np.inf)
    for s, other in pairwise([sample_S_rho(family, source, rho, rng) for _ in range(n_points + 1)]):
        near = s + NEAR * (other - s)
        step = float(np.linalg.norm(near - s))
        if step == 0.0:
            continue
        B, B_near = matrix_B(family, s), matrix_B(family, near)
        thetas = [family.theta(x) for x in (s, near, other)]
        moved = float(np.linalg.norm(family.vector(thetas[1]) - family.vector(thetas[0])))
        J, J_near = (family.jacobian_phi(theta) for theta in thetas[:2])
        rows = [family.bound.posterior(batch, theta)[0] for theta in thetas]
        each = [family.each_statistics(batch, row) for row in rows]
        h, h_near = (
            x - full_pass(family, source, theta).s for x, theta in zip((s, near), thetas[:2], strict=True)
        )
        # The gradient of e_i, which has the opposite sign in the paper (line 509).
        gap, gap_near = (each[0] - each[2]) @ J, (each[1] - each[2]) @ J_near
        for name, value in {
            "C_S": np.linalg.norm(other - s),
            "C_S_residual": np.linalg.norm(h),
            "C_phi": np.linalg.norm(J, 2),
            "L_phi": np.linalg.norm(J_near - J, 2) / moved,
            "L_p": np.abs(rows[1] - rows[0]).max() / moved,
            "L_theta": moved / step,
            "L_B": np.linalg.norm(B_near - B, 2) / step,
            "upsilon_max": np.linalg.norm(B, 2),
            "-upsilon_min": -np.linalg.eigvalsh(B)[0],
            "L_e itself": np.linalg.norm(gap_near - gap, axis=1).max() / moved,
            "L_s itself": np.linalg.norm(each[1] - each[0], axis=1).max() / step,
            "L_V itself": np.linalg.norm(family.times_B(near, h_near) - family.times_B(s, h)) / step,
        }.items():
            seen[name] = max(seen[name], float(value))
    return seen
