"""Estimators with the interface of scikit-learn."""

from swiftem.estimators.gaussian_mixture import GaussianMixture

__all__ = ["GaussianMixture"]
