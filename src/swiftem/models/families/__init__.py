"""Families of components for :class:`swiftem.Mixture`: one a file, and a line here."""

from swiftem._checks import check_choice, shown
from swiftem.models.families.bernoulli import Bernoulli
from swiftem.models.families.family import Family, Params
from swiftem.models.families.poisson import Poisson

__all__ = ["FAMILIES", "Bernoulli", "Family", "Params", "Poisson", "find_family", "read_family"]

FAMILIES: dict[str, type[Family]] = {kind.name: kind for kind in (Bernoulli, Poisson)}
"""The library's families by name."""


def read_family(family: str | Family) -> Family:
    """Return a family, given by name or as it is.

    >>> read_family("poisson")
    Poisson()
    """
    if isinstance(family, Family):
        return family
    if not isinstance(family, str):
        raise TypeError(f"family must be a name or a Family, got {shown(family)}.")
    return FAMILIES[check_choice("family", family, tuple(FAMILIES))]()


def find_family(name: str) -> type[Family]:
    """Return the class of a family that a file names: the library's, or any that has been imported."""
    found, left = dict(FAMILIES), list(Family.__subclasses__())
    while left:
        kind = left.pop()
        found.setdefault(getattr(kind, "name", ""), kind)
        left += kind.__subclasses__()
    if name not in found:
        raise ValueError(f"family {shown(name)} is not known: import the module that has it first")
    return found[name]
