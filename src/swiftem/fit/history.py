"""The history of a fit: a record for each evaluation of its objective."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from swiftem.core.types import Array

__all__ = ["History", "Moment"]


class Moment(NamedTuple):
    """State of a fit when its objective was evaluated.

    Attributes
    ----------
    passes : float
        E-step evaluations so far, divided by n.
    seconds : float
        Time since the start of the fit, without initialisation.
    objective : float
        Penalty plus mean negative log-likelihood, of all rows or of a fixed sample.
    step : float
        The step size γ last used; 1 for ``"em"`` and ``"iem"``.
    rejected : int
        Number of steps rejected so far because they left the model's domain.
    method : str
        The method in use.
    """

    passes: float
    seconds: float
    objective: float
    step: float
    rejected: int
    method: str


@dataclass
class History:
    """The records of a fit; columns are attributes.

    Attributes
    ----------
    moments : list of Moment
        The evaluations, in order.
    moves : int
        Number of split-and-merge moves accepted before the first of them.

    Examples
    --------
    >>> from swiftem.fit.history import History, Moment
    >>> history = History([Moment(1.0, 0.1, 3.0, 1.0, 0, "em"), Moment(2.0, 0.2, 2.5, 1.0, 0, "em")])
    >>> history.passes, len(history)
    (array([1., 2.]), 2)
    """

    moments: list[Moment] = field(default_factory=list)
    moves: int = 0

    def __len__(self) -> int:
        return len(self.moments)

    def __iter__(self) -> Iterator[Moment]:
        return iter(self.moments)

    def __getattr__(self, name: str) -> Any:
        """Return a column: passes, seconds, objective, step, rejected or method."""
        if name in Moment._fields:
            return np.array([getattr(moment, name) for moment in self.moments])
        raise AttributeError(
            f"{type(self).__name__} has no column {name!r}: it has {', '.join(Moment._fields)}."
        )

    def table(self) -> dict[str, Array]:
        """Return all columns by name, for ``pandas.DataFrame``."""
        return {name: getattr(self, name) for name in Moment._fields}
