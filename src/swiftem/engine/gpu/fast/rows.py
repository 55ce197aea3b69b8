"""Passes by the kernels in Triton: rows prepared once, parameters in every pass.

Columns are divided by powers of two, so that the largest difference from the centre is between 4 and 8:
float16 then has room for squares on one side, and digits of small numbers on the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, cast

import numpy as np
import torch
import triton

from swiftem._typing import Array
from swiftem.engine.gpu.fast import component_kernels, kernels
from swiftem.engine.gpu.graphs import graph_of
from swiftem.engine.gpu.passes import Extents, Rows, Sums, extents, there
from swiftem.engine.small_expectation import DIAG, FULL, SPHERICAL
from swiftem.models.components import Coefficients

__all__ = [
    "FARTHEST", "LOG2_E", "PADDING", "PER_PASS", "DenseRows", "FastRows", "dense_columns", "halves_of",
    "power",
]  # fmt: skip

LOG2_E = 1.4426950408889634
PER_PASS = 2.0**-14
"""Responsibilities in kernels are 2^14 times as large."""
PADDING = -1e30
NUMBERS = 1 << 23
"""Numbers prepared at a time."""
LARGEST_LOGIT, FARTHEST = 512.0, 512.0
"""Beyond these passes in float64 are used: logits that are sums of larger numbers lose digits, and variances
that are differences of squares so many times as large. For pairs of components one standard deviation apart,
in clusters of any number and of 2 to 128 columns, errors of sums are then at most 2e-6, those of covariances
2e-5 of their size; for "full", whose logits are squares of whitened differences, 4e-7 and 1e-5."""


def dense_columns(d: int, code: int) -> int:
    """Return the padded columns of one pass; products take at least 16 features."""
    return power(d, 8) if code == DIAG else power(d + (code == SPHERICAL), 16)


def power(number: int, least: int) -> int:
    """Return the least power of two that is at least ``number``."""
    return max(least, 1 << (number - 1).bit_length())


def halves_of(values: Any) -> tuple[Any, Any]:
    """Return float64 numbers as hi + lo of float16."""
    hi = values.to(torch.float16)
    return hi, (values - hi).to(torch.float16)


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
        self._code, self._n_components = code, n_components
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
        self._total_norm: Any = 0.0
        #: Factors of the columns.
        self._unit: Array = np.exp2(exponents)
        device = rows.y.device
        if device.type == "cuda":
            self.pool = torch.cuda.graph_pool_handle()
        self._units = torch.from_numpy(self._unit).to(device)
        self._processors = (
            torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
        )
        factors, one = [self._units], torch.ones_like(self._units[:1])
        if code == DIAG:
            factors.append(self._units**2)
        elif code == SPHERICAL:
            factors.append(self._units[:1] ** 2)
        #: Factors of the features and of the constant, and those of counts and sums.
        self._to_phi = torch.cat([*factors, one]) * LOG2_E
        self._to_sums = torch.cat([one, *factors]) * PER_PASS
        self._inverse_units = 1.0 / self._units
        self._take(rows)

    def _take(self, rows: Rows) -> None:
        """Note the rows and their weights."""
        self._rows = rows
        self._weighted, self._weight, self._largest_weight = rows.weight is not None, rows.y.new_zeros(1), 1.0
        self._total_weight = float(len(rows))
        if rows.weight is not None:
            self._largest_weight = float(rows.weight.max())
            self._weight = (rows.weight / self._largest_weight).float()
            self._total_weight = float(rows.weight.sum())

    def refill(self, rows: Rows) -> None:
        """Use other rows in the same memory: at most as many as the first ones, with the same reach."""
        self._take(rows)
        self._fill()
        if self.far is not None:
            self.far._take(rows)

    @abstractmethod
    def _fill(self) -> None:
        """Write the rows in the form of the kernels."""

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
            yield here, self._rows.centred(here).div_(self._units)

    def _scale_into(self, hi: Any, lo: Any, middle: int = 0) -> None:
        """Write all rows, centred and scaled, as float32, or as hi and lo of float16.

        Their squares too if ``middle`` is given, the column where these begin.
        """
        n, d = self._rows.y.shape
        columns = power(d, 8)
        size = max(1, 4096 // columns)
        kernels.scaled_rows[(triton.cdiv(n, size),)](
            self._rows.y.contiguous(), self._rows.centre, self._inverse_units, hi, lo, n, hi.stride(0),
            middle, COLUMNS=d, D=columns, B=size, SQUARES=middle > 0, SPLIT=hi.dtype == torch.float16,
        )  # fmt: skip

    def _coefficients(
        self, theta: Coefficients, hi: Any, lo: Any, scale: Any, constant: Any, square: Any, found: Any,
        middle: int,
    ) -> None:  # fmt: skip
        """Write θ in the form of kernels with stored features; without ``scale``, for few components."""
        is_wide, phi = scale is not None, cast(Any, theta.phi)
        component_kernels.give_coefficients[(len(constant),)](
            phi, theta.constant, self._to_phi, hi, lo, constant if scale is None else scale, constant, square,
            found, self._n_components, *phi.stride(), len(self._unit), middle, P=lo.shape[1],
            SQUARES=self._code == DIAG, SPHERICAL=self._code == SPHERICAL, WIDE=is_wide,
        )  # fmt: skip

    def _added_parts(
        self, counts: Any, sums: Any, squares: Any, middle: int, *, is_wide: bool = True
    ) -> Any:  # fmt: skip
        """Return the sums (M, 1 + p) of parts: counts (parts, M), sums (parts, M·P), those of |x|²."""
        count, (parts, padded) = self._n_components, counts.shape
        factors = self._to_sums * self._largest_weight if self._weighted else self._to_sums
        found = torch.empty((count, len(factors)), dtype=torch.float64, device=counts.device)
        width = sums.shape[1] // padded // (1 if is_wide else 2)
        component_kernels.add_parts[(count,)](
            counts, sums, squares, factors, found, parts, padded, len(factors) - 1, len(self._unit), middle,
            P=width, B=64 if parts > 64 else 16, SQUARES=self._code == DIAG,
            SPHERICAL=self._code == SPHERICAL, WIDE=is_wide,
        )  # fmt: skip
        return found

    def _padded(self, columns: int, dtype: Any = torch.float32, rows: int | None = None) -> Any:
        return torch.zeros(
            (len(self._rows) if rows is None else rows, columns), dtype=dtype, device=self._rows.y.device
        )

    def whole(self, theta: Coefficients) -> tuple[Array, float]:
        """Return the sums of a full pass as an array, and the log-likelihood: see :meth:`sums`.

        On a GPU the second pass and later ones are a graph: starting its kernels one by one would take
        longer than a small pass. θ goes there in one piece, and the sums come back in one.
        """
        given = [getattr(theta, name) for name in self.NEEDS]
        if self._theta is None:
            self._reserve(given)
        np.concatenate([part.ravel() for part in given], out=self._host[0].numpy())
        self._on_device.copy_(self._host[0], non_blocking=True)
        if self._graph is not None:
            self._graph.replay()
        elif self._result is not None and self._result.is_cuda:
            self._result = self._captured()
        else:
            self._result = self._packed()
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

    def _norms(self) -> tuple[Any, Any]:
        """Return |x|² of the scaled rows, float32, and their weighted sum, which nobody waits for."""
        norm = torch.empty(len(self._rows), dtype=torch.float32, device=self._rows.y.device)
        total = torch.zeros((), dtype=torch.float64, device=norm.device)
        for here, x in self._scaled():
            found = x.square().sum(dim=1)
            norm[here] = found.float()
            if self._rows.weight is not None:
                found *= self._rows.weight[here]
            total += found.sum()
        return norm, total

    def _log_likelihood(self, log: Any, largest: Any, squares: Any = 0.0) -> Any:
        """Return Σ w log g, from sums of log2 g without the largest constant and the mean of squares."""
        return (log.double().sum() * self._largest_weight + largest * self._total_weight + squares) / LOG2_E

    def _log_of(self, logs: Any) -> Any:
        """Return log2 g of the rows, or its sum, times the weights over the largest one.

        ``logs`` (2, n) are the largest logits, and log2 of the sums of 2^(logit − largest).
        """
        if self._rows.weight is None:  # without numbers of float64 in memory
            return logs.sum(dtype=torch.float64)
        return (logs[0].double() + logs[1]) * (self._rows.weight / self._largest_weight)


class DenseRows(FastRows):
    """For :func:`swiftem.engine.gpu.fast.kernels.dense_pass`: |x|² of "spherical" is one more column."""

    SMALL = 96
    """Most components and features for which blocks of 128 rows stay in registers."""
    WARPS = 4

    def __init__(self, rows: Rows, code: int, n_components: int) -> None:
        super().__init__(rows, code, n_components)
        self._x = self._padded(dense_columns(rows.y.shape[1], code))
        self._fill()

    def _fill(self) -> None:
        self._scale_into(self._x, self._x)
        if self._code == SPHERICAL:
            n, d = self._rows.y.shape
            self._x[:n, d], self._total_norm = self._norms()

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
