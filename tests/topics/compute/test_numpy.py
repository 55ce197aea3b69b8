import numpy as np
import pytest

from swiftem.topics.compute.numpy import posterior, statistics


@pytest.mark.parametrize(("b", "D", "V", "K"), [(1, 1, 1, 1), (6, 2, 3, 2), (9, 3, 2, 4)])
@pytest.mark.parametrize("scaled", [False, True])
def test_posterior_and_statistics(b, D, V, K, scaled):
    rng = np.random.default_rng(0)
    tokens = np.column_stack([rng.integers(D, size=b), rng.integers(V, size=b)])
    doc_topic, topic_word = rng.dirichlet(np.ones(K), size=D), rng.dirichlet(np.ones(V), size=K)
    scale = rng.uniform(1, 2, size=K) if scaled else np.ones(K)
    rows, loglik = posterior(tokens, doc_topic, topic_word, scale)
    for i, (document, word) in enumerate(tokens):
        joint = np.array([doc_topic[document, k] * topic_word[k, word] for k in range(K)])
        np.testing.assert_allclose(
            loglik[i], np.log(joint.sum()), rtol=1e-12, atol=1e-15
        )  # without the scale
        np.testing.assert_allclose(rows[i], joint * scale / (joint * scale).sum(), rtol=1e-12)

    weight = rng.normal(size=b)
    expected = np.zeros(K * (D + V))
    for i, (document, word) in enumerate(tokens):
        for k in range(K):
            expected[document * K + k] += weight[i] * rows[i, k]
            expected[D * K + k * V + word] += weight[i] * rows[i, k]
    np.testing.assert_allclose(statistics(tokens, rows, weight, D, V), expected, rtol=1e-12, atol=1e-15)


def test_a_token_of_probability_zero():
    tokens = np.array([[0, 1], [0, 0]])
    rows, loglik = posterior(tokens, np.array([[0.5, 0.5]]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2))
    np.testing.assert_array_equal(rows, [[0.5, 0.5], [0.5, 0.5]])
    assert loglik[0] == -np.inf
