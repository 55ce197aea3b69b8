"""What :class:`swiftem.GaussianMixture` is given, checked: rows in memory or files, weights, checkpoints."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from swiftem._checks import check_not_lazy, check_real
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.npy_source import NpySource
from swiftem.estimators.fit_checkpoint import FitCheckpoint, open_fit
from swiftem.estimators.mixture.scores import check_columns, no_weights_beside
from swiftem.estimators.mixture.stored_rows import is_stored, open_rows
from swiftem.estimators.mixture.stream import Read
from swiftem.estimators.read_weights import read_weights
from swiftem.estimators.validated import validated
from swiftem.models import GaussianMixtureModel, NormalInverseWishart
from swiftem.models.gaussian_theta import GaussianTheta

__all__ = ["MixtureInput"]


class MixtureInput:
    """Reads the arguments of :class:`swiftem.GaussianMixture`."""

    if TYPE_CHECKING:  # what the estimator has
        n_components: int
        covariance_type: Any
        reg_covar: float
        concentration: float | None
        prior: NormalInverseWishart | None
        memory_limit: int | str | None
        checkpoint: str | os.PathLike[str] | None
        checkpoint_every: int | None
        resume: bool | Literal["auto"]

        def _theta(self, d: int | None = None) -> GaussianTheta: ...
        def _goes_on(self) -> bool: ...

    def _open_checkpoint(self, read: Read) -> FitCheckpoint | None:
        return open_fit(self, read.source, self._theta(read.X.shape[1]) if self._goes_on() else None)

    def _read(
        self,
        X: Any,
        sample_weight: ArrayLike | None,
        *,
        reset: bool,
        least: int = 2,
        in_batches: bool = False,
    ) -> Read:
        """Return the rows, checked, and those that have weight as a source.

        The unit of the weights counts where there is a prior in counts, and where rows come ``in_batches``.
        """
        check_not_lazy("X", X)
        limited = self.memory_limit is not None
        if is_stored(X) or (limited and isinstance(X, np.memmap)):
            return self._read_stored(X, sample_weight, reset=reset, least=least)
        if type(X) is ArraySource:
            no_weights_beside(sample_weight)
            X, sample_weight = X.y, X.weight
        rows: NDArray[Any] = validated(
            self, X, dtype=[np.float64, np.float32], reset=reset, ensure_min_samples=least
        )
        weight = read_weights(sample_weight, rows)
        kept = None if weight is None or weight.all() else weight > 0.0
        some, of_some = (rows, weight) if kept is None or weight is None else (rows[kept], weight[kept])
        unit_counts = in_batches or self._model().in_counts
        if of_some is not None and not unit_counts and (of_some == of_some[0]).all():
            of_some = None  # it changes nothing, and the loops without weights are faster
        if len(some) < least:
            raise ValueError(f"sample_weight must have at least {least} positive entries, got {len(some)}.")
        if reset and len(some) < self.n_components:
            raise ValueError(
                "Expected n_samples >= n_components "
                f"but got n_components = {self.n_components}, n_samples = {len(some)}"
            )
        if limited and not in_batches:  # what is made of an array, of the size of it, would be too much
            return Read(rows, weight, kept, NpySource(rows, sample_weight=weight))
        return Read(rows, weight, kept, ArraySource(some, of_some))

    def _read_stored(self, X: Any, sample_weight: ArrayLike | None, *, reset: bool, least: int) -> Read:
        """Return rows that stay where they are."""
        source = open_rows(X, sample_weight)
        (d,) = source.tail
        check_columns(self, source, reset=reset)
        if reset and source.n < max(self.n_components, least):
            raise ValueError(
                "Expected n_samples >= n_components "
                f"but got n_components = {self.n_components}, n_samples = {source.n}"
            )
        return Read(np.empty((0, d), dtype=source.dtype), None, None, source)

    def _model(self) -> GaussianMixtureModel:
        return GaussianMixtureModel(
            self.n_components, covariance=self.covariance_type,
            reg_covar=check_real("reg_covar", self.reg_covar, minimum=0.0),
            concentration=self.concentration, prior=self.prior,
        )  # fmt: skip
