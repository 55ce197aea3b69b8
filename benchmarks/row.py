"""One line of the results."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Row"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was measured, what it is held against, and the goal.

    Attributes
    ----------
    setting : str
        What else tells the rows of a figure apart.
    d : str
        The dimension, or D+V.
    components : int
        M or K.
    e_steps : int
        E-step evaluations of an iteration for each of its b samples.
    iterations : int
        What one measurement did; ``repeats`` of them were done in turn with the peer's, and the least counts.
    value, peer_value : float
        In ``unit``.
    compared : {"ratio", "speed-up", "difference", "value"}
        What the goal is for: value / peer_value, the reverse of it, value − peer_value, or the value itself.
    goal : float, optional
        The least speed-up, or the most of anything else.
    """

    figure: str
    model: str
    method: str
    setting: str = ""
    n: int
    d: str
    components: int
    b: int
    threads: int = 1
    e_steps: int = 1
    iterations: int
    repeats: int
    value: float
    unit: Literal["ns/iteration", "s", "bytes", "perplexity", "nats"]
    peer: str = ""
    peer_value: float | None = None
    compared: Literal["ratio", "speed-up", "difference", "value"]
    goal: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.peer_value is None else self.value / self.peer_value

    @property
    def result(self) -> float:
        """The number that the goal is for."""
        if self.peer_value is None:
            return self.value
        results = {
            "ratio": self.value / self.peer_value,
            "speed-up": self.peer_value / self.value,
            "difference": self.value - self.peer_value,
            "value": self.value,
        }
        return results[self.compared]

    @property
    def reached(self) -> str:
        """Return yes, no, or nothing where there is no goal."""
        if self.goal is None:
            return ""
        good = self.result >= self.goal if self.compared == "speed-up" else self.result <= self.goal
        return "yes" if good else "no"

    def columns(self) -> dict[str, Any]:
        """Return the columns of the CSV; what does not apply is empty."""
        found = asdict(self)
        compared, goal = found.pop("compared"), found.pop("goal")
        found |= {"ratio": self.ratio, "compared": compared, "result": self.result}
        found |= {"goal": goal, "reached": self.reached}
        return {name: _short(value) for name, value in found.items()}


def _short(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
