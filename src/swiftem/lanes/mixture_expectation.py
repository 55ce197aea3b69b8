"""Full passes of the mixture with unit variances, by all cores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.data.array_source import ArraySource
from swiftem.data.source import Source
from swiftem.expectation import Expectation
from swiftem.kernels.numba import softmax
from swiftem.kernels.threads import in_order, one_thread_blas, pieces
from swiftem.lanes.mixture_blocks import Geometry, block_rows
from swiftem.models.gaussian_mixture import BoundGaussianMixture, GaussianMixtureTheta

__all__ = ["MixtureExpectation"]

WORK = 1 << 20
"""Operations below which a piece is not worth a thread."""


class MixtureExpectation(Expectation):
    """As :class:`Expectation`, with compiled full passes that give the same at any number of threads."""

    def __init__(self, model: BoundGaussianMixture, source: ArraySource, between_blocks: Any) -> None:
        super().__init__(model, source, between_blocks)
        self.y: NDArray[Any] = source.y.reshape(source.n, -1)
        self.weight = np.empty(0) if source.weight is None else source.weight
        self.geometry = Geometry(self.y)
        n_components = model.model.n_components
        self._pieces = pieces(source.n, least_rows=max(1024, WORK // (n_components * (model.d + 8))))

    @classmethod
    def of(cls, model: Any, source: Source, between_blocks: Any) -> MixtureExpectation | None:
        """Return one where model and source are of the kinds that this is for."""
        if type(model) is BoundGaussianMixture and type(source) is ArraySource:
            return cls(model, source, between_blocks)
        return None

    def _pass(self, theta: GaussianMixtureTheta, remember: bool) -> tuple[Array, Array | None]:
        n_components, d = theta.means.shape
        memory = np.empty((self.n, n_components), dtype=self.memory_dtype) if remember else None
        sums1, sums2 = np.zeros(n_components), np.zeros((n_components, d))
        work = [(theta, memory, start, stop) for start, stop in self._pieces]
        with one_thread_blas():
            for part1, part2 in in_order(self._piece, work):
                self._between_blocks()
                sums1 += part1
                sums2 += part2
        self.evaluations += self.n
        s = np.concatenate([sums1, (sums2 + sums1[:, None] * self.geometry.centre).ravel()])
        return s / self._source.total_weight, memory

    def _piece(
        self, theta: GaussianMixtureTheta, memory: Array | None, start: int, stop: int
    ) -> tuple[Array, Array]:
        """Return the sums of r and of r·(y − centre) over samples ``start`` to ``stop`` − 1."""
        n_components, d = theta.means.shape
        sums1, sums2 = np.zeros(n_components), np.zeros((n_components, d))
        softmax.full_pass(
            self.y, start, stop, self.weight, *theta, self.geometry.centre, self.geometry.near,
            np.empty((0, n_components)) if memory is None else memory, self._work(theta), sums1, sums2,
        )  # fmt: skip
        return sums1, sums2

    def _work(self, theta: GaussianMixtureTheta) -> softmax.Work:
        """Return the arrays of a block: each piece has its own, as threads work on them at once."""
        n_components, d = theta.means.shape
        return softmax.make_work(min(block_rows(n_components), self.n), n_components, d)

    def objective(self, theta: GaussianMixtureTheta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`, equation (em_motivate); nothing is counted."""
        work = [(theta, start, stop) for start, stop in self._pieces]
        with one_thread_blas():
            loss = -sum(in_order(self._log_likelihood, work))
        return self._model.penalty(theta) + loss / self._source.total_weight

    def _log_likelihood(self, theta: GaussianMixtureTheta, start: int, stop: int) -> float:
        return softmax.log_likelihood(  # type: ignore[no-any-return]
            self.y, start, stop, self.weight, *theta, self.geometry.centre, self.geometry.near,
            self._work(theta),
        )  # fmt: skip
