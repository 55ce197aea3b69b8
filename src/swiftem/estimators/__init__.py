"""Estimators with the interface of scikit-learn."""

from swiftem.estimators.mixture.gaussian_mixture import GaussianMixture
from swiftem.estimators.mixture.initial import DegenerateComponentWarning
from swiftem.estimators.mixture.mixture import Mixture
from swiftem.estimators.mixture.optima.spurious import SpuriousComponentWarning
from swiftem.estimators.regression.regression_mixture import RegressionMixture
from swiftem.estimators.topics.plsa import PLSA
from swiftem.estimators.topics.select import NumberOfTopics, TopicSelection, select_topics

__all__ = [
    "PLSA",
    "DegenerateComponentWarning",
    "GaussianMixture",
    "Mixture",
    "NumberOfTopics",
    "RegressionMixture",
    "SpuriousComponentWarning",
    "TopicSelection",
    "select_topics",
]
