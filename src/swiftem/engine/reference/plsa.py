"""pLSA: E-step and statistics of tokens."""

from __future__ import annotations

import numpy as np

from swiftem._typing import Array, Index

__all__ = ["posterior", "statistics"]


def posterior(tokens: Index, doc_topic: Array, topic_word: Array, topic_scale: Array) -> tuple[Array, Array]:
    r"""E-step, equation (condexp_plsa): :math:`r_k \propto \theta_{dk}\, \theta_{kv}\, c_k`.

    Parameters
    ----------
    tokens : ndarray of int, shape (b, 2)
        Document and word of each token.
    doc_topic : ndarray, shape (D, K)
        Topics of the documents.
    topic_word : ndarray, shape (K, V)
        Words of the topics.
    topic_scale : ndarray, shape (K,)
        c_k converts the reported topics to the working ones; 1 if no statistic is negative.

    Returns
    -------
    rows : ndarray, shape (b, K)
        Responsibilities, rows sum to 1; uniform for a token that has probability zero.
    loglik : ndarray, shape (b,)
        log g of the reported parameters, without c.
    """
    joint = doc_topic[tokens[:, 0]] * topic_word[:, tokens[:, 1]].T
    with np.errstate(divide="ignore"):
        loglik = np.log(joint.sum(axis=1))
    joint *= topic_scale
    total = joint.sum(axis=1, keepdims=True)
    rows = np.full_like(joint, 1.0 / joint.shape[1])
    np.divide(joint, total, out=rows, where=total > 0)
    return rows, loglik


def statistics(tokens: Index, rows: Array, weight: Array, n_documents: int, n_words: int) -> Array:
    r"""Weighted sum of equation (condexp_plsa): :math:`\sum_i w_i r_{ik}` by document and by word.

    Parameters
    ----------
    tokens : ndarray of int, shape (b, 2)
        Document and word of each token.
    rows : ndarray, shape (b, K)
        Responsibilities or differences of them: the result is linear in them.
    weight : ndarray, shape (b,)
        Factor of each token.
    n_documents, n_words : int
        D and V.

    Returns
    -------
    ndarray, shape (D·K + K·V,)
        First documents by topics, then topics by words, each row by row.
    """
    weighted = rows * weight[:, None]
    n_topics = rows.shape[1]
    flat = np.zeros((n_documents + n_words) * n_topics)
    by_document = flat[: n_documents * n_topics].reshape(n_documents, n_topics)
    by_word = flat[n_documents * n_topics :].reshape(n_topics, n_words)
    np.add.at(by_document, tokens[:, 0], weighted)
    np.add.at(by_word.T, tokens[:, 1], weighted)
    return flat
