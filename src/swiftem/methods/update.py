r"""Declaration of a method's proxy, from which compiled loops compute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from swiftem._checks import check_choice, check_real
from swiftem._typing import Array

if TYPE_CHECKING:
    from swiftem.methods.method import Method

__all__ = ["Update", "declared", "learn"]

RATE = 0.01
"""Share of the newest sample in the averages behind λ: its error adds about as much to the variance of S."""

LARGEST = 2.0
"""Largest coefficient λ that is learned."""

CENTRES = {"none": "zero", "anchor": "anchor", "previous": "proxy", "memory": "memory"}
"""The centre of each reference."""


@dataclass(frozen=True)
class Update:
    r"""The proxy :math:`S = \lambda C + \mathrm{mean}_I(\bar s_i(\theta) - \lambda\, \mathrm{ref}_i)`.

    Parameters
    ----------
    reference : {"none", "anchor", "previous", "memory"}
        ref: nothing, or the sample's statistics at the state's ``anchor``, at θ of the previous iteration
        (which the state's ``anchor`` then is), or from its ``memory``.
    centre : {"zero", "anchor", "proxy", "memory"}
        C: nothing, the full pass at the anchor, the proxy of the previous iteration, or the mean of the
        memory. All but the first are the state's ``centre``. It must match the reference, whose mean it is:
        "zero" with "none", "proxy" with "previous". The full passes of "anchor" and "proxy" are at the
        iterations given by :meth:`Method.renewal`; the anchor is then θ.
    renewed_by : {"none", "drawn", "other"}
        Which memory is renewed: none; that of the samples I themselves, before S = C is read; or that of
        the samples J of a second stream, after S was computed.
    correction : float or "optimal"
        λ, from 0 to 1; or learned, see :func:`learn`, if the memory is renewed by others. The state then has
        ``moments`` (3,), the last of which is λ.

    Examples
    --------
    >>> Update(reference="anchor", centre="anchor").evaluations
    2
    """

    reference: Literal["none", "anchor", "previous", "memory"] = "none"
    centre: Literal["zero", "anchor", "proxy", "memory"] = "zero"
    renewed_by: Literal["none", "drawn", "other"] = "none"
    correction: float | Literal["optimal"] = 1.0

    def __post_init__(self) -> None:
        check_choice("reference", self.reference, ("none", "anchor", "previous", "memory"))
        check_choice("centre", self.centre, ("zero", "anchor", "proxy", "memory"))
        check_choice("renewed_by", self.renewed_by, ("none", "drawn", "other"))
        if not self.is_optimal:
            check_real("correction", self.correction, minimum=0.0, maximum=1.0)
        elif self.renewed_by != "other":
            raise ValueError("correction must be a number unless renewed_by is 'other', got 'optimal'.")
        if self.centre != CENTRES[self.reference]:
            raise ValueError(
                f"centre must be {CENTRES[self.reference]!r} if reference is {self.reference!r}."
            )
        if self.renewed_by != "none" and self.reference != "memory":
            raise ValueError(f"renewed_by must be 'none' if reference is {self.reference!r}.")

    @property
    def is_optimal(self) -> bool:
        """Whether λ is learned."""
        return isinstance(self.correction, str) and self.correction == "optimal"

    @property
    def fixed(self) -> float:
        """λ if it is a number, else 1, with which learning begins."""
        return 1.0 if isinstance(self.correction, str) else float(self.correction)

    @property
    def evaluations(self) -> int:
        """E-step evaluations per iteration for each of its b samples, without full passes."""
        return 1 + (self.reference in ("anchor", "previous")) + (self.renewed_by == "other")


def learn(moments: Array, new: Array, old: Array) -> Array:
    r"""Return the running averages after one more sample, and from them λ.

    :math:`\lambda^* = \mathrm{tr\,Cov}(x, m) / \mathrm{tr\,Var}(m)`, where x and m are the statistics of a
    random sample now and in memory, minimises the variance of :math:`\lambda C + x - \lambda m`, as C is the
    mean of m. Averages of :math:`\langle x - C, m - C\rangle` and :math:`\|m - C\|^2` estimate it.

    Parameters
    ----------
    moments : ndarray, shape (3,)
        Averages of the two products, and λ.
    new, old : ndarray, shape (q,)
        x − C and m − C of the sample.

    >>> learn(np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    array([0.02, 0.04, 0.5 ])
    """
    covariance = moments[0] + RATE * (float(new @ old) - moments[0])
    variance = moments[1] + RATE * (float(old @ old) - moments[1])
    kept = moments[2] if not variance > 0 else min(max(covariance / variance, 0.0), LARGEST)
    return np.array([covariance, variance, kept])


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
            if method.largest_batch is not None:
                return None  # compiled loops have batches of one size
            if method.update is None or (method.order == "weighted" and method.update.renewed_by == "other"):
                return None  # compiled loops have one weight per sample, and i would need none
            return _agreeing(method, method.update)
        if "proxy" in vars(kind):
            return None
    return None


def _agreeing(method: Method, update: Update) -> Update:
    """Return the update, or raise TypeError if it contradicts the method's attributes."""
    remembers = update.reference == "memory" or update.centre == "memory" or update.renewed_by != "none"
    if remembers != method.remembers:
        raise TypeError(f"update of {method.name} must use a memory if the method remembers.")
    if (2 if update.renewed_by == "other" else 1) != method.index_streams:
        raise TypeError(f"update of {method.name} must renew by others if the method has two index streams.")
    return update
