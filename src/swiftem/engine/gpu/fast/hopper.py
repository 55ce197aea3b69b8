"""Passes by the kernels in Gluon, on GPUs of compute capability 9.0; their rows are those of the others."""

from __future__ import annotations

from typing import Any

import torch
import triton
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from swiftem.engine.gpu.fast import hopper_dense_kernels as dense_kernels
from swiftem.engine.gpu.fast import hopper_kernels as two_kernels
from swiftem.engine.gpu.fast import hopper_white_kernels as white_kernels
from swiftem.engine.gpu.fast import kernels
from swiftem.engine.gpu.fast.lists import Lists
from swiftem.engine.gpu.fast.rows import FastRows, dense_columns
from swiftem.engine.gpu.fast.two_passes import TwoPasses, Wide
from swiftem.engine.gpu.fast.white import WhiteRows
from swiftem.engine.gpu.passes import Rows, Sums
from swiftem.engine.small_expectation import DIAG, SPHERICAL
from swiftem.models.components import Coefficients

__all__ = ["HopperDense", "HopperPasses", "HopperWhite"]

PARTIAL, ROWS = 1 << 23, 512
"""Most numbers of parts of normalisers in memory at a time, and rows of a program that merges them."""


def _tile(values: Any, rows: int, columns: int) -> Any:
    """Return a descriptor of tiles of float16 numbers."""
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], gl.float16)
    return TensorDescriptor.from_tensor(values, [rows, columns], layout)


class HopperPasses(TwoPasses):
    """As :class:`TwoPasses`; programs of the first pass have 128 components, whose results are merged."""

    TILE, STAGES = 128, 2

    def _splits(self, padded: int) -> int:
        """Return the programs that divide the rows: a processor does one after another, and none is idle."""
        slices = padded // self.TILE
        found = {rounds: rounds * self._processors // slices for rounds in (1, 2, 3)}
        best = max(found, key=lambda rounds: found[rounds] / rounds * (1.0 - 0.005 * rounds))
        return max(1, found[best])

    def _tiles_here(self, given: Wide) -> list[Any]:
        parts = self.hi, self._lo, given.phi_hi, given.phi_lo
        return [_tile(part, self.TILE, self._columns) for part in parts]

    def _first(self, given: Wide) -> tuple[Any, Any]:
        n, padded, tile = len(self._rows), len(given.scale), self.TILE
        logs = torch.empty((2, n), dtype=torch.float32, device=given.scale.device)
        slices, blocks = padded // tile, triton.cdiv(n, tile)
        chunks = triton.cdiv(slices * n, PARTIAL)
        size = triton.cdiv(blocks, chunks)
        maxima, totals = torch.empty((2, slices, size * tile), dtype=torch.float32, device=logs.device)
        tiles, spherical, programs = self._tiles_here(given), self._code == SPHERICAL, size * tile // ROWS + 1
        of_rows = torch.zeros((chunks, programs), dtype=torch.float64, device=logs.device)
        for begin in range(0, blocks, size):
            end, width = min(begin + size, blocks), size * tile
            two_kernels.normalisers[(slices, self._splits(padded))](
                *tiles, self.norm, given.scale, given.constant, given.square, maxima, totals, n, begin, end,
                width, D=self._columns, STAGES=self.STAGES, SPHERICAL_ROWS=spherical, num_warps=4,
                maxnreg=168,
            )  # fmt: skip
            kernels.merge[(triton.cdiv((end - begin) * tile, ROWS),)](
                maxima, totals, self._weight, *logs, of_rows[begin // size], begin * tile, n, width, slices,
                B=ROWS, WEIGHTED=self._weighted,
            )  # fmt: skip
        return logs, of_rows

    def _second(self, given: Wide, largest: Any, log: Any) -> tuple[Any, Any, Any]:
        n, padded = len(self._rows), len(given.scale)
        splits = self._splits(padded)
        parts = self._parts(splits, padded)
        two_kernels.accumulate[(padded // self.TILE, splits)](
            *self._tiles_here(given), self.norm, self._weight, given.scale, given.constant, given.square,
            largest, log, *parts, n, triton.cdiv(n, self.TILE), padded, D=self._columns, STAGES=self.STAGES,
            SPHERICAL_ROWS=self._code == SPHERICAL, WEIGHTED=self._weighted, num_warps=4, maxnreg=168,
        )  # fmt: skip
        return parts


class HopperDense(FastRows):
    """As :class:`swiftem.engine.gpu.fast.rows.DenseRows`, with stored features: for at most 64 components."""

    COMPONENTS = 64

    def __init__(self, rows: Rows, code: int, n_components: int) -> None:
        super().__init__(rows, code, n_components)
        columns = dense_columns(rows.y.shape[1], code)
        self._middle = columns if code == DIAG else 0
        self._features = columns + self._middle
        self._z = self._padded(2 * self._features, torch.float16)
        self._fill()
        #: Groups of warps, tiles in memory, registers of a thread.
        self._options = {"GROUPS": 3, "STAGES": 6, "maxnreg": 128}
        if self._features > 32:
            self._options = {"GROUPS": 2, "STAGES": 4, "maxnreg": 168}

    def _fill(self) -> None:
        hi, lo = self._z[:, : self._features], self._z[:, self._features :]
        self._scale_into(hi, lo, self._middle)
        if self._code == SPHERICAL:
            n, d = self._rows.y.shape
            norm, self._total_norm = self._norms()
            hi[:n, d] = norm.half()
            lo[:n, d] = (norm - hi[:n, d].float()).half()

    def sums(self, theta: Coefficients) -> Sums:
        """Return the sums of a full pass."""
        n, features, padded = len(self._rows), self._features, self.COMPONENTS
        hi = torch.empty((padded, 2 * features), dtype=torch.float16, device=self._z.device)
        lo, constant = hi.new_empty((padded, features)), hi.new_empty(padded, dtype=torch.float32)
        at = torch.zeros(2, dtype=torch.float64, device=hi.device)
        self._coefficients(theta, hi, lo, None, constant, constant, at, self._middle)
        blocks = triton.cdiv(n, 64)
        programs = min(self._processors, blocks)
        groups = programs * self._options["GROUPS"]
        counts = torch.empty((groups, padded), dtype=torch.float32, device=hi.device)
        sums, log = counts.new_empty((groups, padded * 2 * features)), counts.new_empty((groups, 64))
        dense_kernels.dense_pass[(programs,)](
            _tile(self._z, 64, 2 * features), self._weight,
            _tile(hi, padded, 2 * features), _tile(lo, padded, features), constant, counts, sums, log, n,
            blocks, P=features, M=padded, WEIGHTED=self._weighted, num_warps=4,
            **self._options,
        )  # fmt: skip
        found = self._added_parts(counts, sums, counts, self._middle, is_wide=False)
        return Sums(found, self._log_likelihood(log, at[0], at[1] * self._total_norm))


class HopperWhite(WhiteRows):
    """As :class:`WhiteRows`, with faster logits."""

    BLOCKS, STAGES = {1: 256, 3: 128}, {1: 4, 3: 3}

    def _groups(self) -> int:
        return self._best_parts(self.BLOCKS[self._products], 1)

    def _logits(self, w_hi: Any, w_lo: Any, of_components: Any, lists: Lists, first: int, here: int) -> None:
        columns, block, parts = self._columns, self.BLOCKS[self._products], len(lists.maxima)
        tiles = [_tile(part, block, columns) for part in (self._hi, self._lo)]
        half = columns // 2
        tiles += [_tile(part.view(-1, columns), half, half) for part in (w_hi, w_lo)]
        white_kernels.white_logits[(triton.cdiv(here, block), parts)](
            *tiles, *of_components, lists.logits, lists.maxima, first, here, lists.size, len(w_hi),
            triton.cdiv(len(w_hi), parts), H=half, B=block, PRODUCTS=self._products,
            STAGES=self.STAGES[self._products],  num_warps=4, maxnreg=168,
        )  # fmt: skip
