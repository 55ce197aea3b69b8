"""E-steps of full and tied covariances for rows with missing cells, in NumPy.

The definition is :func:`swiftem.engine.reference.missing_cells.completed`; here, all patterns of a block of
rows are factorised at once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from swiftem._typing import Array, Theta
from swiftem.data.source import Batch, Source
from swiftem.engine.expectation import BLOCK, Evaluation, Expectation
from swiftem.engine.missing.patterns import conditionals, numbered
from swiftem.engine.reference.gaussian_components import lower_triangle, softmax
from swiftem.engine.threads import one_thread_blas
from swiftem.models.completed_gaussians import CompletedGaussians

__all__ = ["CompletedRows"]

NUMBERS = 1 << 20
"""Numbers of the matrices of a block of rows."""


class CompletedRows(Expectation):
    """As :class:`Expectation`, in NumPy, for all patterns at once: for small data, as it compiles nothing."""

    def __init__(self, model: CompletedGaussians, source: Source) -> None:
        super().__init__(model, source)
        self.bound = model

    def _posterior(self, batch: Batch, theta: Theta) -> tuple[Array, Array]:
        bound = self.bound
        z, means = bound.centred(batch), theta.means - bound.centre
        rows, log_likelihood = np.empty((len(z), bound.size)), np.empty(len(z))
        size = max(1, NUMBERS // (bound.n_components * bound.d**2))
        with one_thread_blas():
            for start in range(0, len(z), size):
                here = slice(start, start + size)
                rows[here], log_likelihood[here] = _completed(
                    z[here], theta.weights, means, bound.covariances(theta)
                )
        return rows, log_likelihood

    def _blocks(self, theta: Theta) -> Iterator[tuple[Batch, Array, Array]]:
        """Yield all samples with their rows (b, q) and log-likelihood (b,)."""
        for batch in self._source.blocks(BLOCK):
            self._between_blocks()
            yield batch, *self._posterior(batch, theta)

    def objective(self, theta: Theta) -> float:
        r"""Return :math:`\overline{\mathcal{L}}(\theta)`: free if the last full pass was at this θ."""
        if self._passed is None or self._passed[0] is not theta:
            self._passed = theta, self._loss(theta)
        return self._model.penalty(theta) + self._passed[1] / self._source.total_weight

    def _loss(self, theta: Theta) -> float:
        """Return minus the log-likelihood of all samples."""
        return -sum(float(batch.weight @ values) for batch, _, values in self._blocks(theta))

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        found = Evaluation.room(self.n, self.bound.n_components, responsibilities, labels)
        for batch, rows, values in self._blocks(theta):
            r = rows[:, : self.bound.n_components]
            found.log_likelihood[batch.index] = values
            if found.responsibilities is not None:
                found.responsibilities[batch.index] = r
            if found.labels is not None:
                found.labels[batch.index] = r.argmax(axis=1)
        return found


def _completed(z: Array, weights: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    """Return statistics (b, q) and log-likelihood (b,) of rows (b, d), in which NaN is missing."""
    b, (n_components, d) = len(z), means.shape
    seen: NDArray[np.bool_] = ~np.isnan(z)
    patterns, number = numbered(seen)
    given = conditionals(patterns, weights, means, covariances)
    away = np.where(seen[:, None], z[:, None] - means, 0.0)
    whitened = (given.whiten[number] @ away[..., None])[..., 0]
    with np.errstate(over="ignore"):  # a sample that far away has density zero
        logits = given.plain[number] - 0.5 * (whitened * whitened).sum(axis=2)
    r, log_likelihood = softmax(logits)
    expected = means + (given.gain[number] @ away[..., None])[..., 0]
    row, column = lower_triangle(d)
    products = expected[..., row] * expected[..., column] + given.left[..., row, column][number]
    products *= r[..., None]
    of_products = products.sum(axis=1) if len(covariances) < n_components else products.reshape(b, -1)
    rows = np.hstack([r, (expected * r[..., None]).reshape(b, -1), of_products])
    return rows, log_likelihood
