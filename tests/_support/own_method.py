"""Methods of one's own: any declared update, done in the plainest way."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swiftem import methods
from swiftem.core.method import Update

EVERY = 60
"""Iterations from one full pass to the next, where the update has full passes."""


class OwnState(NamedTuple):
    anchor: Any
    centre: np.ndarray
    memory: np.ndarray


@dataclass(frozen=True)
class Own(methods.Method):
    step_size: Any = 0.1
    batch_size: int = 1

    name = "own"

    def renewal(self, k, n):
        has_passes = self.update.reference in ("anchor", "previous")
        return -(-k // EVERY) * EVERY if has_passes else None

    def init(self, theta, s, memory):
        return OwnState(theta, s, np.zeros(1) if memory is None else memory)

    def proxy(self, k, theta, draws, state, e_step):
        update = self.update
        if self.renewal(k, e_step.n) == k:
            state = state._replace(anchor=theta, centre=e_step.full(theta))
        batch = e_step.take(draws[0])
        rows = e_step.rows(batch, theta)
        if update.renewed_by == "drawn":
            proxy = state.centre + e_step.share(batch, rows - state.memory[draws[0]])
            state.memory[draws[0]] = rows
            return proxy, state._replace(centre=proxy)
        reference = 0.0
        if update.reference in ("anchor", "previous"):
            reference = e_step.rows(batch, state.anchor)
        elif update.reference == "memory":
            reference = state.memory[draws[0]]
        proxy = e_step.mean(batch, rows - update.correction * reference)
        if update.centre != "zero":
            proxy = update.correction * state.centre + proxy
        if update.renewed_by == "other":
            batch = e_step.take(draws[1])
            rows = e_step.rows(batch, theta)
            change = e_step.share(batch, rows - state.memory[draws[1]])
            state.memory[draws[1]] = rows
            state = state._replace(centre=state.centre + change)
        if update.centre == "proxy":
            state = state._replace(centre=proxy)
        return proxy, state._replace(anchor=theta) if update.reference == "previous" else state


def own(update: Update, **options: Any) -> methods.Method:
    """Return a method with this update."""
    remembers = update.renewed_by != "none"
    kind = type("Own", (Own,), {
        "update": update,
        "remembers": remembers,
        "access": "random" if remembers else "sequential",
        "index_streams": 2 if update.renewed_by == "other" else 1,
    })  # fmt: skip
    return kind(**options)


UPDATES = {
    "damped memory": Update("memory", "other", 0.7),
    "memory, no correction": Update("memory", "other", 0.0),
    "memory of the drawn": Update("memory", "drawn"),
    "damped anchor": Update("anchor", correction=0.7),
    "proxy": Update("previous"),
    "proxy that is forgotten soon": Update("previous", correction=0.6),
    "proxy that is forgotten late": Update("previous", correction=0.97),
    "proxy that is forgotten as steps are": Update("previous", correction=0.9),
    "proxy that is forgotten at once": Update("previous", correction=0.0),
}
