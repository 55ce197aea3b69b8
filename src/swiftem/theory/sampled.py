"""What estimates share: points of S_ρ, samples to look at, and the largest of what was seen."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np

from swiftem._typing import Array
from swiftem.data.source import Batch, Source
from swiftem.theory.family import Family
from swiftem.theory.sets import sample_S_rho

__all__ = ["NEAR", "Largest", "sample_points", "some_samples"]

NEAR = 1e-4
"""Length of the way from a point to its neighbour, as a share of that to another point of the set."""
MOST_SAMPLES = 500
"""Of so many samples at most each one's own statistics are looked at."""


class Largest:
    """The largest value seen of each name.

    >>> seen = Largest()
    >>> seen.see("C_S", 1.0)
    >>> seen.see("C_S", 0.5)
    >>> seen.values
    {'C_S': 1.0}
    """

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def see(self, name: str, value: SupportsFloat) -> None:
        """Keep ``value`` where it is larger than what was seen before."""
        self.values[name] = max(self.values.get(name, -np.inf), float(value))


def some_samples(source: Source) -> Batch:
    """Return up to 500 samples at even distances, the smallest and largest numbers of samples included."""
    return source.take(np.unique(np.linspace(0, source.n - 1, MOST_SAMPLES).astype(np.intp)))


def sample_points(
    family: Family, source: Source, rho: float, n_points: int, rng: np.random.Generator | None
) -> list[Array]:
    """Return one more than ``n_points`` points of S_ρ, always the same ones where ``rng`` is None."""
    rng = np.random.default_rng(0) if rng is None else rng
    return [sample_S_rho(family, source, rho, rng) for _ in range(n_points + 1)]
