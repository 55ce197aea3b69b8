"""Methods of a fitted mixture for rows: log-likelihood, components, and model selection criteria."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from swiftem.core.checks import check_not_lazy, in_numpy, is_tensor
from swiftem.core.compute import Compute, Evaluation, Placement
from swiftem.core.problem import Problem
from swiftem.core.types import Array
from swiftem.data.array import ArraySource
from swiftem.data.as_source import is_planned, kernels_of, like
from swiftem.data.stored import StoredSource
from swiftem.data.tensor import TensorSource
from swiftem.data.units.source import UnitSource, units_of
from swiftem.fit.config import device_memory_limit
from swiftem.fit.validated import (
    allows_missing,
    chunk_by_chunk,
    is_stored,
    open_rows,
    read_weights,
    validated,
)
from swiftem.mixture.base import MixtureBase, check_columns, no_weights_beside, rows_of
from swiftem.mixture.plan import kernels_for
from swiftem.mixture.starts.family_starts import starts_of

__all__ = ["MixtureScores", "criteria"]

NUMBERS = 1 << 22
"""Responsibilities computed at a time if they are not the result."""


def criteria(total: float, weight: float, n_parameters: int, entropy: float = 0.0) -> dict[str, float]:
    """Return AIC, BIC and ICL, from Σ w log g, Σ w, free parameters and the entropy of responsibilities.

    >>> criteria(-100.0, 50.0, 3)["aic"]
    206.0
    """
    bic = -2.0 * total + n_parameters * log(weight)
    return {"bic": bic, "aic": -2.0 * total + 2.0 * n_parameters, "icl": bic + 2.0 * entropy}


def _blocks(rows: Any, size: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield rows of an array or a stored source, and their places."""
    if isinstance(rows, StoredSource):
        for batch in rows.blocks(min(size, rows.chunk_rows)):
            yield slice(int(batch.index[0]), int(batch.index[-1]) + 1), batch.y
        return
    for start in range(0, len(rows), size):
        here = slice(start, min(start + size, len(rows)))
        yield here, rows[here]


class MixtureScores(MixtureBase):
    """Methods that need a fitted model and rows."""

    def _rows(self, X: Any) -> Any:
        """Return the rows as an array, or as a source if they are stored."""
        check_is_fitted(self)
        if is_tensor(X) and kernels_of(self.device, X):
            tensor = TensorSource(X)
            check_columns(self, tensor, reset=False)
            return tensor
        X = in_numpy(X)
        if is_planned(X) or isinstance(X, UnitSource):
            units = X if isinstance(X, UnitSource) else units_of(X, allow_missing=allows_missing(self))
            self._check_allowed(units)
            check_columns(self, units, reset=False)
            return units
        check_not_lazy("X", X)
        if type(X) is ArraySource:
            X = X.y
        if is_stored(X):
            source = open_rows(X, allow_missing=allows_missing(self))
            self._check_allowed(source)
            check_columns(self, source, reset=False)
            return source
        rows: NDArray[Any] = validated(self, X, dtype=[np.float64, np.float32], reset=False)
        return rows

    def _all_rows(self, X: Any) -> Any:
        """Return the rows, including those of weight zero of a source."""
        if isinstance(X, UnitSource):
            raise TypeError(
                "data must be an array, a file or a Dask collection for values of each row, got units."
            )
        return self._rows(X.unweighted() if isinstance(X, ArraySource | StoredSource) else X)

    def _e_step(self, X: Any) -> tuple[Any, Any, Compute]:
        """Return rows as a source, the model for them, and its E-step."""
        source = X
        if not isinstance(X, StoredSource | UnitSource | TensorSource):
            source = ArraySource(X, allow_missing=allows_missing(self))
        given = source.tensor if isinstance(source, TensorSource) else None
        rows = source
        if isinstance(X, UnitSource):
            has_holes = X.masses is not None
            rows = ArraySource(np.full((1, *X.tail), np.nan if has_holes else 0.0), allow_missing=has_holes)
        bound = self._bind(rows)
        kernels = kernels_of(self.device, given) or kernels_for(rows_of(source), bound.size)
        limit = device_memory_limit()
        problem = Problem(bound.model, source, bound=bound, placement=Placement.named(kernels, limit))
        return source, bound, problem.compute

    def _evaluate(self, X: Any, **wanted: bool) -> Evaluation:
        """Return the E-step of all rows: in tensors on their device if they are there."""
        e_step: Any = self._e_step(X)[2]
        on_device = isinstance(X, TensorSource) and hasattr(e_step, "evaluate_there")
        found: Evaluation = (e_step.evaluate_there if on_device else e_step.evaluate)(self._theta(), **wanted)
        return found

    def _with_responsibilities(
        self, X: Any, weight: Array | None = None
    ) -> Iterator[tuple[slice, Array, Evaluation]]:
        """Yield positions of rows, their weights, and their E-step."""
        size = max(NUMBERS // self.n_components, 1)
        if isinstance(X, StoredSource):
            for batch in X.blocks(min(size, X.chunk_rows)):
                here = slice(int(batch.index[0]), int(batch.index[-1]) + 1)
                yield here, batch.weight, self._evaluate(batch.y, responsibilities=True)
            return
        rows = X.tensor if isinstance(X, TensorSource) else X
        weight = np.ones(len(rows)) if weight is None else weight
        for start in range(0, len(rows), size):
            here = slice(start, min(start + size, len(rows)))
            part = TensorSource(rows[here]) if isinstance(X, TensorSource) else rows[here]
            yield here, weight[here], self._evaluate(part, responsibilities=True)

    def score_samples(self, X: ArrayLike) -> NDArray[Any]:
        """Return the log-likelihood of each row.

        Parameters
        ----------
        X
            As in :meth:`predict`.

        Returns
        -------
        ndarray, shape (n,)
            float32 for rows of float32.
        """
        if is_planned(X):
            return chunk_by_chunk(self, "score_samples", X)
        rows = self._all_rows(X)
        found: Any = self._evaluate(rows).log_likelihood
        return like(X, found if is_tensor(found) else found.astype(rows.dtype, copy=False))  # type: ignore[no-any-return]

    def score(self, X: ArrayLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean log-likelihood of the rows, weighted if weights are given.

        Parameters
        ----------
        X : array-like, shape (n, d), path or source
            The rows.
        y : ignored
            For scikit-learn's conventions.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        is_source = is_stored(X) or is_planned(X) or isinstance(X, UnitSource | ArraySource)
        if sample_weight is None and not is_source:
            return float(self.score_samples(X).mean())
        total, weight = self._total(X, sample_weight)
        return total / weight

    def _weighted(self, X: Any, sample_weight: ArrayLike | None) -> tuple[Any, ArrayLike | None]:
        """Return the rows, and their weights; stored rows have their own."""
        if type(X) is ArraySource:
            no_weights_beside(sample_weight)
            sample_weight = X.weight
        return self._rows(X), sample_weight

    def _total(self, given: Any, sample_weight: ArrayLike | None) -> tuple[float, float]:
        """Return Σ w log g and Σ w of the user's rows."""
        X, sample_weight = self._weighted(given, sample_weight)
        if isinstance(X, StoredSource | UnitSource):
            no_weights_beside(sample_weight)
            source, bound, e_step = self._e_step(X)
            theta, total = self._theta(), source.total_weight
            return -total * (e_step.objective(theta) - bound.penalty(theta)), total
        found = in_numpy(self._evaluate(X).log_likelihood)
        weight = read_weights(sample_weight, found)
        if weight is None:
            return float(found.sum(dtype=np.float64)), float(len(found))
        return float(weight @ found), float(weight.sum())

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most likely component of each row.

        Parameters
        ----------
        X : array-like, shape (n, d), path or source
            The rows.

        Returns
        -------
        ndarray of int, shape (n,)
            Indices of components.
        """
        if is_planned(X):
            return chunk_by_chunk(self, "predict", X, dtype=np.intp)
        labels = self._evaluate(self._all_rows(X), labels=True).labels
        assert labels is not None
        return like(X, labels)  # type: ignore[no-any-return]

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """Return the responsibilities: the probability that each row comes from each component.

        Parameters
        ----------
        X
            As in :meth:`predict`.

        Returns
        -------
        ndarray, shape (n, M)
            Rows sum to 1; float32 for rows of float32.
        """
        if is_planned(X):
            return chunk_by_chunk(self, "predict_proba", X, columns=self.n_components)
        rows = self._all_rows(X)
        if isinstance(rows, TensorSource):
            return like(X, self._evaluate(rows, responsibilities=True).responsibilities)  # type: ignore[no-any-return]
        n = rows.n if isinstance(rows, StoredSource) else len(rows)
        found = np.empty((n, self.n_components), dtype=rows.dtype)
        for here, _, evaluation in self._with_responsibilities(rows):
            assert evaluation.responsibilities is not None
            found[here] = evaluation.responsibilities
        return like(X, found)  # type: ignore[no-any-return]

    def plot_convergence(self, axes: Any = None) -> Any:
        """Plot the objective against passes, and return the matplotlib axes."""
        from swiftem.report.mixture import draw_history

        return draw_history(self.history_, axes)

    def impute(self, X: ArrayLike, random_state: Any = None) -> Any:
        """Return the rows with missing cells filled in.

        Parameters
        ----------
        X : array-like, shape (n, d), path or source
            The rows.
        random_state : int, RandomState or None
            None: cells have their mean given the observed ones. Otherwise they are random draws, given the
            observed ones.

        Returns
        -------
        ndarray, shape (n, d)
            float32 for rows of float32.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> covariances = [[[4.0, 2.0], [2.0, 3.0]]]
        >>> mixture = swiftem.GaussianMixture.from_parameters(
        ...     [1.0], [[1.0, 2.0]], covariances, missing="ignore"
        ... )
        >>> mixture.impute([[3.0, np.nan], [np.nan, np.nan]])
        array([[3., 3.],
               [1., 2.]])
        """
        if is_planned(X) or isinstance(X, UnitSource):
            kind = "units" if isinstance(X, UnitSource) else "a Dask collection"
            raise TypeError(
                f"X must be an array, a table or a file for impute, got {kind}: give its parts, "
                "for example with map_blocks or map_partitions."
            )
        if is_tensor(X) and kernels_of(self.device, X):
            raise TypeError(
                "X must be an array, a table or a file for impute, got rows on another device: copy them to "
                "this process first."
            )
        rows = self._all_rows(X)
        rng = (
            None
            if random_state is None
            else np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        )
        theta = self._theta()
        shape = (rows.n, *rows.tail) if isinstance(rows, StoredSource) else rows.shape
        found = np.empty(shape, dtype=rows.dtype)
        for here, y in _blocks(rows, max(NUMBERS // self.n_components, 1)):
            _, bound, e_step = self._e_step(y)
            responsibilities = e_step.evaluate(theta, responsibilities=True).responsibilities
            assert responsibilities is not None
            found[here] = starts_of(bound).imputed(y, responsibilities, theta, rng)
        return found

    def bic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the Bayesian information criterion, −2 Σ w log g + p log Σ w; lower is better.

        Parameters
        ----------
        X : array-like, shape (n, d), path or source
            The rows.
        sample_weight : array-like, shape (n,), optional
            Non-negative weights.
        """
        return criteria(*self._total(X, sample_weight), self._n_parameters())["bic"]

    def aic(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Akaike's information criterion, −2 Σ w log g + 2p; lower is better.

        Parameters
        ----------
        X, sample_weight
            As in :meth:`bic`.
        """
        return criteria(*self._total(X, sample_weight), self._n_parameters())["aic"]

    def icl(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the integrated completed likelihood criterion, BIC + 2·entropy; lower is better.

        The entropy of the responsibilities, −Σ w Σ_m r_m log r_m, favours well-separated components
        (Biernacki, Celeux and Govaert, 2000).

        Parameters
        ----------
        X, sample_weight
            As in :meth:`bic`.
        """
        if is_planned(X) or isinstance(X, UnitSource):
            got = "units" if isinstance(X, UnitSource) else "a Dask collection"
            raise TypeError(f"X must be an array or a file for icl, got {got}: use bic or aic.")
        rows, sample_weight = self._weighted(X, sample_weight)
        given = None
        if isinstance(rows, StoredSource):
            no_weights_beside(sample_weight)
        else:
            given = read_weights(sample_weight, np.empty(rows.n) if isinstance(rows, TensorSource) else rows)
        total, of_all, entropy = self._entropy(rows, given)
        return criteria(total, of_all, self._n_parameters(), entropy)["icl"]

    def _entropy(self, X: Any, weight: Array | None) -> tuple[float, float, float]:
        """Return Σ w log g, Σ w, and the entropy of the responsibilities, −Σ w Σ_m r_m log r_m."""
        total = of_all = entropy = 0.0
        for _, here, evaluation in self._with_responsibilities(X, weight):
            r, log_likelihood = (
                np.asarray(in_numpy(part), dtype=np.float64)
                for part in (evaluation.responsibilities, evaluation.log_likelihood)
            )
            entropy -= float(here @ (r * np.log(r, out=np.zeros_like(r), where=r > 0)).sum(axis=1))
            total += float(here @ log_likelihood)
            of_all += float(here.sum())
        return total, of_all, entropy
