"""Reading of ``sample_weight`` by the estimators: as scikit-learn's do, and within the library's range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from swiftem._typing import Array
from swiftem.data.sample_weight import check_weights

__all__ = ["read_weights"]


def read_weights(sample_weight: ArrayLike | None, X: Any) -> Array | None:
    """Return the weights (n,) of the rows of ``X``, checked, or None where there are none."""
    if sample_weight is None:
        return None
    weight: Array = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    check_weights("sample_weight", weight)
    return weight
