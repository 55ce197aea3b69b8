"""Kinds of mixtures that a selection compares, each with any number of components."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import check_not_lazy, in_numpy
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.fit.validated import allows_missing, read_weights, validated
from swiftem.mixture.families import Blocks, Given, read_family
from swiftem.mixture.gaussian_mixture import GaussianMixture
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.starts.split import double_component, parameters_of, split_component

KINDS = ("full", "tied", "diag", "spherical")
SAMPLE = 2000
"""Rows used to choose the component to split."""

FEW, GAIN, PASSES = 5000, 0.1, 1000
"""Up to so many rows, fits by em end if a pass gains less than ``GAIN`` in the log-likelihood of all rows,
or after so many passes: a gain of 1e-3 per row could change the order of criteria."""

E = TypeVar("E")


@dataclass(frozen=True, kw_only=True)
class Candidates(ABC, Generic[E]):
    """A kind of mixture, and the data of its fits.

    Attributes
    ----------
    kind : str
        The covariance type, or the name of the family.
    data : tuple
        Arguments of ``fit`` and ``score``, the same for all fits, so that the rows are read once.
    total_weight : float
        Sum of the weights.
    columns : dict
        Attributes of the estimator about the columns of X, which ``data`` does not have.
    parameters : dict
        Parameters of the estimator.
    """

    said: ClassVar[str] = "mixtures"
    """What follows ``kind`` in a sentence."""

    kind: str
    data: tuple[Any, ...]
    total_weight: float
    columns: Mapping[str, Any]
    parameters: Mapping[str, Any]

    @abstractmethod
    def new(self, n_components: int, **parameters: Any) -> E:
        """Return an unfitted mixture."""

    @abstractmethod
    def doubled(self, mixture: E, n_components: int) -> E:
        """Return a mixture with more components and the same density: the largest ones are doubled."""

    def split(self, mixture: E, n_components: int) -> E | None:
        """Return the start of a fit with more components; None if there is no rule to split one."""
        return None


@dataclass(frozen=True, kw_only=True)
class GaussianCandidates(Candidates[GaussianMixture]):
    """Gaussian mixtures with covariances of one type.

    Attributes
    ----------
    sample, sample_weight : ndarray
        Rows by which components are split, drawn in proportion to their weights, or all rows.
    """

    said = "covariances"

    sample: NDArray[Any]
    sample_weight: Array | None = None

    def new(self, n_components: int, **parameters: Any) -> GaussianMixture:
        """Return an unfitted mixture."""
        return GaussianMixture(n_components, covariance_type=self.kind, **self.parameters, **parameters)

    def _given(self, parts: tuple[Array, Array, Array]) -> GaussianMixture:
        return GaussianMixture.from_parameters(
            *parts, covariance_type=self.kind, warm_start=True, **self.parameters
        )

    def split(self, mixture: GaussianMixture, n_components: int) -> GaussianMixture:
        """Return the start of a fit: one component after another is split, each time the best one."""
        found = self._given(parameters_of(mixture))  # without names of columns
        while found.n_components < n_components:
            rows = found.impute(self.sample) if np.isnan(self.sample).any() else self.sample
            found = self._given(split_component(found, rows, self.sample_weight))
        return found

    def doubled(self, mixture: GaussianMixture, n_components: int) -> GaussianMixture:
        """Return a mixture with more components and the same density."""
        while mixture.n_components < n_components:
            mixture = self._given(double_component(mixture))
        return mixture


@dataclass(frozen=True, kw_only=True)
class FamilyCandidates(Candidates[Mixture]):
    """Mixtures of a family, whose columns are given by number."""

    family: Given

    def new(self, n_components: int, **parameters: Any) -> Mixture:
        """Return an unfitted mixture."""
        return Mixture(n_components, family=self.family, **self.parameters, **parameters)

    def doubled(self, mixture: Mixture, n_components: int) -> Mixture:
        """Return a mixture with more components and the same density."""
        weights, params = doubled(mixture.weights_, mixture.params_, n_components)
        found = Mixture.from_parameters(weights, params, family=mixture.family_, **self.parameters)
        return found.set_params(family=self.family)  # type: ignore[no-any-return]


def gaussian_candidates(
    kinds: Sequence[str], X: Any, sample_weight: ArrayLike | None, seed: int, parameters: Mapping[str, Any]
) -> list[GaussianCandidates]:
    """Return Gaussian mixtures with covariances of these types; they share one source."""
    source, columns = _read(GaussianMixture(**_missing(parameters)), X, sample_weight)
    rows, weight = source.y, source.weight
    if source.n > SAMPLE:
        chance = None if weight is None else weight / weight.sum()
        rng = np.random.default_rng(seed)
        rows = rows[np.sort(rng.choice(source.n, SAMPLE, replace=weight is not None, p=chance))]
        weight = None
    return [
        GaussianCandidates(
            kind=kind,
            data=(source,),
            total_weight=source.total_weight,
            columns=columns,
            parameters=_ending(parameters, source.n),
            sample=rows,
            sample_weight=weight,
        )
        for kind in kinds
    ]


def family_candidates(
    families: Mapping[str, Given], X: Any, sample_weight: ArrayLike | None, parameters: Mapping[str, Any]
) -> list[FamilyCandidates]:
    """Return mixtures of these families, by their names in the table."""
    found = []
    for kind, family in families.items():
        reader = Mixture(family=family, **_missing(parameters))
        source, columns = _read(reader, X, sample_weight)
        found.append(
            FamilyCandidates(
                kind=kind,
                data=(source,),
                total_weight=source.total_weight,
                columns=columns,
                parameters=_ending(parameters, source.n),
                family=_numbered(reader._given_family(), columns.get("feature_names_in_")),
            )
        )
    return found


def doubled(weights: Array, params: Mapping[str, Any], n_components: int) -> tuple[Array, dict[str, Any]]:
    """Return the parameters of more components: the largest one is doubled, again and again.

    >>> doubled(np.array([0.75, 0.25]), {"rates": np.array([3.0, 8.0])}, 3)
    (array([0.375, 0.25 , 0.375]), {'rates': array([3., 8., 3.])})
    """
    index = np.arange(len(weights))
    weights = np.asarray(weights, dtype=np.float64) / np.sum(weights, dtype=np.float64)
    while len(weights) < n_components:
        largest = int(weights.argmax())
        weights[largest] /= 2.0
        weights, index = np.append(weights, weights[largest]), np.append(index, index[largest])
    return weights, _taken(params, index)


def _taken(params: Mapping[str, Any], index: NDArray[np.intp]) -> dict[str, Any]:
    """Return the parameters of components ``index``."""
    return {
        name: _taken(part, index) if isinstance(part, Mapping) else part[index]
        for name, part in params.items()
    }


def _ending(parameters: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Return parameters with which fits to n rows end late enough for criteria, unless they are given."""
    if n > FEW or parameters.get("method", "auto") not in ("auto", "em"):
        return dict(parameters)
    return {"tol": min(1e-3, GAIN / n), "max_iter": PASSES} | dict(parameters)


def _missing(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name == "missing"}


def _read(
    reader: GaussianMixture | Mixture, X: Any, sample_weight: ArrayLike | None
) -> tuple[ArraySource, dict[str, Any]]:
    """Return the rows of positive weight, validated as for a fit, and attributes about their columns."""
    check_not_lazy("X", X)
    X = in_numpy(X)
    if isinstance(reader, Mixture):
        X = reader._encoded(X, sample_weight, reset=True)
    rows = validated(reader, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
    weight = read_weights(sample_weight, rows)
    if weight is not None:
        rows, weight = rows[weight > 0], weight[weight > 0]
        weight = None if (weight == 1.0).all() else weight
    known = vars(reader)
    columns = {name: known[name] for name in ("feature_names_in_", "_texts") if name in known}
    return ArraySource(rows, weight, allow_missing=allows_missing(reader)), columns


def _numbered(family: Given, names: Any) -> Given:
    """Return a family with columns by number where they have names."""
    read = read_family(family)
    if not isinstance(family, Mapping):
        return family
    assert isinstance(read, Blocks)
    return {key: list(columns) for key, columns in zip(family, read.named(names).columns, strict=True)}
