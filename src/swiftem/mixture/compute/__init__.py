"""The E-steps of mixtures: their base class, and every technology, the fastest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from swiftem.core.compute import Compute, Evaluation, Placement, Technology
from swiftem.core.source import Batch, Source
from swiftem.core.types import Array, Theta
from swiftem.kernels.threads import in_order, is_served, one_thread_blas

if TYPE_CHECKING:
    from swiftem.core.model import BoundModel
    from swiftem.mixture.components import BoundComponents

T = TypeVar("T")

LINEAR, CODES, CHANNELS, COMPLETED = -1, -2, -3, -4
"""How E-steps compute T(y), in addition to the kinds of covariance, which count from 0.

LINEAR: features as they are given. CODES: features, and codes of categories. CHANNELS: the family computes
its own E-steps. COMPLETED: rows with missing cells are completed."""


def _not_on_device(model: BoundModel, source: Source, placement: Placement) -> str | None:
    return "the device is the CPU" if placement.device == "cpu" else None


def _not_compiled(model: BoundModel, source: Source, placement: Placement) -> str | None:
    if placement.form != "auto":
        return "plain NumPy is asked for"
    return None if is_served(source) else "rows are neither in an array nor in a file"


def _not_small(model: BoundComponents, source: Source, placement: Placement) -> str | None:
    if placement.form != "numpy":
        return "there is a faster form or a plainer one"
    return "T(y) is no matrix" if model.code < LINEAR else None


MIXTURE = (
    Technology("PyTorch", _not_on_device, "swiftem.mixture.compute.torch:TorchCompute"),
    Technology("compiled passes", _not_compiled, "swiftem.mixture.compute.passes:passes"),
    Technology("NumPy", _not_small, "swiftem.mixture.compute.numpy:NumpyCompute"),
    Technology("NumPy, block by block", lambda *_: None, "swiftem.mixture.compute:MixtureCompute"),
)


class MixtureCompute(Compute):
    """E-steps of a mixture in plain NumPy, block by block; the base class of the faster ones.

    BLAS has one thread, so that results do not depend on the number of threads.

    Attributes
    ----------
    reach : ndarray, shape (p,)
        Distance of the samples from the centre, in each direction; infinite as long as it is unknown.
    """

    def __init__(self, model: BoundComponents, source: Source, placement: Placement = Placement()) -> None:
        super().__init__(model, source, placement)
        self.bound, self.reach = model, np.full(len(model.origin), np.inf)

    def log_densities(self, batch: Batch, theta: Theta) -> Array:
        """Return the log-densities of samples under each component, (b, M)."""
        return self.bound.log_densities(batch, theta)

    def statistics(self, batch: Batch, rows: Array) -> Array:
        """Return the weighted sum of the samples' statistics, flat, for posterior rows (b, R)."""
        return self._statistics(batch, rows, batch.weight)

    def _in_order(self, function: Callable[..., T], work: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """Yield ``function(*item)`` for the items of ``work`` in their order, computed by several threads."""
        with one_thread_blas(), closing(in_order(function, work)) as done:
            for result in done:
                self._between_blocks()
                yield result

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        with one_thread_blas():
            return super()._pass(theta, remember)

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._passed is None or self._passed[0] is not theta:
            before = self.evaluations
            self._pass(theta, remember=False)
            self.evaluations = before
        return super().objective(theta)

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        with one_thread_blas():
            return super().evaluate(theta, responsibilities=responsibilities, labels=labels)
