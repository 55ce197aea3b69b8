"""Names for the array types that appear in signatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Index", "Theta"]

Array = NDArray[np.float64]
"""A float64 array."""

Index = NDArray[np.intp]
"""Sample indices."""

Theta = Any
"""Parameters: a NamedTuple of arrays, one type per model."""
