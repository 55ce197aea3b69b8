"""What a start is, what it depends on beside the problem, and Ctrl-C while starts are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checkpoint import check_form
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta
from swiftem.mixture.components import BoundComponents

__all__ = ["OwnStart", "Start", "StartInterrupted", "StartSettings", "check_start", "until_interrupted"]

OwnStart = Callable[[Source, np.random.RandomState], Theta]
"""A start that a kind of mixture finds in its own way."""


class Start(NamedTuple):
    """The start of a fit.

    Attributes
    ----------
    theta : NamedTuple
        The parameters.
    s : ndarray or None
        Their statistics, if they are the result of an M-step.
    empty : int
        Number of components without rows that were set to rows drawn at random.
    raced : bool
        Whether it won a race, and so is close to an optimum.
    moves : int
        Number of split-and-merge moves accepted in it.
    """

    theta: Theta
    s: Array | None
    empty: int
    raced: bool = False
    moves: int = 0


@dataclass(frozen=True)
class StartSettings:
    """What starts depend on beside the problem and random numbers.

    Attributes
    ----------
    init_params : str, callable or array-like
        "race", one of scikit-learn's names, or labels or responsibilities of the rows, or their function.
    n_init : int
        Number of named starts; each one beyond the first adds candidates to a race.
    tol : float
        ``tol`` of the fit.
    given : mapping
        Initial values of parameters by name.
    own : callable or None
        Returns the parameters to start from, if values are not given.
    kept : ndarray of bool, or None
        Mask of the source's rows among those that an array ``init_params`` is for.
    moves : int or "auto"
        Maximum number of split-and-merge moves.
    """

    init_params: Any = "race"
    n_init: int = 1
    tol: float = 1e-3
    given: Mapping[str, Any] = field(default_factory=dict)
    own: OwnStart | None = None
    kept: NDArray[np.bool_] | None = None
    moves: int | Literal["auto"] = "auto"

    @property
    def is_default(self) -> bool:
        """Whether the library is free to choose the start."""
        is_race = isinstance(self.init_params, str) and self.init_params == "race"
        return is_race and not self.given


class StartInterrupted(KeyboardInterrupt):
    """Ctrl-C while starts were made or improved; ``start`` is the best one so far.

    It is raised rather than returned so that it is never written to a checkpoint: a resumed fit makes its
    starts again.
    """

    def __init__(self, start: Start) -> None:
        super().__init__()
        self.start = start


def until_interrupted(made: Iterable[Start]) -> list[Start]:
    """Return starts; after Ctrl-C raise :class:`StartInterrupted` with the first one, if it is made.

    >>> len(until_interrupted(Start((), None, 0) for _ in range(2)))
    2
    """
    found: list[Start] = []
    try:
        for start in made:
            found.append(start)
    except KeyboardInterrupt:
        if not found:
            raise
        raise StartInterrupted(found[0]) from None
    return found


def check_start(bound: BoundComponents, theta: Any, s: Any) -> None:
    """Raise ValueError or TypeError unless parameters, and statistics if given, match the model.

    They may come from a file, and compiled code trusts their shapes.
    """
    check_form("theta", theta, bound.like())
    if s is not None:
        check_form("s", s, np.empty(bound.size))
