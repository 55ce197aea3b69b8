"""The result of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from swiftem.core.averaging import Averages
from swiftem.core.draws import Entropy
from swiftem.core.types import Array, Theta, Tree

Status = Literal["completed", "stopped", "interrupted", "rejected"]


@dataclass(frozen=True, slots=True)
class Iterate:
    r"""One recorded iterate; unpacks as ``k, passes, theta``.

    Attributes
    ----------
    k : int
        Iterations done.
    passes : float
        E-step evaluations so far, divided by n.
    theta : NamedTuple
        :math:`\theta^{(k)}`.
    s : ndarray, shape (q,)
        :math:`\hat s^{(k)}`.
    rejected : int
        Steps rejected so far.
    """

    k: int
    passes: float
    theta: Theta
    s: Array
    rejected: int

    def __iter__(self) -> Iterator[Tree]:
        return iter((self.k, self.passes, self.theta))


class State(NamedTuple):
    """State of a run, without θ and s: enough to continue exactly.

    Attributes
    ----------
    name, n : str and int
        The method's name and the number of samples.
    k, evaluations, rejected : int
        Iterations done, E-step evaluations, and steps rejected since the first run.
    entropy : ndarray of uint32, shape (4,)
        The seed of the draws.
    method : NamedTuple
        The method's own state.
    loop : NamedTuple or None
        Internal form of the statistics in compiled code, if it is not just s: without it a run would
        continue equal up to rounding only.
    is_m_step, before : bool and ndarray or None
        As in :class:`swiftem.core.algorithm.Current`.
    averages : Averages or None
        What is averaged, if the method reports averages.
    """

    name: str
    n: int
    k: int
    evaluations: int
    rejected: int
    entropy: Entropy
    method: Tree
    loop: Tree = None
    is_m_step: bool = False
    before: Array | None = None
    averages: Averages | None = None

    @property
    def is_before_first_pass(self) -> bool:
        """Whether Ctrl-C came in the first pass, so that there are only θ^(0) and the seed."""
        return self.k == self.evaluations == 0 and self.method is None


@dataclass(frozen=True)
class Result:
    """The result of :func:`swiftem.run`.

    Attributes
    ----------
    theta : NamedTuple
        Final parameters.
    s : ndarray, shape (q,)
        Final statistics; ``model.unpack`` names their parts. None if Ctrl-C came in the first pass, unless
        they were given as ``s0``.
    state : State
        Pass it to :func:`swiftem.run` with ``theta`` and ``s`` to continue exactly here.
    passes : float
        E-step evaluations divided by n, the first pass included.
    n_iter : int
        Number of iterations, with those before a resumed run.
    rejected : int
        Number of steps that would have left the model's domain.
    status : {"completed", "stopped", "interrupted", "rejected"}
        All iterations done; stopped by a callback; interrupted by Ctrl-C; or all iterations done and every
        step rejected, so that θ is the initial one. Steps before a resumed run do not count for that.
    path : list
        The records.
    """

    theta: Theta
    s: Array = field(repr=False)
    state: State = field(repr=False)
    passes: float
    n_iter: int
    rejected: int
    status: Status
    path: list[Tree] = field(repr=False)
