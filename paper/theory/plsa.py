"""The paper's pLSA as a curved exponential family: φ, its Jacobian, and B(s)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from swiftem.core.checks import as_floats
from swiftem.core.source import Batch
from swiftem.core.types import Array, Theta
from swiftem.topics.tokens import BoundPLSA, PLSATheta


class PLSAFamily:
    r"""Probabilistic latent semantic analysis, equation (plsa_exp), in all its q = K(D + V) coordinates.

    Statistics are those of the library: documents by topics, then topics by words. Parameters are
    p = (K − 1)D + (V − 1)K numbers: each distribution without its last probability.

    The M-step here is equation (mstep_plsa), if s + α' and s + β' are positive. It is the model's own if no
    entry is negative; the model reads negative ones as zero, which is not differentiable.

    ``bound`` is the model bound to its data.

    Examples
    --------
    >>> import numpy as np, swiftem
    >>> from paper.theory.family import family_of
    >>> model = swiftem.models.PLSAModel(n_topics=2, alpha=0.1, beta=0.1)
    >>> family, _ = family_of(model, ([0, 0, 1], [0, 1, 2]))
    >>> family.q, family.p
    (10, 6)
    """

    def __init__(self, bound: BoundPLSA) -> None:
        self.bound = bound
        self.K, self.D, self.V = bound.model.n_topics, bound.n_documents, bound.n_words
        self.alpha, self.beta = bound.model.alpha, bound.model.beta
        self.q = self.K * (self.D + self.V)
        self.p = (self.K - 1) * self.D + (self.V - 1) * self.K
        self.columns = self.K

    def coordinates(self, s: ArrayLike) -> Array:
        """Return statistics (q,), checked."""
        given = as_floats("s", s, shape=(self.q,))
        for name, part, strength in zip(
            ("α'", "β'"), self.bound.unpack(given), (self.alpha, self.beta), strict=True
        ):
            if not (part + strength > 0).all():
                raise ValueError(
                    f"s must lie in the domain of the M-step, s + {name} > 0 everywhere, got {part.min():g} "
                    f"with {name} = {strength:g}."
                )
        return given

    def library_statistics(self, s: Array) -> Array:
        """Return a copy: the coordinates are the library's."""
        return s.copy()

    def regularised(self, s: Array) -> tuple[Array, Array]:
        """Return s + α' (D, K) and s + β' (K, V)."""
        by_document, by_topic = self.bound.unpack(s)
        return by_document + self.alpha, by_topic + self.beta

    def theta(self, s: Array) -> Theta:
        r"""Return :math:`\bar\theta(s)`, equation (mstep_plsa), of means."""
        by_document, by_topic = self.regularised(s)
        return PLSATheta(
            by_document / by_document.sum(axis=1, keepdims=True),
            by_topic / by_topic.sum(axis=1, keepdims=True),
            np.ones(self.K),
        )

    def vector(self, theta: PLSATheta) -> Array:
        """Return θ_dk for k < K, then θ_kv for v < V, shape (p,)."""
        return np.concatenate([theta.doc_topic[:, :-1].ravel(), theta.topic_word[:, :-1].ravel()])

    def from_vector(self, vector: Array) -> PLSATheta:
        """Return parameters from p numbers."""
        split = (self.K - 1) * self.D
        parts = vector[:split].reshape(self.D, self.K - 1), vector[split:].reshape(self.K, self.V - 1)
        full = [np.column_stack([part, 1.0 - part.sum(axis=1)]) for part in parts]
        return PLSATheta(full[0], full[1], np.ones(self.K))

    def phi(self, theta: PLSATheta) -> Array:
        """Return φ(θ) = log θ, equation (plsa_exp), shape (q,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.concatenate([theta.doc_topic.ravel(), theta.topic_word.ravel()])))

    def psi(self, theta: PLSATheta) -> float:
        """Return ψ = 0."""
        return 0.0

    def log_h(self, batch: Batch) -> Array:
        """Return zeros (b,): g is the probability of the word in its document."""
        return np.zeros(len(batch.index))

    def _simplices(self, theta: PLSATheta) -> Iterator[tuple[slice, slice, Array]]:
        """Yield each distribution with its indices among the q and the p coordinates."""
        row = column = 0
        for distribution in (*theta.doc_topic, *theta.topic_word):
            size = len(distribution)
            yield slice(row, row + size), slice(column, column + size - 1), distribution
            row, column = row + size, column + size - 1

    def jacobian_phi(self, theta: PLSATheta) -> Array:
        r"""Return :math:`J_\phi`: ∂φ_k'/∂θ_k = 1{k' = k}/θ_k − 1{k' = K}/θ_K in each distribution."""
        jacobian = np.zeros((self.q, self.p))
        for rows, columns, distribution in self._simplices(theta):
            jacobian[rows, columns] = np.vstack(
                [np.diag(1.0 / distribution[:-1]), np.full(len(distribution) - 1, -1.0 / distribution[-1])]
            )
        return jacobian

    def gradient_penalty_psi(self, theta: PLSATheta) -> Array:
        """Return the gradient of −α' Σ log θ_dk − β' Σ log θ_kv, shape (p,)."""
        parts = [
            strength * (1.0 / part[:, -1:] - 1.0 / part[:, :-1])
            for strength, part in ((self.alpha, theta.doc_topic), (self.beta, theta.topic_word))
        ]
        return np.concatenate([part.ravel() for part in parts])

    def hessian(self, s: Array, theta: PLSATheta) -> Array:
        """Return the Hessian of L(s, ·): a block for each document and each topic."""
        counts = np.concatenate([part.ravel() for part in self.regularised(s)])
        hessian = np.zeros((self.p, self.p))
        for rows, columns, distribution in self._simplices(theta):
            curvature = counts[rows] / distribution**2
            hessian[columns, columns] = np.diag(curvature[:-1]) + curvature[-1]
        return hessian

    def times_B(self, s: Array, h: Array) -> Array:
        r"""Return B(s)·h: :math:`h_k / (s_k + c) - \sum_j h_j / \sum_j (s_j + c)` in each block."""
        parts = [
            change / counts - change.sum(axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)
            for counts, change in zip(self.regularised(s), self.bound.unpack(h), strict=True)
        ]
        return np.concatenate([part.ravel() for part in parts])

    def statistics(self, batch: Batch, rows: Array, weight: Array) -> Array:
        """Return the weighted sum of (condexp_plsa), shape (q,)."""
        return self.bound.statistics(batch, rows, weight)

    def each_statistics(self, batch: Batch, rows: Array) -> Array:
        """Return (condexp_plsa) of each token, shape (b, q)."""
        each = np.zeros((len(rows), self.q))
        at, topic = np.arange(len(rows))[:, None], np.arange(self.K)
        each[at, batch.y[:, :1] * self.K + topic] = rows
        each[at, self.D * self.K + topic * self.V + batch.y[:, 1:]] = rows
        return each
