"""k-means++ on a device, with the draws of scikit-learn."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from swiftem._typing import Index
from swiftem.engine.gpu.passes import Rows

__all__ = ["plus_plus"]

NUMBERS = 1 << 22
"""Differences computed at a time."""


def plus_plus(rows: Rows, count: int, random_state: np.random.RandomState) -> Index:
    """Return the indices (count,) of rows that are far from each other, as k-means++ draws them.

    Parameters
    ----------
    rows : Rows
        All rows, on the device.
    count : int
        Number of indices.
    random_state : RandomState
        Used as in scikit-learn's ``kmeans_plusplus``: the same draws, of which the best of several is taken.
    """
    import torch

    n, trials = len(rows), 2 + int(log(count))
    weight = None if rows.weight is None else rows.weight.cpu().numpy()
    chosen = [int(random_state.choice(n, p=np.full(n, 1.0 / n) if weight is None else weight / weight.sum()))]
    closest = _squares(rows, chosen, None)[0]
    potential = _total(closest, rows.weight)
    for _ in range(1, count):
        drawn = torch.from_numpy(random_state.uniform(size=trials)).to(closest.device) * potential
        cumulative = torch.cumsum(closest if rows.weight is None else closest * rows.weight, 0)
        tried = torch.searchsorted(cumulative, drawn).clamp_(max=n - 1)
        found = _squares(rows, tried.tolist(), closest)
        potentials = torch.stack([_total(each, rows.weight) for each in found])
        best = int(potentials.argmin())
        closest, potential = found[best], potentials[best]
        chosen.append(int(tried[best]))
    return np.array(chosen)


def _total(squares: Any, weight: Any) -> Any:
    """Return the weighted sum of squares (n,)."""
    return squares.sum() if weight is None else squares @ weight


def _squares(rows: Rows, index: list[int], closest: Any) -> Any:
    """Return squared distances (k, n) of all rows from those of ``index``; at most ``closest`` (n,)."""
    import torch

    found = torch.empty((len(index), len(rows)), dtype=torch.float64, device=rows.y.device)
    points = rows.y[torch.tensor(index, device=rows.y.device)].double()
    size = max(1, NUMBERS // rows.y.shape[1])
    for start in range(0, len(rows), size):
        here = slice(start, start + size)
        for into, point in zip(found, points, strict=True):
            into[here] = (rows.y[here] - point).square_().sum(dim=1)
    return found if closest is None else torch.minimum(found, closest)
