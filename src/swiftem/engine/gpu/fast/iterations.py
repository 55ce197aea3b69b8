"""Iterations by the kernels in Triton: full covariances of few columns, float32 rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton

from swiftem._typing import Array
from swiftem.engine.gpu.fast import batch_kernels as kernels
from swiftem.engine.gpu.fast.full import FullRows
from swiftem.engine.gpu.fast.rows import FARTHEST, LOG2_E, PADDING, PER_PASS, halves_of
from swiftem.engine.gpu.iterations import Done, DrawnRows, Graphs, Read, Setting
from swiftem.engine.gpu.passes import there
from swiftem.models.components import Coefficients

__all__ = ["FastIterations"]

HALF = (0.5 * LOG2_E) ** 0.5
ANCHOR = 3
"""Slot of an anchor that does not follow θ."""
REFERENCES = {
    "none": kernels.NOTHING, "anchor": kernels.ANCHOR, "previous": kernels.ANCHOR, "memory": kernels.MEMORY,
}  # fmt: skip


class FastIterations:
    """As :class:`swiftem.engine.gpu.iterations.Iterations`, two kernels per iteration.

    Statistics are in units of powers of two, in which no column exceeds 8, and components of M·D whitened
    columns are padded.

    Parameters
    ----------
    setting, drawn, memory
        As there; λ must not be learned.
    full : FullRows
        The rows in the form of the kernels.
    """

    AT_ONCE = 64
    PROGRAMS = 256
    """Most programs of a batch."""

    def __init__(self, setting: Setting, drawn: DrawnRows, memory: Any, full: FullRows) -> None:
        self._setting, self._drawn, self._memory, self._full = setting, drawn, memory, full
        bound, update, b = setting.bound, setting.update, setting.batch_size
        device, self._p = setting.rows.y.device, full.z.shape[1]
        self._count, self._d, self._padded, self._columns = bound.n_components, bound.d, *full.sizes
        self._width = self._columns**2 + self._p
        block, warps, most = (64, 4, self.PROGRAMS) if b >= 1024 else (16, 1, self.PROGRAMS)
        if setting.is_all:
            block, warps, most = FullRows.BLOCK, FullRows.WARPS, full.programs
        blocks = triton.cdiv(b, block)
        groups = min(blocks, most)
        reads, renews = update.renewed_by != "drawn", update.renewed_by != "none"
        readers, self._graphs = groups * reads, Graphs(self._iteration, self.AT_ONCE, device.type == "cuda")
        programs = readers + groups * renews

        def zeros(*shape: int, dtype: Any = torch.float64) -> Any:
            return torch.zeros(shape, dtype=dtype, device=device)

        self._s, self._centre = zeros(3, self._count, self._width), zeros(self._count, self._width)
        shape = 4, self._p, self._padded * self._columns
        self._u = zeros(*shape, dtype=torch.float16), zeros(*shape, dtype=torch.float16)
        self._constant = torch.full((4, self._padded), PADDING, dtype=torch.float64, device=device)
        self._flags, self._now, self._then = (zeros(size, dtype=torch.int32) for size in (self._padded, 5, 6))
        parts = zeros(programs, self._width * self._padded, dtype=torch.float32)
        stage = zeros(b if renews else 1, self._padded, dtype=torch.float32)
        held = stage if memory is None else memory
        weight = full.largest_weight
        of_mean = PER_PASS * setting.scale / b * (1.0 if setting.is_divided else weight)
        prior, kappa = bound.prior, float(bound.prior.mean_precision)
        numbers = [
            update.fixed, of_mean, PER_PASS * setting.share * weight, kappa, float(prior.degrees),
            float(bound.epsilon), FARTHEST * self._d * HALF**2,
        ]  # fmt: skip
        self._numbers = torch.tensor(numbers, dtype=torch.float64, device=device)
        unit = full.unit
        scale = prior.scale + kappa * np.outer(prior.mean, prior.mean)
        of_model = (
            self._spread(prior.mean / unit), self._spread(scale / np.outer(unit, unit)),
            self._spread(float(bound.model.reg_covar) / unit**2),
            self._numbers if bound.model.known_weights is None else self._spread(
                np.array(bound.model.known_weights, float)
            ),
            self._spread(setting.rows.reach / unit),
        )  # fmt: skip
        index, *_, other = (drawn.index or [self._flags]) * 2
        first = index if drawn.first is None else drawn.first.view(torch.uint8)
        sizes = {"COUNT": self._count, "D": self._columns, "P": self._p, "M": self._padded}
        follows = update.reference == "previous"
        self._batch: Any = (
            (programs,),
            (
                full.z, full.weight, index, other, first, *self._u, self._constant, held, stage, parts,
                self._flags, self._now, self._then, self._numbers, b, blocks, readers,
            ),
            {
                **sizes, "B": block, "REFERENCE": REFERENCES[update.reference].value,
                "FOLLOWS": follows, "RENEWS": renews, "WEIGHTED": setting.rows.weight is not None,
                "DIVIDED": setting.is_divided, "ALL": setting.is_all, "num_warps": warps, "num_stages": 1,
            },
        )  # fmt: skip
        self._add: Any = None
        if programs > self.PROGRAMS * 2:
            per, width = triton.cdiv(programs, 16), self._width * self._padded
            summed = zeros(16, width, dtype=torch.float32)
            options = {"WIDTH": width, "G": 8, "N": 64, "num_warps": 4}
            self._add = (width // 64, 16), (parts, summed, programs, per), options
            parts, programs, readers = summed, 16, 16
        scattered = triton.cdiv(b, 64) if renews else 0
        self._m_step: Any = (
            (self._count + scattered,),
            (
                parts, self._s, self._centre, *self._u, self._constant, self._flags, self._now, self._then,
                self._numbers, drawn.steps, *of_model, other, first, stage, held, b, programs, readers,
            ),
            {
                **sizes, "COLUMNS": self._d, "G": 16, "B": 64, "CENTRED": update.centre != "zero",
                "READS": reads, "FOLLOWS": follows, "RENEWS": renews,
                "HAS_KNOWN": bound.model.known_weights is not None, "RESTATES": False,
                "num_warps": 2, "num_stages": 1,
            },
        )  # fmt: skip
        self._row, self._column = np.tril_indices(self._d)
        self._is_pending = False

    def _iteration(self) -> None:
        calls = (
            (kernels.batch_pass, self._batch), (kernels.add_parts, self._add),
            (kernels.batch_m_step, self._m_step),
        )  # fmt: skip
        for kernel, call in calls:
            if call is not None:
                grid, arguments, options = call
                kernel[grid](*arguments, **options)

    def _spread(self, values: Array) -> Any:
        """Return values (d,), (d, d) or (M,) on the device, with zeros up to the padded columns."""
        columns = max(self._columns, len(values)) if values.ndim == 1 else self._columns
        padded = np.zeros((columns,) * values.ndim)
        padded[tuple(slice(size) for size in values.shape)] = values
        return torch.from_numpy(padded).to(self._setting.rows.y.device)

    def _packed(self, s: Array) -> Any:
        """Return flat statistics (q,) in the form of the kernels, (M, D·D + P)."""
        parts, unit, d = self._setting.bound.unpack(s), self._full.unit, self._d
        found = np.zeros((self._count, self._width))
        products = np.zeros((self._count, self._columns, self._columns))
        products[:, self._row, self._column] = parts.squares / (unit[self._row] * unit[self._column])
        products[:, self._column, self._row] = products[:, self._row, self._column]
        found[:, : self._columns**2] = products.reshape(self._count, -1)
        found[:, self._columns**2 : self._columns**2 + d] = parts.sums / unit
        found[:, self._columns**2 + self._columns] = parts.weights
        return torch.from_numpy(found)

    def _flat(self, packed: Array) -> Array:
        """Return statistics of the kernels as flat ones."""
        unit, d, start = self._full.unit, self._d, self._columns**2
        products = packed[:, :start].reshape(self._count, self._columns, self._columns)
        lower = products[:, self._row, self._column] * (unit[self._row] * unit[self._column])
        sums = packed[:, start : start + d] * unit
        return np.concatenate([packed[:, start + self._columns], sums.ravel(), lower.ravel()])

    def load(self, s: Array, centre: Array, moments: Array) -> None:
        """Set ŝ and the centre."""
        if len(s):
            before = self._slots()[1]  # an anchor that follows θ stays there
            now = (before + 1) % 3
            self._set_slots(now, before)
            self._s[now].copy_(self._packed(s))
        if len(centre):
            self._centre.copy_(self._packed(centre))

    def load_theta(self, theta: Coefficients | None) -> None:
        """Set θ; None is θ̄(s)."""
        slot = self._slots()[0]
        if theta is None:
            self._restate(slot)
        else:
            self._set(slot, theta)
            self._flags.fill_(1 if self._full.serves(self._full.extents(theta)) else 3)

    def load_anchor(self, anchor: Coefficients | None, before: Array) -> None:
        """Set the anchor; None is θ̄(before)."""
        slot = ANCHOR
        if self._setting.update.reference == "previous":
            now, flags = self._slots()[0], self._flags.clone()
            slot = (now + 1) % 3
            self._s[slot].copy_(self._packed(before))
            if anchor is None:
                self._restate(slot)
            self._set_slots(now, slot)
            self._flags.copy_(flags | 1)
        if anchor is not None:
            self._set(slot, anchor)

    def _set(self, slot: int, theta: Coefficients) -> None:
        """Write θ into a slot."""
        given = there(theta, self._numbers.device)
        u = self._full.whitening(given).reshape(self._p, -1)
        for into, part in zip(self._u, halves_of(u), strict=True):
            into[slot].copy_(part)
        self._constant[slot, : self._count] = torch.nan_to_num(given.plain * LOG2_E, neginf=PADDING)

    def _restate(self, slot: int) -> None:
        """Write θ̄ of the statistics in a slot into it, as M-steps do."""
        self._then.copy_(torch.tensor([0, slot, slot, slot, 0, 1], dtype=torch.int32))
        _, arguments, options = self._m_step
        kernels.batch_m_step[(self._count,)](*arguments, **(options | {"RESTATES": True}))

    def _set_slots(self, now: int, before: int) -> None:
        """Set the slots of θ and of the previous θ."""
        self._now.copy_(torch.tensor([0, before, before, now, 0], dtype=torch.int32))
        self._flags.fill_(1)
        self._is_pending = False

    def _slots(self) -> tuple[int, int]:
        """Return the slots of θ and of the previous θ."""
        now, flags = self._now.tolist(), self._flags[: self._count]
        accepted = bool((flags & 1).all())
        return now[3] if accepted else now[1], now[1]

    def start(self, count: int) -> None:
        """Begin as many iterations of the draws; they stop at a θ at which float32 is not enough."""
        self._now[0] = 0
        self._now[4] = -int(self._is_pending)  # a rejection that has been counted
        self._graphs.run(count)

    def finish(self) -> Done:
        """Wait for the iterations, and return what they did."""
        found = torch.cat([self._now, self._flags[: self._count]]).tolist()
        done, rejected = found[0], found[4]
        self._is_pending = not all(flag & 1 for flag in found[5:])
        return Done(done, rejected + self._is_pending, max(0, done - 1 - rejected))

    def read(self) -> Read:
        """Return statistics, centre, and the statistics before the last iteration."""
        now, before = self._slots()
        s, centre, before_s = (
            self._flat(part.cpu().numpy()) for part in (self._s[now], self._centre, self._s[before])
        )
        return Read(s, centre, before_s, np.empty(0))
