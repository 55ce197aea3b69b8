"""Mixtures of any family of components: one model for all families."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import (
    STRONGEST,
    as_floats,
    check_choice,
    check_int,
    check_real,
    check_simplex,
    shown,
)
from swiftem.core.model import Model
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Index, Rows, Theta
from swiftem.data.units.source import UnitSource
from swiftem.mixture.components import (
    BLOCK,
    BoundComponents,
    Coefficients,
    MixtureStatistics,
    check_rows,
    check_seen,
    check_units,
    columns_of,
    different_rows,
    drawn_labels,
    may_have_missing,
    share_largest,
    two_dimensional,
    width_of,
)
from swiftem.mixture.compute.numpy import CHANNELS, CODES, LINEAR, softmax
from swiftem.mixture.families import Blocks, Family, Given, Params, read_family
from swiftem.mixture.families.observed import complete, observed, widened


class MixtureTheta(NamedTuple):
    """Parameters: ``weights`` (M,), and ``params``, arrays by the family's names.

    For several blocks, ``params`` is a dict of such dicts, by family.
    """

    weights: Array
    params: Params


class CodeCoefficients(NamedTuple):
    """θ in the form of E-steps with codes: ``phi`` (p, M), ``constant`` (M,) with log ω, ``table`` (L, M)."""

    phi: Array
    constant: Array
    table: Array


@dataclass(frozen=True)
class MixtureModel(Model):
    r"""Mixture of M components of one family, or of blocks of columns with a family each.

    The penalty comes from a conjugate prior, as if each component had ``smoothing`` further rows, whose
    features are the mean :math:`\bar T` of all data,

    .. math:: -\kappa \sum_m \big( \langle \bar T, \phi(\theta_m) \rangle + c(\theta_m) \big)
       - \epsilon \sum_m \log \omega_m, \quad \kappa = \text{smoothing} / W, \ \epsilon = (\alpha - 1) / W,

    where W is the sum of weights.

    Parameters
    ----------
    n_components : int
        M.
    family : str, Family or dict
        Family of the components: a name in :data:`swiftem.families.FAMILIES`, or a family object; or a
        dict of these and lists of columns, numbers or names, which are independent given the component.
    smoothing : float, optional
        Rows of the prior, per component; by default 1e-3, or 1e-6 for "gaussian" and "log-normal". Zero
        gives the maximum likelihood estimate; a small value keeps the parameters off bounds that stochastic
        methods could not leave.
    concentration : float, optional
        α ≥ 1 of a Dirichlet prior on the weights.
    missing : {"error", "ignore"}
        Whether NaN is an error, or a cell that is missing at random: families with independent columns then
        ignore it (:mod:`swiftem.mixture.families.observed`).

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
    >>> mixed = models.MixtureModel(2, {"poisson": [0, 3], "bernoulli": [1, 2]})
    >>> rows = np.column_stack([y, y > 5, y < 2, y])
    >>> swiftem.run(mixed, rows, methods.EM(), n_iter=30, seed=0).theta.params["poisson"]["rates"].shape
    (2, 2)
    """

    n_components: int
    family: Given
    smoothing: float = None  # type: ignore[assignment]  # a number from here on, which the family decides
    concentration: float | None = None
    missing: str = "error"
    known_weights: ClassVar[None] = None  # only Gaussian mixtures may have them

    def __post_init__(self) -> None:
        check_int("n_components", self.n_components, minimum=1)
        object.__setattr__(self, "family", read_family(self.family))
        if self.smoothing is None:
            object.__setattr__(self, "smoothing", self.kind.smoothing)
        check_real("smoothing", self.smoothing, minimum=0.0, maximum=STRONGEST)
        if self.concentration is not None:
            check_real("concentration", self.concentration, minimum=1.0, maximum=STRONGEST)
        check_choice("missing", self.missing, ("error", "ignore"))

    @property
    def kind(self) -> Family:
        """The family."""
        assert isinstance(self.family, Family)
        return self.family

    @property
    def in_counts(self) -> bool:  # type: ignore[override]
        """Whether there is a prior in counts: its weight in the objective depends on the total weight."""
        return self.smoothing > 0.0 or self.concentration is not None

    def width(self, d: int) -> int:
        """Return p, the number of features for rows of d columns."""
        return sum(self.kind.widths(d)) + self.kind.n_codes

    def size(self, d: int) -> int:
        """Return q, the length of the statistics for rows of d columns."""
        return self.n_components * (1 + self.width(d))

    def theta(self, *, weights: ArrayLike | None = None, **params: ArrayLike) -> MixtureTheta:
        """Return validated parameters for this model; weights are equal by default.

        Those of blocks are dicts: ``theta(poisson={"rates": ...}, bernoulli={"probabilities": ...})``.
        """
        names = tuple(self.kind.shapes(1, 1))
        if set(params) != set(names):
            raise TypeError(f"theta needs {' and '.join(names)}, got {', '.join(params) or 'nothing'}.")
        if isinstance(self.kind, Blocks):
            d = self.kind.d
        else:
            first = np.asarray(params[names[0]])
            d = first.shape[1] if first.ndim > 1 else 1
        even = np.full(self.n_components, 1.0 / self.n_components)
        return self.check_theta(even if weights is None else weights, params, d, "")

    def check_theta(self, weights: ArrayLike, params: Mapping[str, Any], d: int, prefix: str) -> MixtureTheta:
        """Return parameters in new arrays; errors use their names."""
        found = as_floats(f"{prefix}weights", weights, shape=(self.n_components,)).copy()
        check_simplex(f"{prefix}weights", found)
        read = _read(self.kind.shapes(self.n_components, d), params, prefix)
        self.kind.check_params(read)
        return MixtureTheta(found, read)

    def learnt(self, source: Source) -> MixtureModel:
        """Return the model after the fields of its family that depend on the data are set; it takes a pass.

        Names of columns are replaced by numbers, if the source has names.
        """
        family = self._for(source)
        if family.needs_data:
            family = family.learn(columns_of(source, family.coded_columns(width_of(source))))
        if self.missing == "ignore" and source.has_missing:
            family = observed(family)
        return self if family is self.kind else replace(self, family=family)

    def _for(self, source: Source) -> Family:
        """Return the family with numbers of columns."""
        family = self.kind
        if isinstance(family, Blocks):
            family = family.named(source.names)
            family.check_columns(width_of(source))
        return family

    def streamed(self, source: Source) -> MixtureModel:
        """Return the model for ``partial_fit``, after what its family learns from more rows."""
        family = self._for(source)
        coded = family.coded_columns(width_of(source))
        if not (family.needs_data or coded):
            return self
        return replace(self, family=family.streamed(columns_of(source, coded)))

    def with_holes(self) -> MixtureModel:
        """Return the model for rows with missing cells; its statistics have the masses of observed ones."""
        return replace(self, family=observed(self.kind))

    @property
    def has_holes(self) -> bool:
        """Whether it is for rows with missing cells."""
        return complete(self.kind) != self.kind

    def widened(self, s: Array, centre: Array) -> tuple[Array, Array]:
        """Return statistics and mean features of complete rows in the form of this model, which has holes."""
        mean = widened(self.kind, np.ones(1), centre[None])[0]
        if not len(s):
            return s, mean
        counts = s[: self.n_components]
        sums = s[self.n_components :].reshape(self.n_components, -1)
        return np.concatenate([counts, widened(self.kind, counts, sums).ravel()]), mean

    def bind_units(self, units: UnitSource) -> BoundMixture:
        """Return the model about the mean features of all rows, with a sample of them for starts."""
        check_units(units)
        model = self.learnt(units)
        means = [mean for mean, _ in units.units.map(partial(moments_of, model.kind, is_part=True))]
        centre = units.weight @ np.array(means) / units.total_weight
        return model.bind(units.scaled_sample(), centre=centre)

    def bind(self, source: Source, *, centre: ArrayLike | None = None) -> BoundMixture:
        """Return the model for these data; a pass checks them, and computes the mean of their features.

        With a ``centre`` (p,), which is that mean, there is no pass: the family must already know its data.
        """
        d = check_rows(source, self.n_components if centre is None else 1)
        model = self
        if centre is None:
            model = self.learnt(source)
            mean, spread = moments_of(model.kind, source)
        else:
            mean = as_floats("centre", centre, shape=(None,)).copy()
            if self.missing == "ignore" and not self.has_holes and may_have_missing(source):
                model = self.with_holes()
                mean = widened(model.kind, np.ones(1), mean[None])[0]
            spread = np.ones_like(mean)
        total = source.total_weight
        epsilon = 0.0 if self.concentration is None else (self.concentration - 1.0) / total
        origin = np.zeros(sum(model.kind.widths(d)))
        return BoundMixture(model, source, d, origin, epsilon, mean, spread, self.smoothing / total)


@dataclass(frozen=True, eq=False)
class BoundMixture(BoundComponents):
    """A :class:`swiftem.models.MixtureModel` for its data.

    The family of its ``model`` has all fields that depend on the data.

    Attributes
    ----------
    mean, spread : ndarray, shape (p,)
        Mean and root mean square of the features of the data, in rows of the prior.
    kappa : float
        Strength of the prior on the parameters, for means of samples.
    """

    ILL_DEFINED = (
        "Fitting the mixture failed because some components have no maximum likelihood parameters: use "
        "fewer components or more smoothing."
    )
    REMEDY = "fewer components or more smoothing"
    model: MixtureModel
    mean: Array
    spread: Array
    kappa: float

    @property
    def family(self) -> Family:
        """The family."""
        return self.model.kind

    @property
    def code(self) -> int:
        """Features as given, with codes, or with the family's own channels."""
        return CHANNELS if self.family.channels else CODES if self.family.n_codes else LINEAR

    def like(self) -> MixtureTheta:
        """Return arrays of the parameters' shapes."""
        shapes = self.family.shapes(self.n_components, self.d)
        return MixtureTheta(
            np.empty(self.n_components), map_params(lambda shape, name: np.empty(shape), shapes)
        )

    @property
    def row_length(self) -> int:  # type: ignore[override]
        """R: responsibilities, and as many numbers for each further channel."""
        return self.n_components * (1 + len(self.family.channels))

    def start_rows(self, responsibilities: Array, batch: Batch) -> Array:
        """Return rows (b, R) with the factors of channels at a start."""
        return np.hstack([responsibilities, *(value * responsibilities for value in self.family.channels)])

    def initial_theta(self, rng: np.random.Generator) -> Theta:
        """Return equal weights, and components half-way between distinct rows and the mean of all."""
        rows = different_rows(self.source, self.n_components, self.d, rng)
        s = np.empty(self.size)
        parts = self.unpack(s)
        parts.weights[:] = 1.0 / self.n_components
        parts.sums[:] = self.features_around(rows) / self.n_components
        return self.m_step(s)

    def features_around(self, rows: Array) -> Array:
        """Return features half-way between rows (k, d), k ≤ M, and the mean of all data."""
        k = len(rows)
        batch = Batch(rows, np.ones(k), np.arange(k))
        alone = self.start_rows(np.eye(k, self.n_components), batch)
        features = self.split(self.statistics(batch, alone, batch.weight)).sums[:k]
        return 0.5 * (features + self.mean)

    def check_theta(self, theta: Theta, name: str = "theta0") -> MixtureTheta:
        """Return ``theta``, checked against model and data."""
        names = tuple(self.family.shapes(1, 1))
        if not isinstance(theta, MixtureTheta):
            raise TypeError(
                f"{name} must be made by model.theta(weights=, {'=, '.join(names)}=), "
                f"got {type(theta).__name__}."
            )
        return self.model.check_theta(theta.weights, theta.params, self.d, f"{name}.")

    def features(self, y: Rows) -> Rows:
        """Return T(y)."""
        return self.family.features(y)

    def log_base(self, y: Rows, first: int) -> Array | None:
        """Return log h(y) of rows, which are checked."""
        self.family.checked(y, first)
        return self.family.log_base(y)

    def codes(self, y: Rows, first: int = 0) -> Rows:
        """Return which indicators are one, for rows whose first has index ``first``."""
        return self.family.codes(y, first)

    def coefficients(self, theta: MixtureTheta) -> Coefficients | CodeCoefficients | MixtureTheta:
        """Return φ(θ); θ itself if the family computes its own E-steps."""
        if self.family.channels:
            return theta
        phi, constant = self.family.natural(theta.params)
        with np.errstate(divide="ignore"):
            constant = constant + np.log(theta.weights)
        if not np.isfinite(phi).all() or np.isnan(constant).any():
            raise ValueError("data must have a scale at which natural parameters are finite: scale columns.")
        if self.code == CODES:
            parts = np.split(phi.T, [len(self.centre)])
            return CodeCoefficients(np.ascontiguousarray(parts[0]), constant, np.ascontiguousarray(parts[1]))
        return Coefficients.linear(phi, constant)

    def posterior(self, batch: Batch, theta: MixtureTheta) -> tuple[Array, Array]:
        """E-step: rows (b, R), responsibilities first, and log-likelihood (b,)."""
        rows, log_likelihood = self.e_step(two_dimensional(batch.y), theta)
        base = self.log_base(two_dimensional(batch.y), int(batch.index[0])) if len(batch.y) else None
        return rows, log_likelihood if base is None else log_likelihood + base

    def log_densities(self, batch: Batch, theta: MixtureTheta) -> Array:
        """Return log f(y; θ_m), (b, M)."""
        y = two_dimensional(batch.y)
        logits, _ = self.family.e_step(y, theta.params)
        base = self.log_base(y, int(batch.index[0]))
        return logits if base is None else logits + base[:, None]

    def e_step(self, y: Rows, theta: MixtureTheta) -> tuple[Array, Array]:
        """Return rows (b, R) of samples (b, d), and their log-likelihood without log h(y), (b,)."""
        logits, factors = self.family.e_step(y, theta.params)
        with np.errstate(divide="ignore"):
            logits = logits + np.log(theta.weights)
        rows, log_likelihood = softmax(logits)
        return np.hstack([rows, *(rows * factor for factor in factors)]), log_likelihood

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat."""
        family, y = self.family, two_dimensional(batch.y)
        channels = np.split(rows * weight[:, None], 1 + len(family.channels), axis=1)
        features = np.split(family.features(y), np.cumsum(family.widths(self.d))[:-1], axis=1)
        sums = [channel.T @ part for channel, part in zip(channels, features, strict=True)]
        if family.n_codes:
            table = np.zeros((family.n_codes, self.n_components))
            np.add.at(table, family.codes(y), channels[0][:, None])
            sums.append(table.T)
        return np.concatenate([channels[0].sum(axis=0), np.hstack(sums).ravel()])

    def solve(self, s: Array) -> MixtureTheta | None:
        """Return the M-step of ``s``, or None outside the domain."""
        parts = self.split(s)
        least = parts.weights.min()
        if not (least + self.epsilon > 0.0 and least + self.kappa > 0.0 and np.isfinite(s).all()):
            return None
        counts, means = self.means_of(parts)
        params = self.family.m_step(counts, means)
        weights = parts.weights + self.epsilon
        return None if params is None else MixtureTheta(weights / weights.sum(), params)

    def means_of(self, parts: MixtureStatistics) -> tuple[Array, Array]:
        """Return counts (M,) and means of the features (M, p), with the prior added."""
        counts = parts.weights[:, None]
        sums = self.family.clipped(counts, parts.sums)
        counts = counts + self.kappa
        return counts[:, 0], (sums + self.kappa * self.mean) / counts

    def penalty(self, theta: MixtureTheta) -> float:
        """Return the priors' part of the objective."""
        value = super().penalty(theta)
        if self.kappa > 0.0:
            phi, constant = self.family.natural(theta.params)
            value -= self.kappa * float((phi @ self.mean).sum() + constant.sum())
        return value

    def split(self, s: Array) -> MixtureStatistics:
        """Return named views of flat statistics."""
        n_components = self.n_components
        return MixtureStatistics(s[:n_components], s[n_components:].reshape(n_components, -1))

    def unit_factors(self, s: Array) -> Array:
        """Return factors that scale the features to a mean square of one."""
        scale = np.where(self.spread > 0.0, self.spread, 1.0)
        return np.concatenate([np.ones(self.n_components), np.tile(1.0 / scale, self.n_components)])

    @property
    def is_held(self) -> bool:
        """Whether a prior of at least one row keeps components without rows."""
        return self.model.smoothing >= 1.0 or self.model.concentration is not None

    @property
    def n_free(self) -> int:
        """Number of free parameters."""
        return self.n_components - 1 + self.family.n_free(self.n_components, self.d)

    @property
    def about(self) -> Array:
        """The mean of the features, used by the prior."""
        return self.mean

    def with_share(self, share: float) -> BoundMixture:
        """Return the bound model with a weaker prior."""
        return replace(self, kappa=self.kappa * share, epsilon=self.epsilon * share)

    def for_start(self, y: Rows) -> Rows:
        """Return the family's rows for k-means."""
        return self.family.for_start(two_dimensional(y))

    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> Theta:
        """Return parameters of a start: components without rows share the largest one's weight."""
        filled = s.copy()
        parts = self.unpack(filled)
        empty = share_largest(parts.weights, parts)
        parts.sums[empty] = self.features_around(rows) * parts.weights[empty, None]
        other = self.collapsed(filled)
        parts.sums[other] = self.mean * parts.weights[other, None]
        return self.m_step(filled)

    def reset(self, theta: Theta, s: Array, gone: Index, rows: Array, rng: np.random.Generator) -> Theta:
        """Return θ with some components half-way between rows and the mean of all data."""
        filled = s.copy()
        parts = self.unpack(filled)
        parts.weights[gone] = 1.0 / self.n_components
        parts.sums[gone] = self.features_around(rows) / self.n_components
        return self.m_step(filled)

    def draw(self, theta: Theta, labels: Index, rng: np.random.Generator, s: Array | None = None) -> Array:
        """Return random rows of components; a conditional family takes some columns from statistics ``s``."""
        if s is None:
            return self.family.draw(theta.params, labels, rng)
        with np.errstate(divide="ignore", invalid="ignore"):  # components without rows have no labels
            _, means = self.means_of(self.unpack(s))
        return self.family.redraw(theta.params, means, labels, rng)

    def imputed(self, y: Rows, rows: Array, theta: Theta, rng: np.random.Generator | None) -> Rows:
        """Return rows with conditional means or likely levels, or draws, in missing cells."""
        if rng is None:
            return self.family.imputed(y, rows, theta.params) if np.isnan(y).any() else y
        return self.family.drawn(y, theta.params, drawn_labels(rows, rng), rng)


def _read(shapes: Mapping[str, Any], params: Mapping[str, Any], prefix: str) -> Params:
    """Return arrays of these shapes, in dicts like ``shapes``; errors use their names."""
    if not isinstance(params, Mapping) or set(params) != set(shapes):
        got = ", ".join(map(str, params)) if isinstance(params, Mapping) else shown(params)
        raise ValueError(f"{prefix}params must have {', '.join(shapes)}, got {got or 'nothing'}.")
    return {
        name: _read(shape, params[name], f"{prefix}{name}.")
        if isinstance(shape, dict)
        else as_floats(f"{prefix}{name}", params[name], shape=shape).copy()
        for name, shape in shapes.items()
    }


def moments_of(family: Family, source: Source, *, is_part: bool = False) -> tuple[Array, Array]:
    """Return mean and root mean square of the features, (p,) each; a stored source caches them.

    Rows are checked, and that each column has an observed cell, unless they are a part of the rows. Features
    of further channels are multiplied by the factors of the prior's rows.
    """
    known: list[tuple[Family, Array, Array]] = source.facts.setdefault("features", [])
    for other, mean, spread in known:
        if other == family:
            return mean.copy(), spread.copy()
    total, squares, levels = np.zeros(1), np.zeros(1), np.zeros(family.n_codes)
    seen = np.zeros(1, dtype=bool)
    for batch in source.blocks(BLOCK):
        y = two_dimensional(batch.y)
        if source.allow_missing:
            seen = seen | ~np.isnan(y).all(axis=0)
        features = family.checked(y, int(batch.index[0])).astype(np.float64)
        total = total + batch.weight @ features
        squares = squares + batch.weight @ (features * features)
        if len(levels):
            codes = family.codes(y)
            weight = np.repeat(batch.weight, codes.shape[1])
            levels += np.bincount(codes.ravel(), weight, minlength=len(levels))
    if source.allow_missing and not is_part:
        check_seen(seen)
    factors = np.repeat([1.0, *family.channels], family.widths(y.shape[1]))
    mean = np.concatenate([total * factors, levels]) / source.total_weight
    spread = np.sqrt(np.concatenate([squares, levels]) / source.total_weight)
    known.append((family, mean, spread))
    return mean.copy(), spread.copy()


def map_params(
    function: Callable[[Any, str], Any], params: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any]:
    """Return what ``function`` returns for each part and its name, in dicts like ``params``.

    >>> map_params(lambda part, name: (name, part), {"poisson": {"rates": 1.0}}, "params_")
    {'poisson': {'rates': ('params_poisson.rates', 1.0)}}
    """
    return {
        name: map_params(function, part, f"{prefix}{name}.")
        if isinstance(part, Mapping)
        else function(part, f"{prefix}{name}")
        for name, part in params.items()
    }
