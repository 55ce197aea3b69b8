"""Fits of topics that may end before they converge."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

import swiftem


def fit_topics(X: Any, n_components: int = 4, *, sample_weight: Any = None, **options: Any) -> swiftem.PLSA:
    """Return topics of counts, without a warning that there were few passes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return swiftem.PLSA(n_components, **{"random_state": 0} | options).fit(X, sample_weight=sample_weight)
