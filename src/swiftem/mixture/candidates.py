"""Kinds of models that a selection compares, each with any number of components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem.core.checks import check_not_lazy
from swiftem.core.problem import Problem
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.mixture.families import Blocks, Given, read_family
from swiftem.mixture.gaussian_mixture import GaussianMixture
from swiftem.mixture.gaussians import GaussianMixtureModel
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.starts.split_and_merge import with_splits

KINDS = ("full", "tied", "diag", "spherical")
SAMPLE = 2000
"""Rows used to choose the component to split."""

FEW, GAIN, PASSES = 5000, 0.1, 1000
"""Up to so many rows, fits by em end if a pass gains less than ``GAIN`` in the log-likelihood of all rows,
or after so many passes: a gain of 1e-3 per row could change the order of criteria."""


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """A kind of model with any number of components, and the data of its fits.

    Attributes
    ----------
    kind : str
        The covariance type, or the name of the family.
    estimator : type
        The estimator.
    parameters : dict
        Its parameters.
    data : tuple
        Arguments of ``fit`` and ``score``, the same for all fits, so that the rows are read once.
    total_weight : float
        Sum of the weights.
    columns : dict
        Attributes of the estimator about the columns of X, which ``data`` does not have.
    arrays : tuple of str
        Fitted attributes with an entry for each component, beside the weights.
    sample, sample_weight : ndarray, optional
        Rows by which Gaussian components are split, and their weights.
    """

    kind: str
    estimator: Callable[..., Any]
    parameters: Mapping[str, Any]
    data: tuple[Any, ...]
    total_weight: float
    columns: Mapping[str, Any]
    arrays: tuple[str, ...]
    sample: NDArray[Any] | None = None
    sample_weight: Array | None = None

    def new(self, n_components: int, **parameters: Any) -> Any:
        """Return an unfitted model."""
        return self.estimator(n_components, **self.parameters, **parameters)

    def split(self, model: Any, n_components: int) -> Any:
        """Return the start of a fit: one component after another is split, each time the best one."""
        assert self.sample is not None
        while model.n_components < n_components:
            rows = model.impute(self.sample) if np.isnan(self.sample).any() else self.sample
            parts = split_component(model, rows, self.sample_weight)
            if parts is None:
                return self.doubled(model, n_components).set_params(warm_start=True)
            model = GaussianMixture.from_parameters(*parts, warm_start=True, **self.parameters)
        return model

    def doubled(self, model: Any, n_components: int) -> Any:
        """Return a fitted model with the same density: the largest component is doubled, again and again."""
        weights = np.array(model.weights_, dtype=np.float64)
        index = np.arange(len(weights))
        while len(weights) < n_components:
            largest = int(weights.argmax())
            weights[largest] /= 2.0
            weights, index = np.append(weights, weights[largest]), np.append(index, index[largest])
        made = self.new(n_components)
        results = [name for name in vars(model) if name.endswith("_") and name not in self.columns]
        made.__dict__.update({name: getattr(model, name) for name in results})
        made.__dict__.update({name: _taken(getattr(model, name), index) for name in self.arrays})
        made.weights_ = weights.astype(model.weights_.dtype)
        return made


def gaussian_candidates(
    kinds: Sequence[str], X: Any, sample_weight: ArrayLike | None, seed: int, parameters: Mapping[str, Any]
) -> list[Candidates]:
    """Return Gaussian mixtures with covariances of these types; they share one source."""
    source, columns = _read(GaussianMixture(**_missing(parameters)), X, sample_weight)
    rows, weight = source.y, source.weight
    if source.n > SAMPLE:
        chance = None if weight is None else weight / weight.sum()
        rng = np.random.default_rng(seed)
        rows = rows[np.sort(rng.choice(source.n, SAMPLE, replace=weight is not None, p=chance))]
        weight = None
    own = ("means_", "covariances_", "precisions_", "precisions_cholesky_")
    return [
        Candidates(
            kind=kind,
            estimator=GaussianMixture,
            parameters=_ending(parameters, source.n) | {"covariance_type": kind},
            data=(source,),
            total_weight=source.total_weight,
            columns=columns,
            arrays=own[:1] if kind == "tied" else own,
            sample=rows,
            sample_weight=weight,
        )
        for kind in kinds
    ]


def family_candidates(
    families: Mapping[str, Given], X: Any, sample_weight: ArrayLike | None, parameters: Mapping[str, Any]
) -> list[Candidates]:
    """Return mixtures of these families, by their names in the table."""
    found = []
    for kind, family in families.items():
        reader = Mixture(family=family, **_missing(parameters))
        source, columns = _read(reader, X, sample_weight)
        own = {"family": _numbered(reader._given_family(), columns.get("feature_names_in_"))}
        found.append(
            Candidates(
                kind=kind,
                estimator=Mixture,
                parameters=_ending(parameters, source.n) | own,
                data=(source,),
                total_weight=source.total_weight,
                columns=columns,
                arrays=("params_",),
            )
        )
    return found


def _taken(values: Any, index: NDArray[np.intp]) -> Any:
    """Return arrays, or dicts of them, of components ``index``."""
    if isinstance(values, Mapping):
        return {name: _taken(part, index) for name, part in values.items()}
    return values[index]


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
    encoded = reader._encoded(X, sample_weight, reset=True)
    rows, weight = reader._array(encoded, sample_weight, reset=True, least=2)
    if weight is not None:
        rows, weight = rows[weight > 0], weight[weight > 0]
        weight = None if (weight == 1.0).all() else weight
    known = vars(reader)
    columns = {name: known[name] for name in ("feature_names_in_", "_texts") if name in known}
    return ArraySource(rows, weight, allow_missing=reader.missing == "ignore"), columns


def _numbered(family: Given, names: Any) -> Given:
    """Return a family with columns by number where they have names."""
    read = read_family(family)
    if not isinstance(family, Mapping):
        return family
    assert isinstance(read, Blocks)
    return {key: list(columns) for key, columns in zip(family, read.named(names).columns, strict=True)}


def split_component(mixture: Any, X: Array, weight: Array | None = None) -> tuple[Array, Array, Array] | None:
    """Return weights, means and covariances of a Gaussian mixture with one component more.

    There are none if the parts have no covariance.

    Parameters
    ----------
    mixture : GaussianMixture
        A fitted mixture.
    X : ndarray, shape (n, d)
        Rows; a sample of the data is enough.
    weight : ndarray, shape (n,), optional
        Their weights.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem.mixture.candidates import split_component
    >>> X = np.concatenate([np.random.default_rng(0).normal(m, 1, size=(500, 1)) for m in (0, 10, 16)])
    >>> mixture = swiftem.GaussianMixture(2, random_state=0).fit(X)
    >>> np.sort(split_component(mixture, X)[1].ravel()).round() + 0.0
    array([ 0., 10., 16.])
    """
    weights = np.array(mixture.weights_, dtype=np.float64)
    model = GaussianMixtureModel(
        len(weights), covariance=mixture.covariance_type, reg_covar=mixture.reg_covar
    )
    theta = model.theta(
        weights=weights / weights.sum(), means=mixture.means_, covariances=mixture.covariances_
    )
    source = ArraySource(np.asarray(X, dtype=np.float64), weight)
    problem = Problem(model, source, bound=model.bind_near(source, theta))
    found: Any = with_splits(problem, theta, len(weights) + 1)
    return None if found is None else found[:3]
