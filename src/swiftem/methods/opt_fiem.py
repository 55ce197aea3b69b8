"""opt-FIEM, Fort, Gach and Moulines 2021: fiEM whose correction has the coefficient of least variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from swiftem.core.checks import check_choice, check_real
from swiftem.core.method import LEFT_OUT, EStep, Method, Order, Update
from swiftem.core.schedules import StepSize
from swiftem.core.source import Batch
from swiftem.core.types import Array, Index, Theta

RATE = 0.01
"""Share of the newest sample in the averages behind λ."""

LARGEST = 2.0
"""Largest coefficient λ that is learned."""


class OptFIEMState(NamedTuple):
    r"""``centre`` (q,), ``memory`` (n, R): as in fiEM; ``moments`` (3,): averages of products, and λ."""

    centre: Array
    memory: Array
    moments: Array


@dataclass(frozen=True)
class OptFIEM(Method):
    r"""opt-FIEM: as fast incremental EM, with the correction multiplied by the λ of least variance.

    :math:`S^{(k+1)} = \lambda \overline{S}^{(k)} + (\bar s_{i_k}^{(k)} - \lambda \bar s_{i_k}^{(t)})`, and
    the memory is renewed by other samples j, as in ``fiem``. λ = 1 is ``fiem`` and λ = 0 is ``sem``; the
    least variance has
    :math:`\lambda^* = \mathrm{tr\,Cov}(\bar s_i^{(k)}, \bar s_i^{(t)}) / \mathrm{tr\,Var}(\bar s_i^{(t)})`.
    It helps while the memory is old, in the first passes; later λ* tends to 1.

    The correction uses the memory as it was before j is renewed, as in ``fiem``. In Fort, Gach and Moulines
    2021 j is renewed first, and the correction uses its new statistics.

    λ* is estimated by running averages, over the first samples of the last hundred batches or so. They are in
    the state, and batch k counts from iteration k + 1 on: so S is unbiased, which it would not be with a λ
    from its own batch, and the cost is one sample's statistics per iteration. λ is at most 2.

    Parameters
    ----------
    step_size : float or schedule
        γ; by default :math:`\min(1, b\, n^{-2/3})`. The two rules of the paper are
        :class:`swiftem.schedules.fiem_bound`.
    batch_size : int
        Samples drawn per iteration, as i and again as j.
    correction : float or "optimal"
        λ: from 0 to 1, or estimated.
    memory_order, memory_dtype, order
        How j is drawn, the precision of the memory, and how i is drawn: as in
        :class:`~swiftem.methods.FastIncrementalEM`.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=100)
    >>> method = methods.OptFIEM(step_size=0.05)
    >>> result = swiftem.run(models.GaussianMixtureModel(n_components=2), y, method, n_iter=100, seed=0)
    >>> result.passes, result.state.method.moments.shape
    (3.0, (3,))
    """

    step_size: StepSize = LEFT_OUT
    batch_size: int = LEFT_OUT
    correction: float | Literal["optimal"] = "optimal"
    memory_order: Literal["iid", "shuffled"] = LEFT_OUT
    memory_dtype: Literal["float64", "float32"] = LEFT_OUT
    order: Order = "iid"

    name: ClassVar[str] = "opt-fiem"
    index_streams: ClassVar[Literal[0, 1, 2]] = 2
    access: ClassVar[Literal["sequential", "random"]] = "random"
    remembers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.correction, str):
            check_choice("correction", self.correction, ("optimal",))
        else:
            check_real("correction", self.correction, minimum=0.0, maximum=1.0)

    @property
    def update(self) -> Update | None:  # type: ignore[override]  # it depends on λ
        """The update of fiEM if λ is given; None if it is learned, so that :meth:`proxy` runs."""
        return None if isinstance(self.correction, str) else Update("memory", "other", self.correction)

    def init(self, theta: Theta, s: Array, memory: Array | None) -> OptFIEMState:
        """Return the first pass as centre and memory, and λ = 1: the memory is at θ itself."""
        assert memory is not None
        return OptFIEMState(
            s, memory, np.array([0.0, 0.0, 1.0 if isinstance(self.correction, str) else self.correction])
        )

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: OptFIEMState, e_step: EStep
    ) -> tuple[Array, OptFIEMState]:
        """Return the mean of the memory, corrected; the state with j renewed, and with the next λ."""
        i, j = draws
        batch_i, batch_j = e_step.take(i), e_step.take(j)
        rows_i, rows_j = e_step.rows(batch_i, theta), e_step.rows(batch_j, theta).astype(state.memory.dtype)
        old_i, moments = state.memory[i].astype(np.float64), state.moments
        proxy = moments[2] * state.centre + e_step.mean(batch_i, rows_i - moments[2] * old_i)
        if self.correction == "optimal":
            first = Batch(batch_i.y[:1], batch_i.weight[:1], batch_i.index[:1])
            new, old = (e_step.mean(first, rows[:1]) - state.centre for rows in (rows_i, old_i))
            moments = learn(moments, new, old)
        change = np.subtract(rows_j, state.memory[j], dtype=np.float64)
        centre = state.centre + e_step.share(batch_j, change)
        state.memory[j] = rows_j
        return proxy, OptFIEMState(centre, state.memory, moments)


def learn(moments: Array, new: Array, old: Array) -> Array:
    r"""Return the running averages after one more sample, and from them λ.

    :math:`\lambda^* = \mathrm{tr\,Cov}(x, m) / \mathrm{tr\,Var}(m)`, where x and m are the statistics of a
    random sample now and in memory, minimises the variance of :math:`\lambda C + x - \lambda m`, as C is the
    mean of m. Averages of :math:`\langle x - C, m - C\rangle` and :math:`\|m - C\|^2` estimate it.

    Parameters
    ----------
    moments : ndarray, shape (3,)
        Averages of the two products, and λ.
    new, old : ndarray, shape (q,)
        x − C and m − C of the sample.

    >>> learn(np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    array([0.02, 0.04, 0.5 ])
    """
    covariance = moments[0] + RATE * (float(new @ old) - moments[0])
    variance = moments[1] + RATE * (float(old @ old) - moments[1])
    coefficient = moments[2] if not variance > 0 else min(max(covariance / variance, 0.0), LARGEST)
    return np.array([covariance, variance, coefficient])
