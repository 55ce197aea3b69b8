"""Fits of topics that may end before they converge, small corpora, and results with several threads."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import swiftem
from swiftem.kernels.threads import set_threads


def fit_topics(X: Any, n_components: int = 4, *, sample_weight: Any = None, **options: Any) -> swiftem.PLSA:
    """Return topics of counts, without a warning that there were few passes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return swiftem.PLSA(n_components, **{"random_state": 0} | options).fit(X, sample_weight=sample_weight)


def short_documents(
    n_documents: int, n_words: int = 40, lengths: tuple[int, int] = (0, 30), seed: int = 0
) -> Any:
    """Return counts of documents of one of three topics each."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.2), size=3)
    X = np.array([rng.multinomial(n, topics[n % 3]) for n in rng.integers(*lengths, n_documents)])
    return sp.csr_array(X.astype(float))


def assert_same_with_any_threads(call: Callable[[], Any]) -> Any:
    """Check that the arrays from ``call`` have the same bits with 1, 2 and 3 threads, and return them."""
    found = []
    try:
        for threads in (1, 2, 3):
            set_threads(threads)
            found.append(call())
    finally:
        set_threads(None)
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    return found[0]
