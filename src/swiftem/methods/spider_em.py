"""SPIDER-EM, Fort, Moulines and Wai 2020: the proxy follows θ by the drawn samples' changes."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from threading import Lock
from typing import ClassVar, Literal

import numpy as np

from swiftem.core.checks import check_choice, check_int
from swiftem.core.method import LEFT_OUT, AnchorState, EStep, Method, Order, Update
from swiftem.core.schedules import StepSize
from swiftem.core.types import Array, Index, Theta

_LOCK = Lock()


@lru_cache(maxsize=16)
def _epochs(seed: int, length: int) -> tuple[list[int], np.random.Generator]:
    """Return the starts of epochs of geometric lengths that have been drawn so far, and their generator."""
    return [0], np.random.default_rng(seed)


def _geometric_renewal(k: int, seed: int, length: int) -> int:
    """Return the first start of an epoch that is not before k: a function of the seed and k.

    >>> _geometric_renewal(0, 0, 10), _geometric_renewal(500, 0, 10) >= 500
    (0, True)
    """
    begins, rng = _epochs(seed, length)
    with _LOCK:
        while begins[-1] < k:
            begins.append(begins[-1] + int(rng.geometric(1.0 / length)))
        return begins[bisect_left(begins, k)]


@dataclass(frozen=True)
class SpiderEM(Method):
    r"""SPIDER-EM: the last proxy, corrected by the change of the drawn samples since the last iteration.

    :math:`S^{(k+1)} = S^{(k)} + b^{-1}\sum_{i \in I_k} (\bar s_i^{(k)} - \bar s_i^{(k-1)})`; at renewals, a
    full pass: :math:`S^{(k+1)} = \bar s^{(k)}`. Two evaluations per sample, no memory. With constant steps
    and batches of about :math:`\sqrt n`, as :meth:`by_theorem` chooses them, it needs
    :math:`n + O(\sqrt n / \epsilon)` evaluations.

    Parameters
    ----------
    step_size, batch_size, order
        As in :class:`~swiftem.methods.VarianceReducedEM`.
    epoch_length : int, optional
        Iterations from one full pass to the next; by default n / b rounded up.
    renewals : {"fixed", "geometric"}
        Whether each epoch has that length, or a geometric one with that mean.
    renewal_seed : int
        Seed of the geometric lengths, which depend on nothing else.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> method = methods.SpiderEM(step_size=0.1, batch_size=10)
    >>> result = swiftem.run(models.GaussianMixtureModel(n_components=2), y, method, n_iter=20, seed=0)
    >>> result.passes  # the first one, two renewals, and two evaluations per draw
    7.0
    """

    step_size: StepSize = LEFT_OUT
    batch_size: int = LEFT_OUT
    epoch_length: int | None = None
    renewals: Literal["fixed", "geometric"] = "fixed"
    renewal_seed: int = 0
    order: Order = "iid"

    name: ClassVar[str] = "spider"
    update: ClassVar[Update | None] = Update(reference="previous")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("renewals", self.renewals, ("fixed", "geometric"))
        check_int("renewal_seed", self.renewal_seed, minimum=0)

    @classmethod
    def by_theorem(
        cls,
        n: int,
        step_size: StepSize = 0.5,
        *,
        renewals: Literal["fixed", "geometric"] = "fixed",
        renewal_seed: int = 0,
    ) -> SpiderEM:
        r"""Return the method with batches and epochs of √n, and a step that is the same for all n.

        Fort, Moulines and Wai 2020 for fixed epochs, 2021 for geometric ones. Their iterate comes from
        ``n_iter=swiftem.RandomTermination(...)``.

        Parameters
        ----------
        n : int
            Number of samples.
        step_size : float or schedule
            γ; 1/2 by default, which is larger than what is proven. That is
            :class:`swiftem.schedules.spider_bound`.
        renewals, renewal_seed
            As above.

        Examples
        --------
        >>> from swiftem import methods
        >>> method = methods.SpiderEM.by_theorem(10_000)
        >>> method.batch_size, method.epoch(10_000), method.step_size
        (100, 100, 0.5)
        """
        root = isqrt(check_int("n", n, minimum=1) - 1) + 1  # √n, rounded up
        return cls(
            step_size=step_size,
            batch_size=root,
            epoch_length=-(-n // root),
            renewals=renewals,
            renewal_seed=renewal_seed,
        )

    def renewal(self, k: int, n: int) -> int:
        """Return the first iteration from k on that begins with a full pass; iteration 0 does."""
        length = self.epoch_length or self.epoch(n)
        if self.renewals == "fixed":
            return -(-k // length) * length
        return _geometric_renewal(k, self.renewal_seed, length)

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: AnchorState, e_step: EStep
    ) -> tuple[Array, AnchorState]:
        """Return the last proxy, or a full pass, corrected by the drawn samples' change."""
        if self.renewal(k, e_step.n) == k:
            state = AnchorState(theta, e_step.full(theta))
        (i,) = draws
        batch = e_step.take(i)
        change = e_step.rows(batch, theta) - e_step.rows(batch, state.anchor)
        proxy = state.centre + e_step.mean(batch, change)
        return proxy, AnchorState(theta, proxy)
