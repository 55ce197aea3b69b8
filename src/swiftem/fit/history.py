"""The history of a fit: a record for each evaluation of its objective."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from swiftem.core.types import Array
from swiftem.fit.driver import Moment
from swiftem.show.drawing import new_axes, plain_axes
from swiftem.show.numbers import counted, style_of

__all__ = ["History", "draw_history"]


@dataclass(repr=False)
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
    >>> from swiftem.fit.driver import Moment
    >>> from swiftem.fit.history import History
    >>> history = History([Moment(1.0, 0.1, 3.0, 1.0, 0, "em"), Moment(2.0, 0.2, 2.5, 1.0, 0, "em")])
    >>> history
    History of 2 evaluations in 2.0 passes and 0.2 s by em: mean log-likelihood from -3 to -2.5
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
        """Return all columns by name."""
        return {name: getattr(self, name) for name in Moment._fields}

    def __repr__(self) -> str:
        if not self.moments:
            return "History of no evaluations"
        first, last = self.moments[0], self.moments[-1]
        methods = ", then ".join(dict.fromkeys(self.method))
        return (
            f"History of {counted(len(self), 'evaluation')} in {last.passes:.1f} passes and "
            f"{last.seconds:.2g} s by {methods}: "
            f"mean log-likelihood from {-first.objective:.6g} to {-last.objective:.6g}"
        )

    def to_pandas(self) -> Any:
        """Return a data frame of pandas with a row for each evaluation."""
        import pandas as pd

        return pd.DataFrame(self.table())

    def plot(self, axes: Any = None) -> Any:
        """Plot the mean log-likelihood against the passes; return the matplotlib axes.

        Examples
        --------
        >>> import numpy as np, swiftem
        >>> mixture = swiftem.GaussianMixture(2, random_state=0).fit(np.arange(40.0).reshape(20, 2))
        >>> mixture.history_.plot().get_ylabel()
        'mean log-likelihood'
        """
        return draw_history(self.moments, axes)


def draw_history(moments: Sequence[Moment], axes: Any = None) -> Any:
    """Plot the mean log-likelihood against the passes, in the colours of the methods; return the axes.

    A stochastic fit may begin with a pass of sem; that part is shaded. If steps were rejected, because they
    left the model's domain, crosses at the bottom show when, and the legend has their number.

    Parameters
    ----------
    moments : sequence of Moment
        The evaluations of a fit, in order.
    axes : matplotlib axes, optional
        Axes to use; by default of a new figure.
    """
    axes = new_axes() if axes is None else axes
    plain_axes(axes, x="passes over the data", y="mean log-likelihood")
    runs = [list(run) for _, run in groupby(moments, key=lambda moment: moment.method)]
    size = 6 if len(moments) < 15 else 3 if len(moments) < 60 else 0
    before: list[Moment] = []
    for number, run in enumerate(runs):
        style = style_of(run[0].method)
        points = [*before, *run]
        axes.plot(
            [moment.passes for moment in points],
            [-moment.objective for moment in points],
            style.line,
            color=style.colour,
            linewidth=2,
            marker="o",
            markersize=size,
            markevery=(len(before), 1),
            label=_once(axes, style.label + (", at first" if number == 0 and len(runs) > 1 else "")),
        )
        before = run[-1:]
    if len(runs) > 1:
        axes.axvspan(0, runs[0][-1].passes, color=style_of(runs[0][0].method).colour, alpha=0.12, linewidth=0)
    _mark_rejected(axes, runs)
    axes.set_xlim(left=0)
    if moments:
        axes.legend(loc="best", frameon=False)
    else:
        words = "no history: the model was given, not fitted"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", fontsize=8, color="#666666")
    return axes


def _once(axes: Any, label: str) -> str:
    """Return a label that is hidden if the axes already have it: several fits may share them."""
    return f"_{label}" if label in axes.get_legend_handles_labels()[1] else label


def _mark_rejected(axes: Any, runs: Sequence[Sequence[Moment]]) -> None:
    """Draw a cross where steps were rejected since the last evaluation; counts restart with each method."""
    when: list[float] = []
    total = 0
    for run in runs:
        counts = np.array([moment.rejected for moment in run])
        when += [run[place].passes for place in np.flatnonzero(np.diff(counts, prepend=0) > 0).tolist()]
        total += int(counts[-1])
    if total:
        axes.plot(
            when,
            np.full(len(when), 0.03),
            "x",
            color="#555555",
            transform=axes.get_xaxis_transform(),
            label=f"{total:,} step{'s' if total > 1 else ''} rejected",
        )
