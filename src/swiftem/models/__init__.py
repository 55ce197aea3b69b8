"""The models: one per file."""

from swiftem.core.model import BoundModel, Model
from swiftem.functions.model import ExponentialFamilyModel, FunctionModel
from swiftem.mixture.components import MixtureStatistics
from swiftem.mixture.covariance import GaussianMixtureTheta, GaussianStatistics, GaussianTheta
from swiftem.mixture.gaussians import GaussianMixtureModel
from swiftem.mixture.model import MixtureModel, MixtureTheta
from swiftem.mixture.prior import NormalInverseWishart
from swiftem.topics.tokens import PLSAModel, PLSATheta

__all__ = [
    "MODELS",
    "BoundModel",
    "ExponentialFamilyModel",
    "FunctionModel",
    "GaussianMixtureModel",
    "GaussianMixtureTheta",
    "GaussianStatistics",
    "GaussianTheta",
    "MixtureModel",
    "MixtureStatistics",
    "MixtureTheta",
    "Model",
    "NormalInverseWishart",
    "PLSAModel",
    "PLSATheta",
]

MODELS = {"gaussian-mixture": GaussianMixtureModel, "mixture": MixtureModel, "plsa": PLSAModel}
"""The library's models by name; the contract tests run on all of them."""
