"""Families of components for :class:`swiftem.Mixture`: names, options and densities.

>>> from swiftem import families
>>> sorted(families.FAMILIES)  # doctest: +NORMALIZE_WHITESPACE
['bernoulli', 'binomial', 'categorical', 'exponential', 'gamma', 'gaussian', 'log-normal', 'poisson',
 'student-t', 'von-mises-fisher']
"""

from swiftem.models.families import *  # noqa: F403
from swiftem.models.families import __all__ as __all__
