"""E-steps of mixtures on a GPU: the rows are there, θ goes in, statistics come out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from swiftem._typing import Array, Theta
from swiftem.data.rows.tensor_source import TensorSource, torch_of
from swiftem.data.source import Source
from swiftem.engine.expectation import Evaluation
from swiftem.engine.gpu.device import DEVICE_KERNELS
from swiftem.engine.gpu.passes import Given, Rows, e_steps, sums
from swiftem.engine.small_expectation import TIED, KeptExpectation
from swiftem.files.scratch import in_words
from swiftem.models.components import BoundComponents
from swiftem.models.gaussian_components import BoundGaussians

__all__ = ["DeviceExpectation"]

ROWS = 1 << 18
"""Rows copied to the device at a time."""


class DeviceExpectation(KeptExpectation):
    """As :class:`swiftem.engine.expectation.Expectation`, with full passes on a device.

    float32 rows are computed by kernels in Triton with the accuracy of float32, if there are some for the
    model and if that is accurate enough at θ. Everything else is float64, in PyTorch.

    Parameters
    ----------
    model : BoundComponents
        The model, bound to ``source``.
    source : Source
        The samples.
    between_blocks : callable
        Called before a pass; it may raise.
    kernels : str
        As given by :func:`swiftem.engine.gpu.device.kernels_of`.
    """

    def __init__(
        self, model: Any, source: Source, between_blocks: Callable[[], None], kernels: str
    ) -> None:  # fmt: skip
        if not self.serves(model):
            what = getattr(getattr(model, "kind", None), "name", type(model).__name__)
            raise ValueError(f"device must be 'cpu' for {what}: there are no passes on a GPU for it.")
        super().__init__(model, source, between_blocks)
        self._device = kernels.removeprefix(DEVICE_KERNELS)
        self._kept: Rows | None = None
        self._fast: Any = None
        self._base: Array | None = None
        self._products: Array | None = None

    def _rows(self) -> Rows:
        """Return the rows on the device; the first call copies them there."""
        if self._kept is None:
            torch = torch_of(f"device={self._device!r}")
            bound, source, device = self.bound, self._source, torch.device(self._device)
            self._check_room(torch, device)
            if isinstance(source, TensorSource) and isinstance(bound, BoundGaussians):
                y, given = source.tensor.to(device), source.weight
                weight = None if given is None else torch.from_numpy(given).to(device)
            else:
                y, weight = self._copied(torch, device)
            centre = torch.from_numpy(bound.centre).to(device)
            low, high = (end.double() - centre for end in torch.aminmax(y, dim=0))
            reach = torch.maximum(low.abs(), high.abs()).cpu().numpy()
            norms = [
                (y[start : start + ROWS].double() - centre).square().sum(dim=1).max()
                for start in range(0, self.n, ROWS)
            ]
            self._kept = Rows(y, centre, weight, reach, float(torch.stack(norms).max()) ** 0.5)
            if bound.code == TIED:
                self._products = _products(torch, self._kept)
            self._fast = _fast(self._kept, bound)
        return self._kept

    def _check_room(self, torch: Any, device: Any) -> None:
        """Raise ValueError if the rows, and a copy of them for the kernels, do not fit."""
        if device.type != "cuda":
            return
        copies = 1 if isinstance(self._source, TensorSource) else 2
        needed, (free, _) = 8 * copies * self.n * len(self.bound.centre), torch.cuda.mem_get_info(device)
        if needed > free:
            raise ValueError(
                f"data need up to {in_words(needed)} on {self._device}, where {in_words(free)} are free: use "
                "device='cpu', or float32 rows of fewer columns."
            )

    def _copied(self, torch: Any, device: Any) -> tuple[Any, Any]:
        """Return features and weights, copied to the device block by block."""
        bound, source = self.bound, self._source
        is_gaussian = isinstance(bound, BoundGaussians)
        y: Any = None
        base, weight = np.zeros(0 if is_gaussian else self.n), np.empty(self.n)
        for batch in source.blocks(ROWS):
            self._between_blocks()
            first, given = int(batch.index[0]), batch.y if batch.y.ndim > 1 else batch.y[:, None]
            here = slice(first, first + len(given))
            found = np.asarray(bound.features(given))
            if found.dtype != np.float32:
                found = found.astype(np.float64, copy=False)
            if y is None:
                y = torch.empty(
                    (self.n, found.shape[1]), dtype=getattr(torch, found.dtype.name), device=device
                )
            y[here] = torch.from_numpy(np.require(found, requirements=["C", "W"])).to(device)
            weight[here] = batch.weight
            of_rows = bound.log_base(given, first)
            if of_rows is not None:
                base[here] = of_rows
        self._base = None if is_gaussian else base
        return y, None if (weight == 1.0).all() else torch.from_numpy(weight).to(device)

    def _sums(self, theta: Theta) -> tuple[Array, float]:
        rows, at = self._rows(), self.bound.coefficients(theta)
        if self._fast is None or not self._fast.serves(at):
            found, log_likelihood = sums(rows, Given.of(self.bound.code, at, rows))
            return found.cpu().numpy(), float(log_likelihood)
        of_rows, value = self._fast.whole(at)
        if self._products is not None:  # logits of "tied" lack −½ yᵀPy, common to all components
            value -= 0.5 * float(((at.whiten[0] @ self._products) * at.whiten[0]).sum())
        return of_rows, value

    def _tied_products(self) -> Array | None:
        return self._products

    def _mean_base(self) -> float:
        if self._base is None:
            return 0.0
        weight = self._rows().weight
        total = self._base.sum() if weight is None else weight.cpu().numpy() @ self._base
        return float(total) / self._source.total_weight

    def evaluate(self, theta: Theta, *, responsibilities: bool = False, labels: bool = False) -> Evaluation:
        """Return the log-likelihood of every sample; optionally responsibilities or likely components."""
        self._between_blocks()
        rows = self._rows()
        found = Evaluation(
            np.empty(self.n),
            np.empty((self.n, self.bound.n_components)) if responsibilities else None,
            np.empty(self.n, dtype=np.intp) if labels else None,
        )
        given = Given.of(self.bound.code, self.bound.coefficients(theta), rows)
        for here, _, of_components, log_likelihood in e_steps(rows, given):
            found.log_likelihood[here] = log_likelihood.cpu().numpy()
            if found.responsibilities is not None:
                found.responsibilities[here] = of_components.cpu().numpy()
            if found.labels is not None:
                found.labels[here] = of_components.argmax(dim=1).cpu().numpy()
        if self._base is not None:
            found.log_likelihood[:] += self._base
        return found


def _products(torch: Any, rows: Rows) -> Array:
    """Return Σ w yyᵀ (d, d)."""
    total = torch.zeros((len(rows.centre),) * 2, dtype=torch.float64, device=rows.y.device)
    for start in range(0, len(rows), ROWS):
        x = rows.centred(slice(start, start + ROWS))
        weighted = x if rows.weight is None else x * rows.weight[start : start + ROWS, None]
        total += x.T @ weighted
    found: Array = total.cpu().numpy()
    return found


def _fast(rows: Rows, bound: BoundComponents) -> Any:
    """Return rows in the form of the kernels in Triton, or None without them."""
    if rows.y.device.type != "cuda":
        return None
    try:
        from swiftem.engine.gpu.fast import fast_rows
    except ImportError:  # Triton is for Linux
        return None
    return fast_rows(rows, bound.code, bound.n_components)
