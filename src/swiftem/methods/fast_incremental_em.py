"""Fast incremental EM (fiEM), the paper's own method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from swiftem.core.method import LEFT_OUT, EStep, MemoryState, Method, Order, Update
from swiftem.core.schedules import StepSize
from swiftem.core.types import Array, Index, Theta


@dataclass(frozen=True)
class FastIncrementalEM(Method):
    r"""Fast incremental EM: the mean of the memory, corrected by samples i, and renewed by others, j.

    :math:`S^{(k+1)} = \overline{S}^{(k)} + (\bar s_{i_k}^{(k)} - \bar s_{i_k}^{(t)})` and
    :math:`\overline{S}^{(k+1)} = \overline{S}^{(k)} + n^{-1} (\bar s_{j_k}^{(k)} - \bar s_{j_k}^{(t)})`.
    Both read the memory before the iteration, also if i and j coincide.

    Parameters
    ----------
    step_size : float or schedule
        γ; by default :math:`\min(1, b\, n^{-2/3})`.
    batch_size : int
        Samples drawn per iteration, as i and again as j.
    memory_order : {"iid", "shuffled"}
        How j is drawn: independently, as in the paper, or in shuffled passes, which limits the age of each
        sample's memory and converges faster.
    memory_dtype : {"float64", "float32"}
        Precision of the memory; the rounded values are used, so that the centre stays their mean.
    order : {"iid", "shuffled", "weighted"}
        How i is drawn: independently, as in the theory; in shuffled passes; or in proportion to the sample
        weights, which the mean over the batch then leaves out.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> method = methods.FastIncrementalEM(step_size=0.05, memory_order="shuffled")
    >>> result = swiftem.run(models.GaussianMixtureModel(n_components=2), y, method, n_iter=100, seed=0)
    >>> result.passes
    3.0
    """

    step_size: StepSize = LEFT_OUT
    batch_size: int = LEFT_OUT
    memory_order: Literal["iid", "shuffled"] = LEFT_OUT
    memory_dtype: Literal["float64", "float32"] = LEFT_OUT
    order: Order = "iid"

    name: ClassVar[str] = "fiem"
    update: ClassVar[Update | None] = Update(reference="memory", renewed_by="other")

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: MemoryState, e_step: EStep
    ) -> tuple[Array, MemoryState]:
        """Return the corrected mean of the memory, and the state with the memory of j renewed."""
        i, j = draws
        batch_i, batch_j = e_step.take(i), e_step.take(j)
        rows_i, rows_j = e_step.rows(batch_i, theta), e_step.rows(batch_j, theta).astype(state.memory.dtype)
        proxy = state.centre + e_step.mean(batch_i, rows_i - state.memory[i])  # (sagaem), first half
        change = np.subtract(rows_j, state.memory[j], dtype=np.float64)
        centre = state.centre + e_step.share(batch_j, change)  # (sagaem), second half
        state.memory[j] = rows_j
        return proxy, state._replace(centre=centre)
