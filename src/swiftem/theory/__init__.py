"""The paper's theory in numbers: V(s), its gradient, B(s), the constants, the theorems' steps and bounds."""

from swiftem.theory.gradient import B, V, gradient_objective, gradient_V, residual
from swiftem.theory.stationarity import Stationarity, stationarity
from swiftem.theory.surrogate import mean_surrogate, surrogate

__all__ = [
    "B",
    "Stationarity",
    "V",
    "gradient_V",
    "gradient_objective",
    "mean_surrogate",
    "residual",
    "stationarity",
    "surrogate",
]
