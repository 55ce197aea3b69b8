"""Estimators with the interface of scikit-learn."""

from swiftem.estimators.gaussian_mixture import GaussianMixture
from swiftem.estimators.reseed import DegenerateComponentWarning

__all__ = ["DegenerateComponentWarning", "GaussianMixture"]
