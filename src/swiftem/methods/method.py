"""The contract of a method: how the proxy of the statistics is computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import ceil
from typing import Any, ClassVar, Literal, Protocol

from swiftem._checks import check_choice, check_int
from swiftem._typing import Array, Index, Theta
from swiftem.data.source import Batch
from swiftem.methods.update import Update
from swiftem.schedules import StepSize, check_step_size

__all__ = ["EStep", "Method", "Order"]

Order = Literal["iid", "shuffled", "weighted"]
"""How samples are drawn: independently, in shuffled passes, or in proportion to their weights."""


class EStep(Protocol):
    """The data as methods access them; :class:`swiftem.engine.expectation.Expectation` implements it."""

    n: int

    def take(self, index: Index) -> Batch:
        """Return the samples with these indices."""
        ...

    def rows(self, batch: Batch, theta: Theta) -> Array:
        """Return rows (b, R) that represent the samples' statistics at θ; they can be subtracted."""
        ...

    def mean(self, batch: Batch, rows: Array) -> Array:
        """Return the statistics of ``rows``, averaged over the batch; a repeated sample counts as often."""
        ...

    def share(self, batch: Batch, rows: Array) -> Array:
        """Return the statistics of ``rows``, summed and divided by n; a repeated sample counts once."""
        ...

    def full(self, theta: Theta) -> Array:
        r"""Return :math:`\bar s(\theta)` by a full pass."""
        ...

    def objective(self, theta: Theta) -> float:
        """Return the objective; evaluations are not counted, and it is free after most full passes at θ."""
        ...

    def m_step(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`."""
        ...

    def in_domain(self, s: Array) -> bool:
        """Tell whether the M-step exists at ``s``."""
        ...

    def scale(self, s: Array) -> Array:
        """Return factors (q,) that make each statistic free of units."""
        ...


class Method(ABC):
    r"""Base class of the methods: a frozen dataclass of hyper-parameters with :meth:`init` and :meth:`proxy`.

    Algorithm 1 does the rest: :math:`\hat s \leftarrow \hat s + \gamma (S - \hat s)`, then the M-step.
    A method has no mutable state: what it needs from one iteration to the next is a NamedTuple of arrays
    that it returns and gets back.

    Attributes
    ----------
    name : str
        The name that users write.
    index_streams : int
        How many samples (or batches) it draws per iteration, independently: 0, 1 or 2.
    access : {"sequential", "random"}
        Whether reading the data in order is enough, or samples must be accessed by index.
    remembers : bool
        Whether it keeps a memory of every sample's rows.
    leaps : bool
        Whether it evaluates samples at other parameters than θ, so that its proxy is not that of em even if
        all samples are drawn.
    update : Update, optional
        Declaration of what :meth:`proxy` computes: compiled loops then run the method.
    step_size, batch_size, order, average, largest_batch
        Fields if users may choose them; class attributes if they are fixed.
    """

    name: ClassVar[str]
    index_streams: ClassVar[Literal[0, 1, 2]] = 1
    access: ClassVar[Literal["sequential", "random"]] = "sequential"
    remembers: ClassVar[bool] = False
    leaps: ClassVar[bool] = False
    update: ClassVar[Update | None] = None
    step_size: StepSize = 1.0
    batch_size: int = 1
    order: Order = "iid"
    average: int | Literal["suffix"] | None = None
    largest_batch: int | None = None

    def __post_init__(self) -> None:
        check_choice("order", self.order, ("iid", "shuffled", "weighted"))
        check_int("batch_size", self.batch_size, minimum=1, maximum=2**31 - 1)
        check_step_size(self.step_size)

    @property
    def orders(self) -> tuple[str, ...]:
        """How each index stream is drawn: ``"iid"``, ``"shuffled"`` or ``"weighted"``."""
        return (self.order,) * self.index_streams

    @property
    def drawn(self) -> int:
        """How many samples are drawn per iteration and stream: a growing batch is the first ones of them."""
        return self.batch_size if self.largest_batch is None else self.largest_batch

    @property
    def evaluations(self) -> int:
        """E-step evaluations per iteration for each of its b samples, without full passes."""
        return self.index_streams if self.update is None else self.update.evaluations

    @property
    def vectors(self) -> int:
        """Vectors of statistics in its state that a memory budget must include, if they are many."""
        return 0

    @abstractmethod
    def init(self, theta: Theta, s: Array, memory: Array | None) -> Any:
        r"""Return the state before iteration 0, a NamedTuple.

        Parameters
        ----------
        theta : NamedTuple
            :math:`\theta^{(0)}`.
        s : ndarray, shape (q,)
            :math:`\bar s(\theta^{(0)})`, or the user's ``s0`` if the method has no memory.
        memory : ndarray, shape (n, R), or None
            The rows of every sample at :math:`\theta^{(0)}` if the method has a memory. The method may keep
            it and write to it.
        """

    @abstractmethod
    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: Any, e_step: EStep
    ) -> tuple[Array, Any]:
        r"""Return :math:`S^{(k+1)}`, the approximation of :math:`\bar s(\theta^{(k)})`, and the next state.

        Parameters
        ----------
        k : int
            Index of the iteration, from 0.
        theta : NamedTuple
            :math:`\theta^{(k)}`.
        draws : tuple of ndarray, shape (b,)
            Sample indices, one array per index stream; they may repeat.
        state : NamedTuple
            As :meth:`init` or the last iteration returned it. Arrays in it may be written to, but only after
            the last use of ``e_step``, so that an interruption leaves it intact.
        e_step : EStep
            The data.
        """

    def renewal(self, k: int, n: int) -> int | None:
        """Return the first iteration from k on that begins with a full pass, or None if there is none."""
        return None

    def epoch(self, n: int) -> int:
        """Return the iterations per epoch, n / b rounded up."""
        return ceil(n / self.batch_size) if self.index_streams else 1
