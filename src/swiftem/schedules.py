r"""Step sizes :math:`\gamma_k`, k = 1, 2, ..., as small callables that print and pickle.

A plain number given as ``step_size`` means :func:`constant`, and any function of k is allowed. Values that
depend on the size of the data are set when the run starts.

>>> from swiftem import schedules
>>> gamma = schedules.inverse(3, 10)
>>> gamma(1)
0.2727272727272727
>>> schedules.resolve(schedules.sample_size(), n=1000, batch_size=1)
constant(0.01)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

from swiftem._checks import check_real, shown

__all__ = ["Schedule", "StepSize", "check_step", "constant", "inverse", "power", "resolve", "sample_size"]

Schedule = Callable[[int], float]
"""A function of k = 1, 2, ... with values in (0, 1]."""


@runtime_checkable
class SizedSchedule(Protocol):
    """A step size that depends on the size of the data."""

    def resolve(self, n: int, batch_size: int) -> Schedule:
        """Return the schedule for ``n`` samples and batches of ``batch_size``."""
        ...


StepSize = float | Schedule | SizedSchedule
"""Types of ``step_size``."""


@dataclass(frozen=True, repr=False)
class constant:
    r"""A constant step: :math:`\gamma_k = g`.

    >>> constant(0.003)(17)
    0.003
    """

    g: float

    def __post_init__(self) -> None:
        check_step(self.g)

    def __call__(self, k: Any) -> Any:
        """Return γ_k."""
        return self.g

    def __repr__(self) -> str:
        return f"constant({self.g:g})"


@dataclass(frozen=True)
class inverse:
    r"""The paper's step for online EM: :math:`\gamma_k = a / (k + b)`.

    >>> inverse(3, 10)(5)
    0.2
    """

    a: float
    b: float = 0.0

    def __post_init__(self) -> None:
        check_real("a", self.a, minimum=0.0)
        check_real("b", self.b, minimum=0.0)
        check_step(self(1), k=1)

    def __call__(self, k: Any) -> Any:
        """Return γ_k."""
        return float(self.a) / (k + float(self.b))


@dataclass(frozen=True)
class power:
    r"""A power of k: :math:`\gamma_k = c\, (k + b)^{-a}`; Cappé and Moulines advise a = 0.6.

    b, 0 by default, keeps the first steps from forgetting the start.

    >>> power(1.0, 0.5)(4), power(1.0, 0.5, 5.0)(4)
    (0.5, 0.3333333333333333)
    """

    c: float
    a: float
    b: float = 0.0

    def __post_init__(self) -> None:
        for name in ("c", "a", "b"):
            check_real(name, getattr(self, name), minimum=0.0)
        check_step(self(1), k=1)

    def __call__(self, k: Any) -> Any:
        """Return γ_k."""
        return float(self.c) * (k + float(self.b)) ** -float(self.a)


@dataclass(frozen=True)
class sample_size:
    r"""A constant step that shrinks with the data: :math:`\gamma = \min(1, c\, b\, n^{-a})`, a = 2/3.

    The exponent 2/3 is that of the paper's Theorem 2; for pLSA ``sample_size(10, exponent=1)`` is better.

    >>> sample_size(2).resolve(n=1000, batch_size=5)
    constant(0.1)
    """

    c: float = 1.0
    exponent: float = 2 / 3

    def __post_init__(self) -> None:
        check_real("exponent", self.exponent, minimum=0.0)
        if not check_real("c", self.c, minimum=0.0) > 0:
            raise ValueError(f"c must be positive, got {shown(self.c)}.")

    def resolve(self, n: int, batch_size: int) -> Schedule:
        """Return the constant schedule for ``n`` samples and batches of ``batch_size``."""
        return constant(min(1.0, float(self.c) * batch_size * n ** -float(self.exponent)))


def check_step(gamma: Any, k: int | None = None) -> float:
    """Return ``gamma`` as a float in (0, 1], or raise an error."""
    where = "" if k is None else f" at k = {k}"
    if isinstance(gamma, bool) or not isinstance(gamma, Real):
        raise TypeError(
            f"step_size must be a number or a function of k that returns one, got {shown(gamma)}{where}."
        )
    step = float(gamma) if gamma < 2 else 2.0  # an integer may be too large for a float
    if not 0.0 < step <= 1.0:
        raise ValueError(f"step_size must lie in (0, 1], got {shown(step)}{where}.")
    return step


def check_step_size(step_size: Any) -> None:
    """Raise an error for an invalid step size, as early as possible."""
    if not (callable(step_size) or isinstance(step_size, SizedSchedule)):
        check_step(step_size)


def resolve(step_size: StepSize, n: int, batch_size: int) -> Schedule:
    """Return the function of k for ``step_size`` and data of this size.

    Parameters
    ----------
    step_size : float, callable or sized schedule
        As passed to a method.
    n, batch_size : int
        Samples in the data and samples per iteration.

    Returns
    -------
    callable
        Maps k = 1, 2, ... to a step in (0, 1].
    """
    check_step_size(step_size)
    if isinstance(step_size, SizedSchedule):
        return step_size.resolve(n, batch_size)
    if callable(step_size):
        return step_size
    return constant(float(step_size))
