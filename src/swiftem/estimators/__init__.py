"""Estimators with the interface of scikit-learn."""

from swiftem.mixture.gaussian_mixture import GaussianMixture
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.starts.initial import DegenerateComponentWarning
from swiftem.mixture.starts.spurious import SpuriousComponentWarning
from swiftem.regression.regression_mixture import RegressionMixture
from swiftem.topics.plsa import PLSA
from swiftem.topics.select import NumberOfTopics, select_topics

__all__ = [
    "PLSA",
    "DegenerateComponentWarning",
    "GaussianMixture",
    "Mixture",
    "NumberOfTopics",
    "RegressionMixture",
    "SpuriousComponentWarning",
    "select_topics",
]
