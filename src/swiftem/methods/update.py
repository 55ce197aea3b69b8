r"""Declaration of a method's proxy, from which compiled loops compute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from swiftem._checks import check_choice, check_real

if TYPE_CHECKING:
    from swiftem.methods.method import Method

__all__ = ["Update", "declared"]

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
    correction : float
        λ, from 0 to 1.

    Examples
    --------
    >>> Update(reference="anchor", centre="anchor").evaluations
    2
    """

    reference: Literal["none", "anchor", "previous", "memory"] = "none"
    centre: Literal["zero", "anchor", "proxy", "memory"] = "zero"
    renewed_by: Literal["none", "drawn", "other"] = "none"
    correction: float = 1.0

    def __post_init__(self) -> None:
        check_choice("reference", self.reference, ("none", "anchor", "previous", "memory"))
        check_choice("centre", self.centre, ("zero", "anchor", "proxy", "memory"))
        check_choice("renewed_by", self.renewed_by, ("none", "drawn", "other"))
        check_real("correction", self.correction, minimum=0.0, maximum=1.0)
        if self.centre != CENTRES[self.reference]:
            raise ValueError(
                f"centre must be {CENTRES[self.reference]!r} if reference is {self.reference!r}."
            )
        if self.renewed_by != "none" and self.reference != "memory":
            raise ValueError(f"renewed_by must be 'none' if reference is {self.reference!r}.")

    @property
    def evaluations(self) -> int:
        """E-step evaluations per iteration for each of its b samples, without full passes."""
        return 1 + (self.reference in ("anchor", "previous")) + (self.renewed_by == "other")


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
            return None if method.update is None else _agreeing(method, method.update)
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
