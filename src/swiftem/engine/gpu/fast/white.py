"""Passes of full covariances with many columns: see ``white_kernels.py``."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from swiftem._typing import Array
from swiftem.engine.gpu.fast import component_kernels
from swiftem.engine.gpu.fast import white_kernels as kernels
from swiftem.engine.gpu.fast.lists import NEGLIGIBLE, Lists, chunk_of
from swiftem.engine.gpu.fast.rows import LOG2_E, PER_PASS, FastRows, power
from swiftem.engine.gpu.passes import Rows, Sums
from swiftem.models.components import Coefficients

__all__ = ["WhiteRows"]

PER_SUM = 2.0**-11
"""Products of responsibilities in kernels are 2^11 times as large."""
ALLOWED = NEGLIGIBLE / 4.0
"""Largest error of screening: logits of pairs that are not listed are then still negligible."""
MANY = 0.1
"""Share of all pairs above which candidates are many."""

WIDE = 128
"""Columns, padded, from which on sums of many candidates are faster by a matrix product than by lists."""


class WhiteRows(FastRows):
    """Rows as hi + lo, as many bytes as float32.

    Logits are screened by one product, and those of candidates computed again. If screening was not accurate
    enough, or if many pairs are candidates, all are computed with three products from then on. Sums are those
    of lists, or if there are many candidates and columns those of a matrix product.
    """

    NEEDS = ("plain", "means", "whiten")
    BLOCK = 128
    AT_ONCE = 1024
    """Rows of a matrix product: its sums are truncated, those of all products are added in float32."""
    TILE = 8, 128
    """Rows and features of a tile of products."""
    WARPS: ClassVar[dict[int, int]] = {1: 4, 3: 8}

    def __init__(self, rows: Rows, code: int, n_components: int) -> None:
        super().__init__(rows, code, n_components)
        d = rows.y.shape[1]
        self._columns = power(d, 32)
        self._hi = self._padded(self._columns, torch.float16, triton.cdiv(len(rows), 128) * 128)
        self._lo = torch.zeros_like(self._hi)
        self._fill()
        self._size = chunk_of(len(rows), n_components, self.BLOCK)
        self._splits = min(64, max(1, 2 * self._processors // n_components))
        self._padded_units = torch.zeros(self._columns, dtype=torch.float32, device=rows.y.device)
        self._padded_units[:d] = self._inverse_units
        self._row, self._column = torch.tril_indices(d, d, device=rows.y.device)
        self._products, self._is_dense = 1, False
        one = self._row.new_full((1,), -1)
        ones, columns = one.expand(-(1 + d + len(self._row)) % 128), torch.arange(d, device=one.device)
        self._left = torch.cat([one, columns, self._row, ones]).int()
        self._right = torch.cat([one, one.expand(d), self._column, ones]).int()
        self._log2_e = self._units.new_full((1,), LOG2_E)
        self._to_products = self._log2_e.new_tensor([1.0, PER_SUM])
        #: The largest error of screening, and the number of candidates.
        self._noted = torch.zeros(2, dtype=torch.float64, device=rows.y.device)

    def _fill(self) -> None:
        self._scale_into(self._hi, self._lo)

    def _best_parts(self, block: int, at_once: int) -> int:
        """Return the groups of components, each by its own programs, that leave few processors idle.

        A processor has ``at_once`` programs of ``block`` rows; a group more costs about 1 %, as rows are
        loaded again.
        """
        blocks, at_once = triton.cdiv(self._size, block), at_once * self._processors

        def efficiency(parts: int) -> float:
            programs = blocks * parts
            return float(programs / (triton.cdiv(programs, at_once) * at_once)) * (1.0 - 0.01 * parts)

        return max(range(1, min(self._n_components, 16) + 1), key=efficiency)

    def _groups(self) -> int:
        """Return the groups of components whose largest logits are known."""
        return self._best_parts(self.BLOCK, 2)

    def _logits(self, w_hi: Any, w_lo: Any, of_components: Any, lists: Lists, first: int, here: int) -> None:
        """Compute the logits of a chunk of rows."""
        half, block, parts = self._columns // 2, self.BLOCK, len(lists.maxima)
        matrices = ((part.view(-1, self._columns), [half, half]) for part in (w_hi, w_lo))
        given = [(self._hi, [block, half]), (self._lo, [block, half]), *matrices]
        kernels.white_logits[(triton.cdiv(here, block), parts)](
            *(TensorDescriptor.from_tensor(*each) for each in given), *of_components, lists.logits,
            lists.maxima, first, here, lists.size, len(w_hi), triton.cdiv(len(w_hi), parts), H=half, B=block,
            PRODUCTS=self._products, S=3, num_warps=self.WARPS[self._products], num_stages=1,
        )  # fmt: skip

    def whole(self, theta: Coefficients) -> tuple[Array, float]:
        """Return the sums of a full pass as an array, and the log-likelihood."""
        found = super().whole(theta)
        if self.must_repeat():
            found = super().whole(theta)
        return found

    def must_repeat(self) -> bool:
        """Tell whether the last pass was not accurate, or not fast; the next ones are then exact."""
        if self._products == 3:
            return False
        error, candidates = self._noted.tolist()
        are_many = candidates > MANY * len(self._rows) * self._n_components
        if error <= ALLOWED and not are_many:
            return False
        self._is_dense = are_many and self._columns >= WIDE
        self._products, self._graph, self._result = 3, None, None
        return True

    def sums(self, theta: Coefficients) -> Sums:
        """Return the sums of a full pass, which :meth:`must_repeat` may then reject."""
        count, n, d, columns = self._n_components, len(self._rows), len(self._unit), self._columns
        device, splits = self._hi.device, self._splits
        lists = Lists(n, count, count, self._groups(), self._size, device)
        w_hi = torch.empty((count, columns, columns), dtype=torch.float16, device=device)
        w_lo, shifts = torch.empty_like(w_hi), w_hi.new_empty((count, columns), dtype=torch.float32)
        means, of_components = shifts.new_empty((count, 2, columns)), shifts.new_empty((2, count))
        constant, whiten = self._units.new_empty(1), cast(Any, theta.whiten)
        component_kernels.give_matrices[(count,)](
            whiten, theta.means, theta.plain, self._rows.centre, self._units, self._log2_e, w_hi, w_lo,
            shifts, means, *of_components, constant, count, d, *whiten.stride(), D=columns, B=16,
        )  # fmt: skip
        linear, products = self._rooms(device)
        errors, candidates = torch.zeros((2, count * splits), dtype=torch.float32, device=device)
        cut = torch.full((1,), NEGLIGIBLE, dtype=torch.float32, device=device)
        options = {"D": columns, "COLUMNS": d, "B": 64, "num_stages": 1}
        for first, here, segments in lists.chunks():
            self._logits(w_hi, w_lo, (shifts, *of_components), lists, first, here)
            if self._is_dense:
                self._add_all(lists, first, here, products)
                continue
            lists.make(first, here, segments, cut)
            listed = lists.ends, lists.rows, lists.logits
            if self._products == 1:
                candidates[0] += lists.ends[count * segments]
                kernels.white_again[(count, splits)](
                    self._rows.y, means, self._padded_units, w_hi, w_lo, *of_components, *listed, errors,
                    first, lists.size, segments, **options, num_warps=4,
                )  # fmt: skip
            kernels.white_sums[(count, splits)](
                self._rows.y, self._weight, means, self._padded_units, *listed,
                *lists.logarithms(first, here), linear, products, first, lists.size, segments, count,
                **options, WEIGHTED=self._weighted, num_warps=8,
            )  # fmt: skip
        self._noted.copy_(torch.stack([errors.max(), candidates[0]]))
        value = self._log_likelihood(self._log_of(lists.logs), constant[0])
        if self._is_dense:
            return Sums(self._in_units(products), value)
        return Sums(self._about_centre(linear, products, theta.means), value)

    def _rooms(self, device: Any) -> tuple[Any, Any]:
        """Return zeros for the sums: of lists, float64, or (M, P) of a matrix product, float32."""
        count, columns, splits = self._n_components, self._columns, self._splits
        if self._is_dense:
            return None, torch.zeros((count, len(self._left)), dtype=torch.float32, device=device)
        shapes = (splits, count, 2, columns), (splits, count, columns, columns)
        linear, products = (torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes)
        return linear, products

    def _add_all(self, lists: Lists, first: int, here: int, sums: Any) -> None:
        """Add the sums of all pairs of a chunk to ``sums`` (M, P)."""
        count, width = sums.shape
        largest, log = lists.logarithms(first, here)
        for start in range(0, here, self.AT_ONCE):
            n = min(self.AT_ONCE, here - start)
            features = torch.empty((2 * n, width), dtype=torch.float16, device=sums.device)
            rows = torch.empty((count, 3 * n), dtype=torch.float16, device=sums.device)
            rows_at_once, features_at_once = self.TILE
            kernels.all_features[(triton.cdiv(n, rows_at_once), width // features_at_once)](
                self._hi, self._lo, self._left, self._right, features, first + start, n, D=self._columns,
                B=rows_at_once, C=features_at_once,
            )  # fmt: skip
            kernels.all_rows[(triton.cdiv(n, 64), triton.cdiv(count, 16))](
                lists.logits, largest, log, self._weight, rows, first, start, n, lists.size, count, B=64,
                C=16, WEIGHTED=self._weighted,
            )  # fmt: skip
            for left, right in ((rows[:, : 2 * n], features), (rows[:, 2 * n :], features[:n])):
                if rows.is_cuda:
                    torch.addmm(sums, left, right, out_dtype=torch.float32, out=sums)
                else:
                    sums += left.float() @ right.float()

    def _in_units(self, sums: Any) -> Any:
        """Return sums (M, 1 + p) of the features of a matrix product."""
        units = self._units[self._row] * self._units[self._column]
        units = torch.cat([torch.ones_like(units[:1]), self._units, units])
        return sums[:, : len(units)].double() * (units * (PER_PASS * self._largest_weight))

    def _about_centre(self, linear: Any, products: Any, means: Any) -> Any:
        """Return sums (M, 1 + p) about the centre of the data, from scaled ones about the means."""
        d, columns, (parts, count) = len(self._unit), self._columns, linear.shape[:2]
        found, factors = linear.new_empty((count, 1 + d + len(self._row))), self._to_products
        if self._weighted:
            factors = factors * self._largest_weight
        component_kernels.add_white_parts[(count, columns // 16)](
            linear, products, means, self._units, factors, found, parts, count, d, D=columns, B=16
        )
        return found
