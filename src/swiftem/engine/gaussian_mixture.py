"""The Gaussian mixture with unit variances: full passes, and the lane for few samples at a time."""

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
from swiftem.engine.compiled_lane import CompiledLane, Drawn, Samples
from swiftem.engine.expectation import Expectation, Part, chunks, is_served, parts, plain
from swiftem.engine.lane import Current, Lane, Task
from swiftem.engine.snapshots import Far
from swiftem.engine.threads import in_order, one_thread_blas
from swiftem.methods.method import Update, declared
from swiftem.models.gaussian_mixture import BoundGaussianMixture, GaussianMixtureTheta

__all__ = [
    "FewSamplesLane",
    "Geometry",
    "MixtureExpectation",
    "MixtureLane",
    "block_rows",
    "gaussian_mixture_lane",
    "geometry_of",
]

MOST_WORK = 2048
"""Above this b·M·d, matrix products in blocks are faster than a loop over samples."""


def gaussian_mixture_lane(task: Task) -> Lane | None:
    """Return the lane for this mixture and method, or None if it does not apply."""
    if type(task.model) is not BoundGaussianMixture or not is_served(task.source):
        return None
    update = declared(task.method)
    if update is None:
        return None
    if task.method.batch_size * task.model.model.n_components * task.model.d <= MOST_WORK:
        return FewSamplesLane(task, update, np.float64)
    from swiftem.engine.mixture_batches import MixtureBatchesLane

    return MixtureBatchesLane(task, update)


class MixtureLane(CompiledLane):
    """Statistics and θ as plain arrays."""

    def __init__(self, task: Task, update: Update, dtype: Any = None) -> None:
        super().__init__(task, update, Samples(task.source, dtype, task.method.index_streams))
        assert isinstance(task.model, BoundGaussianMixture)
        self.bound, hyper = task.model, task.model.model
        self.penalty = (float(hyper.delta), float(hyper.epsilon), hyper.known_weights is not None)

    def load_theta(self, now: Current) -> None:
        """Copy θ.

        If it is θ̄(s), its weights are loaded as the kernels write them, not normalised: then the beginning
        of a stretch makes no difference, bit by bit.
        """
        self.theta = self.prepared(now.theta)
        if all(map(np.array_equal, now.theta, self.bound.m_step(now.s))):
            self._restate(self.theta, now.s)

    def prepared(self, theta: GaussianMixtureTheta) -> GaussianMixtureTheta:
        """Return a copy."""
        return GaussianMixtureTheta(theta.weights.copy(), theta.means.copy())

    def theta_of(self, s: Array) -> GaussianMixtureTheta:
        """Return θ̄(s)."""
        return self.bound.m_step(s)

    def parts(self, flat: Array) -> tuple[Array, Array]:
        """Return views (M,) and (M, d) of flat statistics."""
        n_components = self.bound.model.n_components
        return flat[:n_components], flat[n_components:].reshape(n_components, -1)

    def arrays(self) -> tuple[Any, ...]:
        """Return the arrays that kernels change: ``before``, centre and s in parts, the penalty, and θ."""
        if self.restates_anchor:
            self._restate(self.anchor, self.before)
            self.restates_anchor = False
        parts = (*self.parts(self.before), *self.parts(self.centre), *self.parts(self.s))
        return (*parts, *self.penalty, *self.theta)

    def _restate(self, theta: GaussianMixtureTheta, s: Array) -> None:
        """Write the weights of θ̄(s) as the kernels do."""
        _, epsilon, known = self.penalty
        if not known:
            theta.weights[:] = s[: len(theta.weights)] + epsilon


class FewSamplesLane(MixtureLane):
    """One sample after the other.

    The fast loop computes plain densities, and returns if all of them vanish; from there on the lane uses
    the same loop compiled with densities relative to the largest.
    """

    far: int | None = None

    def iterate(self, steps: Array, drawn: Drawn) -> tuple[int, int]:
        """Run the kernel; if a sample is too far from all means, switch to the careful one and continue."""
        from swiftem.engine.numba.gaussian_mixture import few_samples  # Numba is heavy

        update = self.update
        index = None if update.renewed_by == "drawn" else drawn.index[0]
        other = None if update.renewed_by == "none" else drawn.index[-1]
        anchor = (None, None) if self.anchor is None else self.anchor
        arrays, begin, rejected = self.arrays(), 0, 0
        if update.reference != "previous":
            arrays = (None, None, *arrays[2:])  # code for what follows is left out
        while True:
            done, more, moved = few_samples(
                drawn.y, drawn.weight, self.is_divided, self.scale, self.share, update.fixed,
                self.moments if update.is_optimal else None, steps[begin:],
                index if index is None else index[begin:],
                other if other is None else other[begin:], drawn.memory, *anchor, *arrays, self.far,
            )  # fmt: skip
            if begin + done == len(steps):
                return rejected + more, begin - rejected + moved
            if self.far is not None:
                raise FloatingPointError("the statistics are no longer finite: use a smaller step_size.")
            self.far, begin, rejected = 0, done, more

    def snapshot(self) -> Any:
        """Also store whether the careful loop is in use."""
        followed = super().snapshot()
        return followed if self.far is None else Far(followed)

    def restore(self, snapshot: Any, now: Current) -> None:
        """Continue with the same loop."""
        if isinstance(snapshot, Far):
            self.far, snapshot = 0, snapshot.followed
        super().restore(snapshot, now)


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

    def __init__(self, model: BoundGaussianMixture, source: Source) -> None:
        super().__init__(model, source)
        from swiftem.engine.numba import softmax  # Numba is heavy

        self._kernels = softmax
        self.geometry = geometry_of(source)
        n_components = model.model.n_components
        self._least_rows = max(1024, WORK // (n_components * (model.d + 8)))

    @classmethod
    def of(cls, model: Any, source: Source) -> MixtureExpectation | None:
        """Return one if model and source are of the supported kinds."""
        if type(model) is BoundGaussianMixture and is_served(source):
            return cls(model, source)
        return None

    def _pass(self, theta: GaussianMixtureTheta, remember: bool) -> tuple[Array, Array | None]:
        n_components, d = theta.means.shape
        memory = self.allocate((self.n, n_components), self.memory_dtype) if remember else None
        sums1, sums2 = np.zeros(n_components), np.zeros((n_components, d))
        with one_thread_blas(), closing(in_order(self._sums, self._work_on(theta, memory))) as sums:
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

    def _sums(self, theta: GaussianMixtureTheta, memory: Array | None, part: Part) -> tuple[Array, Array]:
        """Return the sums of r and of r·(y − centre) over the samples of a part."""
        n_components, d = theta.means.shape
        sums1, sums2 = np.zeros(n_components), np.zeros((n_components, d))
        remembered = np.empty((0, n_components)) if memory is None else memory[part.here]
        work = self._work(theta)
        for here in chunks(len(part.y), len(work.rows)):
            self._kernels.full_pass(
                plain(part.y[here]), part.weight[here], *theta, self.geometry.centre, self.geometry.near,
                remembered[here], work, sums1, sums2,
            )  # fmt: skip
        return sums1, sums2

    def _work(self, theta: GaussianMixtureTheta) -> Any:
        """Return the arrays of a block: each part has its own, as threads run in parallel."""
        n_components, d = theta.means.shape
        return self._kernels.make_work(min(block_rows(n_components), self.n), n_components, d)

    def objective(self, theta: GaussianMixtureTheta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`, equation (em_motivate); nothing is counted."""
        with one_thread_blas():
            loss = -sum(in_order(self._log_likelihood, self._work_on(theta)))
        return self._model.penalty(theta) + loss / self._source.total_weight

    def _log_likelihood(self, theta: GaussianMixtureTheta, part: Part) -> float:
        work, total = self._work(theta), 0.0
        for here in chunks(len(part.y), len(work.rows)):
            total += self._kernels.log_likelihood(
                plain(part.y[here]), part.weight[here], *theta, self.geometry.centre, self.geometry.near, work
            )
        return total
