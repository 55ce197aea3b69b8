"""A mixture bound to its data, for E-steps in every technology, and what mixtures ask of rows of a source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from swiftem.core.compute import Compute, Placement, choose
from swiftem.core.draws import spread_rows
from swiftem.core.model import BoundModel
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Index, Rows, Theta
from swiftem.data.array import ArraySource
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource
from swiftem.mixture.compute.numpy import MIXTURE
from swiftem.mixture.families import Columns
from swiftem.mixture.families.categorical import MOST as MOST_CODES

if TYPE_CHECKING:
    from swiftem.mixture.covariance import Covariance
    from swiftem.mixture.gaussians import GaussianMixtureModel
    from swiftem.mixture.model import MixtureModel

BLOCK = 4096
"""Rows per block of a pass."""
DEAD = 1e-6
"""A component with fewer rows, counted by responsibilities and by weights of mean 1, is dead."""
LARGEST, LARGEST_FLOAT32 = 1e140, 1e15
"""Largest magnitude of numbers in rows: sums of their squares, in k-means of float32, must be finite."""


class Coefficients(NamedTuple):
    r"""θ in the form of compiled E-steps, for features minus the centre.

    Attributes
    ----------
    phi : ndarray, shape (p, M)
        Coefficients of T(y) without its first entry, 1. For Gaussians first of y, then of the squares;
        "tied" omits the squares, which are common to all components.
    constant : ndarray, shape (M,)
        Coefficients of 1, log ω included.
    means : ndarray, shape (M, d)
        Means minus the centre.
    plain : ndarray, shape (M,)
        :math:`\log \omega_m + \log|U_m| - \frac d2 \log 2\pi`: the constant for squares of whitened
        differences.
    whiten : ndarray, shape (M, d, d), (1, d, d) or (0, d, d)
        :math:`U_m^T`; one for all components ("tied"); or none, if ``scales`` replaces it.
    scales : ndarray, shape (M, d) or (0, d)
        Diagonals of :math:`U_m`; empty, like ``whiten``, if only φ is used.
    """

    phi: Array
    constant: Array
    means: Array
    plain: Array
    whiten: Array
    scales: Array

    @classmethod
    def linear(cls, phi: Array, constant: Array) -> Coefficients:
        """Return coefficients (M, p) and (M,) of features that are used as they are."""
        p = phi.shape[1]
        none = np.empty((0, p, p)), np.empty((0, p))
        return cls(np.ascontiguousarray(phi.T), constant, np.zeros_like(phi), constant, *none)


class MixtureStatistics(NamedTuple):
    """Statistics, means over samples: ``weights`` (M,) of r_m, and ``sums`` of r_m·T(y).

    Their shape is (M, p) for a family of p features, and (M, d) for Gaussians with unit variances.
    """

    weights: Array
    sums: Array


@dataclass(frozen=True, eq=False)
class BoundComponents(BoundModel):
    """A mixture for its data. Its statistics begin with the means of r_m, and their M-step gives θ.

    Attributes
    ----------
    model : GaussianMixtureModel or MixtureModel
        With ``n_components``, and ``in_counts``: whether a prior depends on the total weight.
    source : Source
        The data.
    d : int
        Number of columns of the data.
    centre : ndarray, shape (p,)
        Subtracted from the features before their statistics are computed, unless ``origin`` replaces it.
    epsilon : float
        Penalty on the weights, for means of samples.
    """

    kind: ClassVar[Covariance | None] = None
    """The kind of covariance, which decides about T(y); None if features are used as they are."""
    model: GaussianMixtureModel | MixtureModel
    source: Source
    d: int
    centre: Array
    epsilon: float
    ILL_DEFINED: ClassVar[str]
    """The error for data that do not allow such components."""
    REMEDY: ClassVar[str]
    """What prevents that components lose all rows."""
    _solved: dict[str, tuple[Array, Theta] | None] = field(default_factory=dict, init=False, repr=False)

    @property
    @abstractmethod
    def code(self) -> int:
        """How E-steps compute T(y): the code of a kind of covariance, or one of those above."""

    @property
    def n_features(self) -> int:
        """p, the number of entries of T(y) without 1."""
        return len(self.origin) if self.kind is None else self.kind.n_features(self.d)

    @property
    def omits_square(self) -> bool:
        """Whether φ omits −½‖Uᵀy‖², which is common to all components."""
        return self.kind is not None and self.kind.omits_square

    @property
    def shares_products(self) -> bool:
        """Whether the statistics end with one sum of products yyᵀ for all components."""
        return self.kind is not None and self.kind.is_shared

    def write_squares(self, samples: Array, out: Array) -> None:
        """Write the entries of T(y) after y, of centred samples (d, b), into ``out`` (p − d, b)."""
        if self.kind is not None and len(out):
            self.kind.write_squares(samples, out)

    @property
    def origin(self) -> Array:
        """Subtracted from the features by compiled code, (p,); by default the centre."""
        return self.centre

    @property
    def n_components(self) -> int:
        """M."""
        return int(self.model.n_components)

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """M: the first M entries of a row are responsibilities."""
        return self.n_components

    @cached_property
    def size(self) -> int:  # type: ignore[override]
        """q, the length of the statistics."""
        return int(self.model.size(self.d))

    @property
    def row_length(self) -> int:  # type: ignore[override]
        """R, the length of a posterior row; its first M numbers are responsibilities."""
        return self.n_components

    def compute(self, source: Source, placement: Placement) -> Compute:
        """Return the E-steps in the first technology that can be used."""
        return choose(MIXTURE, self, source, placement)

    def features(self, y: Rows) -> Rows:
        """Return the input of compiled code for rows (b, d), (b, p)."""
        return y

    def log_base(self, y: Rows, first: int) -> Array | None:
        """Return the part (b,) of the log-likelihood without θ; ``first`` is the index of the first row."""
        return None

    @abstractmethod
    def coefficients(self, theta: Theta) -> Any:
        """Return φ(θ) as E-steps need it."""

    @abstractmethod
    def like(self) -> Theta:
        """Return parameters with arrays of the right shapes."""

    @abstractmethod
    def log_densities(self, batch: Batch, theta: Theta) -> Array:
        """Return the log-densities of the samples under each component, (b, M)."""

    @abstractmethod
    def split(self, s: Array) -> Any:
        """Return named views of statistics; ``weights`` (M,) and ``sums`` are the first."""

    @abstractmethod
    def solve(self, s: Array) -> Theta | None:
        """Return the M-step of ``s``, or None outside the domain."""

    def unpack(self, s: Array) -> Any:
        """Return named views of flat statistics."""
        if np.shape(s) != (self.size,):
            raise ValueError(f"s must have shape ({self.size},), got {np.shape(s)}.")
        return self.split(s)

    def in_domain(self, s: Array) -> bool:
        """Return whether the M-step exists; its result is cached for :meth:`m_step`."""
        theta = self.solve(s)
        self._solved["last"] = None if theta is None else (s.copy(), theta)
        return theta is not None

    def m_step(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep), in the coordinates of the data."""
        last = self._solved.pop("last", None)
        theta = last[1] if last is not None and np.array_equal(last[0], s) else self.solve(s)
        if theta is None:
            raise ValueError("s must lie in the model's domain, where the M-step exists.")
        return theta

    def penalty(self, theta: Theta) -> float:
        """Return −ε Σ log ω_m."""
        if self.epsilon == 0.0:
            return 0.0
        with np.errstate(divide="ignore"):
            return -self.epsilon * float(np.log(theta.weights).sum())

    def of_components(self, count: int) -> Self:
        """Return the model with another number of components."""
        return replace(self, model=replace(self.model, n_components=count))

    @property
    @abstractmethod
    def is_held(self) -> bool:
        """Whether a prior keeps components without rows."""

    @property
    @abstractmethod
    def n_free(self) -> int:
        """Number of free parameters."""

    @property
    @abstractmethod
    def about(self) -> Array:
        """Argument ``centre`` of ``model.bind`` for other rows, so that their statistics can be added."""

    @abstractmethod
    def with_share(self, share: float) -> Self:
        """Return the bound model with a prior that has this share of its weight."""

    @abstractmethod
    def for_start(self, y: Rows) -> Rows:
        """Return the rows (b, k) for k-means."""

    @abstractmethod
    def start_rows(self, responsibilities: Array, batch: Batch) -> Array:
        """Return posterior rows (b, R) of responsibilities (b, M) of a start."""

    @abstractmethod
    def mended(self, s: Array, rows: Array, rng: np.random.Generator) -> Theta:
        """Return parameters of a start outside the domain; ``rows`` (k, d) are for components without any."""

    @abstractmethod
    def reset(self, theta: Theta, s: Array, gone: Index, rows: Array, rng: np.random.Generator) -> Theta:
        """Return θ, whose statistics are ``s``, with the components ``gone`` at ``rows`` (k, d)."""

    @abstractmethod
    def draw(self, theta: Theta, labels: Index, rng: np.random.Generator, s: Array | None = None) -> Array:
        """Return random rows of components; a conditional family takes some columns from statistics ``s``."""

    @abstractmethod
    def imputed(self, y: Rows, rows: Array, theta: Theta, rng: np.random.Generator | None) -> Rows:
        """Return rows (b, d) with values in missing cells, given responsibilities (b, M).

        These are conditional means or likely levels, or random draws if there is a generator.
        """

    def dead(self, s: Array, n: int) -> Index:
        """Return the components without rows, of n; none if a prior keeps them."""
        return np.flatnonzero((self.unpack(s).weights * n < DEAD) & (not self.is_held))

    def collapsed(self, s: Array) -> Index:
        """Return the components without an M-step of their own; all, if they share what has none."""
        weights = self.unpack(s).weights
        if self.shares_products:
            empty = np.flatnonzero(weights <= 0.0)
            return empty if len(empty) or self.solve(s) is not None else np.arange(self.n_components)
        one, alone = self.of_components(1), self.apart(s)
        return np.array([m for m, own in enumerate(alone) if one.solve(own) is None], dtype=np.intp)

    def apart(self, s: Array) -> Array:
        """Return the statistics of each component alone, (M, q / M), unless components share some."""
        parts = [part.reshape(self.n_components, -1) for part in self.split(s) if part is not None]
        return np.hstack(parts)


def drawn_labels(rows: Array, rng: np.random.Generator) -> Index:
    """Return a random component (b,) of each row, by its responsibilities (b, M).

    >>> drawn_labels(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0))
    array([1, 0])
    """
    ends = np.cumsum(rows, axis=1)
    at = rng.random((len(rows), 1)) * ends[:, -1:]
    return np.asarray(np.minimum((ends <= at).sum(axis=1), rows.shape[1] - 1))


def share_largest(weights: Array, parts: Sequence[Array | None]) -> Index:
    """Give components without weight an equal share of the largest one's statistics, in place.

    Parameters
    ----------
    weights : ndarray, shape (M,)
        Weights of the components; they may be one of the parts.
    parts : sequence of ndarray, shapes (M, ...), or None
        Statistics by component.

    Returns
    -------
    ndarray of int
        The components that had none.
    """
    empty, largest = np.flatnonzero(weights <= 0.0), int(weights.argmax())
    sharing = np.append(empty, largest)
    for part in parts:
        if part is not None:
            part[sharing] = part[largest] / len(sharing)
    return empty


def two_dimensional(y: Rows) -> Rows:
    """Return samples of shape (b,) as (b, 1)."""
    return y[:, None] if y.ndim == 1 else y


def check_rows(source: Source, least: int) -> int:
    """Return the number of columns; raise an error if the data are not rows or fewer than ``least``."""
    if source.samples != "rows":
        raise TypeError("data must be rows of numbers for a mixture, got word counts or tokens.")
    if source.n < least:
        raise ValueError(f"data must have at least n_components={least} rows, got {source.n}.")
    if isinstance(source, TensorSource):
        check_extent(source.largest, source.dtype)
    elif isinstance(source, ArraySource):
        check_size(source.y)
    return width_of(source)


def width_of(source: Source) -> int:
    """Return the number of columns."""
    if isinstance(source, UnitSource):
        return int(source.tail[0])
    return int(two_dimensional(next(source.blocks(1)).y).shape[1])


def check_size(y: Rows, start: int = 0) -> None:
    """Raise ValueError if squares of rows (b, ...) are not finite; ``start`` is the first row's index."""
    most = _limit(y.dtype)
    if not y.size or (y.dtype.kind != "f") or (y.max() <= most and y.min() >= -most):
        return
    far = np.abs(two_dimensional(y)) > most
    if far.any():  # otherwise cells are missing
        row = int(np.argmax(far.any(axis=1)))
        value = float(two_dimensional(y)[row][np.argmax(far[row])])
        check_extent(value, y.dtype, f" in row {start + row}")


def check_extent(value: float, dtype: np.dtype, where: str = "") -> None:
    """Raise ValueError if the square of a value is not finite; ``where`` follows it in the message."""
    most = _limit(dtype)
    if abs(value) > most:
        raise ValueError(
            f"data must lie between {-most:g} and {most:g} if they are {dtype}, got {value:g}{where}: use "
            "another unit."
        )


def _limit(dtype: np.dtype) -> float:
    return LARGEST_FLOAT32 if dtype == np.float32 else LARGEST


def different_rows(source: Source, count: int, d: int, rng: np.random.Generator) -> Array:
    """Return ``count`` distinct rows, shape (count, d), also from a source that is read in order only."""
    if source.layout is not None:  # the indices of all rows might not fit into memory
        rows = rng.permutation(spread_rows(source.n, count, rng))
    else:
        rows = rng.choice(source.n, count, replace=False)
    if source.layout is not None or source.access == "random":
        return two_dimensional(source.take(rows).y).astype(np.float64)
    chosen = np.empty((count, d))
    for batch in source.blocks(BLOCK):
        here = np.flatnonzero((rows >= batch.index[0]) & (rows <= batch.index[-1]))
        chosen[here] = two_dimensional(batch.y)[rows[here] - batch.index[0]]
    return chosen


def may_have_missing(source: Source) -> bool:
    """Return whether cells may be missing: without a pass over stored rows, if that is allowed."""
    return source.has_missing if source.layout is None else source.allow_missing


def check_units(units: UnitSource) -> None:
    """Raise ValueError for rows in units that are too large, or a column without an observed cell."""
    check_extent(units.largest, units.dtype)
    if units.masses is not None:
        check_seen(units.masses > 0.0)


def check_seen(seen: Rows) -> None:
    """Raise ValueError for a column (d,) without an observed cell."""
    if not seen.all():
        column = int(np.argmin(seen))
        raise ValueError(
            f"data must have a value in every column, got none in column {column}: leave it out."
        )


def mean_row(source: Source) -> Array:
    """Return the weighted mean of the rows, shape (d,), by one pass; the source caches it.

    >>> from swiftem.data import ArraySource
    >>> mean_row(ArraySource([[1.0, 2.0], [3.0, 6.0]], sample_weight=[3.0, 1.0]))
    array([1.5, 3. ])
    """
    facts = source.facts
    if "mean" in facts:
        return np.array(facts["mean"])
    if isinstance(source, TensorSource):
        facts["mean"] = source.mean_row()
        return np.array(facts["mean"])
    origin: Array | None = None
    total = np.zeros(1)
    for batch in source.blocks(BLOCK):
        y = two_dimensional(batch.y)
        if not isinstance(source, ArraySource):
            check_size(y, int(batch.index[0]))
        if origin is None:  # sums of differences do not lose digits to an offset of the data
            origin = y[0].astype(np.float64)
        # In one memory order, as sums depend on it in rounding.
        total = total + batch.weight @ np.subtract(y, origin, order="C")
    assert origin is not None, "a source has at least one sample"
    facts["mean"] = origin + total / source.total_weight
    return np.array(facts["mean"])


def columns_of(source: Source, coded: Sequence[int] = ()) -> Columns:
    """Return the summary of the observed cells of the columns, by one pass; the source caches it.

    It has the codes of the columns ``coded``.

    >>> from swiftem.data import ArraySource
    >>> summary = columns_of(ArraySource([[1.0, 2.0], [3.0, 6.0]]))
    >>> summary.highest, summary.mean, summary.variance
    (array([3., 6.]), array([2., 4.]), array([1., 4.]))
    """
    if isinstance(source, UnitSource):
        parts = source.units.map(partial(_summary, coded=coded))
        if source.masses is not None:
            check_seen(source.masses > 0.0)
        summaries, masses = zip(*parts, strict=True)
        return _together(summaries, np.array(masses), coded)
    facts, key = source.facts, f"columns {coded}"
    if key not in facts:
        summary, mass = _summary(source, coded)
        check_seen(mass > 0.0)
        facts[key] = summary
    columns: Columns = facts[key]
    return columns


def _summary(source: Source, coded: Sequence[int]) -> tuple[Columns, Array]:
    """Return the summary of the observed cells of the columns, and their weights (d,), which may be zero."""
    d = width_of(source)
    origin = np.full(d, np.nan)
    lowest, highest = np.full(d, np.inf), np.full(d, -np.inf)
    mass, total, squares = np.zeros(d), np.zeros(d), np.zeros(d)
    codes = np.full(d, None)
    for column in coded:
        codes[column] = np.zeros(0, dtype=bool)
    for batch in source.blocks(BLOCK):
        y = two_dimensional(batch.y)
        if not isinstance(source, ArraySource):
            check_size(y, int(batch.index[0]))
        seen = ~np.isnan(y)
        new = seen.any(axis=0) & np.isnan(origin)  # differences do not lose digits to an offset of the data
        origin[new] = y[np.argmax(seen, axis=0), np.arange(d)][new]
        away = np.subtract(y, origin, order="C", dtype=np.float64)
        away[~seen] = 0.0
        lowest, highest = np.fmin(lowest, np.fmin.reduce(y)), np.fmax(highest, np.fmax.reduce(y))
        mass, total = mass + batch.weight @ seen, total + batch.weight @ away
        squares = squares + batch.weight @ (away * away)
        for column in coded:
            codes[column] = _either(codes[column], _codes_in(y[:, column]))
    if not source.has_missing:
        mass = np.full(d, source.total_weight)
    below = np.where(mass > 0.0, mass, 1.0)
    mean = total / below
    variance = np.maximum(squares / below - mean * mean, 0.0)
    return Columns(lowest, highest, np.nan_to_num(origin) + mean, variance, codes), mass


def _codes_in(values: Rows) -> Rows:
    """Return a boolean array that is True at the codes among values (b,); other values are ignored."""
    codes = values[(values >= 0) & (values < MOST_CODES) & (values == np.floor(values))]
    return np.bincount(codes.astype(np.intp)) > 0


def _either(one: Rows, other: Rows) -> Rows:
    """Return the codes in one or the other of two boolean arrays, whose lengths may differ."""
    shorter, longer = sorted((one, other), key=len)
    both = longer.copy()
    both[: len(shorter)] |= shorter
    return both


def _together(parts: Sequence[Columns], masses: Array, coded: Sequence[int]) -> Columns:
    """Return the summary of all rows, from summaries of parts and the weights of their cells, (k, d).

    >>> one = Columns(*(np.array([value]) for value in (0.0, 2.0, 1.0, 1.0)))
    >>> both = _together([one, one._replace(mean=one.mean + 2.0)], np.ones((2, 1)), ())
    >>> both.lowest, both.highest, both.mean, both.variance
    (array([0.]), array([2.]), array([2.]), array([2.]))
    """
    lowest, highest, means, variances = (np.array([part[place] for part in parts]) for place in range(4))
    share = masses / masses.sum(axis=0)
    mean = (share * means).sum(axis=0)
    variance = (share * (variances + (means - mean) ** 2)).sum(axis=0)
    codes = np.full(len(mean), None)
    for column in coded:
        codes[column] = reduce(_either, [part.codes[column] for part in parts])
    return Columns(lowest.min(axis=0), highest.max(axis=0), mean, variance, codes)
