"""One fit of a selection: from new starts and from the fit with fewer components; the best is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from swiftem.core.checks import check_not_lazy, in_numpy, shown
from swiftem.core.process import clock
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.fit.checkpoint import kept_apart
from swiftem.fit.validated import allows_missing, read_weights, validated
from swiftem.mixture.families import Blocks, Family, Given, read_family
from swiftem.mixture.gaussian_mixture import GaussianMixture
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.model import MixtureModel, MixtureTheta
from swiftem.mixture.scores import criteria
from swiftem.mixture.selection import Candidate
from swiftem.mixture.starts.family_starts import starts_of
from swiftem.mixture.starts.split_and_merge import double_component, parameters_of, split_component

__all__ = ["GAUSSIAN", "KINDS", "AnyMixture", "CandidateFits", "Criterion", "Fitted"]

KINDS = ("full", "tied", "diag", "spherical")
SAMPLE = 2000
"""Rows used to choose the component to split."""
SURVEY, TOTAL, PASSES = 5000, 0.1, 1000
"""Up to so many rows, fits by em end if a pass gains less than ``TOTAL`` in the log-likelihood of all rows,
or after so many passes: a gain of 1e-3 per row could change the order of criteria."""
FIT = (
    "converged_",
    "n_iter_",
    "lower_bound_",
    "lower_bounds_",
    "method_",
    "history_",
    "stationarity_",
    "log_likelihood_",
)
"""Attributes of a fit that also hold for its mixture with one component doubled."""
GAUSSIAN = "gaussian"
"""The family of :class:`swiftem.GaussianMixture`."""

AnyMixture = GaussianMixture | Mixture
Criterion = str | Callable[..., float]


class Fitted(NamedTuple):
    """A row of the table, and its mixture, or None if the fit failed."""

    row: Candidate
    mixture: AnyMixture | None


@dataclass(frozen=True)
class CandidateFits:
    """Data shared by all fits of a selection.

    Attributes
    ----------
    family : str or Family
        ``"gaussian"``, or a family of :class:`swiftem.Mixture`, with columns by number.
    label : str or None
        Name of the family in the table; None for covariance types of :class:`swiftem.GaussianMixture`.
    learnt : Family or None
        The family after :meth:`swiftem.mixture.families.Family.learn`.
    given : tuple
        X and sample_weight as given, with y between them if there is one, for a user-defined criterion.
    source : ArraySource
        The rows with positive weight, and their weights: one for all fits, so that their mean is found once.
    names : ndarray of str, or None
        Names of the columns.
    categories : dict
        Categories of the columns of text.
    sample : ndarray, shape (., d)
        A sample of the rows, drawn in proportion to their weights, or all rows.
    sample_weight : ndarray or None
        Weights of the sample, if it is all rows.
    criterion : str or callable
        The selection criterion.
    n_init, seed : int
        Number of new starts of each fit, and the seed.
    parameters : dict
        Parameters of the estimator.
    """

    family: Any
    label: str | None
    learnt: Family | None
    given: tuple[Any, ...]
    source: ArraySource
    names: Any
    categories: dict[Any, Any]
    sample: NDArray[Any]
    sample_weight: Array | None
    criterion: Criterion
    n_init: int
    seed: int
    parameters: dict[str, Any]

    @classmethod
    def prepare(
        cls,
        X: ArrayLike,
        sample_weight: ArrayLike | None,
        criterion: Criterion,
        n_init: int,
        random_state: Any,
        parameters: dict[str, Any],
        family: Any = GAUSSIAN,
        label: str | None = None,
    ) -> Self:
        """Validate the data as a fit would, once for all fits."""
        missing = {"missing": parameters["missing"]} if "missing" in parameters else {}
        is_gaussian = family == GAUSSIAN and label is None
        reader = GaussianMixture(**missing) if is_gaussian else Mixture(family=family, **missing)
        check_not_lazy("X", X)
        X = in_numpy(X)
        coded = (
            X
            if isinstance(reader, GaussianMixture)
            else reader._as_codes(X, reset=True, sample_weight=sample_weight)
        )
        rows = validated(reader, coded, dtype=[np.float64, np.float32], ensure_min_samples=2)
        weight = read_weights(sample_weight, rows)
        if weight is not None:
            rows, weight = rows[weight > 0], weight[weight > 0]
            weight = None if (weight == 1.0).all() else weight
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        sample, of_sample = rows, weight
        if len(rows) > SAMPLE:
            chance = None if weight is None else weight / weight.sum()
            index = np.random.default_rng(seed).choice(
                len(rows), SAMPLE, replace=weight is not None, p=chance
            )
            sample, of_sample = rows[np.sort(index)], None
        names = getattr(reader, "feature_names_in_", None)
        given = X, sample_weight
        learnt = None
        if isinstance(reader, Mixture):
            family = _numbered(reader._given_family(), names)
            learnt = MixtureModel(1, family).learnt(ArraySource(rows, allow_missing=True)).kind
        source = ArraySource(rows, weight, allow_missing=allows_missing(reader))
        if len(rows) <= SURVEY and parameters.get("method", "auto") in ("auto", "em"):
            parameters = {"tol": min(1e-3, TOTAL / len(rows)), "max_iter": PASSES} | parameters
        return cls(
            family,
            label,
            learnt,
            given,
            source,
            names,
            reader.__dict__.get("_texts", {}),
            sample,
            of_sample,
            criterion,
            n_init,
            seed,
            parameters,
        )

    @property
    def name(self) -> str:
        """Name of the criterion."""
        if isinstance(self.criterion, str):
            return self.criterion.upper()
        name = getattr(self.criterion, "__name__", "criterion")
        return "criterion" if name == "<lambda>" else str(name)

    def fit(self, kind: str, count: int, before: Fitted | None) -> Fitted:
        """Return the best fit with ``count`` components, at least as good as ``before``, which has fewer."""
        began = clock()
        words = np.random.SeedSequence(
            [self.seed, KINDS.index(kind) if kind in KINDS else len(KINDS), count]
        ).generate_state(1)
        seed = int(words[0]) >> 1
        found: dict[str, tuple[AnyMixture, float]] = {}
        failed = ""
        for start in ("fresh", "split") if before is not None and self._splits else ("fresh",):
            try:
                mixture = kept_apart(self._begin(kind, count, seed, before if start == "split" else None))
                self._fit(mixture)
            except ValueError as error:  # an ill-defined covariance, or fewer rows than components
                failed = failed or " ".join(str(error).split())
            else:
                found[start] = mixture, self._log_likelihood(mixture)
        n_parameters = self._n_parameters(kind, count)
        if not found:
            seconds = clock() - began
            return Fitted(
                Candidate(kind, count, nan, nan, nan, nan, nan, n_parameters, False, 0, seconds, "", failed),
                None,
            )
        penalised = any(self.parameters.get(name) is not None for name in ("prior", "concentration"))
        best = max(found, key=lambda start: found[start][0].lower_bound_ if penalised else found[start][1])
        if before is not None and not penalised and found[best][1] < before.row.log_likelihood:
            best = "doubled"
            mixture = self._doubled(before, count, seed)
            found[best] = mixture, self._log_likelihood(mixture)
        mixture, log_likelihood = found[best]
        mixture.set_params(warm_start=False, n_init=self.n_init)
        return self._measured(mixture, log_likelihood, n_parameters, best, began)

    def _fit(self, mixture: Any) -> None:
        """Fit to the rows."""
        mixture.fit(self.source)

    def _entropy(self, mixture: Any) -> tuple[float, float]:
        """Return Σ w, and the entropy of the responsibilities."""
        _, total, entropy = mixture._entropy(self.source.y, self.source.weight)
        return total, entropy

    def _n_parameters(self, kind: str, count: int) -> int:
        """Return how many parameters are free."""
        d = self.source.y.shape[1]
        model: Any = self._new(kind, count)._model()
        if self.learnt is not None:
            model = replace(model, family=self.learnt)
        bound = model.bind(ArraySource(np.zeros((1, d))), centre=np.zeros(model.width(d)))
        return starts_of(bound).n_free

    @property
    def _splits(self) -> bool:
        """Whether there is a rule to choose the component to split."""
        return self.label is None

    def _new(self, kind: str, count: int, **more: Any) -> AnyMixture:
        if self._splits:
            return GaussianMixture(count, covariance_type=kind, **more, **self.parameters)
        return Mixture(count, family=self.family, **more, **self.parameters)

    def _begin(self, kind: str, count: int, seed: int, before: Fitted | None) -> AnyMixture:
        """Return an unfitted mixture: with new starts, or started from an earlier one by a split."""
        if before is None or before.mixture is None:
            return self._new(kind, count, n_init=self.n_init, random_state=seed)
        mixture = self._given(kind, parameters_of(before.mixture), seed)  # without names of columns
        while mixture.n_components < count:
            rows = mixture.impute(self.sample) if np.isnan(self.sample).any() else self.sample
            mixture = self._given(kind, split_component(mixture, rows, self.sample_weight), seed)
        return mixture

    def _doubled(self, before: Fitted, count: int, seed: int) -> AnyMixture:
        """Return an earlier mixture with as many components as wanted and the same density."""
        assert before.mixture is not None
        mixture = before.mixture
        while mixture.n_components < count:
            if isinstance(mixture, GaussianMixture):
                mixture = self._given(mixture.covariance_type, double_component(mixture), seed)
            else:
                mixture = self._twice(mixture, seed)
        for name in FIT:
            setattr(mixture, name, getattr(before.mixture, name))
        return mixture

    def _twice(self, mixture: Mixture, seed: int) -> Mixture:
        """Return a mixture with its largest component doubled, each copy with half of its weight."""
        theta = mixture._theta()
        largest = int(theta.weights.argmax())
        index = np.append(np.arange(mixture.n_components), largest)
        weights = theta.weights[index] / np.where(index == largest, 2.0, 1.0)
        made = Mixture(len(index), family=self.family, random_state=seed, **self.parameters)
        model = made._model(mixture.family_)
        made._become(MixtureTheta(weights, _taken(theta.params, index)), mixture.n_features_in_, model)
        return made

    def _given(self, kind: str, parts: tuple[Array, Array, Array], seed: int) -> GaussianMixture:
        """Return a mixture with these parameters, as the start of a fit."""
        return GaussianMixture.from_parameters(
            *parts, covariance_type=kind, warm_start=True, random_state=seed, **self.parameters
        )

    def _log_likelihood(self, mixture: AnyMixture) -> float:
        found = float(mixture.score(self.source.y, sample_weight=self.source.weight))
        return found if isfinite(found) else -inf

    def _measured(
        self, mixture: AnyMixture, log_likelihood: float, n_parameters: int, start: str, began: float
    ) -> Fitted:
        total, entropy = self._entropy(mixture)
        values = criteria(total * log_likelihood, total, n_parameters, entropy)
        if self.names is not None:
            mixture.feature_names_in_ = self.names
        if self.categories:
            mixture._texts = self.categories
        if isinstance(self.criterion, str):
            value = values[self.criterion]
        else:
            value = self.criterion(mixture, *self.given)
            if not isinstance(value, Real):
                raise TypeError(f"criterion must return a number, got {shown(value)}.")
        failed = "" if isfinite(value) else f"The criterion is {value}."
        row = Candidate(
            self.label or mixture.covariance_type,
            mixture.n_components,
            float(value),
            **values,
            log_likelihood=log_likelihood,
            n_parameters=n_parameters,
            converged=bool(mixture.converged_),
            passes=int(mixture.n_iter_),
            seconds=clock() - began,
            start=start,
            failed=failed,
        )
        return Fitted(row, mixture)


def _numbered(family: Given, names: Any) -> Given:
    """Return a family as given, with columns by number where it names them."""
    read = read_family(family)
    if not isinstance(family, Mapping):
        return family
    assert isinstance(read, Blocks)
    return {key: list(columns) for key, columns in zip(family, read.named(names).columns, strict=True)}


def _taken(params: Mapping[str, Any], index: Any) -> dict[str, Any]:
    """Return the parameters of components ``index``."""
    return {
        name: _taken(part, index) if isinstance(part, Mapping) else part[index]
        for name, part in params.items()
    }
