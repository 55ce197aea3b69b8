"""The models: one per file."""

from swiftem.models.exponential_family import ExponentialFamilyModel, FunctionModel
from swiftem.models.gaussian_mixture import GaussianMixtureModel, GaussianMixtureTheta
from swiftem.models.gaussian_theta import GaussianStatistics, GaussianTheta
from swiftem.models.mixture import MixtureModel, MixtureStatistics, MixtureTheta
from swiftem.models.model import BoundModel, Model
from swiftem.models.normal_inverse_wishart import NormalInverseWishart
from swiftem.models.plsa import PLSAModel, PLSATheta

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
