"""Variance-reduced stochastic EM (sEM-VR), Chen, Zhu, Teh and Zhang 2018."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from swiftem.core.method import LEFT_OUT, AnchorState, EStep, Method, Order, Update
from swiftem.core.schedules import StepSize
from swiftem.core.types import Array, Index, Theta


@dataclass(frozen=True)
class VarianceReducedEM(Method):
    r"""Variance-reduced EM: a full pass at an anchor, corrected by the drawn samples.

    :math:`S^{(k+1)} = \bar s^{(\ell(k))} + (\bar s_{i_k}^{(k)} - \bar s_{i_k}^{(\ell(k))})`, where the anchor
    :math:`\ell(k) = m \lfloor k/m \rfloor` is renewed at k = 0, m, 2m, ... The samples' statistics at the
    anchor are recomputed, not stored: two evaluations per sample, no memory.

    Parameters
    ----------
    step_size : float or schedule
        γ; by default :math:`\min(1, b\, n^{-2/3})`.
    batch_size : int
        Samples drawn per iteration.
    epoch_length : int, optional
        m, in iterations; by default n / b rounded up.
    order : {"iid", "shuffled", "weighted"}
        How samples are drawn: independently, as in the theory; in shuffled passes; or in proportion to the
        sample weights, which the mean over the batch then leaves out.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> method = methods.VarianceReducedEM(step_size=0.05)
    >>> result = swiftem.run(models.GaussianMixtureModel(n_components=2), y, method, n_iter=100, seed=0)
    >>> result.passes  # the first one, the anchor's, and two evaluations per draw
    4.0
    """

    step_size: StepSize = LEFT_OUT
    batch_size: int = LEFT_OUT
    epoch_length: int | None = None
    order: Order = "iid"

    name: ClassVar[str] = "sem-vr"
    update: ClassVar[Update | None] = Update(reference="anchor")

    def renewal(self, k: int, n: int) -> int:
        """Return the first multiple of m that is at least k."""
        length = self.epoch_length or self.epoch(n)
        return -(-k // length) * length

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: AnchorState, e_step: EStep
    ) -> tuple[Array, AnchorState]:
        """Return the anchor's statistics, corrected by the drawn samples' change since then."""
        if self.renewal(k, e_step.n) == k:
            state = AnchorState(theta, e_step.full(theta))
        (i,) = draws
        batch = e_step.take(i)
        change = e_step.rows(batch, theta) - e_step.rows(batch, state.anchor)
        return state.centre + e_step.mean(batch, change), state  # (svrgem)
