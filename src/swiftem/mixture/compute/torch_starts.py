"""Starts of Gaussian mixtures on a device: rows stay there, draws are those of the CPU.

``"k-means++"`` chooses the rows of scikit-learn, but for rounding of distances, and ``"kmeans"`` on fewer
than 100,000 rows finds its clusters. Of more rows scikit-learn draws batches; here it makes few passes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import log

import numpy as np
import torch
from torch import Tensor

from swiftem.core.types import Array, Index
from swiftem.mixture.compute.torch import NUMBERS, Rows, features

DISTANCES = 1 << 24
"""Numbers of rows, and distances, that are computed at a time."""
LARGE, FEW_PASSES, MOST_PASSES = 100_000, 10, 300
"""Number of rows from which k-means makes few passes, and the maximum numbers of passes."""
TOLERANCE = 1e-4
"""k-means ends if its centres move by less than this share of the columns' variance."""


class DeviceStarts:
    """Starts from rows on a device.

    Parameters
    ----------
    rows : Rows
        All rows.
    n_components : int
        M.
    flat : callable
        Returns the model's statistics (q,) for sums (M, 1 + p).
    """

    def __init__(self, rows: Rows, n_components: int, flat: Callable[[Tensor], Tensor]) -> None:
        self._rows, self._count, self._flat = rows, n_components, flat

    def statistics(self, responsibilities: Callable[[int, int], Array] | Tensor) -> Array:
        """Return the statistics (q,) of responsibilities, divided by their sum.

        They are a function of the first row and the end, which returns (b, M), or labels (n,) on the device.
        """
        rows, total = self._rows, self._squares.new_zeros(())
        for here in rows.slices(features(rows.y[:1], rows.code).shape[1] + self._count, NUMBERS):
            if isinstance(responsibilities, Tensor):
                r = self._one_hot(responsibilities[here])
            else:
                r = torch.from_numpy(np.ascontiguousarray(responsibilities(here.start, here.stop)))
                r = r.to(rows.y.device).double()
            r = r if rows.weight is None else r * rows.weight[here][:, None]
            powers = features(rows.centred(here), rows.code)
            total = total + torch.cat([r.sum(dim=0)[:, None], r.T @ powers], dim=1)
        return np.asarray((self._flat(total) / total[:, 0].sum()).cpu().numpy())

    def single_rows(self, name: str, random_state: np.random.RandomState) -> Index:
        """Return the rows (M,) that components begin with, of "k-means++" or "random_from_data"."""
        if name == "k-means++":
            return np.asarray(self._plus_plus(random_state).cpu().numpy())
        return random_state.choice(len(self._rows), size=self._count, replace=False)

    def k_means(self, random_state: np.random.RandomState) -> Tensor:
        """Return the labels (n,) of k-means from a start by k-means++."""
        rows, n = self._rows, len(self._rows)
        centres = self._points(self._plus_plus(random_state))
        spread, most = (
            self._squares.new_zeros((2, rows.y.shape[1])),
            FEW_PASSES if n >= LARGE else MOST_PASSES,
        )
        for here in rows.slices(rows.y.shape[1], DISTANCES):
            x = rows.centred(here)
            spread += torch.stack([x.sum(dim=0), x.square().sum(dim=0)])
        least = TOLERANCE * float((spread[1] / n - (spread[0] / n).square()).mean())
        before = torch.full((n,), -1, device=rows.y.device)
        for _ in range(most):
            labels, sums = self._assigned(centres)
            following = torch.where(sums[:, :1] > 0.0, sums[:, 1:] / sums[:, :1], centres)
            if torch.equal(labels, before):
                return labels
            moved, centres, before = float((following - centres).square().sum()), following, labels
            if moved <= least:
                break
        return self._assigned(centres)[0]

    def _assigned(self, centres: Tensor) -> tuple[Tensor, Tensor]:
        """Return the nearest centre of each row (n,), and the sums (M, 1 + d) of weights and rows of each."""
        rows, labels = self._rows, []
        sums = centres.new_zeros((len(centres), 1 + centres.shape[1]))
        for here in rows.slices(self._count + rows.y.shape[1], DISTANCES):
            x = rows.centred(here)
            labels.append((centres.square().sum(dim=1) - 2.0 * x @ centres.T).argmin(dim=1))
            member = self._one_hot(labels[-1])  # adding by index is not in order
            member = member if rows.weight is None else member * rows.weight[here][:, None]
            sums += torch.cat([member.sum(dim=0)[:, None], member.T @ x], dim=1)
        return torch.cat(labels), sums

    def _one_hot(self, labels: Tensor) -> Tensor:
        return (labels[:, None] == torch.arange(self._count, device=labels.device)).double()

    def _plus_plus(self, random_state: np.random.RandomState) -> Tensor:
        """Return rows (M,) that are far from each other, with the draws of scikit-learn, on the device.

        Each is the best of several that are drawn in proportion to squared distances from those before.
        """
        rows, n = self._rows, len(self._rows)
        weight = np.ones(n) if rows.weight is None else rows.weight.cpu().numpy()
        first = random_state.choice(n, p=weight / weight.sum())
        draws = random_state.uniform(size=(self._count - 1, 2 + int(log(self._count))))
        device = rows.y.device
        chosen = torch.full((self._count,), int(first), device=device)
        closest = self._distances(chosen[:1])[0]
        potential = closest.sum() if rows.weight is None else closest @ rows.weight
        for m, drawn in enumerate(torch.from_numpy(draws).to(device), 1):
            ends = torch.cumsum(closest if rows.weight is None else closest * rows.weight, 0)
            tried = torch.searchsorted(ends, drawn * potential).clamp_(max=n - 1)
            squares = torch.minimum(self._distances(tried), closest)
            potentials = squares.sum(dim=1) if rows.weight is None else squares @ rows.weight
            best = potentials.argmin()[None]
            closest, potential = squares.index_select(0, best)[0], potentials.index_select(0, best)[0]
            chosen[m : m + 1] = tried.index_select(0, best)
        return chosen

    @cached_property
    def _squares(self) -> Tensor:
        """Squared norms of the rows minus the centre, (n,)."""
        slices = self._rows.slices(self._rows.y.shape[1], DISTANCES)
        return torch.cat([self._rows.centred(here).square().sum(dim=1) for here in slices])

    def _points(self, index: Tensor) -> Tensor:
        return self._rows.y[index] - self._rows.centre

    def _distances(self, index: Tensor) -> Tensor:
        """Return squared distances (k, n) of all rows from the rows ``index``."""
        points, parts = self._points(index), []
        for here in self._rows.slices(self._rows.y.shape[1], DISTANCES):
            parts.append(points @ self._rows.centred(here).T)
        products = torch.cat(parts, dim=1)
        return (self._squares + points.square().sum(dim=1)[:, None] - 2.0 * products).clamp_(min=0.0)
