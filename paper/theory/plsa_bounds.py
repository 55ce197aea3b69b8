"""Proven bounds of the constants for pLSA."""

from __future__ import annotations

import numpy as np

from paper.theory.constants import Box, Constant, Constants
from paper.theory.plsa import PLSAFamily
from swiftem.core.source import Source

__all__ = ["plsa_bounds"]


def plsa_bounds(family: PLSAFamily, source: Source, rho: float) -> Constants:
    r"""Return the bounds, with these proofs.

    Write n_d and n_v for the shares of the tokens of document d and word v, a for s + α' or s + β', N_d and
    M_k for the sums of a over a document and over a topic. On the affine hull of S_0,
    :math:`\sum_k s_{dk} = n_d` and :math:`\sum_v s_{kv} = \sum_d s_{dk}`. So N_d is the constant
    :math:`n_d + K\alpha'`, and M_k lies between :math:`V\beta' - r` and :math:`1 + V\beta' + r` with
    :math:`r = \rho \min(D, V)`. All a are at least α' − ρ or β' − ρ, and at most
    :math:`n_d + \rho + \alpha'` or :math:`n_v + \rho + \beta'`.

    - **υ_max**: a block of B is at most Diag(1/a).
    - **υ_min**, on :math:`\{\sum_k x_{dk} = 0, \sum_v x_{kv} = \sum_d x_{dk}\}`: a document's block gives
      :math:`\sum_k x_{dk}^2/a_{dk}`, at least :math:`\|x_d\|^2 / A` with A the largest a. A topic's gives
      :math:`\sum_v u_v^2/a_{kv}` for :math:`u = x_k - (t_k/M_k) a_k`, :math:`t_k = \sum_v x_{kv}`, since B
      removes the part parallel to a. As :math:`\|a_k\| \le M_k` and
      :math:`\sum_k t_k^2 \le D \sum_d \|x_d\|^2`, with p and w for the lengths of all x_d and all u together,
      :math:`\|x\|^2 \le p^2 + (w + \sqrt D p)^2`: the smallest quotient of two quadratic forms in (p, w).
    - **L_B**: :math:`1/a` changes by :math:`1/a^2`; :math:`11^\top / M_k`, of norm V/M_k, by
      :math:`V \sqrt V / M_k^2`, as M_k changes by at most √V times the change of its entries.
    - **L_θ**: :math:`\dot\theta_d = \dot s_d / N_d`;
      :math:`\dot\theta_k = (I - \theta_k 1^\top) \dot s_k / M_k`, of norm at most :math:`\sqrt V / M_k`.
    - **C_φ**: a block of J_φ squared is at most :math:`K / \theta_{\min}^2`, or V in place of K. **L_φ**: its
      derivative along h has norm at most :math:`\sqrt{1 + (K-1)^2}\, \|h\| / \theta_{\min}^2`.
    - **L_p**: as for the mixture, a quarter of the largest gradient of a difference of two logits: the parts
      of document and word are those of simplices of K and, for two topics, of V probabilities.
    - **C_Z** = K√2 and **C_S** of a token, 2, are exact; the others follow as for the mixture.
    """
    K, D, V, alpha, beta = family.K, family.D, family.V, family.alpha, family.beta
    if K < 2:
        raise ValueError("n_topics must be at least 2: with one, statistics do not change.")
    documents, words = np.zeros(D), np.zeros(V)
    for batch in source.blocks(4096):
        documents += np.bincount(batch.y[:, 0], minlength=D) / source.n
        words += np.bincount(batch.y[:, 1], minlength=V) / source.n
    N = documents + K * alpha
    moved = N[documents > 0]  # the statistics of a document without tokens are constant
    slack = rho * min(D, V)
    M_low, M_high = V * beta - slack, 1.0 + V * beta + slack

    def bound(value: float, how: str) -> Constant:
        return Constant(float(value), "bound", how)

    upsilon_max = bound(1.0 / (min(alpha, beta) - rho), "1/(min(α', β') − ρ)")
    A = documents.max() + rho + alpha, words.max() + rho + beta
    lengths = np.array([[1.0 + D, np.sqrt(D)], [np.sqrt(D), 1.0]])
    root = np.sqrt(np.diag(A))
    upsilon_min = bound(1.0 / np.linalg.eigvalsh(root @ lengths @ root)[-1], "smallest quotient in (p, w)")
    L_B = bound(
        max((alpha - rho) ** -2, (beta - rho) ** -2 + V**1.5 / M_low**2), "max(1/a², 1/a² + V^(3/2)/M_k²)"
    )
    L_theta = bound(max(1.0 / moved.min(), np.sqrt(V) / M_low), "max(1/N_d, √V/M_k)")

    d_low, w_low = (alpha - rho) / N.max(), (beta - rho) / M_high
    C_phi = bound(max(np.sqrt(K) / d_low, np.sqrt(V) / w_low), "max(√K/θ_d, √V/θ_w)")
    L_phi = bound(
        max(np.sqrt(1.0 + (K - 1) ** 2) / d_low**2, np.sqrt(1.0 + (V - 1) ** 2) / w_low**2),
        "max((1 + (K−1)²)^(1/2)/θ_d², the same for V)",
    )
    by_document = (1.0 / d_low + 1.0 / (1.0 - d_low)) if K == 2 else np.sqrt(K + 2.0) / d_low
    by_word = np.sqrt(2.0 * max(1, V - 1)) / w_low
    L_p = bound(0.25 * np.hypot(by_document, by_word), "¼·‖dlogit_z − dlogit_j‖ on the box")
    C_Z = bound(K * np.sqrt(2.0), "K√2, exact")
    around = rho * np.sqrt(family.q)
    C_S = bound(2.0 + 2.0 * around, "2 + 2ρ√q")
    C_S_sample = bound(2.0, "exact")
    C_S_residual = bound(2.0 + around, "2 + ρ√q")
    low = np.concatenate([np.repeat((alpha - rho) / N, K), np.full(K * V, w_low)])
    return Constants.composed(
        n=source.n,
        rho=rho,
        C_S=C_S,
        C_S_sample=C_S_sample,
        C_S_residual=C_S_residual,
        C_Z=C_Z,
        C_phi=C_phi,
        L_phi=L_phi,
        L_p=L_p,
        L_theta=L_theta,
        L_B=L_B,
        upsilon_min=upsilon_min,
        upsilon_max=upsilon_max,
        box=Box(low, np.ones_like(low)),
    )
