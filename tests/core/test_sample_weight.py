"""Objective = penalty + Σ w_i (−log g(y_i)) / Σ w_i, for every method and source."""

import helpers
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import NAMES, assert_close, assert_same_result, make_method

from swiftem.data import TokenSource

every_method = pytest.mark.parametrize("name", NAMES)


def kinds():
    """Return a problem with each kind of data, and how many weights it takes."""
    problem = helpers.topics(40)
    return {
        "rows": (helpers.mixture(40, d=2), 40),
        "documents": (problem, 4),
        "tokens": (problem._replace(data=helpers.tokens_of(problem.data.toarray())), 40),
        "fractional counts": (problem._replace(data=problem.data * 0.37), 4),
    }


KINDS = kinds()
every_kind = helpers.parametrize_cases(KINDS)


def run(problem, name, weight, **options):
    method = make_method(name, batch_size=2)
    return problem.run(method, sample_weight=weight, **{"n_iter": 25, "seed": 2} | options)


@every_kind
@every_method
def test_ones_equal_none(case, name):
    problem, count = case
    assert_same_result(run(problem, name, np.ones(count)), run(problem, name, None))


@every_kind
@every_method
def test_scale_does_not_matter(case, name):
    problem, count = case
    weight = np.random.default_rng(0).exponential(size=count) + 0.1
    assert_close(run(problem, name, weight * 1234.5).s, run(problem, name, weight).s)


@every_method
def test_rows_of_weight_zero_are_as_if_absent(name):
    problem = helpers.mixture(40, d=2)
    weight = np.random.default_rng(0).integers(3, size=40).astype(float)
    there = weight > 0
    assert 5 < there.sum() < 35
    result = run(problem, name, weight, theta0=None)
    expected = run(problem._replace(data=problem.data[there]), name, weight[there], theta0=None)
    assert_same_result(result, expected)


@every_method
@pytest.mark.parametrize("factor", [1, 0.37], ids=["tokens", "fractional counts"])
def test_documents_of_weight_zero_have_no_tokens(name, factor):
    problem = helpers.topics(40)
    weight = np.array([2.0, 0.0, 1.0, 0.5])
    without = problem.data.toarray()
    without[1] = 0
    assert problem.data.toarray()[1].sum() > 0
    result = run(problem._replace(data=problem.data * factor), name, weight, theta0=None)
    expected = problem._replace(data=sp.csr_array(without) * factor)
    assert_same_result(result, run(expected, name, np.array([2.0, 1.0, 1.0, 0.5]), theta0=None))


@every_method
def test_tokens_of_weight_zero_are_as_if_absent(name):
    problem = helpers.topics(40)
    documents, words = helpers.tokens_of(problem.data.toarray())
    weight = np.random.default_rng(0).integers(3, size=40).astype(float)
    there = weight > 0
    sizes = {"n_documents": 4, "n_words": 6}
    result, expected = (
        run(problem._replace(data=source), name, None, theta0=None)
        for source in (
            TokenSource(documents, words, sample_weight=weight, **sizes),
            TokenSource(documents[there], words[there], sample_weight=weight[there], **sizes),
        )
    )
    assert_same_result(result, expected)


@every_kind
def test_whole_weights_equal_repetition(case):
    problem, count = case
    weight = np.random.default_rng(0).integers(3, size=count)
    weight[-1] = 2  # a pair of token arrays keeps its D and V
    result = run(problem, "em", weight)
    expected = run(problem._replace(data=repeated(problem.data, weight)), "em", None)
    for one, other in zip((*result.theta, result.s), (*expected.theta, expected.s), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def repeated(data, weight):
    """Return the data with each row, document or token as often as its weight says."""
    if sp.issparse(data):
        return sp.csr_array(data.toarray() * weight[:, None])
    if isinstance(data, tuple):
        return tuple(np.repeat(part, weight) for part in data)
    return np.repeat(data, weight, axis=0)
