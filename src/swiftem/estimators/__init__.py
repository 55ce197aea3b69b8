"""Estimators with the interface of scikit-learn."""

from swiftem.hmm.hidden_markov_model import HiddenMarkovModel
from swiftem.mixture.gaussian_mixture import GaussianMixture
from swiftem.mixture.mixture import Mixture
from swiftem.mixture.starts.collapsed_components import SpuriousComponentWarning
from swiftem.mixture.starts.named_starts import DegenerateComponentWarning
from swiftem.regression.regression_mixture import RegressionMixture
from swiftem.topics.plsa import PLSA
from swiftem.topics.select import NumberOfTopics, select_topics

__all__ = [
    "PLSA",
    "DegenerateComponentWarning",
    "GaussianMixture",
    "HiddenMarkovModel",
    "Mixture",
    "NumberOfTopics",
    "RegressionMixture",
    "SpuriousComponentWarning",
    "select_topics",
]
