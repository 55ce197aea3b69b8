"""Two passes for many components: normalisers of rows, then sums of components."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from swiftem.engine.gpu.fast import kernels
from swiftem.engine.gpu.fast.rows import FastRows, power
from swiftem.engine.gpu.passes import Rows, Sums
from swiftem.engine.small_expectation import DIAG, SPHERICAL
from swiftem.models.components import Coefficients

__all__ = ["TwoPasses", "Wide", "wide_columns"]


def wide_columns(d: int, code: int) -> int:
    """Return the padded features of two passes."""
    return 2 * power(d, 8) if code == DIAG else power(d, 16)


class Wide(NamedTuple):
    """θ of two passes: hi and lo of coefficients (M, D), and (M,): their scales, constants, those of |x|².

    ``largest`` was subtracted from the constants; ``common`` is what all components have of the
    log-likelihood.
    """

    phi_hi: Any
    phi_lo: Any
    scale: Any
    constant: Any
    square: Any
    largest: Any
    common: Any


class TwoPasses(FastRows):
    """For ``normalisers`` and ``accumulate`` of :mod:`swiftem.engine.gpu.fast.kernels`.

    Rows are kept as hi + lo, as many bytes as float32; those of "diag" with their squares, twice as many.
    """

    FIRST: ClassVar[dict[str, int]] = {"B": 128, "C": 64}
    SECOND: ClassVar[dict[str, int]] = {"B": 64, "C": 64}
    SPLITS, TILE = 33, 64
    """Programs that divide the rows, and a divisor of the padded number of components."""

    def __init__(self, rows: Rows, code: int, n_components: int) -> None:
        super().__init__(rows, code, n_components)
        d = rows.y.shape[1]
        self._columns = wide_columns(d, code)
        padded = triton.cdiv(len(rows), 128) * 128
        self.hi = self._padded(self._columns, torch.float16, padded)
        self._lo = torch.zeros_like(self.hi)
        self.norm = self.hi
        self._fill()

    def _fill(self) -> None:
        d = len(self._unit)
        self._scale_into(self.hi, self._lo, middle=d if self._code == DIAG else 0)
        if self._code == SPHERICAL:
            self.norm, self._total_norm = self._norms()

    @property
    def made_of(self) -> tuple[Rows, int, int]:
        """Rows, code, and number of components."""
        return self._rows, self._code, self._n_components

    def given(self, theta: Coefficients) -> Wide:
        """Return θ in the form of the kernels."""
        padded = triton.cdiv(self._n_components, self.TILE) * self.TILE
        phi_hi = torch.empty((padded, self._columns), dtype=torch.float16, device=self.hi.device)
        scale, constant, square = torch.empty((3, padded), dtype=torch.float32, device=self.hi.device)
        phi_lo, found = torch.empty_like(phi_hi), torch.zeros(2, dtype=torch.float64, device=self.hi.device)
        self._coefficients(theta, phi_hi, phi_lo, scale, constant, square, found, middle=len(self._unit))
        return Wide(phi_hi, phi_lo, scale, constant, square, found[0], found[1] * self._total_norm)

    def sums(self, theta: Coefficients) -> Sums:
        """Return the sums of a full pass."""
        given = self.given(theta)
        logs, of_rows = self._first(given)
        found = self._added_parts(*self._second(given, *logs), len(self._unit))
        return Sums(found, self._log_likelihood(of_rows, given.largest, given.common))

    def _first(self, given: Wide) -> tuple[Any, Any]:
        """Return (2, n): the largest logits, and log2 of the sums of 2^(logit − largest); and log2 g."""
        n, padded = len(self._rows), len(given.scale)
        logs = torch.empty((2, n), dtype=torch.float32, device=given.scale.device)
        kernels.normalisers[(triton.cdiv(n, self.FIRST["B"]),)](
            *self._tiles(given, **self.FIRST), self.norm, given.scale, given.constant, given.square, *logs,
            n, padded, D=self._columns, **self.FIRST, SPHERICAL_ROWS=self._code == SPHERICAL,
            num_warps=8, num_stages=3,
        )  # fmt: skip
        return logs, self._log_of(logs)

    def _second(self, given: Wide, largest: Any, log: Any) -> tuple[Any, Any, Any]:
        """Return parts (splits, ...) of the counts (M,), sums (M·D,) and sums of |x|² (M,)."""
        n, padded = len(self._rows), len(given.scale)
        parts = self._parts(self.SPLITS, padded)
        kernels.accumulate[(padded // self.SECOND["C"], self.SPLITS)](
            *self._tiles(given, **self.SECOND), self.norm, self._weight, given.scale, given.constant,
            given.square, largest, log, *parts, n, triton.cdiv(n, self.SECOND["B"]), padded,
            D=self._columns, **self.SECOND, SPHERICAL_ROWS=self._code == SPHERICAL, WEIGHTED=self._weighted,
            num_warps=4, num_stages=2,
        )  # fmt: skip
        return parts

    def _parts(self, splits: int, padded: int) -> tuple[Any, Any, Any]:
        """Return memory for the results of the second pass, which writes all of it."""
        counts = torch.empty((splits, padded), dtype=torch.float32, device=self.hi.device)
        return counts, counts.new_empty((splits, padded * self._columns)), torch.empty_like(counts)

    def _tiles(self, given: Wide, B: int, C: int) -> list[Any]:
        """Return descriptors of tiles of B rows and C components, hi and lo."""
        parts = ((self.hi, B), (self._lo, B), (given.phi_hi, C), (given.phi_lo, C))
        return [TensorDescriptor.from_tensor(part, [size, self._columns]) for part, size in parts]
