"""Arrays of every layout and number type mean the same data."""

import helpers
import numpy as np
import pytest
from helpers import NAMES, make_method

from swiftem import methods, models

Y = np.round(helpers.mixture(24, d=3).data * 4)  # whole numbers that every type below can hold


def read_only(y, path):
    y = y.copy()
    y.flags.writeable = False
    return y


def strided(y, path):
    wide = np.full((2 * len(y), 2 * y.shape[1]), np.nan)
    wide[::2, ::2] = y
    return wide[::2, ::2]


def memory_mapped(y, path):
    np.save(path / "y.npy", y)
    return np.load(path / "y.npy", mmap_mode="r")


KINDS = {
    "read-only": read_only,
    "strided": strided,
    "reversed": lambda y, path: y[::-1].copy()[::-1],
    "Fortran": lambda y, path: np.asfortranarray(y),
    "memory-mapped": memory_mapped,
    "float32": lambda y, path: y.astype(np.float32),
    "float16": lambda y, path: y.astype(np.float16),
    "big-endian": lambda y, path: y.astype(">f8"),
    "int8": lambda y, path: y.astype(np.int8),
    "int64": lambda y, path: y.astype(np.int64),
    "objects": lambda y, path: y.astype(object),
    "lists": lambda y, path: y.tolist(),
    "long double": lambda y, path: y.astype(np.longdouble),
}


@pytest.mark.parametrize("name", NAMES)
@helpers.parametrize_cases(KINDS)
def test_rows(case, name, tmp_path):
    given = case(Y, tmp_path)
    model = models.GaussianMixtureModel(2)
    problem = helpers.mixture(24, d=3)._replace(data=Y, theta0=model.theta(means=Y[:2]))
    method = make_method(name, batch_size=2)
    expected = problem.run(method, n_iter=20, seed=0)
    result = problem._replace(data=given).run(method, n_iter=20, seed=0)
    for one, other in zip((*result.theta, result.s), (*expected.theta, expected.s), strict=True):
        assert one.dtype == np.float64
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_float32_of_any_value():
    problem = helpers.mixture(40, d=2)
    expected = problem.run(methods.EM(), n_iter=20)
    result = problem._replace(data=problem.data.astype(np.float32)).run(methods.EM(), n_iter=20)
    np.testing.assert_allclose(result.s, expected.s, rtol=1e-5, atol=1e-5)


def test_bools_and_unsigned():
    y = np.random.default_rng(0).random((30, 4)) < 0.5
    results = [
        helpers.mixture(30, d=4)._replace(data=y.astype(dtype)).run(methods.EM(), n_iter=9).s
        for dtype in (bool, np.uint8, float)
    ]
    np.testing.assert_allclose(results[0], results[2], rtol=1e-12)
    np.testing.assert_allclose(results[1], results[2], rtol=1e-12)


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
