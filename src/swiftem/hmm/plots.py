"""Figures of hidden Markov models: states over time, and transitions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from swiftem.core.types import Array, Index
from swiftem.mixture.tables.profile import percent_text
from swiftem.show.drawing import COLOURS, new_axes, plain_axes


def draw_states(values: Array, states: Index, name: str, axes: Any = None) -> Any:
    """Draw a column of a sequence over time, with bands in the colours of its states; return the axes.

    Parameters
    ----------
    values, states : ndarray, shape (t,)
        The column and the states of the steps.
    name : str
        Name of the column.
    axes : matplotlib axes, optional
        By default of a new figure.
    """
    axes = new_axes() if axes is None else axes
    plain_axes(axes, x="step", y=name)
    edges = [0, *(np.flatnonzero(np.diff(states)) + 1).tolist(), len(states)]
    drawn: set[int] = set()
    for start, stop in pairwise(edges):
        state = int(states[start])
        label = f"state {state}" if state not in drawn else None
        axes.axvspan(
            start - 0.5, stop - 0.5, color=COLOURS[state % len(COLOURS)], alpha=0.3, lw=0, label=label
        )
        drawn.add(state)
    axes.plot(values, color="#333333", linewidth=1.0)
    axes.set_xlim(-0.5, len(states) - 0.5)
    axes.legend(loc="best", frameon=False)
    return axes


def draw_transitions(transitions: Array, axes: Any = None) -> Any:
    """Draw the probabilities of transitions as a matrix of colours and percentages; return the axes."""
    axes = new_axes() if axes is None else axes
    k = len(transitions)
    axes.imshow(transitions, cmap="Blues", vmin=0.0, vmax=1.0)
    for i, j in np.ndindex(k, k):
        colour = "white" if transitions[i, j] > 0.6 else "black"
        axes.text(j, i, percent_text(float(transitions[i, j])), ha="center", va="center", color=colour)
    axes.set(xlabel="next state", ylabel="state", xticks=range(k), yticks=range(k))
    return axes
