r"""Directions: von Mises–Fisher distributions of vectors of unit length.

T(y) = y, φ = κμ with ‖μ‖ = 1, and with v = d/2 − 1 and the modified Bessel function I,
c = v log κ − (d/2) log 2π − log I_v(κ), h(y) = 1. M-step: with r = ‖E[y]‖, μ = E[y] / r and κ solves
I_{v+1}(κ) / I_v(κ) = r. It starts from the approximation κ = r (d − r²) / (1 − r²) (Banerjee, Dhillon, Ghosh
and Sra 2005) and is refined by at most 20 Newton steps; about four give full precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swiftem.core.checks import check_real
from swiftem.core.types import Array, Index, Rows
from swiftem.mixture.families.family import Family, Params

LEAST = 1e-280
"""Below this value of exp(−κ)·I_v(κ) its power series is summed by logarithms: it may have no digits."""

UNIT = 1e-4
"""Rows may have a length that differs from one by this: it allows for float32 and for rounded files."""
ROUNDING = 1e-9
"""Lengths of means above one by this are rounding, larger ones are noise."""


@dataclass(frozen=True)
class VonMisesFisher(Family):
    """Vectors of unit length; ``params_`` has ``directions`` (M, d) and ``concentrations`` (M,).

    Parameters
    ----------
    floor : float
        Smallest 1 / concentration.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(np.where(rng.random((2000, 1)) < 0.3, [[0.0, 5.0, 0.0]], [[5.0, 0.0, 0.0]]))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> mixture = swiftem.Mixture(2, family="von-mises-fisher", random_state=0).fit(X)
    >>> mixture.params_["directions"].round(1) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """

    name = "von-mises-fisher"
    bounds = (-1.0, 1.0)
    remedy = "a direction with a missing coordinate has no unit vector, leave out such rows"

    floor: float = 1e-6

    def __post_init__(self) -> None:
        check_real("floor", self.floor, minimum=1e-9, maximum=1.0)

    def shapes(self, n_components: int, d: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of directions and concentrations."""
        return {"directions": (n_components, d), "concentrations": (n_components,)}

    def check_rows(self, y: Rows) -> None:
        """Raise ValueError for vectors that are not of unit length."""
        length = np.sqrt(np.einsum("ij,ij->i", y, y, dtype=np.float64))
        bad = ~(np.abs(length - 1.0) <= UNIT)
        if bad.any():
            raise ValueError(
                "must be vectors of unit length (divide each row by its length), "
                f"got length {length[bad][0]:g}"
            )

    def natural(self, params: Params) -> tuple[Array, Array]:
        """Return κμ and the logarithm of the normalising constant."""
        kappa, mu = params["concentrations"], params["directions"]
        d = mu.shape[1]
        return kappa[:, None] * mu, -0.5 * d * np.log(2.0 * np.pi) - log_bessel(0.5 * d - 1.0, kappa)

    def m_step(self, counts: Array, means: Array) -> Params | None:
        """Return directions and concentrations; None if a mean is longer than one."""
        d = means.shape[1]
        r = np.sqrt(np.einsum("ij,ij->i", means, means))
        if not (r <= 1.0 + ROUNDING).all():
            return None
        axis = np.eye(1, d)  # for a mean of zero, which has no direction
        mu = np.where(r[:, None] > 0.0, means / np.where(r > 0.0, r, 1.0)[:, None], axis)
        return {"directions": mu, "concentrations": solve_concentration(r, d, 1.0 / self.floor)}

    def draw(self, params: Params, labels: Index, rng: np.random.Generator) -> Array:
        """Return vectors of unit length, by Wood's rejection method."""
        kappa, mu = params["concentrations"][labels], params["directions"][labels]
        w = _cosines(kappa, mu.shape[1], rng)
        away = rng.normal(size=mu.shape)
        away -= np.einsum("ij,ij->i", away, mu)[:, None] * mu
        length = np.linalg.norm(away, axis=1, keepdims=True)
        found = w[:, None] * mu + np.sqrt(np.maximum(1.0 - w * w, 0.0))[:, None] * (
            away / np.where(length > 0.0, length, 1.0)
        )
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))

    def check_params(self, params: Params) -> None:
        """Raise ValueError for directions that are not of unit length, or negative concentrations."""
        if (np.abs(np.linalg.norm(params["directions"], axis=1) - 1.0) > UNIT).any():
            raise ValueError("directions must be of unit length.")
        if (params["concentrations"] < 0).any():
            raise ValueError("concentrations must not be negative.")

    def n_free(self, n_components: int, d: int) -> int:
        """Return d per component: d − 1 for the direction, and the concentration."""
        return n_components * d


def solve_concentration(r: Array, d: int, most: float) -> Array:
    """Return κ ≤ most, (M,), with I_{d/2}(κ) / I_{d/2 − 1}(κ) = r.

    >>> solve_concentration(np.array([0.0, 1 / np.tanh(2.0) - 0.5, 1.0]), 3, 1e6).round(9)
    array([0.e+00, 2.e+00, 1.e+06])
    """
    if d == 1:
        return np.minimum(np.arctanh(np.minimum(r, np.tanh(min(most, 18.0)))), most)
    v = 0.5 * d - 1.0
    top = float(bessel_ratio(v, np.array([most]))[0])
    r = np.minimum(r, top)
    kappa = np.minimum(r * (d - r * r) / np.maximum(1.0 - r * r, 1e-300), most)
    for _ in range(20):
        ratio = bessel_ratio(v, kappa)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(kappa > 0.0, 1.0 - ratio * ratio - (d - 1.0) * ratio / kappa, 1.0 / d)
            far = 0.5 * (d - 1.0) / np.square(kappa)  # at large κ, where the difference has no digits
        slope = np.where(slope > 1e-8, slope, np.maximum(far, 1e-300))
        step = np.clip((ratio - r) / slope, -kappa - 1.0, 0.5 * kappa)
        kappa = np.minimum(kappa - step, most)
        if (np.abs(step) <= 1e-14 * kappa).all():
            break
    return np.where(r >= top, most, kappa)


def _cosines(kappa: Array, d: int, rng: np.random.Generator) -> Array:
    """Return random cosines (count,) of the angles to the directions."""
    if d == 1:
        return np.where(rng.random(len(kappa)) * (1.0 + np.exp(-2.0 * kappa)) < 1.0, 1.0, -1.0)
    b = (d - 1.0) / (2.0 * kappa + np.sqrt(4.0 * kappa * kappa + (d - 1.0) ** 2))
    x = (1.0 - b) / (1.0 + b)
    c = kappa * x + (d - 1.0) * (np.log1p(-x) + np.log1p(x))
    w, left = np.empty(len(kappa)), np.arange(len(kappa))
    while len(left):
        z, here = rng.beta(0.5 * (d - 1.0), 0.5 * (d - 1.0), size=len(left)), b[left]
        w[left] = (1.0 - (1.0 + here) * z) / (1.0 - (1.0 - here) * z)
        gain = kappa[left] * w[left] + (d - 1.0) * np.log1p(-x[left] * w[left]) - c[left]
        left = left[gain < np.log(rng.random(len(left)))]
    return w


def log_bessel(v: float, kappa: Array) -> Array:
    """Return log I_v(κ) − v log κ, which is finite at zero, for v ≥ −½ and κ ≥ 0 of shape (M,).

    >>> log_bessel(0.5, np.array([0.0, 2.0])).round(6)  # log sqrt(2 / π), and log(sinh(2) / 2) more
    array([-0.225791,  0.369429])
    """
    from scipy.special import ive

    with np.errstate(all="ignore"):
        scaled = ive(v, kappa)
        found = np.log(scaled) + kappa - v * np.log(kappa)
        few = ~(scaled > LEAST) | (kappa < 1e-8)
    if few.any():
        found[few] = [_series(v, float(value)) for value in kappa[few]]
    return np.asarray(found)


def bessel_ratio(v: float, kappa: Array) -> Array:
    """Return I_{v+1}(κ) / I_v(κ) of shape (M,), from 0 to 1.

    >>> bessel_ratio(0.5, np.array([0.0, 2.0])).round(6)  # coth κ − 1 / κ
    array([0.      , 0.537315])
    >>> bessel_ratio(63.0, np.array([1.28, 1e6])).round(6)  # 128 columns
    array([0.009999, 0.999937])
    """
    from scipy.special import ive

    with np.errstate(all="ignore"):
        below, above = ive(v, kappa), ive(v + 1.0, kappa)
        found = above / below
    few = ~(above > LEAST) | (kappa < 1e-8)
    if few.any():
        small = kappa[few]
        found[few] = small * np.exp(log_bessel(v + 1.0, small) - log_bessel(v, small))
    return np.asarray(found)


def _series(v: float, kappa: float) -> float:
    """Return the logarithm of Σ_k (κ/2)^2k / (k! Γ(v + k + 1)) / 2^v."""
    from scipy.special import gammaln, logsumexp

    peak = 0.5 * (np.hypot(v, kappa) - v)
    k = np.arange(int(peak + 40.0 * np.sqrt(peak + 1.0)) + 20.0)
    with np.errstate(divide="ignore"):
        powers = 2.0 * k[1:] * np.log(0.5 * kappa)
    terms = np.concatenate([[0.0], powers]) - gammaln(k + 1.0) - gammaln(v + k + 1.0)
    return float(logsumexp(terms) - v * np.log(2.0))
