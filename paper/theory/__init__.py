"""The paper's theory in numbers: V(s), its gradient, B(s), the constants, the theorems' steps and bounds.

>>> from paper import theory
>>> sorted(theory.THEOREMS)
['fiem', 'iem', 'sem-vr']
"""

from paper.theory.constants import constants as constants
from paper.theory.constants import estimate_constants as estimate_constants
from paper.theory.constants import estimate_smoothness as estimate_smoothness
from paper.theory.gradient import B as B
from paper.theory.gradient import V as V
from paper.theory.gradient import gradient_objective as gradient_objective
from paper.theory.gradient import gradient_V as gradient_V
from paper.theory.gradient import mean_surrogate as mean_surrogate
from paper.theory.gradient import residual as residual
from paper.theory.gradient import stationarity as stationarity
from paper.theory.gradient import surrogate as surrogate
from paper.theory.sets import distance_to_S0 as distance_to_S0
from paper.theory.sets import radius as radius
from paper.theory.theorems import THEOREMS as THEOREMS
from paper.theory.theorems import FastIncrementalTheorem as FastIncrementalTheorem
from paper.theory.theorems import IncrementalTheorem as IncrementalTheorem
from paper.theory.theorems import VarianceReducedTheorem as VarianceReducedTheorem
