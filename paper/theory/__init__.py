"""The paper's theory in numbers: V(s), its gradient, B(s), the constants, the theorems' steps and bounds.

>>> from paper import theory
>>> sorted(theory.THEOREMS)
['fiem', 'iem', 'sem-vr']
"""

from paper.theory.constants import Box, Constant, Constants, constants
from paper.theory.estimates import Smoothness, estimate_constants, estimate_smoothness
from paper.theory.gradient import (
    B,
    Stationarity,
    V,
    gradient_objective,
    gradient_V,
    mean_surrogate,
    residual,
    stationarity,
    surrogate,
)
from paper.theory.sets import distance_to_S0, radius
from paper.theory.theorems import FastIncrementalTheorem, IncrementalTheorem, VarianceReducedTheorem

__all__ = [
    "THEOREMS",
    "B",
    "Box",
    "Constant",
    "Constants",
    "FastIncrementalTheorem",
    "IncrementalTheorem",
    "Smoothness",
    "Stationarity",
    "V",
    "VarianceReducedTheorem",
    "constants",
    "distance_to_S0",
    "estimate_constants",
    "estimate_smoothness",
    "gradient_V",
    "gradient_objective",
    "mean_surrogate",
    "radius",
    "residual",
    "stationarity",
    "surrogate",
]

THEOREMS: dict[str, type[IncrementalTheorem | VarianceReducedTheorem | FastIncrementalTheorem]] = {
    "iem": IncrementalTheorem,
    "sem-vr": VarianceReducedTheorem,
    "fiem": FastIncrementalTheorem,
}
"""The theorem on each method that has one."""
