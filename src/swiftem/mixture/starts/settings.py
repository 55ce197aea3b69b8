"""What a start is, what it depends on beside the problem, the numbers of starts, and Ctrl-C in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from swiftem.core.checkpoint import check_form
from swiftem.core.source import Source
from swiftem.core.types import Array, Theta
from swiftem.mixture.components import BoundComponents

OwnStart = Callable[[Source, np.random.RandomState], Theta]
"""A start that a kind of mixture finds in its own way."""
KindOfStart = Literal["given", "own", "race", "few", "named"]


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
        Whether it won a race, or is close to an optimum by passes of em.
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
    """

    init_params: Any = "race"
    n_init: int = 1
    tol: float = 1e-3
    given: Mapping[str, Any] = field(default_factory=dict)
    own: OwnStart | None = None
    kept: NDArray[np.bool_] | None = None

    @property
    def is_default(self) -> bool:
        """Whether the library is free to choose the start."""
        is_race = isinstance(self.init_params, str) and self.init_params == "race"
        return is_race and not self.given

    @property
    def is_of_single_rows(self) -> bool:
        """Whether each component starts with one row, and all parameters are found by that."""
        is_name = isinstance(self.init_params, str)
        return is_name and not self.given and self.init_params in ("k-means++", "random_from_data")


@dataclass(frozen=True)
class RaceSettings:
    """The numbers of starts. Rows are counted per estimated number where a name says "per_number".

    Attributes
    ----------
    candidates, few_candidates : int
        Number of candidates, and their maximum on few rows.
    sample, held_share, held_rows : int and float
        Rows of the sample, and which share of it, and how many rows at most, candidates are compared on.
    least_rows, scarce_rows, per_number : int
        With fewer rows none are held out: in total, or per number below a total. The first round has as many.
    move_rows, move_share, most_per_number : int
        Rows on which moves are tried: at least, one in how many of all, and at most per number.
    passes, last_passes : int
        Passes of em in a round, and in the last one.
    short : int
        Iterations of k-means, passes of em on the parts of a component, and splits that are tried.
    finalists : int
        Number of candidates in the last round, at least, and of merges that are tried.
    work, work_per_row : int
        Maximum number of E-step evaluations, in total and per row.
    tol : float
        Gain per pass below which em has converged, and least gain of a split or a move per held-out row.
    calm : int
        Passes of small gains after which em has converged.
    end : float
        Gain per pass at which the fit to the sample ends, in units of ``tol`` of the fit.
    margin : float
        Gain per row for which the first of few candidates is given up, and difference of candidates below
        which they have most likely found the same optimum.
    ahead : int
        Passes by which a fit of few rows looks ahead, at most.
    ignored : float
        Responsibility below which a row is ignored for a component that is split or merged.
    least_split : int
        Minimum number of rows of a component to be split.
    pairs : int
        Pairs per component whose merge is considered: those that overlap most.
    """

    candidates: int = 8
    few_candidates: int = 49
    sample: int = 26_000
    held_share: float = 0.25
    held_rows: int = 6000
    least_rows: int = 1000
    scarce_rows: int = 5000
    per_number: int = 3
    move_rows: int = 4000
    move_share: int = 8
    most_per_number: int = 40
    passes: int = 12
    last_passes: int = 40
    short: int = 5
    finalists: int = 3
    work: int = 5_000_000
    work_per_row: int = 250
    tol: float = 1e-4
    calm: int = 3
    end: float = 0.003
    margin: float = 1e-3
    ahead: int = 100
    ignored: float = 1e-2
    least_split: int = 8
    pairs: int = 2

    @property
    def after_move(self) -> int:
        """Passes of em after a move; the better half has twice as many more."""
        return self.passes // 3

    @property
    def tries(self) -> int:
        """Number of single moves tried at a time, whatever the number of threads."""
        return self.candidates // 2


NUMBERS = RaceSettings()
"""The numbers of all starts."""


class StartInterrupted(KeyboardInterrupt):
    """Ctrl-C while starts were made or improved; ``start`` is the best one so far.

    It is raised rather than returned so that it is never written to a checkpoint: a resumed fit makes its
    starts again.
    """

    def __init__(self, start: Start | None) -> None:
        assert start is not None
        super().__init__()
        self.start = start


def check_start(bound: BoundComponents, theta: Any, s: Any) -> None:
    """Raise ValueError or TypeError unless parameters, and statistics if given, match the model.

    They may come from a file, and compiled code trusts their shapes.
    """
    check_form("theta", theta, bound.like())
    if s is not None:
        check_form("s", s, np.empty(bound.size))
