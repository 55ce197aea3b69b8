"""Families of components for :class:`swiftem.Mixture`: one per file, and a line here."""

from collections.abc import Mapping
from typing import Any

from swiftem._checks import check_choice, shown
from swiftem.models.families.bernoulli import Bernoulli
from swiftem.models.families.blocks import Blocks
from swiftem.models.families.categorical import Categorical
from swiftem.models.families.family import Columns, Family, Params
from swiftem.models.families.gaussian import Gaussian
from swiftem.models.families.poisson import Poisson
from swiftem.models.families.student_t import StudentT

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Blocks",
    "Categorical",
    "Columns",
    "Family",
    "Gaussian",
    "Given",
    "Params",
    "Poisson",
    "StudentT",
    "find_family",
    "read_family",
]

Given = str | Family | Mapping[Any, Any]
"""How users specify components: a name, a family, or a dict of these with the columns of each."""

FAMILIES: dict[str, type[Family]] = {
    kind.name: kind for kind in (Bernoulli, Categorical, Gaussian, Poisson, StudentT)
}
"""The library's families by name."""


def read_family(family: Given) -> Family:
    """Return a family, given by name, as an object, or as a dict of blocks.

    >>> read_family("poisson")
    Poisson()
    >>> read_family({"poisson": [0, 2], Bernoulli(): [1]}).name
    'poisson + bernoulli'
    """
    if isinstance(family, Family):
        return family
    if isinstance(family, Mapping):
        return Blocks.read([read_family(key) for key in family], family)
    if not isinstance(family, str):
        raise TypeError(
            f"family must be a name, a Family, or a dict of these and their columns, got {shown(family)}."
        )
    return FAMILIES[check_choice("family", family, tuple(FAMILIES))]()


def find_family(name: str) -> type[Family]:
    """Return the class of a family by its name in a file: the library's, or any imported one."""
    found, left = dict(FAMILIES), list(Family.__subclasses__())
    while left:
        kind = left.pop()
        found.setdefault(getattr(kind, "name", ""), kind)
        left += kind.__subclasses__()
    if name not in found:
        raise ValueError(f"family {shown(name)} is unknown: import the module that defines it first")
    return found[name]
