import numpy as np

from swiftem.topics.compute.numpy import posterior


def test_a_token_of_probability_zero():
    tokens = np.array([[0, 1], [0, 0]])
    rows, loglik = posterior(tokens, np.array([[0.5, 0.5]]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.ones(2))
    np.testing.assert_array_equal(rows, [[0.5, 0.5], [0.5, 0.5]])
    assert loglik[0] == -np.inf
