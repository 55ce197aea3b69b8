"""Batch EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from swiftem.core.method import EStep, Method, NoState
from swiftem.core.types import Array, Index, Theta


@dataclass(frozen=True)
class EM(Method):
    r"""Batch EM: a full pass per iteration, :math:`S^{(k+1)} = \bar s(\theta^{(k)})` with :math:`\gamma = 1`.

    It never increases the objective.

    Examples
    --------
    >>> import swiftem
    >>> from swiftem import models, methods
    >>> model = models.GaussianMixtureModel(n_components=1, delta=0.0)
    >>> float(swiftem.run(model, [1.0, 2.0, 6.0], methods.EM(), n_iter=1, seed=0).theta.means[0, 0])
    3.0
    """

    name: ClassVar[str] = "em"
    index_streams: ClassVar[Literal[0, 1, 2]] = 0

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: NoState, e_step: EStep
    ) -> tuple[Array, NoState]:
        """Return the statistics of all samples."""
        return e_step.full(theta), state  # (definition-overline-bss)
