"""One line of the results."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

__all__ = ["Row"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measurement, its peer, and the goal.

    Attributes
    ----------
    setting : str
        Further identification of the row within a figure.
    d : str
        The dimension, or D+V.
    components : int
        M or K.
    e_steps : int
        E-step evaluations per iteration for each of its b samples.
    iterations : int
        Iterations per measurement; ``repeats`` of them alternate with the peer's, and the minimum counts.
    value, peer_value : float
        In ``unit``.
    compared : {"ratio", "speed-up", "difference", "value"}
        Quantity of the goal: value / peer_value, its inverse, value − peer_value, or the value itself.
    goal : float, optional
        Minimum speed-up, or maximum of the other quantities.
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
    unit: Literal[
        "ns/iteration", "s", "bytes", "perplexity", "nats", "passes", "1 − NPMI", "repeated words"
    ]  # fmt: skip
    peer: str = ""
    peer_value: float | None = None
    compared: Literal["ratio", "speed-up", "difference", "value"]
    goal: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.peer_value is None else self.value / self.peer_value

    @property
    def result(self) -> float:
        """The quantity of the goal."""
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
        """Return yes, no, or nothing if there is no goal."""
        if self.goal is None:
            return ""
        good = self.result >= self.goal if self.compared == "speed-up" else self.result <= self.goal
        return "yes" if good else "no"

    def columns(self) -> dict[str, Any]:
        """Return the columns of the CSV; those that do not apply are empty."""
        found = asdict(self)
        compared, goal = found.pop("compared"), found.pop("goal")
        found |= {"ratio": self.ratio, "compared": compared, "result": self.result}
        found |= {"goal": goal, "reached": self.reached}
        return {name: _short(value) for name, value in found.items()}

    @classmethod
    def read(cls, columns: dict[str, str]) -> Row:
        """Return the row of a line of the CSV."""
        kinds = {"int": int, "float": float, "float | None": lambda text: float(text) if text else None}
        return cls(**{
            field.name: kinds.get(str(field.type), str)(columns[field.name]) for field in fields(cls)
        })  # fmt: skip


def _short(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
