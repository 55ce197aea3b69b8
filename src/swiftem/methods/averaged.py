"""Averaged iterates (Polyak and Ruppert) of any method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from swiftem.core.checks import check_int, shown
from swiftem.core.method import EStep, Method, Update, declared
from swiftem.core.types import Array, Index, Theta, Tree

POINTS = 16
"""Points per epoch or window. Neighbours differ by a step, so that more of them change little, and between
two points compiled code is not interrupted."""

INHERITED = Method.__annotations__.keys() - {"name", "update", "defaults"}


@dataclass(frozen=True)
class Averaged(Method):
    r"""A method whose result has averaged statistics (Polyak and Ruppert); its iterations are the same.

    The digits of the result then do not depend on the last samples, and steps may be larger, such as
    :math:`k^{-0.6}`. 16 points per window, or per epoch, are averaged. The recorded path has averages, too.

    Parameters
    ----------
    method : Method
        The method, such as :class:`~swiftem.methods.OnlineEM`.
    window : int or "suffix"
        Average over the last W to 2W iterations, or over their last half to three quarters.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from swiftem import models, methods
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> model = models.GaussianMixtureModel(1)
    >>> online = methods.OnlineEM(swiftem.schedules.power(1.0, 0.6))
    >>> plain, averaged = (
    ...     swiftem.run(model, y, method, n_iter=20_000, seed=0).theta
    ...     for method in (online, methods.Averaged(online))
    ... )
    >>> bool(abs(averaged.means - y.mean()) < 0.7 * abs(plain.means - y.mean()))
    True
    """

    method: Method
    window: int | Literal["suffix"] = "suffix"

    update: ClassVar[Update | None] = None

    def __post_init__(self) -> None:
        if not isinstance(self.method, Method) or isinstance(self.method, Averaged):
            raise TypeError(
                f"method must be a method that is not averaged, such as methods.OnlineEM(), "
                f"got {shown(self.method)}."
            )
        if isinstance(self.window, str) and self.window != "suffix":
            raise ValueError(f"window must be 'suffix' or an integer, got {self.window!r}.")
        if not isinstance(self.window, str):
            check_int("window", self.window, minimum=1)
        for name in INHERITED:
            object.__setattr__(self, name, getattr(self.method, name))
        object.__setattr__(self, "update", declared(self.method))

    def resolved(self, **choices: object) -> Averaged:
        """Return the average of the resolved method."""
        return replace(self, method=self.method.resolved(**choices))

    @property
    def name(self) -> str:  # type: ignore[override]  # the method's name in it
        """The method's name, as in "sem, averaged"."""
        return f"{self.method.name}, averaged"

    @property
    def vectors(self) -> int:
        """Vectors of statistics in a state."""
        return self.method.vectors + 2

    def init(self, theta: Theta, s: Array, memory: Array | None) -> Tree:
        """Return the method's state."""
        return self.method.init(theta, s, memory)

    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: Tree, e_step: EStep
    ) -> tuple[Array, Tree]:
        """Return the method's proxy and state."""
        return self.method.proxy(k, theta, draws, state, e_step)

    def renewal(self, k: int, n: int) -> int | None:
        """Return the method's next full pass."""
        return self.method.renewal(k, n)

    def averaging(self, n: int) -> tuple[int, int]:
        """Return the distances of points and of restarts."""
        if isinstance(self.window, str):
            return max(1, self.epoch(n) // POINTS), 0
        every = max(1, self.window // POINTS)
        return every, -(-self.window // every)
