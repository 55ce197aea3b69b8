"""The methods on the paper's two models, dense and slow: the truth that the test-suite compares with.

Written from the equations alone (their labels stand at the lines); it imports nothing of swiftem. Every
memory holds the full statistics of every sample, shape (n, q), and every method is its proxy S^(k+1) followed
by the sE-step and the M-step. Indices start at 0; q = M (1 + d) for the mixture and K (D + V) for pLSA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]


class Trajectory(NamedTuple):
    """What a run visited; entry k of each array belongs to theta^(k), k = 0, ..., n_iter.

    Attributes
    ----------
    theta : tuple of two ndarrays
        The reported parameters. Mixture: weights (n_iter + 1, M), means (n_iter + 1, M, d). pLSA: doc_topic
        (n_iter + 1, D, K), topic_word (n_iter + 1, K, V).
    s : ndarray of shape (n_iter + 1, q)
        The running statistics, flat.
    rejected : int
        Steps whose statistics left the domain.
    """

    theta: Pair
    s: Array
    rejected: int


def gmm_trajectory(
    method: str,
    y: ArrayLike,
    weights0: ArrayLike,
    means0: ArrayLike,
    *,
    delta: float,
    epsilon: float,
    known_weights: ArrayLike | None = None,
    **options: Any,
) -> Trajectory:
    """Run a method on the mixture of unit-variance Gaussians.

    Parameters
    ----------
    method : {"em", "sem", "iem", "sem-vr", "fiem", "opt-fiem", "spider"}
    y : array of shape (n, d)
    weights0, means0 : arrays of shape (M,) and (M, d)
        theta^(0).
    delta, epsilon : float
        Penalties of the means and of the weights.
    known_weights : array of shape (M,), optional
        The weights throughout, theta^(0) included.
    **options
        Those of :func:`_run`.

    Returns
    -------
    Trajectory
        s is s1 (M,) followed by s2.ravel(), s2 of shape (M, d).
    """
    data = np.asarray(y, dtype=np.float64)
    known = None if known_weights is None else np.asarray(known_weights, dtype=np.float64)
    weights = np.array(weights0, dtype=np.float64) if known is None else known
    theta0 = (weights, np.array(means0, dtype=np.float64))
    n_components = len(weights)

    def statistics(index: Array, theta: Pair) -> Array:
        """Give s_bar_i(theta) of the indexed samples, (b, q) (eq:condexp_gmm, all M components kept)."""
        log_joint = _gmm_log_joint(data[index], *theta)
        r = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        r = r / r.sum(axis=1, keepdims=True)
        s2 = r[:, :, None] * data[index][:, None, :]
        return np.concatenate([r, s2.reshape(len(index), -1)], axis=1)

    def in_domain(s: Array) -> bool:
        s1 = s[:n_components]
        return bool(np.all(s1 + epsilon > 0) and np.all(s1 + delta > 0))

    def m_step(s: Array) -> tuple[Pair, Pair]:
        """Give theta_bar(s) (eq:mstep_gmm), twice: E-steps use what is reported."""
        s1, s2 = s[:n_components], s[n_components:].reshape(n_components, -1)
        new = (s1 + epsilon) / (s1.sum() + epsilon * n_components) if known is None else known
        theta = (new, s2 / (s1 + delta)[:, None])
        return theta, theta

    return _run(method, statistics, m_step, in_domain, theta0, len(data), **options)


def plsa_trajectory(
    method: str,
    doc: ArrayLike,
    word: ArrayLike,
    shape: tuple[int, int],
    theta0: tuple[ArrayLike, ArrayLike],
    *,
    alpha: float,
    beta: float,
    **options: Any,
) -> Trajectory:
    """Run a method on pLSA.

    The E-steps use working entries that are not normalised as the reported ones are: with p = max(s, 0),
    p_dk + alpha and (p_kv + beta) / (sum_v s_kv + beta V), the raw statistics in the denominator. The first
    E-steps use theta^(0) as given. The running statistics themselves are never projected.

    Parameters
    ----------
    method, **options
        As in `gmm_trajectory`; a sample is a token.
    doc, word : integer arrays of shape (n,)
        Document and word of each token.
    shape : tuple of int
        D and V.
    theta0 : tuple of arrays of shape (D, K) and (K, V)
        theta^(0).
    alpha, beta : float
        Penalties alpha', beta'; they act on means over tokens.

    Returns
    -------
    Trajectory
        s is s_doc.ravel(), s_doc of shape (D, K), followed by s_word.ravel(), s_word of shape (K, V).
    """
    docs, words = np.asarray(doc), np.asarray(word)
    start = (np.array(theta0[0], dtype=np.float64), np.array(theta0[1], dtype=np.float64))
    n_topics, (n_documents, n_words) = len(start[1]), shape

    def unpack(s: Array) -> Pair:
        cut = n_documents * n_topics
        return s[:cut].reshape(n_documents, n_topics), s[cut:].reshape(n_topics, n_words)

    def statistics(index: Array, theta: Pair) -> Array:
        """Give s_bar_i(theta) of the indexed tokens, (b, q) (eq:condexp_plsa)."""
        b = len(index)
        s_doc, s_word = np.zeros((b, n_documents, n_topics)), np.zeros((b, n_topics, n_words))
        for row, i in enumerate(index):
            joint = theta[0][docs[i], :] * theta[1][:, words[i]]
            s_doc[row, docs[i], :] = joint / joint.sum()
            s_word[row, :, words[i]] = joint / joint.sum()
        return np.concatenate([s_doc.reshape(b, -1), s_word.reshape(b, -1)], axis=1)

    def in_domain(s: Array) -> bool:
        return bool(np.all(unpack(s)[1].sum(axis=1) + beta * n_words > 0))

    def m_step(s: Array) -> tuple[Pair, Pair]:
        """Give the working and the reported parameters (eq:mstep_plsa)."""
        s_word = unpack(s)[1]
        p_doc, p_word = unpack(np.maximum(s, 0.0))
        working = (p_doc + alpha, (p_word + beta) / (s_word.sum(axis=1, keepdims=True) + beta * n_words))
        reported = (
            (p_doc + alpha) / (p_doc.sum(axis=1, keepdims=True) + alpha * n_topics),
            (p_word + beta) / (p_word.sum(axis=1, keepdims=True) + beta * n_words),
        )
        return working, reported

    return _run(method, statistics, m_step, in_domain, start, len(docs), **options)


def gmm_objective(
    y: ArrayLike,
    weights: ArrayLike,
    means: ArrayLike,
    *,
    delta: float,
    epsilon: float,
    known_weights: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Give penalty + weighted mean of -log g(y_i; theta) (eq:em_motivate) of the mixture.

    Parameters as in `gmm_trajectory`. Where known_weights is given, the penalty has no epsilon term; the
    likelihood takes `weights` in any case.
    """
    data, omega, mu = (np.asarray(a, dtype=np.float64) for a in (y, weights, means))
    log_joint = _gmm_log_joint(data, omega, mu)
    top = log_joint.max(axis=1)
    loglik = top + np.log(np.exp(log_joint - top[:, None]).sum(axis=1))
    penalty = delta / 2 * np.sum(mu**2)
    penalty -= epsilon * np.sum(np.log(omega)) if known_weights is None and epsilon != 0 else 0.0
    return float(penalty - _shares(sample_weight, len(data)) @ loglik)


def plsa_objective(
    doc: ArrayLike,
    word: ArrayLike,
    doc_topic: ArrayLike,
    topic_word: ArrayLike,
    *,
    alpha: float,
    beta: float,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Give penalty + weighted mean of -log g(y_i; theta) (eq:em_motivate) of pLSA, from the reported theta.

    Parameters as in `plsa_trajectory`; a penalty with factor 0 is 0, whatever the parameters.
    """
    docs, words = np.asarray(doc), np.asarray(word)
    theta_doc, theta_word = np.asarray(doc_topic, np.float64), np.asarray(topic_word, np.float64)
    loglik = np.log(np.sum(theta_doc[docs, :] * theta_word[:, words].T, axis=1))
    penalty = -alpha * np.sum(np.log(theta_doc)) if alpha != 0 else 0.0
    penalty -= beta * np.sum(np.log(theta_word)) if beta != 0 else 0.0
    return float(penalty - _shares(sample_weight, len(docs)) @ loglik)


def _gmm_log_joint(y: Array, weights: Array, means: Array) -> Array:
    """Give log(omega_m N(y_i; mu_m, I)), shape (b, M), for y of shape (b, d) (eq:cexp, the numerator)."""
    squares = np.sum((y[:, None, :] - means[None, :, :]) ** 2, axis=2)
    log_joint: Array = np.log(weights) - squares / 2 - y.shape[1] / 2 * np.log(2 * np.pi)
    return log_joint


def _shares(sample_weight: ArrayLike | None, n: int) -> Array:
    """Give w_i / W, shape (n,); 1/n where there are no weights."""
    w: Array = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return np.asarray(w / w.sum())


def _run(
    method: str,
    statistics: Callable[[Array, Pair], Array],
    m_step: Callable[[Array], tuple[Pair, Pair]],
    in_domain: Callable[[Array], bool],
    theta0: Pair,
    n: int,
    *,
    draws: Any,
    n_iter: int,
    gamma: Callable[[int], float],
    epoch_length: int | None = None,
    sample_weight: ArrayLike | None = None,
    divided: bool = False,
) -> Trajectory:
    """Run Algorithm 1 (alg:sem) for n_iter iterations on n samples.

    Parameters
    ----------
    draws : None, integer array of shape (n_iter,) or (n_iter, b), or a pair (i, j) of such arrays
        None for em, the pair for fiem and opt-fiem.
    gamma : callable
        Called with k + 1 in iteration k; em and iem never call it, their step size is 1.
    epoch_length : int, optional
        m of sem-vr and spider; ceil(n / b) unless given.
    sample_weight : array of shape (n,), optional
    divided : bool
        Whether the draws are in proportion to the weights, which means over batches then leave out.
    """
    share = _shares(sample_weight, n)
    everyone = np.arange(n)
    working = reported = theta0
    # Memory: s_bar_i at theta^(0) (iem, fiem) or at the anchor (sem-vr). Centre: its weighted mean.
    memory = statistics(everyone, working)  # (n, q)
    centre = share @ memory  # (q,)
    s = centre.copy()
    thetas, history, rejected = [reported], [s], 0
    coefficient, products, before = 1.0, np.zeros(2), working  # of opt-fiem; theta^(k-1) of spider
    for k in range(n_iter):
        step = 1.0 if method in ("em", "iem") else gamma(k + 1)
        if method != "em":
            i = np.atleast_1d(draws[0][k] if method in ("fiem", "opt-fiem") else draws[k])
            new_i = statistics(i, working)  # (b, q)
            scale_i = np.ones((len(i), 1)) if divided else n * share[i][:, None]  # (b, 1): n w_i / W
        if method == "em":
            proxy = share @ statistics(everyone, working)  # (eq:definition-overline-bss)
        elif method == "sem":  # (eq:oem)
            proxy = np.mean(scale_i * new_i, axis=0)
        elif method == "iem":  # (eq:iem), as the mean over memory that it maintains; an index repeated is one
            memory[i] = new_i
            proxy = share @ memory
        elif method == "sem-vr":  # (eq:svrgem)
            m = -(-n // len(i)) if epoch_length is None else epoch_length
            if k % m == 0:
                memory = statistics(everyone, working)
                centre = share @ memory
            proxy = centre + np.mean(scale_i * (new_i - memory[i]), axis=0)
        elif method == "fiem":  # (eq:sagaem); i and j read memory as it was, it is written last
            proxy = centre + np.mean(scale_i * (new_i - memory[i]), axis=0)
            j = np.atleast_1d(draws[1][k])
            memory[j] = statistics(j, working)
            centre = share @ memory
        elif method == "opt-fiem":  # fiem with lambda = tr Cov(s_i, memory_i) / tr Var(memory_i)
            change = np.mean(scale_i * (new_i - coefficient * memory[i]), axis=0)
            proxy = coefficient * centre + change
            new, old = scale_i[0] * new_i[0] - centre, scale_i[0] * memory[i[0]] - centre
            products = 0.99 * products + 0.01 * np.array([new @ old, old @ old])
            if products[1] > 0:
                coefficient = np.clip(products[0] / products[1], 0.0, 2.0)
            j = np.atleast_1d(draws[1][k])
            memory[j] = statistics(j, working)
            centre = share @ memory
        elif method == "spider":
            m = -(-n // len(i)) if epoch_length is None else epoch_length
            if k % m == 0:
                proxy = share @ statistics(everyone, working)
            else:
                proxy = proxy + np.mean(scale_i * (new_i - statistics(i, before)), axis=0)
            before = working
        else:
            raise ValueError(f"unknown method {method!r}")
        candidate = (1 - step) * s + step * proxy  # (eq:sestep)
        if in_domain(candidate):
            s = candidate
            working, reported = m_step(s)  # (eq:mstep)
        else:
            rejected += 1
        thetas.append(reported)
        history.append(s)
    parts = (np.array([theta[0] for theta in thetas]), np.array([theta[1] for theta in thetas]))
    return Trajectory(parts, np.array(history), rejected)
