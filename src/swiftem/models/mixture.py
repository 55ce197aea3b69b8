"""Mixtures of any family of components: one model for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._checks import STRONGEST, as_floats, check_int, check_real, check_simplex
from swiftem._typing import Array, Index
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Batch, Source
from swiftem.models.components import BoundComponents, Coefficients
from swiftem.models.families import Family, Params, read_family
from swiftem.models.rows import BLOCK, check_rows, different_rows, two_dimensional

__all__ = ["LINEAR", "BoundMixture", "MixtureModel", "MixtureStatistics", "MixtureTheta"]


LINEAR = 4
"""Number of such features in compiled code, beside those of the kinds of covariance."""


class MixtureTheta(NamedTuple):
    """Parameters: ``weights`` (M,), and ``params``, arrays by the names that the family has for them."""

    weights: Array
    params: Params


class MixtureStatistics(NamedTuple):
    """Statistics, means over samples: ``weights`` (M,) of r_m, ``sums`` (M, p) of r_m·T(y)."""

    weights: Array
    sums: Array


@dataclass(frozen=True)
class MixtureModel:
    r"""Mixture of M components of one family.

    The penalty is that of a conjugate prior: as if each component had ``smoothing`` rows more, whose features
    are the mean :math:`\bar T` of all data,

    .. math:: -\kappa \sum_m \big( \langle \bar T, \phi(\theta_m) \rangle + c(\theta_m) \big)
       - \epsilon \sum_m \log \omega_m, \quad \kappa = \text{smoothing} / W, \ \epsilon = (\alpha - 1) / W,

    W the sum of weights.

    Parameters
    ----------
    n_components : int
        M.
    family : str or Family
        Of the components: a name in :data:`swiftem.models.families.FAMILIES`, or a family.
    smoothing : float
        Rows of the prior, for each component. Zero is the maximum of the likelihood; a little keeps the
        parameters off bounds that stochastic methods could not leave.
    concentration : float, optional
        α ≥ 1 of a Dirichlet prior on the weights.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import methods, models
    >>> rng = np.random.default_rng(0)
    >>> y = rng.poisson(np.where(rng.random(500) < 0.5, 2.0, 20.0))
    >>> model = models.MixtureModel(2, "poisson")
    >>> theta0 = model.theta(rates=[[5.0], [10.0]])
    >>> swiftem.run(model, y, methods.EM(), theta0=theta0, n_iter=30).theta.params["rates"].round()
    array([[ 2.],
           [20.]])
    """

    n_components: int
    family: str | Family
    smoothing: float = 1e-3
    concentration: float | None = None

    def __post_init__(self) -> None:
        check_int("n_components", self.n_components, minimum=1)
        object.__setattr__(self, "family", read_family(self.family))
        check_real("smoothing", self.smoothing, minimum=0.0, maximum=STRONGEST)
        if self.concentration is not None:
            check_real("concentration", self.concentration, minimum=1.0, maximum=STRONGEST)

    @property
    def kind(self) -> Family:
        """The family."""
        assert isinstance(self.family, Family)
        return self.family

    @property
    def in_counts(self) -> bool:
        """Whether there is a prior in counts: its part in the objective depends on the total weight."""
        return self.smoothing > 0.0 or self.concentration is not None

    def width(self, d: int) -> int:
        """Return p, how many features rows of d columns have."""
        return int(self.kind.features(np.zeros((1, d))).shape[1])

    def size(self, d: int) -> int:
        """Return q, the length of the statistics of rows of d columns."""
        return self.n_components * (1 + self.width(d))

    def theta(self, *, weights: ArrayLike | None = None, **params: ArrayLike) -> MixtureTheta:
        """Return parameters for this model, checked; weights are equal where they are not given."""
        names = tuple(self.kind.shapes(1, 1))
        if set(params) != set(names):
            raise TypeError(f"theta needs {' and '.join(names)}, got {', '.join(params) or 'nothing'}.")
        first = np.asarray(params[names[0]])
        d = first.shape[1] if first.ndim > 1 else 1
        even = np.full(self.n_components, 1.0 / self.n_components)
        return self.check_theta(even if weights is None else weights, params, d, "")

    def check_theta(
        self, weights: ArrayLike, params: Mapping[str, ArrayLike], d: int, prefix: str
    ) -> MixtureTheta:
        """Return parameters in arrays of their own, or refuse them by the names that they have."""
        found = as_floats(f"{prefix}weights", weights, shape=(self.n_components,)).copy()
        check_simplex(f"{prefix}weights", found)
        shapes = self.kind.shapes(self.n_components, d)
        read = {
            name: as_floats(f"{prefix}{name}", params[name], shape=shape).copy()
            for name, shape in shapes.items()
        }
        self.kind.check_params(read)
        return MixtureTheta(found, read)

    def bind(self, source: Source, *, centre: ArrayLike | None = None) -> BoundMixture:
        """Return the model for these data; a pass checks them, and finds the mean of their features.

        With a ``centre`` (p,), which then is that mean, there is no pass.
        """
        d = check_rows(source, self.n_components if centre is None else 1)
        if centre is None:
            mean, spread = _moments(self.kind, source)
        else:
            mean = as_floats("centre", centre, shape=(None,)).copy()
            spread = np.ones_like(mean)
        total = source.total_weight
        epsilon = 0.0 if self.concentration is None else (self.concentration - 1.0) / total
        return BoundMixture(
            self, source, np.zeros_like(mean), d, mean, spread, self.smoothing / total, epsilon
        )


def _moments(family: Family, source: Source) -> tuple[Array, Array]:
    """Return mean and root mean square of the features, (p,) each; of a stored source, the first time."""
    found: dict[Any, Any] = source.found if isinstance(source, StoredSource) else {}
    key = f"features of {family!r}"
    if key not in found:
        total, squares = np.zeros(1), np.zeros(1)
        for batch in source.blocks(BLOCK):
            features = family.checked(two_dimensional(batch.y), int(batch.index[0])).astype(np.float64)
            total = total + batch.weight @ features
            squares = squares + batch.weight @ (features * features)
        found[key] = total / source.total_weight, np.sqrt(squares / source.total_weight)
    mean, spread = found[key]
    return np.array(mean), np.array(spread)


@dataclass(frozen=True, eq=False)
class BoundMixture(BoundComponents):
    """A :class:`MixtureModel` for its data.

    Attributes
    ----------
    mean, spread : ndarray, shape (p,)
        Mean and root mean square of the features of the data.
    kappa, epsilon : float
        Strength of the priors, for means of samples.
    """

    ILL_DEFINED: ClassVar[str] = (
        "Fitting the mixture failed because some components have no parameters of largest likelihood: take "
        "fewer components or more smoothing."
    )
    REMEDY: ClassVar[str] = "fewer components or more smoothing"

    model: MixtureModel
    source: Source
    centre: Array
    columns: int
    mean: Array
    spread: Array
    kappa: float
    epsilon: float

    @property
    def code(self) -> int:
        """Features as they are given."""
        return LINEAR

    @property
    def is_held(self) -> bool:
        """Whether a prior of a row or more holds components without rows."""
        return self.model.smoothing >= 1.0 or self.model.concentration is not None

    @property
    def d(self) -> int:
        """Number of columns of the data."""
        return self.columns

    @property
    def size(self) -> int:
        """Length of the statistics."""
        return self.n_components * (1 + len(self.mean))

    @property
    def n_free(self) -> int:
        """How many numbers are free."""
        return self.n_components - 1 + self.model.kind.n_free(self.n_components, self.d)

    def like(self) -> MixtureTheta:
        """Return arrays of the shapes that parameters have."""
        shapes = self.model.kind.shapes(self.n_components, self.d)
        return MixtureTheta(
            np.empty(self.n_components), {name: np.empty(shape) for name, shape in shapes.items()}
        )

    @property
    def about(self) -> Array:
        """The mean of the features, which the prior has."""
        return self.mean

    def with_share(self, share: float) -> Self:
        """Return the same with a weaker prior."""
        return replace(self, kappa=self.kappa * share, epsilon=self.epsilon * share)

    def initial_theta(self, rng: np.random.Generator) -> MixtureTheta:
        """Return equal weights, and components half-way between different rows and the mean of all."""
        rows = different_rows(self.source, self.n_components, self.d, rng)
        s = np.empty(self.size)
        parts = self.unpack(s)
        parts.weights[:] = 1.0 / self.n_components
        parts.sums[:] = self._around(rows) / self.n_components
        return self.m_step(s)

    def _around(self, rows: Array) -> Array:
        """Return features half-way between those of rows (k, d) and their mean over all data."""
        return np.asarray(0.5 * (self.model.kind.features(rows) + self.mean))

    def check_theta(self, theta: Any, name: str = "theta0") -> MixtureTheta:
        """Return ``theta``, checked against model and data."""
        names = tuple(self.model.kind.shapes(1, 1))
        if not isinstance(theta, MixtureTheta):
            raise TypeError(
                f"{name} must be made by model.theta(weights=, {'=, '.join(names)}=), "
                f"got {type(theta).__name__}."
            )
        if set(theta.params) != set(names):
            raise ValueError(f"{name}.params must have {', '.join(names)}, got {', '.join(theta.params)}.")
        return self.model.check_theta(theta.weights, theta.params, self.d, f"{name}.")

    def features(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return T(y)."""
        return self.model.kind.features(y)

    def log_base(self, y: NDArray[Any], first: int) -> Array | None:
        """Return log h(y) of rows, which are checked."""
        self.model.kind.checked(y, first)
        return self.model.kind.log_base(y)

    def coefficients(self, theta: MixtureTheta) -> Coefficients:
        """Return φ(θ)."""
        phi, constant = self.model.kind.natural(theta.params)
        with np.errstate(divide="ignore"):
            constant = constant + np.log(theta.weights)
        if not np.isfinite(phi).all() or np.isnan(constant).any():
            raise ValueError("data must have a scale at which natural parameters are finite: scale columns.")
        p = phi.shape[1]
        return Coefficients(
            np.ascontiguousarray(phi.T), constant, np.zeros_like(phi), constant, np.empty((0, p, p)),
            np.empty((0, p)),
        )  # fmt: skip

    def posterior(self, batch: Batch, theta: MixtureTheta) -> tuple[Array, Array]:
        """E-step: responsibilities (b, M) and log-likelihood (b,)."""
        y = two_dimensional(batch.y)
        found = self.coefficients(theta)
        logits = self.features(y) @ found.phi + found.constant
        largest = logits.max(axis=1, keepdims=True)
        rows = np.exp(logits - largest)
        totals = rows.sum(axis=1, keepdims=True)
        log_likelihood = (largest + np.log(totals))[:, 0]
        base = self.model.kind.log_base(y)
        return rows / totals, log_likelihood if base is None else log_likelihood + base

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""
        weighted = rows * weight[:, None]
        sums = weighted.T @ self.features(two_dimensional(batch.y))
        return np.concatenate([weighted.sum(axis=0), sums.ravel()])

    def in_domain(self, s: Array) -> bool:
        """Tell whether the M-step exists."""
        return self._solve(s) is not None

    def m_step(self, s: Array) -> MixtureTheta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep)."""
        theta = self._solve(s)
        if theta is None:
            raise ValueError("s must lie in the model's domain, where the M-step exists.")
        return theta

    def _solve(self, s: Array) -> MixtureTheta | None:
        """Return the M-step of ``s``, or None outside the domain."""
        parts = self.unpack(s)
        least = parts.weights.min()
        if not (least + self.epsilon > 0.0 and least + self.kappa > 0.0 and np.isfinite(s).all()):
            return None
        counts, means = self._means(parts)
        params = self.model.kind.m_step(counts, means)
        weights = parts.weights + self.epsilon
        return None if params is None else MixtureTheta(weights / weights.sum(), params)

    def _means(self, parts: MixtureStatistics) -> tuple[Array, Array]:
        """Return counts (M,) and means of the features (M, p), with what the prior adds."""
        counts = parts.weights[:, None]
        low, high = self.model.kind.bounds
        sums = parts.sums
        if np.isfinite(low):
            sums = np.maximum(sums, low * counts)
        if np.isfinite(high):
            sums = np.minimum(sums, high * counts)
        counts = counts + self.kappa
        return counts[:, 0], (sums + self.kappa * self.mean) / counts

    def penalty(self, theta: MixtureTheta) -> float:
        """Return the priors' part in the objective."""
        value = 0.0
        with np.errstate(divide="ignore"):
            if self.epsilon > 0.0:
                value -= self.epsilon * float(np.log(theta.weights).sum())
            if self.kappa > 0.0:
                phi, constant = self.model.kind.natural(theta.params)
                value -= self.kappa * float((phi @ self.mean).sum() + constant.sum())
        return value

    def unpack(self, s: Array) -> MixtureStatistics:
        """Return named views of flat statistics."""
        n_components = self.n_components
        if np.shape(s) != (self.size,):
            raise ValueError(f"s must have shape ({self.size},), got {np.shape(s)}.")
        return MixtureStatistics(s[:n_components], s[n_components:].reshape(n_components, -1))

    def collapsed(self, s: Array) -> Index:
        """Return the components that have no M-step of their own."""
        parts = self.unpack(s)
        bad = (parts.weights + self.kappa <= 0.0) | (parts.weights + self.epsilon <= 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            counts, means = self._means(parts)
        for m in np.flatnonzero(~bad):
            bad[m] = self.model.kind.m_step(counts[m : m + 1], means[m : m + 1]) is None
        return np.flatnonzero(bad)

    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> MixtureTheta:
        """Return parameters of a start: components without rows share the largest one's weight."""
        filled = s.copy()
        parts = self.unpack(filled)
        empty, largest = np.flatnonzero(parts.weights <= 0.0), int(parts.weights.argmax())
        sharing = np.append(empty, largest)
        for part in parts:
            part[sharing] = part[largest] / len(sharing)
        parts.sums[empty] = self._around(rows) * parts.weights[empty, None]
        other = self.collapsed(filled)
        parts.sums[other] = self.mean * parts.weights[other, None]
        return self.m_step(filled)

    def reset(
        self, theta: MixtureTheta, s: Array, gone: Index, rows: Array, rng: np.random.Generator
    ) -> MixtureTheta:
        """Return θ with some components half-way between rows and the mean of all data."""
        filled = s.copy()
        parts = self.unpack(filled)
        parts.weights[gone] = 1.0 / self.n_components
        parts.sums[gone] = self._around(rows) / self.n_components
        return self.m_step(filled)

    def draw(self, theta: MixtureTheta, labels: NDArray[Any], rng: np.random.Generator) -> Array:
        """Return random rows of components."""
        return self.model.kind.draw(theta.params, labels, rng)

    def without_unit(self, s: Array) -> Array:
        """Return factors that scale the features to a mean square of one."""
        one = np.ones_like(s)
        self.unpack(one).sums[:] = 1.0 / np.where(self.spread > 0.0, self.spread, 1.0)
        return one
