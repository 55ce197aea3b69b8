"""Log-likelihoods, components and criteria of rows for a fitted mixture."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checks import in_numpy
from swiftem.core.compute import Evaluation, Placement
from swiftem.core.problem import Problem
from swiftem.core.types import Array, Theta
from swiftem.data.array import ArraySource
from swiftem.data.as_source import kernels_of
from swiftem.data.tensor import TensorSource
from swiftem.fit.config import device_memory_limit
from swiftem.fit.validated import RowSource, rows_of
from swiftem.mixture.components import BoundComponents
from swiftem.mixture.gaussians import GaussianMixtureModel
from swiftem.mixture.model import MixtureModel
from swiftem.mixture.resolve import kernels_for

__all__ = ["NUMBERS", "AnyMixtureModel", "FittedMixture", "Totals", "criteria"]

AnyMixtureModel: TypeAlias = GaussianMixtureModel | MixtureModel
NUMBERS = 1 << 22
"""Responsibilities computed at a time if they are not the result."""


class Totals(NamedTuple):
    """Sums over rows: Σ w log g, Σ w, and −Σ w Σ_m r_m log r_m."""

    log_likelihood: float
    weight: float
    entropy: float = 0.0


def criteria(total: float, weight: float, n_parameters: int, entropy: float = 0.0) -> dict[str, float]:
    """Return AIC, BIC and ICL, from Σ w log g, Σ w, free parameters and the entropy of responsibilities.

    >>> criteria(-100.0, 50.0, 3)["aic"]
    206.0
    """
    bic = -2.0 * total + n_parameters * log(weight)
    return {"bic": bic, "aic": -2.0 * total + 2.0 * n_parameters, "icl": bic + 2.0 * entropy}


class FittedMixture(NamedTuple):
    """The parameters of a mixture, for E-steps of other rows than the fit's.

    Attributes
    ----------
    model : GaussianMixtureModel or MixtureModel
        The model.
    theta : NamedTuple
        Its parameters.
    centre : ndarray
        About the mean of the data, which saves the pass that would compute it.
    device : str
        Where passes are computed, as in :func:`swiftem.data.as_source.kernels_of`.
    """

    model: AnyMixtureModel
    theta: Theta
    centre: Array
    device: str

    def bind(self, source: RowSource) -> BoundComponents:
        """Return the model for these rows."""
        return self.model.bind(source, centre=self.centre)

    def problem(self, source: RowSource) -> Problem:
        """Return the model bound to these rows, with the place of its passes."""
        bound = self.bind(source)
        tensor = source.tensor if isinstance(source, TensorSource) else None
        kernels = kernels_of(self.device, tensor) or kernels_for(rows_of(source), bound.size)
        placement = Placement.named(kernels, device_memory_limit())
        return Problem(bound.model, source, bound=bound, placement=placement)

    def evaluate(self, source: RowSource, **wanted: bool) -> Evaluation:
        """Return the E-step of all rows; for a tensor, in tensors on its device."""
        compute: Any = self.problem(source).compute
        on_device = isinstance(source, TensorSource) and compute.is_on_device
        found: Evaluation = (compute.evaluate_there if on_device else compute.evaluate)(self.theta, **wanted)
        return found

    def log_likelihoods(self, source: RowSource) -> Any:
        """Return the log-likelihoods (n,), in the precision of the rows; for a tensor, a tensor."""
        found: Any = self.evaluate(source).log_likelihood
        return found.astype(dtype_of(source), copy=False) if isinstance(found, np.ndarray) else found

    def responsibilities(self, source: RowSource) -> Any:
        """Return the responsibilities (n, M), in the precision of the rows; for a tensor, a tensor."""
        if isinstance(source, TensorSource):
            return self.evaluate(source, responsibilities=True).responsibilities
        found = np.empty((source.n, self.model.n_components), dtype=dtype_of(source))
        for here, part in self._parts(source):
            found[here] = self.evaluate(part, responsibilities=True).responsibilities
        return found

    def totals(self, source: RowSource, *, entropy: bool = False) -> Totals:
        """Return the sums over the rows, with the entropy of the responsibilities if it is wanted."""
        if not entropy:
            problem, weight = self.problem(source), source.total_weight
            loss = problem.compute.objective(self.theta) - problem.bound.penalty(self.theta)
            return Totals(-weight * loss, weight)
        found = Totals(0.0, 0.0, 0.0)
        for _, part in self._parts(source):
            evaluation = self.evaluate(part, responsibilities=True)
            r, log_likelihood = (
                np.asarray(in_numpy(values), dtype=np.float64)
                for values in (evaluation.responsibilities, evaluation.log_likelihood)
            )
            w = np.ones(part.n) if part.weight is None else part.weight
            disorder = -(r * np.log(r, out=np.zeros_like(r), where=r > 0)).sum(axis=1)
            more = w @ log_likelihood, w.sum(), w @ disorder
            found = Totals(*(float(old + new) for old, new in zip(found, more, strict=True)))
        return found

    def imputed(self, source: RowSource, rng: np.random.Generator | None) -> NDArray[Any]:
        """Return the rows (n, d) with missing cells filled in: by means, or draws of a generator."""
        found = np.empty((source.n, *source.tail), dtype=dtype_of(source))
        for here, part in self._parts(source):
            r = self.evaluate(part, responsibilities=True).responsibilities
            assert r is not None
            found[here] = self.bind(part).imputed(part.y, r, self.theta, rng)
        return found

    def _parts(self, source: RowSource) -> Iterator[tuple[slice, ArraySource]]:
        """Yield the places of rows, and these rows, few enough for their responsibilities."""
        size = max(NUMBERS // self.model.n_components, 1)
        if isinstance(source, ArraySource) and source.n <= size:
            yield slice(None), source
            return
        if isinstance(source, TensorSource):
            for start in range(0, source.n, size):
                here = slice(start, start + size)
                weight = None if source.weight is None else source.weight[here]
                yield here, TensorSource(source.tensor[here], weight)
            return
        for batch in source.blocks(size if isinstance(source, ArraySource) else min(size, source.chunk_rows)):
            here = slice(int(batch.index[0]), int(batch.index[-1]) + 1)
            yield here, ArraySource.checked(batch.y, batch.weight, source.allow_missing)


def dtype_of(source: RowSource) -> np.dtype:
    """Return the precision of the rows."""
    return source.y.dtype if type(source) is ArraySource else source.dtype  # type: ignore[union-attr]
