"""Passes by the kernels in Triton: rows prepared once, parameters in every pass.

Columns are divided by powers of two, so that the largest difference from the centre is between 4 and 8:
float16 then has room for squares on one side, and digits of small numbers on the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from swiftem._typing import Array
from swiftem.engine.gpu.fast import kernels
from swiftem.engine.gpu.graphs import graph_of
from swiftem.engine.gpu.passes import Extents, Rows, Sums, extents, there
from swiftem.engine.small_expectation import DIAG, FULL, SPHERICAL
from swiftem.models.components import Coefficients

__all__ = [
    "FARTHEST", "LOG2_E", "PADDING", "PER_PASS", "DenseRows", "FastRows", "TwoPasses",
    "dense_columns", "halves_of", "power", "wide_columns",
]  # fmt: skip

LOG2_E = 1.4426950408889634
PER_PASS = 2.0**-14
"""Responsibilities in kernels are 2^14 times as large."""
PADDING = -1e30
NUMBERS = 1 << 21
"""Numbers prepared at a time."""
LARGEST_LOGIT, FARTHEST = 512.0, 512.0
"""Beyond these passes in float64 are used: logits that are sums of larger numbers lose digits, and variances
that are differences of squares so many times as large. For pairs of components one standard deviation apart,
in clusters of any number and of 2 to 128 columns, errors of sums are then at most 2e-6, those of covariances
2e-5 of their size; for "full", whose logits are squares of whitened differences, 4e-7 and 1e-5."""


def dense_columns(d: int, code: int) -> int:
    """Return the padded columns of one pass; products take at least 16 features."""
    return power(d, 8) if code == DIAG else power(d + (code == SPHERICAL), 16)


def wide_columns(d: int, code: int) -> int:
    """Return the padded features of two passes."""
    return 2 * power(d, 8) if code == DIAG else power(d, 16)


def power(number: int, least: int) -> int:
    """Return the least power of two that is at least ``number``."""
    return max(least, 1 << (number - 1).bit_length())


def halves_of(values: Any) -> tuple[Any, Any]:
    """Return float64 numbers as hi + lo of float16."""
    hi = values.to(torch.float16)
    return hi, (values - hi.double()).to(torch.float16)


class FastRows(ABC):
    """Rows in the form of the kernels.

    Parameters
    ----------
    rows : Rows
        float32, on a GPU.
    code : int
        Kind of the features.
    n_components : int
        M.
    """

    NEEDS: ClassVar[tuple[str, ...]] = ("phi", "constant")
    """Parts of θ that kernels use."""
    far: FastRows | None = None
    """The same rows for passes at which expanded squares have too few digits."""

    def __init__(self, rows: Rows, code: int, n_components: int) -> None:
        self._rows, self._code, self._n_components = rows, code, n_components
        exponents = np.ceil(np.log2(rows.reach)) - 3.0
        if code == SPHERICAL:
            exponents[:] = exponents.max()
        self._theta: Coefficients | None = None
        self._graph: Any = None
        self._on_device: Any = None
        self._result: Any = None
        self._host: Any = None
        #: Memory that the graphs of these rows share: one of them runs at a time.
        self.pool: Any = None
        self._total_norm = 0.0
        #: Factors of the columns.
        self._unit: Array = np.exp2(exponents)
        device = rows.y.device
        if device.type == "cuda":
            self.pool = torch.cuda.graph_pool_handle()
        self._units = torch.from_numpy(self._unit).to(device)
        self._processors = (
            torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
        )
        self._weighted, self._weight, self._largest_weight = rows.weight is not None, rows.y.new_zeros(1), 1.0
        self._total_weight = float(len(rows))
        if rows.weight is not None:
            self._largest_weight = float(rows.weight.max())
            self._weight = (rows.weight / self._largest_weight).float()
            self._total_weight = float(rows.weight.sum())

    def extents(self, theta: Coefficients) -> Extents:
        """Return how far rows are at θ, arrays."""
        reach = torch.from_numpy(self._rows.reach)
        return Extents(*extents(there(theta, "cpu"), self._code, reach, self._rows.norm).tolist())

    def chosen(self, at: Extents) -> FastRows | None:
        """Return the rows for a pass at a θ with these extents, or None if float32 is not enough."""
        return next((rows for rows in (self, self.far) if rows is not None and rows.serves(at)), None)

    def serves(self, at: Extents) -> bool:
        """Tell whether float32 is enough: see :data:`LARGEST_LOGIT`."""
        if at.squared_reach > FARTHEST * len(self._unit):
            return False
        # For "full", squares of whitened differences do not cancel.
        return self._code == FULL or at.logit <= LARGEST_LOGIT

    def must_repeat(self) -> bool:
        """Tell whether the last pass was not accurate, which is known only afterwards."""
        return False

    def _scaled(self) -> Iterator[tuple[slice, Any]]:
        """Yield all rows, centred and scaled, float64, and their places."""
        size = max(1, NUMBERS // len(self._unit))
        for start in range(0, len(self._rows), size):
            here = slice(start, min(start + size, len(self._rows)))
            yield here, self._rows.centred(here) / self._units

    def _padded(self, columns: int, dtype: Any = torch.float32, rows: int | None = None) -> Any:
        return torch.zeros(
            (len(self._rows) if rows is None else rows, columns), dtype=dtype, device=self._rows.y.device
        )

    def whole(self, theta: Coefficients) -> tuple[Array, float]:
        """Return the sums of a full pass as an array, and the log-likelihood: see :meth:`sums`.

        On a GPU the second pass and later ones replay a graph: starting its kernels one by one would take
        longer than a small pass. θ goes there in one piece, and the sums come back in one.
        """
        given = [getattr(theta, name) for name in self.NEEDS]
        if self._theta is None:
            self._reserve(given)
        np.concatenate([part.ravel() for part in given], out=self._host[0].numpy())
        self._on_device.copy_(self._host[0], non_blocking=True)
        if self._graph is not None:
            self._graph.replay()
        else:
            self._result = self._packed()
            if self._result.is_cuda:
                self._result = self._captured()
        if self._host[1] is None:
            self._host[1] = torch.empty(
                self._result.shape, dtype=torch.float64, pin_memory=self._result.is_cuda
            )
        self._host[1].copy_(self._result, non_blocking=True)
        if self._result.is_cuda:
            torch.cuda.current_stream(self._result.device).synchronize()
        found: Array = self._host[1].numpy().copy()
        return found[:-1].reshape(self._n_components, -1), float(found[-1])

    def _reserve(self, given: list[Array]) -> None:
        """Make room for θ on both sides."""
        device, sizes = self._rows.y.device, [part.size for part in given]
        self._on_device = torch.empty(sum(sizes), dtype=torch.float64, device=device)
        self._host = [torch.empty(sum(sizes), dtype=torch.float64, pin_memory=device.type == "cuda"), None]
        parts = zip(self.NEEDS, self._on_device.split(sizes), given, strict=True)
        empty = Coefficients(*[None] * len(Coefficients._fields))  # type: ignore[arg-type]
        self._theta = empty._replace(**{name: part.view(like.shape) for name, part, like in parts})

    def _captured(self) -> Any:
        """Return the result of a graph, which is replayed for the first time."""
        self._graph, result = graph_of(self._packed, self.pool)
        self._graph.replay()
        return result

    def _packed(self) -> Any:
        assert self._theta is not None
        found = self.sums(self._theta)
        return torch.cat([found.sums.reshape(-1), found.log_likelihood.reshape(1)])

    @abstractmethod
    def sums(self, theta: Coefficients) -> Sums:
        """Return the sums of a full pass at θ, as tensors of which only ``NEEDS`` are used.

        Log-likelihoods of "tied" lack −½ yᵀPy, which is common to all components.
        """

    def _constants(self, values: Any, padded: int) -> tuple[Any, Any]:
        """Return constants (padded,) in base 2 minus their largest, float32, and the largest."""
        values = torch.nan_to_num(values * LOG2_E, neginf=PADDING)
        largest = values.max()
        found = torch.full((padded,), PADDING, dtype=torch.float32, device=values.device)
        found[: len(values)] = (values - largest).clamp(min=PADDING).float()
        return found, largest

    def _squares(self, theta: Coefficients) -> tuple[Any, Any]:
        """Return coefficients (M,) of |x|² in base 2 minus their mean, and Σ w·mean·|x|²."""
        values = theta.phi[-1] * (float(self._unit[0]) ** 2 * LOG2_E)
        mean = values.mean()
        return values - mean, mean * self._total_norm

    def _added(self, parts: Any) -> Any:
        """Return the sum over programs, of parts (programs, k), without the factors of responsibilities."""
        return parts.sum(dim=0, dtype=torch.float64) * (PER_PASS * self._largest_weight)

    def _norms(self) -> tuple[Any, float]:
        """Return |x|² of the scaled rows, float32, and their weighted sum."""
        norm = torch.empty(len(self._rows), dtype=torch.float32, device=self._rows.y.device)
        total = 0.0
        for here, x in self._scaled():
            found = x.square().sum(dim=1)
            norm[here] = found.float()
            if self._rows.weight is not None:
                found *= self._rows.weight[here]
            total += float(found.sum())
        return norm, total

    def _log_likelihood(self, log: Any, largest: Any, squares: Any = 0.0) -> Any:
        """Return Σ w log g, from sums of log2 g without the largest constant and the mean of squares."""
        return (log.double().sum() * self._largest_weight + largest * self._total_weight + squares) / LOG2_E

    def _log_of(self, largest: Any, log: Any, constant: Any, common: Any = 0.0) -> Any:
        """Return Σ w log g, from the largest logits (n,), and log2 of the sums of 2^(logit − largest)."""
        if self._rows.weight is None:  # without numbers of float64 in memory
            of_rows = largest.sum(dtype=torch.float64) + log.sum(dtype=torch.float64)
        else:
            of_rows = (largest.double() + log) * (self._rows.weight / self._largest_weight)
        return self._log_likelihood(of_rows, constant, common)


class DenseRows(FastRows):
    """For :func:`swiftem.engine.gpu.fast.kernels.dense_pass`: |x|² of "spherical" is one more column."""

    SMALL = 96
    """Most components and features for which blocks of 128 rows stay in registers."""
    WARPS = 4

    def __init__(self, rows: Rows, code: int, n_components: int) -> None:
        super().__init__(rows, code, n_components)
        d = rows.y.shape[1]
        self._x = self._padded(dense_columns(d, code))
        for here, x in self._scaled():
            self._x[here, :d] = x.float()
        if code == SPHERICAL:
            self._x[:, d], self._total_norm = self._norms()

    def sums(self, theta: Coefficients) -> Sums:
        """Return the sums of a full pass."""
        d, count, n, columns = len(self._unit), self._n_components, len(self._rows), self._x.shape[1]
        squares = self._code == DIAG
        padded, p = power(count, 16), columns * (1 + squares)
        phi, common = self._padded(padded, torch.float64, p), 0.0
        scaled = theta.phi[:d] * self._units[:, None] * LOG2_E
        if squares:
            phi[0 : 2 * d : 2, :count] = scaled
            phi[1 : 2 * d : 2, :count] = theta.phi[d:] * self._units[:, None] ** 2 * LOG2_E
        else:
            phi[:d, :count] = scaled
        if self._code == SPHERICAL:
            phi[d, :count], common = self._squares(theta)
        constant, largest = self._constants(theta.constant, padded)
        block, per_processor = (128, 2) if padded + p <= self.SMALL else (64, 3)
        programs = min(per_processor * self._processors, triton.cdiv(n, block))
        counts, sums = self._padded(padded, rows=programs), self._padded(padded * p, rows=programs)
        log = counts.new_empty(programs)
        kernels.dense_pass[(programs,)](
            self._x, self._weight, *halves_of(phi), constant, counts, sums, log, n,
            triton.cdiv(n, block), D=columns, M=padded, B=block, SQUARES=squares,
            WEIGHTED=self._weighted, num_warps=self.WARPS, num_stages=1,
        )  # fmt: skip
        found = self._added(sums).reshape(padded, p)[:count]
        parts = [self._added(counts)[:count, None]]
        if squares:
            parts += [found[:, 0 : 2 * d : 2] * self._units, found[:, 1 : 2 * d : 2] * self._units**2]
        else:
            parts.append(found[:, :d] * self._units)
        if self._code == SPHERICAL:
            parts.append(found[:, d : d + 1] * self._unit[0] ** 2)
        return Sums(torch.cat(parts, dim=1), self._log_likelihood(log, largest, common))


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
    SPLITS = 33

    def __init__(self, rows: Rows, code: int, n_components: int) -> None:
        super().__init__(rows, code, n_components)
        d = rows.y.shape[1]
        self._columns = wide_columns(d, code)
        self._factors = torch.cat([self._units, self._units**2]) if code == DIAG else self._units
        padded = triton.cdiv(len(rows), 128) * 128
        self.hi = self._padded(self._columns, torch.float16, padded)
        self._lo = torch.zeros_like(self.hi)
        for here, x in self._scaled():
            self.hi[here, :d], self._lo[here, :d] = halves_of(x)
            if code == DIAG:
                self.hi[here, d : 2 * d], self._lo[here, d : 2 * d] = halves_of(x * x)
        self.norm = self.hi
        if code == SPHERICAL:
            self.norm, self._total_norm = self._norms()

    @property
    def made_of(self) -> tuple[Rows, int, int]:
        """Rows, code, and number of components."""
        return self._rows, self._code, self._n_components

    def given(self, theta: Coefficients) -> Wide:
        """Return θ in the form of the kernels."""
        count, padded = self._n_components, triton.cdiv(self._n_components, 64) * 64
        phi = self._padded(self._columns, torch.float64, padded)
        features = len(self._factors)
        phi[:count, :features] = (theta.phi[:features] * self._factors[:, None] * LOG2_E).T
        scale = torch.exp2(torch.floor(torch.log2(phi.abs().amax(dim=1).clamp(min=1e-30))))
        constant, largest = self._constants(theta.constant, padded)
        square, common = constant, 0.0
        if self._code == SPHERICAL:
            square = torch.zeros_like(constant)
            square[:count], common = self._squares(theta)
        return Wide(*halves_of(phi / scale[:, None]), scale.float(), constant, square, largest, common)

    def sums(self, theta: Coefficients) -> Sums:
        """Return the sums of a full pass."""
        count, n, columns = self._n_components, len(self._rows), self._columns
        phi_hi, phi_lo, scale, constant, square, largest, common = self.given(theta)
        padded, spherical = len(scale), self._code == SPHERICAL
        largest_of, log = torch.empty((2, n), dtype=torch.float32, device=scale.device)
        of_components = (scale, constant, square, largest_of, log)

        def tiles(rows: int, components: int) -> list[Any]:
            given_tiles = ((self.hi, rows), (self._lo, rows), (phi_hi, components), (phi_lo, components))
            return [TensorDescriptor.from_tensor(part, [size, columns]) for part, size in given_tiles]

        kernels.normalisers[(triton.cdiv(n, self.FIRST["B"]),)](
            *tiles(self.FIRST["B"], self.FIRST["C"]), self.norm, *of_components, n, padded, D=columns,
            **self.FIRST, SPHERICAL_ROWS=spherical, num_warps=8, num_stages=3,
        )  # fmt: skip
        splits, blocks = self.SPLITS, triton.cdiv(n, self.SECOND["B"])
        counts = self._padded(padded, rows=splits)
        sums, squares = self._padded(padded * columns, rows=splits), torch.empty_like(counts)
        kernels.accumulate[(padded // self.SECOND["C"], splits)](
            *tiles(self.SECOND["B"], self.SECOND["C"]), self.norm, self._weight, *of_components, counts,
            sums, squares, n, blocks, padded, D=columns, **self.SECOND, SPHERICAL_ROWS=spherical,
            WEIGHTED=self._weighted, num_warps=4, num_stages=2,
        )  # fmt: skip
        found = self._added(sums).reshape(padded, columns)[:count, : len(self._factors)] * self._factors
        parts = [self._added(counts)[:count, None], found]
        if spherical:
            parts.append(self._added(squares)[:count, None] * self._unit[0] ** 2)
        return Sums(torch.cat(parts, dim=1), self._log_of(largest_of, log, largest, common))
