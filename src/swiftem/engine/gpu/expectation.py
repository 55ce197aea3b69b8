"""E-steps of mixtures on a GPU: the rows are there, θ goes in, statistics come out; k-means++ of starts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import log
from typing import Any, cast

import numpy as np

from swiftem._typing import Array, Index, Theta
from swiftem.data.foreign import DEVICE_KERNELS, torch_of
from swiftem.data.source import Source
from swiftem.engine.expectation import Evaluation
from swiftem.engine.gpu.blocks import DeviceBlocks
from swiftem.engine.gpu.em import DeviceEM
from swiftem.engine.gpu.passes import Extents, Given, Rows, Sums, e_steps, sums, there
from swiftem.engine.small_expectation import TIED, KeptExpectation
from swiftem.models.components import BoundComponents, Coefficients
from swiftem.models.gaussian_components import BoundGaussians
from swiftem.models.observed_gaussians import GaussiansWithHoles

__all__ = ["DeviceExpectation", "check_on_device", "plus_plus"]

NUMBERS = 1 << 22
"""Differences computed at a time."""


class DeviceExpectation(KeptExpectation):
    """As :class:`swiftem.engine.expectation.Expectation`, with full passes on a device.

    float32 rows are computed by kernels in Triton with the accuracy of float32, if there are some for the
    model and if that is accurate enough at θ. Everything else is float64, in PyTorch. Rows that do not fit
    into the device's memory are copied in every pass.

    Parameters
    ----------
    model, source
        As in :class:`swiftem.engine.small_expectation.KeptExpectation`.
    kernels : str
        As given by :func:`swiftem.data.foreign.kernels_of`.
    limit : int, optional
        Limit of the device's memory in bytes, without data given there.
    """

    def __init__(self, model: Any, source: Source, kernels: str, limit: int | None = None) -> None:
        check_on_device(model)
        super().__init__(model, source)
        self._device, self._limit = kernels.removeprefix(DEVICE_KERNELS), limit
        self._on_device: DeviceBlocks | None = None
        self._fast: Any = None
        self._of_blocks: Any = None

    @property
    def blocks(self) -> DeviceBlocks:
        """The rows on the device; the first call copies them there."""
        if self._on_device is None:
            torch = torch_of(f"device={self._device!r}")
            self._on_device = DeviceBlocks(
                torch, self.bound, self._source, self._device, self._between_blocks, self._limit
            )
        return self._on_device

    @property
    def fast(self) -> Any:
        """The rows that stay on the device in the form of the kernels; None without them."""
        if self._fast is None:
            kept = self.blocks.kept
            self._fast = (None if kept is None else fast_rows_of(kept, self.bound),)
        return self._fast[0]

    def _pass(self, theta: Theta, remember: bool) -> tuple[Array, Array | None]:
        if not remember:
            return super()._pass(theta, remember)
        self._between_blocks()
        memory, first = self.allocate((self.n, self.bound.n_components), self.memory_dtype), 0
        dtype = getattr(torch_of("a memory"), self.memory_dtype.name)

        def keep(here: slice, responsibilities: Any) -> Any:
            """Store rows, and return them as they were rounded."""
            kept = responsibilities.to(dtype)
            memory[first + here.start : first + here.stop] = kept.cpu().numpy()
            return kept.double()

        given, total = self.blocks.given(self.bound.coefficients(theta)), cast(Any, None)
        for of_block, rows in self.blocks:
            first = of_block.start
            total = added(total, sums(rows, given, keep))
        self.evaluations += self.n
        self._last = theta, float(total.log_likelihood) / self._source.total_weight
        found = self._flat(total.sums.cpu().numpy(), self._tied_products())
        return found / self._source.total_weight, memory

    def _sums(self, theta: Theta) -> tuple[Array, float]:
        at = self.bound.coefficients(theta)
        chosen = None if self.fast is None else self.fast.chosen(self.fast.extents(at))
        if chosen is not None:
            found, value = chosen.whole(at)
            if self.bound.code == TIED:
                value -= 0.5 * float(((at.whiten[0] @ self.blocks.products) * at.whiten[0]).sum())
            return found, value
        there_at = there(at, self.blocks.device)
        total = self.total(there_at, Extents(*self.blocks.extents(there_at).tolist()))
        return total.sums.cpu().numpy(), float(total.log_likelihood)

    def total(self, theta: Coefficients, at: Extents) -> Sums:
        """Return the sums of a full pass at θ, tensors; its extents decide how they are computed."""
        blocks, total = self.blocks, cast(Any, None)
        given = Given(self.bound.code, theta, at.is_near)
        for _, rows in blocks:
            fast = self._refilled(rows) if blocks.kept is None else self.fast
            chosen = None if fast is None else fast.chosen(at)
            part = sums(rows, given) if chosen is None else _repeated(chosen, theta)
            total = added(total, part)
        return cast(Sums, total) if chosen is None else self.completed(total, theta)

    def _refilled(self, rows: Rows) -> Any:
        """Return a block of rows in the form of the kernels, in the memory of the one before."""
        if self._of_blocks is None or len(rows) > self._of_blocks[1]:
            self._of_blocks = fast_rows_of(rows, self.bound), len(rows)
        elif self._of_blocks[0] is not None:
            self._of_blocks[0].refill(rows)
        return self._of_blocks[0]

    def completed(self, found: Sums, theta: Coefficients) -> Sums:
        """Return the sums of kernels over all rows with −½ yᵀPy of "tied", common to all components."""
        if self.bound.code != TIED:
            return found
        common = ((theta.whiten[0] @ self.products) * theta.whiten[0]).sum()
        return found._replace(log_likelihood=found.log_likelihood - 0.5 * common)

    @cached_property
    def products(self) -> Any:
        """Σ w yyᵀ (d, d) on the device; zero unless the kind is "tied"."""
        return torch_of("a device").from_numpy(self.blocks.products).to(self.blocks.device)

    def plus_plus(self, random_state: np.random.RandomState) -> Index | None:
        """Return the rows (M,) that k-means++ chooses, on the device; None if the rows do not stay there.

        The draws are those of scikit-learn's: so are the rows, but for rounding of distances.
        """
        rows = self.blocks.kept if isinstance(self.bound, BoundGaussians) else None
        return None if rows is None else plus_plus(rows, self.bound.n_components, random_state)

    def em(self) -> DeviceEM | None:
        """Return iterations of em on the device, or None if the M-step or the penalty is the CPU's."""
        bound = self.bound
        if not isinstance(bound, BoundGaussians) or bound.model.prior is not None:
            return None
        has_penalty = bound.model.known_weights is None and bound.epsilon > 0
        return None if has_penalty else DeviceEM(self)

    def _tied_products(self) -> Array | None:
        return self.blocks.products if self.bound.code == TIED else None

    def _mean_base(self) -> float:
        return self.blocks.total_base / self._source.total_weight

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        found = Evaluation.room(self.n, self.bound.n_components, responsibilities, labels)
        for here, part in self._evaluations(theta, responsibilities=responsibilities, labels=labels):
            for into, values in zip(found, part, strict=True):
                if into is not None:
                    into[here] = values.cpu().numpy()
        return found

    def evaluate_there(
        self, theta: Theta, *, responsibilities: bool = False, labels: bool = False
    ) -> Evaluation:  # fmt: skip
        """As :meth:`evaluate`, in tensors on the device; float32 for rows of float32."""
        torch, found = torch_of("a device"), cast(Any, None)
        for here, part in self._evaluations(theta, responsibilities=responsibilities, labels=labels):
            if found is None:
                dtype = getattr(torch, np.dtype(cast(Any, self._source).dtype).name)
                found = Evaluation(*cast(Any, (
                    None if values is None else torch.empty(
                        (self.n, *values.shape[1:]), device=values.device,
                        dtype=dtype if values.is_floating_point() else values.dtype,
                    )
                    for values in part
                )))  # fmt: skip
            for into, values in zip(found, part, strict=True):
                if into is not None:
                    into[here] = values.to(into.dtype)
        return cast(Evaluation, found)

    def _evaluations(
        self, theta: Theta, *, responsibilities: bool, labels: bool
    ) -> Iterator[tuple[slice, Any]]:  # fmt: skip
        """Yield places of rows, and their evaluation in tensors."""
        self._between_blocks()
        torch, blocks = torch_of("a device"), self.blocks
        given = blocks.given(self.bound.coefficients(theta))
        for of_block, rows in blocks:
            for within, _, of_components, log_likelihood in e_steps(rows, given):
                here = slice(of_block.start + within.start, of_block.start + within.stop)
                if blocks.base is not None:
                    log_likelihood += torch.from_numpy(blocks.base[here]).to(log_likelihood.device)
                yield (
                    here,
                    Evaluation(
                        log_likelihood,
                        of_components if responsibilities else None,
                        of_components.argmax(dim=1) if labels else None,
                    ),
                )


def check_on_device(model: Any) -> None:
    """Raise ValueError for a bound model that has no passes on a device."""
    if isinstance(model, GaussiansWithHoles):
        raise ValueError("device must be 'cpu' if cells are missing: passes on a GPU need complete rows.")
    if not DeviceExpectation.serves(model):
        what = getattr(getattr(model, "kind", None), "name", "this model")
        raise ValueError(f"device must be 'cpu' for {what}: there are no passes on a GPU for it.")


def added(total: Sums | None, part: Sums) -> Sums:
    """Return the sums of two blocks of rows; of one, if there is only one so far."""
    return part if total is None else Sums(total.sums + part.sums, total.log_likelihood + part.log_likelihood)


def _repeated(rows: Any, theta: Coefficients) -> Sums:
    """Return the sums of kernels, repeated if they were not accurate."""
    found: Sums = rows.sums(theta)
    return rows.sums(theta) if rows.must_repeat() else found


def fast_rows_of(rows: Rows, bound: BoundComponents) -> Any:
    """Return rows in the form of the kernels in Triton, or None without them."""
    if rows.y.device.type != "cuda":
        return None
    try:
        from swiftem.engine.gpu.fast.prepare import fast_rows
    except ImportError:  # Triton is for Linux
        return None
    return fast_rows(rows, bound.code, bound.n_components)


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
