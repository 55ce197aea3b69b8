"""Names for the array types that appear in signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""A float64 array."""

Index = NDArray[np.intp]
"""Sample indices."""

Rows = NDArray[Any]
"""Rows of data, or of numbers made of them, of any type."""

Theta = Any
"""Parameters: a NamedTuple of arrays, one type per model."""

Tree = Any
"""Nested tuples, lists and dicts of arrays, numbers and texts, such as the state of a method."""
