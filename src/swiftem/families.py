"""Families of components for :class:`swiftem.Mixture`: names, options and densities.

>>> from swiftem import families
>>> sorted(families.FAMILIES)  # doctest: +ELLIPSIS
['bernoulli', 'binomial', ...]
>>> families.read_family("binomial(trials=10)")
Binomial(trials=10)
"""

from swiftem.mixture.families import *  # noqa: F403
from swiftem.mixture.families import __all__ as __all__
