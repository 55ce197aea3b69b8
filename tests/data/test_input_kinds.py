"""Types of numbers, one column, rows that are all alike, documents without words.

Kinds of input are combined with models and methods in tests/combinations.
"""

import helpers
import numpy as np
import pytest
from helpers import NAMES, make_method

from swiftem import methods


def test_float32_of_any_value():
    problem = helpers.mixture(40, d=2)
    expected = problem.run(methods.EM(), n_iter=20)
    result = problem._replace(data=problem.data.astype(np.float32)).run(methods.EM(), n_iter=20)
    np.testing.assert_allclose(result.s, expected.s, rtol=1e-5, atol=1e-5)


def test_one_column_may_be_a_vector():
    problem = helpers.mixture(20, d=1)
    assert problem.data.ndim == 1
    result = problem.run(methods.FastIncrementalEM(), n_iter=20, seed=0)
    column = problem._replace(data=problem.data[:, None]).run(methods.FastIncrementalEM(), n_iter=20, seed=0)
    helpers.assert_same_result(result, column)


@pytest.mark.parametrize("kind", ["int32", "uint16"])
def test_tokens_and_draws_of_any_integer_type(kind):
    problem = helpers.topics(30)
    documents, words = helpers.tokens_of(problem.data.toarray())
    draws = helpers.random_draws("iem", 30, 9)
    expected = problem.run(methods.IncrementalEM(), n_iter=9, draws=draws)
    tokens = (documents.astype(kind), words.astype(kind))
    result = problem._replace(data=tokens).run(methods.IncrementalEM(), n_iter=9, draws=draws.astype(kind))
    helpers.assert_close(result.s, expected.s)


DEGENERATE = {
    "constant column": np.column_stack([np.arange(12.0), np.full(12, 7.0)]),
    "identical rows": np.full((12, 2), 3.0),
    "two distinct rows": np.repeat([[0.0, 0.0], [1e3, 1e3]], 6, axis=0),
    "far from the origin": 1e6 + np.random.default_rng(0).normal(size=(12, 2)),
    "zeros": np.zeros((12, 2)),
}


@pytest.mark.parametrize("name", NAMES)
@helpers.parametrize_cases(DEGENERATE)
def test_degenerate_rows_give_finite_results(case, name):
    problem = helpers.mixture(12, d=2)._replace(data=case, theta0=None)
    result = problem.run(make_method(name), n_iter=40, seed=0)
    assert all(np.isfinite(part).all() for part in (*result.theta, result.s))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("alpha", [0.0, 1e-3])
def test_documents_without_tokens_have_uniform_topics(name, alpha):
    counts = np.array([[0, 0, 0], [3, 1, 0], [0, 0, 0], [0, 2, 4], [0, 0, 0]])
    problem = helpers.topics(K=2, alpha=alpha, counts=counts)
    result = problem.run(make_method(name), n_iter=40, seed=0)
    np.testing.assert_allclose(result.theta.doc_topic[[0, 2, 4]], 0.5, rtol=1e-15)
    assert (result.theta.doc_topic[[1, 3]] != 0.5).all()
    assert np.isfinite(result.s).all()
