"""Estimators with the interface of scikit-learn."""

from swiftem.estimators.gaussian_mixture import GaussianMixture
from swiftem.estimators.plsa import PLSA

__all__ = ["PLSA", "GaussianMixture"]
