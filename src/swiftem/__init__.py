"""swiftem fits latent-variable models by stochastic EM.

>>> import swiftem
>>> sorted(swiftem.methods.METHODS)
['em', 'fiem', 'iem', 'sem', 'sem-vr']
"""

from swiftem import data, methods, models, schedules
from swiftem.algorithm import objective, run
from swiftem.result import Iterate, Result, State
from swiftem.termination import RandomTermination

__all__ = [
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
]

__version__ = "0.1.0.dev0"
