"""The contract of a method: how the proxy of the statistics is computed, and its declaration as an update."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from math import ceil
from typing import Any, ClassVar, Literal, NamedTuple

from swiftem.core.checks import check_choice, check_int, check_real
from swiftem.core.compute import Compute
from swiftem.core.schedules import StepSize, check_step_size, sample_size
from swiftem.core.types import Array, Index, Theta, Tree

Order = Literal["iid", "shuffled", "weighted"]
"""How samples are drawn: independently, in shuffled passes, or in proportion to their weights."""


EStep = Compute
"""The data as methods access them."""

CENTRES = {"none": "zero", "anchor": "anchor", "previous": "proxy", "memory": "memory"}
"""The centre of each reference."""


@dataclass(frozen=True)
class Update:
    r"""The proxy :math:`S = \lambda C + \mathrm{mean}_I(\bar s_i(\theta) - \lambda\, \mathrm{ref}_i)`.

    The centre C is the mean of the references: nothing, the full pass at the anchor, the proxy of the
    previous iteration, or the mean of the memory. All but the first are the state's ``centre``. The full
    passes of "anchor" and "previous" are at the iterations given by :meth:`Method.renewal`; the anchor is
    then θ.

    Parameters
    ----------
    reference : {"none", "anchor", "previous", "memory"}
        ref: nothing, or the sample's statistics at the state's ``anchor``, at θ of the previous iteration
        (which the state's ``anchor`` then is), or from its ``memory``.
    renewed_by : {"none", "drawn", "other"}
        Which memory is renewed: none; of the samples I themselves, before S = C is read; or of the
        samples J of a second stream, after S was computed.
    correction : float
        λ, from 0 to 1.

    Examples
    --------
    >>> Update(reference="anchor").evaluations
    2
    """

    reference: Literal["none", "anchor", "previous", "memory"] = "none"
    renewed_by: Literal["none", "drawn", "other"] = "none"
    correction: float = 1.0

    def __post_init__(self) -> None:
        check_choice("reference", self.reference, tuple(CENTRES))
        check_choice("renewed_by", self.renewed_by, ("none", "drawn", "other"))
        check_real("correction", self.correction, minimum=0.0, maximum=1.0)
        if self.renewed_by != "none" and self.reference != "memory":
            raise ValueError(f"renewed_by must be 'none' if reference is {self.reference!r}.")
        if self.renewed_by == "drawn" and self.correction != 1.0:
            raise ValueError(
                f"correction must be 1 if renewed_by is 'drawn', got {self.correction}: S is then C alone."
            )

    @property
    def centre(self) -> str:
        """What C is: "zero", "anchor", "proxy" or "memory"."""
        return CENTRES[self.reference]

    @property
    def streams(self) -> Literal[1, 2]:
        """Index streams: a second one if the memory is renewed by other samples."""
        return 2 if self.renewed_by == "other" else 1

    @property
    def evaluations(self) -> int:
        """E-step evaluations per iteration for each of its b samples, without full passes."""
        return self.streams + (self.reference in ("anchor", "previous"))


class NoState(NamedTuple):
    """State of a method that keeps nothing from one iteration to the next."""


class AnchorState(NamedTuple):
    r"""``anchor``: an earlier θ; ``centre`` (q,): :math:`\bar s` there, or the proxy of that iteration."""

    anchor: Theta
    centre: Array


class MemoryState(NamedTuple):
    """``centre`` (q,): mean of the memory; ``memory`` (n, R): each sample's rows when last renewed."""

    centre: Array
    memory: Array


LEFT_OUT: Any = None
"""Default of a field that an estimator chooses for its data; otherwise it is the paper's."""


class Method(ABC):
    r"""Base class of the methods: a frozen dataclass of hyper-parameters with :meth:`proxy`.

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
        Whether it keeps a memory of every sample's rows. These three follow from ``update`` if there is one.
    leaps : bool
        Whether it evaluates samples at other parameters than θ, so that its proxy differs from em's even if
        all samples are drawn.
    update : Update, optional
        Declaration of what :meth:`proxy` computes: compiled loops then run the method.
    step_size, batch_size, order
        Fields if users may choose them; class attributes if they are fixed.
    memory_order, memory_dtype, epoch_length
        Likewise: how the second stream is drawn, by default as the first; the precision of the memory; and
        the iterations between full passes, or None.
    defaults : dict
        The paper's values of fields whose default is ``LEFT_OUT``.
    left_out : frozenset of str
        The fields that have these values because nobody gave others: see :meth:`resolved`.
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
    memory_order: Literal["iid", "shuffled"] | None = None
    memory_dtype: Literal["float64", "float32"] = "float64"
    epoch_length: int | None = None
    defaults: ClassVar[Mapping[str, Any]] = {
        "step_size": sample_size(),
        "batch_size": 1,
        "memory_order": "iid",
        "memory_dtype": "float64",
    }
    left_out: frozenset[str] = frozenset()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        update = vars(cls).get("update")
        if isinstance(update, Update):
            cls.index_streams, cls.remembers = update.streams, update.reference == "memory"
            cls.access = "random" if cls.remembers else "sequential"

    def __post_init__(self) -> None:
        left_out = [
            name for name in self.defaults if name in self.field_names() and getattr(self, name) is None
        ]
        for name in left_out:
            object.__setattr__(self, name, self.defaults[name])
        object.__setattr__(self, "left_out", frozenset(left_out))
        check_choice("order", self.order, ("iid", "shuffled", "weighted"))
        check_int("batch_size", self.batch_size, minimum=1, maximum=2**31 - 1)
        check_step_size(self.step_size)
        if self.memory_order is not None:
            check_choice("memory_order", self.memory_order, ("iid", "shuffled"))
        check_choice("memory_dtype", self.memory_dtype, ("float64", "float32"))
        if self.epoch_length is not None:
            check_int("epoch_length", self.epoch_length, minimum=1)

    @classmethod
    def field_names(cls) -> set[str]:
        """Return the names of the fields that users choose."""
        return {field.name for field in fields(cls)} if is_dataclass(cls) else set()

    def resolved(self, **choices: object) -> Method:
        """Return the method with these values for fields that were left out; others are not used.

        >>> from swiftem.methods import FastIncrementalEM
        >>> method = FastIncrementalEM(batch_size=256).resolved(batch_size=64, step_size=0.1)
        >>> method.batch_size, method.step_size
        (256, 0.1)
        """
        chosen: dict[str, Any] = {name: value for name, value in choices.items() if name in self.left_out}
        made: Method = replace(self, **chosen)  # type: ignore[type-var]  # subclasses are dataclasses
        return made

    @property
    def orders(self) -> tuple[str, ...]:
        """How each index stream is drawn: ``"iid"``, ``"shuffled"`` or ``"weighted"``."""
        return (self.order, self.memory_order or self.order)[: self.index_streams]

    @property
    def evaluations(self) -> int:
        """E-step evaluations per iteration for each of its b samples, without full passes."""
        return self.index_streams if self.update is None else self.update.evaluations

    @property
    def vectors(self) -> int:
        """Vectors of statistics in its state that a memory budget must include, if they are many."""
        return 0

    def init(self, theta: Theta, s: Array, memory: Array | None) -> Tree:
        r"""Return the state before iteration 0, a NamedTuple; by default the one of the update.

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
        if memory is not None:
            return MemoryState(s, memory)
        if self.update is not None and self.update.reference != "none":
            return AnchorState(theta, s)
        return NoState()

    def memory_of(self, state: Tree) -> Array | None:
        """Return the memory (n, R) in a state, its field ``memory``, or None if the method has none."""
        return state.memory if self.remembers else None

    @abstractmethod
    def proxy(
        self, k: int, theta: Theta, draws: tuple[Index, ...], state: Tree, e_step: EStep
    ) -> tuple[Array, Tree]:
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

    def averaging(self, n: int) -> tuple[int, int]:
        """Return ``every`` and ``window`` of :class:`~swiftem.core.algorithm.Averages`; 0 for no averages."""
        return 0, 0

    def epoch(self, n: int) -> int:
        """Return the iterations per epoch, n / b rounded up."""
        return ceil(n / self.batch_size) if self.index_streams else 1


def declared(method: Method) -> Update | None:
    """Return the update of a method, or None if it has none, or if a subclass overrides its proxy.

    >>> from swiftem.methods import OnlineEM
    >>> declared(OnlineEM()).reference
    'none'
    >>> class Own(OnlineEM):
    ...     def proxy(self, k, theta, draws, state, e_step):
    ...         return super().proxy(k, theta, draws, state, e_step)
    >>> declared(Own()) is None
    True
    """
    for kind in type(method).__mro__:
        if "update" in vars(kind):
            return method.update
        if "proxy" in vars(kind):
            return None
    return None
