"""Families of components for :class:`swiftem.Mixture`: one per file, and a line here."""

import ast
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from swiftem.core.checks import check_choice, shown
from swiftem.mixture.families.bernoulli import Bernoulli
from swiftem.mixture.families.binomial import Binomial
from swiftem.mixture.families.blocks import Blocks
from swiftem.mixture.families.categorical import Categorical
from swiftem.mixture.families.exponential import Exponential
from swiftem.mixture.families.family import Columns, Family, Params
from swiftem.mixture.families.gamma import Gamma
from swiftem.mixture.families.gaussian import Gaussian
from swiftem.mixture.families.inverse_gaussian import InverseGaussian
from swiftem.mixture.families.log_normal import LogNormal
from swiftem.mixture.families.poisson import Poisson
from swiftem.mixture.families.student_t import StudentT
from swiftem.mixture.families.von_mises_fisher import VonMisesFisher

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Binomial",
    "Blocks",
    "Categorical",
    "Columns",
    "Exponential",
    "Family",
    "Gamma",
    "Gaussian",
    "Given",
    "InverseGaussian",
    "LogNormal",
    "Params",
    "Poisson",
    "StudentT",
    "VonMisesFisher",
    "read_family",
]

Given = str | Family | Mapping[Any, Any]
"""How users specify components: a name, a family, or a dict of these with the columns of each."""

FAMILIES: dict[str, type[Family]] = {
    kind.name: kind
    for kind in (
        Bernoulli,
        Binomial,
        Categorical,
        Exponential,
        Gamma,
        Gaussian,
        InverseGaussian,
        LogNormal,
        Poisson,
        StudentT,
        VonMisesFisher,
    )
}
"""The library's families by name."""


def read_family(family: Given) -> Family:
    """Return a family, given by name, as an object, or as a dict of blocks.

    A name may have options in parentheses, as Python writes them. Hyphens may be omitted.

    >>> read_family("poisson")
    Poisson()
    >>> read_family("binomial(trials=10)")
    Binomial(trials=10)
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
    name, options = _options(family)
    plain = {known.replace("-", ""): known for known in FAMILIES}
    name = plain.get(name.replace("-", "").replace("_", ""), name)
    kind = FAMILIES[check_choice("family", name, tuple(FAMILIES))]
    known = fields(kind)  # type: ignore[arg-type]
    for option in options.keys() - {part.name for part in known}:
        public = ", ".join(part.name for part in known if part.repr) or "none"
        raise ValueError(f"family must have options of {name!r}, which are: {public}; got {option!r}.")
    try:
        return kind(**options)
    except TypeError as error:
        raise ValueError(
            f"family must have options of {name!r}, got {family!r}: {str(error).rstrip('.')}."
        ) from None


def _options(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and options of a family.

    >>> _options("student-t(covariance='diag', degrees_of_freedom=4)")
    ('student-t', {'covariance': 'diag', 'degrees_of_freedom': 4})
    """
    name, bracket, rest = text.strip().partition("(")
    if not bracket:
        return name, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError
        return name.strip(), {str(part.arg): ast.literal_eval(part.value) for part in call.keywords}
    except (SyntaxError, ValueError):
        raise ValueError(f"family must be of the form name(option=value), got {text!r}.") from None
