"""Online EM (sEM), Cappé and Moulines 2009."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from swiftem._checks import check_int
from swiftem._typing import Array, Index, Theta
from swiftem.methods.method import EStep, Method, Order, Update
from swiftem.schedules import StepSize, inverse

__all__ = ["AveragedState", "GrowingState", "OnlineEM", "OnlineEMState"]

WINDOW, EXCEEDS = 50, 2.0
"""Proxies that are compared with as many before, and how much of their noise a change must exceed."""


class OnlineEMState(NamedTuple):
    """Online EM has no state."""


class GrowingState(NamedTuple):
    """``size`` (2,): b, and proxies in the window; ``past`` (q,): mean of the window before; sums since."""

    size: Index
    past: Array
    changes: Array
    squares: Array


class AveragedState(NamedTuple):
    """``sums`` (2, q), ``counts`` (2,): what is averaged; ``s``, ``theta``: the last ones, to resume from."""

    sums: Array
    counts: Array
    s: Array
    theta: Theta


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
    average : int, "suffix" or None
        Whether the result is that of averaged statistics (Polyak and Ruppert): of the last W to 2W
        iterations, or of their last half to three quarters. Its digits then do not depend on the last
        samples, and steps may be larger, such as :math:`k^{-0.6}`. 16 points per W, or per epoch, are
        averaged. The path has averages, too.
    largest_batch : int, optional
        b may grow from ``batch_size`` to this: it doubles if, over 50 iterations, the mean of S has changed
        by less than its noise, that is :math:`\|\Delta\|^2 \leq 4\sigma^2/50` with σ² the variance of S. As
        long as it changes more, larger batches are wasted; then, with a constant γ, only they help. Such
        iterations run in Python, and ``average`` must be None.

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

    step_size: StepSize = inverse(3, 10)
    batch_size: int = 1
    order: Order = "iid"
    average: int | Literal["suffix"] | None = None
    largest_batch: int | None = None

    name: ClassVar[str] = "sem"
    update: ClassVar[Update | None] = Update()

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.average, str):
            if self.average != "suffix":
                raise ValueError(f"average must be 'suffix', an integer or None, got {self.average!r}.")
        elif self.average is not None:
            check_int("average", self.average, minimum=1)
        if self.largest_batch is not None:
            check_int("largest_batch", self.largest_batch, minimum=self.batch_size, maximum=2**31 - 1)
            if self.average is not None:
                raise ValueError("average must be None if largest_batch is given.")

    def init(
        self, theta: Theta, s: Array, memory: Array | None
    ) -> OnlineEMState | GrowingState | AveragedState:
        """Return the empty state, that of a growing batch, or that of averages, which Algorithm 1 changes."""
        if self.largest_batch is not None:
            size = np.array([self.batch_size, 0], dtype=np.intp)
            return GrowingState(size, s.copy(), np.zeros_like(s), np.zeros(1))
        if self.average is None:
            return OnlineEMState()
        return AveragedState(np.zeros((2, len(s))), np.zeros(2, dtype=np.int64), s, theta)

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: Any, e_step: EStep
    ) -> tuple[Array, Any]:
        """Return the mean statistics of the drawn samples."""
        (i,) = draws
        batch = e_step.take(i if self.largest_batch is None else i[: state.size[0]])
        proxy = e_step.mean(batch, e_step.rows(batch, theta))  # (oem)
        return proxy, state if self.largest_batch is None else _grown(state, proxy, self.largest_batch)


def _grown(state: GrowingState, proxy: Array, largest: int) -> GrowingState:
    """Return the state after one more proxy; at the end of a window b doubles if the noise is larger.

    >>> state = GrowingState(np.array([1, 48]), np.zeros(1), np.zeros(1), np.zeros(1))
    >>> state = _grown(state, np.array([2.0]), 8)
    >>> _grown(state, np.array([-1.0]), 8).size
    array([2, 0])
    """
    change = proxy - state.past
    changes, squares = state.changes + change, state.squares + change @ change
    size = state.size + np.array([0, 1])
    if size[1] < WINDOW:
        return GrowingState(size, state.past, changes, squares)
    mean = changes / WINDOW
    variance = (float(squares[0]) - WINDOW * float(mean @ mean)) / (WINDOW - 1)
    if float(mean @ mean) <= EXCEEDS * 2.0 * variance / WINDOW:
        size[0] = min(2 * size[0], largest)
    size[1] = 0
    return GrowingState(size, state.past + mean, np.zeros_like(mean), np.zeros(1))
