"""E-steps of mixtures on a GPU: the rows are there, θ goes in, statistics come out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from swiftem._typing import Array, Theta
from swiftem.data.foreign import DEVICE_KERNELS, torch_of
from swiftem.data.source import Source
from swiftem.engine.expectation import Evaluation
from swiftem.engine.gpu.blocks import DeviceBlocks
from swiftem.engine.gpu.passes import Rows, Sums, e_steps, sums
from swiftem.engine.small_expectation import TIED, KeptExpectation
from swiftem.models.components import BoundComponents, Coefficients

__all__ = ["DeviceExpectation"]


class DeviceExpectation(KeptExpectation):
    """As :class:`swiftem.engine.expectation.Expectation`, with full passes on a device.

    float32 rows are computed by kernels in Triton with the accuracy of float32, if there are some for the
    model and if that is accurate enough at θ. Everything else is float64, in PyTorch. Rows that do not fit
    into the device's memory are copied in every pass.

    Parameters
    ----------
    model : BoundComponents
        The model, bound to ``source``.
    source : Source
        The samples.
    between_blocks : callable
        Called before a pass; it may raise.
    kernels : str
        As given by :func:`swiftem.data.foreign.kernels_of`.
    """

    def __init__(
        self, model: Any, source: Source, between_blocks: Callable[[], None], kernels: str
    ) -> None:  # fmt: skip
        if not self.serves(model):
            what = getattr(getattr(model, "kind", None), "name", "this model")
            raise ValueError(f"device must be 'cpu' for {what}: there are no passes on a GPU for it.")
        super().__init__(model, source, between_blocks)
        self._device = kernels.removeprefix(DEVICE_KERNELS)
        self._on_device: DeviceBlocks | None = None
        self._fast: Any = None

    @property
    def blocks(self) -> DeviceBlocks:
        """The rows on the device; the first call copies them there."""
        if self._on_device is None:
            torch = torch_of(f"device={self._device!r}")
            found = DeviceBlocks(torch, self.bound, self._source, self._device, self._between_blocks)
            if found.kept is not None:
                self._fast = fast_rows_of(found.kept, self.bound)
            self._on_device = found
        return self._on_device

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
        at, blocks = self.bound.coefficients(theta), self.blocks
        chosen = None if self._fast is None else self._fast.chosen(at)
        if chosen is not None:
            found, value = chosen.whole(at)
            return found, value + self._common(at)
        total: Any = None
        is_fast, given = False, blocks.given(at)
        for _, rows in blocks:
            fast = fast_rows_of(rows, self.bound) if blocks.kept is None else None
            chosen = None if fast is None else fast.chosen(at)
            is_fast = chosen is not None
            part = sums(rows, given) if chosen is None else chosen.sums(given.theta)
            total = added(total, part)
        value = float(total.log_likelihood) + (self._common(at) if is_fast else 0.0)
        return total.sums.cpu().numpy(), value

    def _common(self, at: Coefficients) -> float:
        """Return −½ Σ w yᵀPy, common to all components, which logits of "tied" lack in kernels."""
        if self.bound.code != TIED:
            return 0.0
        return -0.5 * float(((at.whiten[0] @ self.blocks.products) * at.whiten[0]).sum())

    def _tied_products(self) -> Array | None:
        return self.blocks.products if self.bound.code == TIED else None

    def _mean_base(self) -> float:
        return self.blocks.total_base / self._source.total_weight

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        self._between_blocks()
        found = self._room(responsibilities=responsibilities, labels=labels)
        given = self.blocks.given(self.bound.coefficients(theta))
        for of_block, rows in self.blocks:
            for within, _, of_components, log_likelihood in e_steps(rows, given):
                here = slice(of_block.start + within.start, of_block.start + within.stop)
                found.log_likelihood[here] = log_likelihood.cpu().numpy()
                if found.responsibilities is not None:
                    found.responsibilities[here] = of_components.cpu().numpy()
                if found.labels is not None:
                    found.labels[here] = of_components.argmax(dim=1).cpu().numpy()
        if self.blocks.base is not None:
            found.log_likelihood[:] += self.blocks.base
        return found


def added(total: Sums | None, part: Sums) -> Sums:
    """Return the sums of two blocks of rows; of one, if there is only one so far."""
    return part if total is None else Sums(total.sums + part.sums, total.log_likelihood + part.log_likelihood)


def fast_rows_of(rows: Rows, bound: BoundComponents) -> Any:
    """Return rows in the form of the kernels in Triton, or None without them."""
    if rows.y.device.type != "cuda":
        return None
    try:
        from swiftem.engine.gpu.prepare import fast_rows
    except ImportError:  # Triton is for Linux
        return None
    return fast_rows(rows, bound.code, bound.n_components)
