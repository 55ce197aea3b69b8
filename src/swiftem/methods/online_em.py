"""Online EM (sEM), Cappé and Moulines 2009."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from swiftem.core.method import LEFT_OUT, EStep, Method, NoState, Order, Update
from swiftem.core.schedules import StepSize, inverse
from swiftem.core.types import Array, Index, Theta


@dataclass(frozen=True)
class OnlineEM(Method):
    r"""Online EM: the drawn samples represent all, :math:`S^{(k+1)} = \bar s_{i_k}(\theta^{(k)})`.

    Best in the first pass or two; its noise decreases only as fast as the steps.

    Parameters
    ----------
    step_size : float or schedule
        :math:`\gamma_k`; the paper's choice for mixtures is the default, 3 / (k + 10).
    batch_size : int
        Samples drawn per iteration.
    order : {"iid", "shuffled", "weighted"}
        How samples are drawn: independently, as in the theory; in shuffled passes; or in proportion to the
        sample weights, which the mean over the batch then leaves out.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods, schedules
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> method = methods.OnlineEM(step_size=schedules.inverse(3, 10))
    >>> result = swiftem.run(models.GaussianMixtureModel(n_components=1), y, method, n_iter=1000, seed=0)
    >>> result.passes
    2.0
    """

    step_size: StepSize = LEFT_OUT
    batch_size: int = LEFT_OUT
    order: Order = "iid"

    name: ClassVar[str] = "sem"
    defaults: ClassVar[Mapping[str, Any]] = {**Method.defaults, "step_size": inverse(3, 10)}
    update: ClassVar[Update | None] = Update()

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: NoState, e_step: EStep
    ) -> tuple[Array, NoState]:
        """Return the mean statistics of the drawn samples."""
        (i,) = draws
        batch = e_step.take(i)
        return e_step.mean(batch, e_step.rows(batch, theta)), state  # (oem)
