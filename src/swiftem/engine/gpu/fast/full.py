"""Passes and batches of full covariances with few columns: rows in the form of the kernels."""

from __future__ import annotations

from typing import Any

import torch
import triton

from swiftem._typing import Array
from swiftem.engine.gpu.fast import kernels
from swiftem.engine.gpu.fast.rows import LOG2_E, FastRows, halves_of, power
from swiftem.engine.gpu.passes import Rows, Sums
from swiftem.models.components import Coefficients

__all__ = ["FullRows"]


class FullRows(FastRows):
    """For :func:`swiftem.engine.gpu.fast.kernels.full_pass`."""

    NEEDS = ("plain", "means", "whiten")
    BLOCK, PROGRAMS, WARPS = 16, 8, 1

    def __init__(self, rows: Rows, code: int, n_components: int) -> None:
        super().__init__(rows, code, n_components)
        d = rows.y.shape[1]
        self._columns = power(d, 2)
        #: The rows, scaled, then 1, then zeros, (n, P).
        self.z = self._padded(power(self._columns + 1, 16))
        self._fill()
        self.z[:, self._columns] = 1.0
        self._row, self._column = torch.tril_indices(d, d, device=rows.y.device)
        self._units_of_products = self._units[self._row] * self._units[self._column]

    def _fill(self) -> None:
        self._scale_into(self.z, self.z)

    @property
    def sizes(self) -> tuple[int, int]:
        """Components and columns of whitened rows, padded."""
        return power(self._n_components, 16), self._columns

    @property
    def unit(self) -> Array:
        """Factors of the columns (d,), powers of two."""
        return self._unit

    @property
    def weight(self) -> Any:
        """The weights (n,) divided by the largest one, float32, or one zero if there are none."""
        return self._weight

    @property
    def largest_weight(self) -> float:
        """The largest weight."""
        return self._largest_weight

    @property
    def programs(self) -> int:
        """Programs of a pass."""
        blocks: int = triton.cdiv(len(self._rows), self.BLOCK)
        return min(self.PROGRAMS * self._processors, blocks)

    def whitening(self, theta: Coefficients) -> Any:
        """Return all components' whitening of scaled rows (P, M, D), padded; θ has tensors."""
        d, (padded, columns) = len(self._unit), self.sizes
        half = (0.5 * LOG2_E) ** 0.5
        u = torch.zeros((self.z.shape[1], padded, columns), dtype=torch.float64, device=self.z.device)
        whiten = theta.whiten  # (M, d, d)
        u[:d, : self._n_components, :d] = (whiten * (half * self._units)).permute(2, 0, 1)
        shifts = (whiten @ theta.means[:, :, None])[:, :, 0]
        u[columns, : self._n_components, :d] = -half * shifts
        return u

    def sums(self, theta: Coefficients) -> Sums:
        """Return the sums of a full pass."""
        d, count, n, columns = len(self._unit), self._n_components, len(self._rows), self._columns
        padded, p = power(count, 16), self.z.shape[1]
        u = self.whitening(theta)
        constant, largest = self._constants(theta.plain, padded)
        programs = self.programs
        linear = self._padded(p * padded, rows=programs)
        products = self._padded(columns * columns * padded, rows=programs)
        log = linear.new_empty(programs)
        kernels.full_pass[(programs,)](
            self.z, self._weight, *halves_of(u.reshape(p, padded * columns)), constant, linear, products, log,
            n, triton.cdiv(n, self.BLOCK), D=columns, P=p, M=padded, B=self.BLOCK, WEIGHTED=self._weighted,
            num_warps=self.WARPS, num_stages=1,
        )  # fmt: skip
        found = self._added(linear).reshape(p, padded)[:, :count].T
        pairs = self._added(products).reshape(columns, columns, padded)
        lower = pairs[self._row, self._column, :count].T * self._units_of_products
        parts = [found[:, columns, None], found[:, :d] * self._units, lower]
        return Sums(torch.cat(parts, dim=1), self._log_likelihood(log, largest))
