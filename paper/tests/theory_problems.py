"""Small problems with random statistics, for the tests of the theory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from paper.theory.family import family_of
from swiftem import models


def everything(family: Any) -> Any:
    """All directions: the mixture's."""
    return np.eye(family.q)


def plsa_directions(family: Any) -> Any:
    """An orthonormal basis of {Σ_k x_dk = 0, Σ_v x_kv = Σ_d x_dk}, shape (q, ·)."""
    rows = []
    for d in range(family.D):
        x = np.zeros((family.D, family.K))
        x[d] = 1
        rows.append(np.concatenate([x.ravel(), np.zeros(family.K * family.V)]))
    for k in range(family.K):
        x, w = np.zeros((family.D, family.K)), np.zeros((family.K, family.V))
        x[:, k], w[k] = -1, 1
        rows.append(np.concatenate([x.ravel(), w.ravel()]))
    return scipy.linalg.null_space(np.array(rows))


class Case(NamedTuple):
    model: Any
    data: Any
    directions: Callable[[Any], Any] = everything


def _mixture(M: int, d: int = 1, n: int = 40, **options: Any) -> Case:
    rng = np.random.default_rng(M)
    y = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(M, d))[rng.integers(M, size=n)]
    model = models.GaussianMixtureModel(M, **({"delta": 0.3, "epsilon": 0.2} | options))
    return Case(model, y[:, 0] if d == 1 else y)


def _topics(alpha: float = 0.02, beta: float = 0.03) -> Case:
    counts = np.random.default_rng(5).poisson(1.2, size=(4, 6))
    counts[:, 0] += 1
    model = models.PLSAModel(n_topics=2, alpha=alpha, beta=beta)
    return Case(model, sp.csr_array(counts), plsa_directions)


CASES = {
    "two": _mixture(2),
    "three": _mixture(3),
    "plane": _mixture(2, d=2),
    "known": _mixture(3, known_weights=(0.2, 0.5, 0.3)),
    "topics": _topics(),
}


def random_s(case: Case, seed: int) -> Any:
    """Statistics of random posteriors: a point of S_0, in the paper's coordinates."""
    family, source = family_of(case.model, case.data)
    rng = np.random.default_rng(seed)
    batch = source.take(np.arange(source.n))
    rows = rng.dirichlet(np.full(_columns(family), 0.7), size=source.n)
    return family.statistics(batch, rows, batch.weight / source.total_weight)


def _columns(family: Any) -> int:
    return family.K if hasattr(family, "K") else family.M


def central(function: Callable[[Any], Any], at: Any, step: float = 1e-6) -> Any:
    """Return the derivative by each coordinate, (q,) or (q, ·)."""
    return np.array(
        [(function(at + step * e) - function(at - step * e)) / (2 * step) for e in np.eye(len(at))]
    )
