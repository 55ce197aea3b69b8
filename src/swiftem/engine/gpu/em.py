"""Iterations of em on a device: statistics and parameters stay there, the CPU reads a few numbers of each."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from swiftem._typing import Array, Theta
from swiftem.engine.gpu.blocks import DeviceBlocks
from swiftem.engine.gpu.graphs import graph_of
from swiftem.engine.gpu.m_step import DeviceMStep
from swiftem.engine.gpu.passes import Extents, Sums, there
from swiftem.engine.reference.gaussian_components import lower_triangle
from swiftem.engine.small_expectation import TIED
from swiftem.models.components import Coefficients

__all__ = ["DeviceEM", "Passed"]


class Passed(NamedTuple):
    """A pass at θ, and whether θ̄(s) follows.

    Attributes
    ----------
    objective : float
        The objective at θ.
    is_in : bool
        Whether s is in the domain; otherwise there is no next θ.
    least : float
        The smallest of the components' weights in s.
    """

    objective: float
    is_in: bool
    least: float


class Passes(Protocol):
    """What is needed of E-steps on a device."""

    bound: Any
    n: int
    evaluations: int
    _source: Any

    @property
    def blocks(self) -> DeviceBlocks: ...
    @property
    def fast(self) -> Any: ...
    @property
    def products(self) -> Any: ...
    def _mean_base(self) -> float: ...
    def total(self, theta: Coefficients, at: Extents) -> Sums: ...
    def fast_total(self, rows: Any, theta: Coefficients, *, checked: bool = True) -> Sums: ...


class DeviceEM:
    """em, pass by pass: :meth:`load` sets θ, :meth:`advance` does a pass and the M-step after it.

    Rows that stay on the device are passed by a graph that contains the M-step; its first pass is not one,
    so that kernels are compiled.

    Parameters
    ----------
    e_step : DeviceExpectation
        The E-steps.
    """

    def __init__(self, e_step: Passes) -> None:
        self._e_step, self._bound = e_step, e_step.bound
        self._m_step = DeviceMStep(e_step.bound, e_step.blocks.device)
        self._now: Any = None
        self._next: Any = None
        self._s: Any = None
        self._before: Any = None
        self._found: Any = None
        self._extents: Any = None
        self._graphs: dict[Any, Any] = {}
        self._squares: Any = None
        if self._bound.code == TIED:
            row, column = (index.tolist() for index in lower_triangle(self._bound.d))
            self._squares = e_step.products[row, column]

    def load(self, theta: Theta) -> None:
        """Set θ."""
        device = self._e_step.blocks.device
        given: Any = there(self._bound.coefficients(theta), device)
        if self._next is None:
            # φ of an M-step is a transpose: what graphs read must have the form that they write.
            self._next = Coefficients(*(part.clone() for part in given))
            self._now = Coefficients(*(part.clone() for part in given))
        else:
            _copy(self._next, given)
        self._extents = Extents(*self._e_step.blocks.extents(self._next).tolist())

    def advance(self) -> Passed:
        """Do a pass at θ, and the M-step that gives the next θ; wait for what decides how to continue."""
        _copy(self._now, self._next)
        if self._s is not None:
            self._before = self._s.clone()
        fast = self._e_step.fast
        chosen = None if fast is None else fast.chosen(self._extents)
        if chosen is None:
            self._finish(self._e_step.total(self._now, self._extents))
        else:
            self._replay(chosen)
            if chosen.must_repeat():
                self._graphs.pop(chosen, None)
                self._replay(chosen)
        value, is_in, least, *extents = self._found.tolist()
        self._extents = Extents(*extents)
        self._e_step.evaluations += self._e_step.n
        mean = value / self._e_step._source.total_weight
        return Passed(-mean - self._e_step._mean_base(), bool(is_in), least)

    @property
    def s(self) -> Array:
        """The statistics of the last pass, a copy."""
        return self._s.cpu().numpy().copy()  # type: ignore[no-any-return]

    @property
    def before(self) -> Array:
        """The statistics of the pass before, a copy."""
        return self._before.cpu().numpy().copy()  # type: ignore[no-any-return]

    def _replay(self, rows: Any) -> None:
        """Do a pass by kernels: as it is the first time, then as a graph."""

        def iteration() -> None:
            self._finish(self._e_step.fast_total(rows, self._now, checked=False))

        if rows in self._graphs:
            graph = self._graphs[rows]
            if graph is None:
                graph = self._graphs[rows] = graph_of(iteration, rows.pool)[0]
            graph.replay()
            return
        iteration()
        if self._s.is_cuda:
            self._graphs[rows] = None

    def _finish(self, total: Sums) -> None:
        """Write s, the next θ, and what the CPU reads."""
        import torch

        e_step, d = self._e_step, self._bound.d
        squares = total.sums[:, 1 + d :] if self._squares is None else self._squares
        parts = total.sums[:, 0], total.sums[:, 1 : 1 + d].reshape(-1), squares.reshape(-1)
        s = torch.cat(parts) / e_step._source.total_weight
        is_in, theta = self._m_step(s)
        numbers = torch.stack([total.log_likelihood, is_in.double(), s[: len(total.sums)].min()])
        found = torch.cat([numbers, e_step.blocks.extents(theta)])
        if self._s is None:
            self._s, self._found = s.clone(), found.clone()
        else:
            self._s.copy_(s)
            self._found.copy_(found)
        _copy(self._next, theta)


def _copy(into: Any, theta: Any) -> None:
    for one, other in zip(into, theta, strict=True):
        one.copy_(other)
