"""Incremental EM (iEM), Neal and Hinton 1998."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from swiftem.core.method import LEFT_OUT, EStep, MemoryState, Method, Order, Update
from swiftem.core.types import Array, Index, Theta


@dataclass(frozen=True)
class IncrementalEM(Method):
    r"""Incremental EM: the mean of all samples' statistics, each from when it was last drawn; γ = 1.

    :math:`S^{(k+1)} = S^{(k)} + n^{-1} (\bar s_{i_k}(\theta^{(k)}) - \bar s_{i_k}(\theta^{(\tau)}))`.
    It never leaves the domain, and its surrogate objective never increases.

    Parameters
    ----------
    batch_size : int
        Samples drawn per iteration; one drawn twice counts once.
    memory_dtype : {"float64", "float32"}
        Precision of the memory; the rounded values are used, so that the centre stays their mean.
    order : {"iid", "shuffled", "weighted"}
        How samples are drawn: independently, as in the theory; in shuffled passes; or in proportion to the
        sample weights: heavy ones are renewed more often.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> model = models.GaussianMixtureModel(n_components=2)
    >>> result = swiftem.run(model, y, methods.IncrementalEM(batch_size=10), n_iter=50, seed=0)
    >>> result.state.method.memory.shape
    (100, 2)
    """

    batch_size: int = LEFT_OUT
    memory_dtype: Literal["float64", "float32"] = LEFT_OUT
    order: Order = "iid"

    name: ClassVar[str] = "iem"
    update: ClassVar[Update | None] = Update(reference="memory", renewed_by="drawn")

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: MemoryState, e_step: EStep
    ) -> tuple[Array, MemoryState]:
        """Return the mean of the memory, renewed for the drawn samples."""
        (i,) = draws
        batch = e_step.take(i)
        rows = e_step.rows(batch, theta).astype(state.memory.dtype)
        change = np.subtract(rows, state.memory[i], dtype=np.float64)
        centre = state.centre + e_step.share(batch, change)  # (iem)
        state.memory[i] = rows
        return centre, state._replace(centre=centre)
