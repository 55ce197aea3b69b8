"""Data, model and methods of the benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

from paper.experiments.gmm_precision import MODEL, START_MEANS, gmm_data
from swiftem import data, methods, models, schedules

__all__ = ["paper_mixture", "token_source", "topic_methods", "wide_mixture"]


def paper_mixture(n: int) -> tuple[models.GaussianMixtureModel, data.ArraySource, Any]:
    """Return model, source and θ^(0) of the paper's Gaussian example."""
    return MODEL, data.ArraySource(gmm_data(n, np.random.default_rng(0))), MODEL.theta(means=START_MEANS)


def wide_mixture(n: int, d: int = 16, m: int = 32) -> tuple[Any, Any, Any]:
    """Return model, source and θ of a mixture for which matrix products are worthwhile."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=2.0, size=(m, d))
    y = centres[rng.integers(m, size=n)] + rng.normal(size=(n, d))
    model = models.GaussianMixtureModel(n_components=m)
    return model, data.ArraySource(y), model.theta(means=y[:m])


def token_source(documents: int, words: int, per_document: int = 100, topics: int = 10) -> data.TokenSource:
    """Return tokens of documents with two topics each; the words of neighbouring topics overlap."""
    rng = np.random.default_rng(0)
    document = np.repeat(np.arange(documents), per_document)
    topic = (document + 3 * rng.integers(2, size=len(document))) % topics
    word = (topic * (words // topics) + rng.integers(2 * words // topics, size=len(document))) % words
    return data.TokenSource(document, word, n_documents=documents, n_words=words)


def topic_methods(n: int, epoch_length: int | None = None) -> dict[str, Any]:
    """Return the methods for pLSA with the step sizes of the hand-written loops."""
    gamma = 10 / n
    found = (
        methods.OnlineEM(step_size=schedules.inverse(1, 10)),
        methods.IncrementalEM(),
        methods.VarianceReducedEM(step_size=gamma, epoch_length=epoch_length),
        methods.FastIncrementalEM(step_size=gamma),
    )
    return {method.name: method for method in found}
