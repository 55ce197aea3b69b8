"""Estimators with the interface of scikit-learn."""

from swiftem.estimators.gaussian_mixture import GaussianMixture
from swiftem.estimators.plsa import PLSA
from swiftem.estimators.reseed import DegenerateComponentWarning

__all__ = ["PLSA", "DegenerateComponentWarning", "GaussianMixture"]
