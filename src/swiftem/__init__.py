"""swiftem fits latent-variable models by stochastic EM.

>>> import swiftem
>>> mixture = swiftem.GaussianMixture(2, random_state=0).fit([[0.0], [0.1], [4.0], [4.1]])
>>> sorted(mixture.means_[:, 0].round(2).tolist())
[0.05, 4.05]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from swiftem.core import messages as _visible  # noqa: F401  (for the log)
from swiftem.core.process import uninterrupted

if TYPE_CHECKING:
    from swiftem import data as data
    from swiftem import estimators as estimators
    from swiftem import families as families
    from swiftem import methods as methods
    from swiftem import models as models
    from swiftem import schedules as schedules
    from swiftem import testing as testing
    from swiftem._load import load as load
    from swiftem._run import objective as objective
    from swiftem._run import posterior as posterior
    from swiftem._run import run as run
    from swiftem._select import select as select
    from swiftem.core.algorithm import Iterate as Iterate
    from swiftem.core.algorithm import Result as Result
    from swiftem.core.algorithm import State as State
    from swiftem.core.schedules import RandomTermination as RandomTermination
    from swiftem.estimators import PLSA as PLSA
    from swiftem.estimators import GaussianMixture as GaussianMixture
    from swiftem.estimators import HiddenMarkovModel as HiddenMarkovModel
    from swiftem.estimators import Mixture as Mixture
    from swiftem.estimators import RegressionMixture as RegressionMixture
    from swiftem.estimators import select_topics as select_topics
    from swiftem.fit.checkpoint import checkpoint as checkpoint
    from swiftem.fit.config import config_context as config_context
    from swiftem.fit.config import get_config as get_config
    from swiftem.fit.config import set_config as set_config
    from swiftem.kernels.threads import set_threads as set_threads

__version__ = "0.1.0.dev0"

MODULES = ("data", "estimators", "families", "methods", "models", "schedules", "testing")
PLACES = {
    "_run": "objective posterior run",
    "core.algorithm": "Iterate Result State",
    "core.schedules": "RandomTermination",
    "estimators": "GaussianMixture HiddenMarkovModel Mixture PLSA RegressionMixture select_topics",
    "_load": "load",
    "_select": "select",
    "fit.checkpoint": "checkpoint",
    "fit.config": "config_context get_config set_config",
    "kernels.threads": "set_threads",
}
NAMES = {name: module for module, names in PLACES.items() for name in names.split()}
"""Modules of the public names. They are imported on first use: scikit-learn alone takes a second."""

__all__ = ["__version__", *MODULES, *NAMES]


def __getattr__(name: str) -> Any:
    with uninterrupted():  # a partial import of NumPy cannot be repaired
        if name in MODULES:
            return import_module(f"swiftem.{name}")
        if name in NAMES:
            found = globals()[name] = getattr(import_module(f"swiftem.{NAMES[name]}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    # The public names and Python's own attributes, without this file's imports.
    return sorted({name for name in globals() if name.startswith("__")} | set(__all__))
