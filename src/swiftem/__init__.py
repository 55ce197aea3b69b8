"""swiftem fits latent-variable models by stochastic EM.

>>> import swiftem
>>> sorted(swiftem.methods.METHODS)
['em', 'fiem', 'iem', 'sem', 'sem-vr']
"""

from typing import TYPE_CHECKING, Any

from swiftem import data, methods, models, schedules
from swiftem.algorithm import objective, run
from swiftem.result import Iterate, Result, State
from swiftem.termination import RandomTermination

if TYPE_CHECKING:
    from swiftem import theory as theory
    from swiftem.estimators import PLSA as PLSA
    from swiftem.estimators import GaussianMixture as GaussianMixture
    from swiftem.estimators.select import select as select

__all__ = [
    "PLSA",
    "GaussianMixture",
    "Iterate",
    "RandomTermination",
    "Result",
    "State",
    "__version__",
    "data",
    "methods",
    "models",
    "objective",
    "run",
    "schedules",
    "select",
    "theory",
]

__version__ = "0.1.0.dev0"

LATE = {
    "GaussianMixture": "swiftem.estimators",
    "PLSA": "swiftem.estimators",
    "select": "swiftem.estimators.select",
}
"""Names that are imported when they are used: scikit-learn takes a second. So is ``theory``, a module."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "theory":
        return import_module("swiftem.theory")
    if name in LATE:
        return getattr(import_module(LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
