"""What a fitted mixture says of rows: log-likelihood, components, and criteria for the choice of a model."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from swiftem._typing import Array, Theta
from swiftem.data.array_source import ArraySource
from swiftem.expectation import Evaluation
from swiftem.lanes.choose import choose_expectation
from swiftem.models import GaussianMixtureModel

__all__ = ["MixtureScores", "read_weights"]

NUMBERS = 1 << 22
"""Responsibilities that are made at a time where they are not what is asked for."""


def read_weights(sample_weight: ArrayLike | None, X: NDArray[Any]) -> Array | None:
    """Return the weights of the rows of ``X``, checked, or None where there are none."""
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return weight


class MixtureScores:
    """Methods of :class:`swiftem.GaussianMixture` that need a fitted model and rows."""

    if TYPE_CHECKING:  # what the estimator has
        n_components: int
        weights_: Array
        means_: Array

        def _theta(self) -> Theta: ...
        def _model(self) -> GaussianMixtureModel: ...
        def _n_parameters(self) -> int: ...

    def _rows(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        rows: NDArray[Any] = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return rows

    def _evaluate(self, X: NDArray[Any], **wanted: bool) -> Evaluation:
        source = ArraySource(X)
        # The middle of the components does for a centre, and saves a pass.
        centre = np.asarray(self.weights_, dtype=np.float64) @ np.asarray(self.means_, dtype=np.float64)
        bound = self._model().bind(source, centre=centre)
        return choose_expectation("auto", bound, source).evaluate(self._theta(), **wanted)

    def _with_responsibilities(self, X: NDArray[Any]) -> Iterator[tuple[slice, Evaluation]]:
        size = max(NUMBERS // self.n_components, 1)
        for start in range(0, len(X), size):
            here = slice(start, min(start + size, len(X)))
            yield here, self._evaluate(X[here], responsibilities=True)

    def score_samples(self, X: ArrayLike) -> NDArray[Any]:
        """Return the log-likelihood of each row.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The rows.

        Returns
        -------
        ndarray, shape (n,)
            float32 for rows of float32.
        """
        rows = self._rows(X)
        return self._evaluate(rows).log_likelihood.astype(rows.dtype, copy=False)

    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of the rows, weighted where weights are given.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The rows.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        if sample_weight is None:
            return float(np.mean(self.score_samples(X)))
        total, weight = self._total(self._rows(X), sample_weight)
        return total / weight

    def _total(self, X: NDArray[Any], sample_weight: ArrayLike | None) -> tuple[float, float]:
        """Return Σ w log g and Σ w."""
        weight = read_weights(sample_weight, X)
        found = self._evaluate(X).log_likelihood
        if weight is None:
            return float(found.sum()), float(len(X))
        return float(weight @ found), float(weight.sum())

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the likeliest component of each row.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The rows.

        Returns
        -------
        ndarray of int, shape (n,)
            Numbers of components.
        """
        labels = self._evaluate(self._rows(X), labels=True).labels
        assert labels is not None
        return labels

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """Return the responsibilities: how likely each row is to come from each component.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The rows.

        Returns
        -------
        ndarray, shape (n, M)
            Rows sum to 1; float32 for rows of float32.
        """
        rows = self._rows(X)
        found = np.empty((len(rows), self.n_components), dtype=rows.dtype)
        for here, evaluation in self._with_responsibilities(rows):
            assert evaluation.responsibilities is not None
            found[here] = evaluation.responsibilities
        return found

    def bic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion, −2 Σ w log g + p log Σ w: the lower the better.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The rows.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        total, weight = self._total(self._rows(X), sample_weight)
        return -2.0 * total + self._n_parameters() * log(weight)

    def aic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Akaike's information criterion, −2 Σ w log g + 2p: the lower the better.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The rows.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        total, _ = self._total(self._rows(X), sample_weight)
        return -2.0 * total + 2.0 * self._n_parameters()

    def icl(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the integrated completed likelihood criterion, BIC + 2·entropy: the lower the better.

        The entropy of the responsibilities, −Σ w Σ_m r_m log r_m, makes it prefer components that are apart
        (Biernacki, Celeux and Govaert, 2000).

        Parameters
        ----------
        X : array-like, shape (n, d)
            The rows.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        rows = self._rows(X)
        weight = read_weights(sample_weight, rows)
        weight = np.ones(len(rows)) if weight is None else weight
        total = entropy = 0.0
        for here, evaluation in self._with_responsibilities(rows):
            r = evaluation.responsibilities
            assert r is not None
            entropy -= float(weight[here] @ (r * np.log(r, out=np.zeros_like(r), where=r > 0)).sum(axis=1))
            total += float(weight[here] @ evaluation.log_likelihood)
        return -2.0 * total + self._n_parameters() * log(float(weight.sum())) + 2.0 * entropy
