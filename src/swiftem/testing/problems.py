"""Two small problems for the checks of methods."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from swiftem._typing import Theta
from swiftem.data.documents.token_source import TokenSource
from swiftem.models import GaussianMixtureModel, Model, PLSAModel

__all__ = ["Problem", "small_problems"]


class Problem(NamedTuple):
    """A model with data and initial parameters."""

    name: str
    model: Model
    data: Any
    n: int
    theta0: Theta


def small_problems() -> list[Problem]:
    """Return a mixture of 60 points in the plane and pLSA of 80 tokens.

    >>> [problem.name for problem in small_problems()]
    ['mixture', 'plsa']
    """
    rng = np.random.default_rng(7)
    y = rng.normal(size=(60, 2)) + 3.0 * rng.integers(2, size=(60, 1))
    mixture = GaussianMixtureModel(n_components=3)
    documents = np.sort(rng.integers(6, size=80))
    words = (rng.integers(5, size=80) + 4 * (documents % 2)) % 9
    plsa = PLSAModel(n_topics=2, alpha=1e-3, beta=1e-3)
    return [
        Problem("mixture", mixture, y, 60, mixture.theta(means=y[:3])),
        Problem(
            "plsa",
            plsa,
            TokenSource(documents, words, n_documents=6, n_words=9),
            80,
            plsa.theta(
                doc_topic=rng.dirichlet(np.ones(2), size=6), topic_word=rng.dirichlet(np.ones(9), size=2)
            ),
        ),
    ]
