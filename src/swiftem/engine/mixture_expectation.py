"""Full passes of the mixture with unit variances, by all cores: in which blocks, and how samples lie."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array
from swiftem.data.rows.array_source import ArraySource
from swiftem.data.rows.stored_source import StoredSource
from swiftem.data.source import Source
from swiftem.engine.expectation import Expectation
from swiftem.engine.numba import softmax
from swiftem.engine.parts import Part, chunks, is_served, parts, plain
from swiftem.engine.threads import in_order, one_thread_blas
from swiftem.models.gaussian_mixture import BoundGaussianMixture, GaussianMixtureTheta

__all__ = ["Geometry", "MixtureExpectation", "block_rows", "geometry_of"]

WORK = 1 << 20
"""Minimum number of operations for a thread."""
NUMBERS = 16_384
"""Responsibilities per block: with the samples they fit into the second-level cache."""

FARTHEST = 2e4
"""Squared distance from the centre up to which an expanded square keeps eleven digits."""


def block_rows(n_components: int) -> int:
    """Return the number of samples per block of a full pass.

    >>> block_rows(32)
    512
    """
    return max(64, NUMBERS // n_components)


class Geometry:
    """The location of the samples: their centre, and whether they are near enough for expanded squares.

    Parameters
    ----------
    y : ndarray, shape (n, d)
        All samples.

    Examples
    --------
    >>> import numpy as np
    >>> geometry = Geometry(np.array([[1000.0], [1002.0]]))
    >>> geometry.centre, geometry.near
    (array([1001.]), True)
    """

    def __init__(self, y: NDArray[Any]) -> None:
        lowest, highest = y.min(axis=0).astype(np.float64), y.max(axis=0).astype(np.float64)
        self.centre: Array = np.zeros(y.shape[1])
        if not self._is_near(lowest, highest):
            self.centre = 0.5 * (lowest + highest)
        self.near = self._is_near(lowest - self.centre, highest - self.centre)

    @staticmethod
    def _is_near(lowest: Array, highest: Array) -> bool:
        return bool(np.maximum(lowest**2, highest**2).sum() <= FARTHEST)


def geometry_of(source: Source) -> Geometry:
    """Return the location of the samples of a source; for a stored source, by one pass, which is cached."""
    if isinstance(source, ArraySource):
        return Geometry(source.y.reshape(source.n, -1))
    assert isinstance(source, StoredSource)
    if "geometry" not in source.found:
        ends = [
            end(batch.y.reshape(len(batch.index), -1), axis=0)
            for batch in source.blocks(source.chunk_rows)
            for end in (np.min, np.max)
        ]
        source.found["geometry"] = Geometry(np.array(ends))
    found: Geometry = source.found["geometry"]
    return found


class MixtureExpectation(Expectation):
    """As :class:`Expectation`, with compiled full passes; results do not depend on the number of threads."""

    def __init__(self, model: BoundGaussianMixture, source: Source, between_blocks: Any) -> None:
        super().__init__(model, source, between_blocks)
        self.geometry = geometry_of(source)
        n_components = model.model.n_components
        self._least_rows = max(1024, WORK // (n_components * (model.d + 8)))

    @classmethod
    def of(cls, model: Any, source: Source, between_blocks: Any) -> MixtureExpectation | None:
        """Return one if model and source are of the supported kinds."""
        if type(model) is BoundGaussianMixture and is_served(source):
            return cls(model, source, between_blocks)
        return None

    def _pass(self, theta: GaussianMixtureTheta, remember: bool) -> tuple[Array, Array | None]:
        n_components, d = theta.means.shape
        memory = self.allocate((self.n, n_components), self.memory_dtype) if remember else None
        sums1, sums2 = np.zeros(n_components), np.zeros((n_components, d))
        with one_thread_blas(), closing(in_order(self._piece, self._work_on(theta, memory))) as sums:
            for part1, part2 in sums:
                self._between_blocks()
                sums1 += part1
                sums2 += part2
        self.evaluations += self.n
        s = np.concatenate([sums1, (sums2 + sums1[:, None] * self.geometry.centre).ravel()])
        return s / self._source.total_weight, memory

    def _work_on(self, *common: Any) -> Iterable[tuple[Any, ...]]:
        """Return the parts of a pass, each with the common arguments."""
        found = parts(self._source, self._least_rows)
        if isinstance(found, list):
            return [(*common, part) for part in found]
        return ((*common, part) for part in found)

    def _piece(self, theta: GaussianMixtureTheta, memory: Array | None, part: Part) -> tuple[Array, Array]:
        """Return the sums of r and of r·(y − centre) over the samples of a part."""
        n_components, d = theta.means.shape
        sums1, sums2 = np.zeros(n_components), np.zeros((n_components, d))
        remembered = np.empty((0, n_components)) if memory is None else memory[part.here]
        work = self._work(theta)
        for here in chunks(len(part.y), len(work.rows)):
            softmax.full_pass(
                plain(part.y[here]), part.weight[here], *theta, self.geometry.centre, self.geometry.near,
                remembered[here], work, sums1, sums2,
            )  # fmt: skip
        return sums1, sums2

    def _work(self, theta: GaussianMixtureTheta) -> softmax.Work:
        """Return the arrays of a block: each piece has its own, as threads run in parallel."""
        n_components, d = theta.means.shape
        return softmax.make_work(min(block_rows(n_components), self.n), n_components, d)

    def objective(self, theta: GaussianMixtureTheta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`, equation (em_motivate); nothing is counted."""
        with one_thread_blas():
            loss = -sum(in_order(self._log_likelihood, self._work_on(theta)))
        return self._model.penalty(theta) + loss / self._source.total_weight

    def _log_likelihood(self, theta: GaussianMixtureTheta, part: Part) -> float:
        work, total = self._work(theta), 0.0
        for here in chunks(len(part.y), len(work.rows)):
            total += softmax.log_likelihood(
                plain(part.y[here]), part.weight[here], *theta, self.geometry.centre, self.geometry.near, work
            )
        return total
