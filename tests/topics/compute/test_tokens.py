"""Compiled full passes of pLSA equal the plain ones, at any number of threads to the last bit."""

from types import SimpleNamespace

import helpers
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import assert_close
from topic_fits import assert_same_with_any_threads

from swiftem import models
from swiftem.core.compute import Compute
from swiftem.data import CountSource, TokenSource
from swiftem.topics.compute.tokens import TokensCompute, is_readable, read_tokens
from swiftem.topics.tokens import PLSATheta

RNG = np.random.default_rng(5)


def sources():
    counts = helpers.random_counts(200, 9, 11, 3)
    counts[4] = 0
    documents, words = helpers.tokens_of(counts)
    order = RNG.permutation(len(words))
    weight_d, weight_t = RNG.random(9) + 0.1, RNG.random(len(words)) + 0.1
    sizes = {"n_documents": 9, "n_words": 11}
    return {
        "counts": CountSource(sp.csr_array(counts)),
        "weighted counts": CountSource(sp.csr_array(counts), weight_d),
        "fractions": CountSource(sp.csr_array(counts * 0.3)),
        "weighted fractions": CountSource(sp.csr_array(counts * 0.3), weight_d),
        "tokens": TokenSource(documents, words, **sizes),
        "shuffled tokens": TokenSource(documents[order], words[order], **sizes),
        "weighted tokens": TokenSource(documents[order], words[order], sample_weight=weight_t, **sizes),
        "one token": TokenSource([0], [0]),
    }


def theta_for(source, K):
    return PLSATheta(
        RNG.dirichlet(np.ones(K), size=source.n_documents),
        RNG.dirichlet(np.ones(source.n_words), size=K),
        RNG.random(K) + 0.5,
    )


@pytest.mark.parametrize(
    ("name", "K"), [(name, K) for name, source in sources().items() for K in (1, 3) if source.n >= K]
)
def test_equals_the_plain_pass(name, K):
    source = sources()[name]
    bound, theta = models.PLSAModel(K).bind(source), theta_for(source, K)
    ours, plain = TokensCompute(bound, source), Compute(bound, source)
    assert_close(ours.full(theta), plain.full(theta))
    for one, other in zip(ours.remember(theta), plain.remember(theta), strict=True):
        assert_close(one, other)
    assert ours.evaluations == plain.evaluations == 2 * source.n
    assert_close(ours.objective(theta), plain.objective(theta))
    assert ours.evaluations == plain.evaluations


@pytest.mark.parametrize("name", sources())
def test_tokens_are_written_out_in_order(name):
    source = sources()[name]
    batch = source.take(np.arange(source.n))
    place, weight = read_tokens(source)
    np.testing.assert_array_equal(place, batch.y)
    np.testing.assert_array_equal(weight if len(weight) else np.ones(source.n), batch.weight)


def test_any_other_source_is_read_by_blocks():
    class Other(TokenSource):
        pass

    source = Other([0, 1, 1], [2, 0, 1], sample_weight=[1.0, 2.0, 3.0])
    place, weight = read_tokens(source)
    np.testing.assert_array_equal(place, [[0, 2], [1, 0], [1, 1]])
    np.testing.assert_array_equal(weight, [1.0, 2.0, 3.0])


def test_zero_probability_is_uniform_and_an_infinite_objective():
    source = TokenSource([0, 0, 1], [0, 1, 1])
    bound = models.PLSAModel(2, alpha=0.0, beta=0.0).bind(source)
    theta = PLSATheta(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2))
    ours = TokensCompute(bound, source)
    np.testing.assert_array_equal(ours.remember(theta)[1], [[1, 0], [0.5, 0.5], [0, 1]])
    assert ours.objective(theta) == Compute(bound, source).objective(theta) == np.inf


def test_tiny_responsibilities_are_zero():
    source = TokenSource([0, 0], [0, 1])
    bound = models.PLSAModel(2, alpha=0.0, beta=0.0).bind(source)
    theta = PLSATheta(np.array([[1.0, 1e-300]]), np.array([[0.5, 0.5], [1e-20, 1.0]]), np.ones(2))
    s, memory = TokensCompute(bound, source).remember(theta)
    np.testing.assert_array_equal(memory, [[1, 0], [1, 0]])
    assert_close(s, Compute(bound, source).full(theta))


def test_float32_memory_is_what_counts():
    source = sources()["weighted counts"]
    bound, theta = models.PLSAModel(3).bind(source), theta_for(source, 3)
    ours = TokensCompute(bound, source)
    ours.memory_dtype = np.dtype(np.float32)
    s, memory = ours.remember(theta)
    assert memory.dtype == np.float32
    batch = source.take(np.arange(source.n))
    mean = bound.statistics(batch, memory.astype(np.float64), batch.weight / source.total_weight)
    np.testing.assert_allclose(s, mean, rtol=0, atol=1e-15)


@pytest.mark.parametrize("shuffled", [False, True])
def test_threads_do_not_change_a_bit(shuffled):
    n, D, V, K = 50_000, 200, 50, 4
    documents, words = np.sort(RNG.integers(D, size=n)), RNG.integers(V, size=n)
    if shuffled:
        RNG.shuffle(documents)
    source = TokenSource(documents, words, n_documents=D, n_words=V, sample_weight=RNG.random(n) + 0.1)
    bound, theta = models.PLSAModel(K).bind(source), theta_for(source, K)

    def results():
        ours = TokensCompute(bound, source)
        assert len(ours._parts) > 3
        return ours.full(theta), *ours.remember(theta), ours.objective(theta)

    s, *_ = assert_same_with_any_threads(results)
    assert_close(s, Compute(bound, source).full(theta))


def test_a_pass_can_be_broken_off():
    source = TokenSource(RNG.integers(9, size=20_000), RNG.integers(9, size=20_000))
    bound, calls = models.PLSAModel(2).bind(source), []

    def check():
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    ours = TokensCompute(bound, source)
    with pytest.raises(KeyboardInterrupt), ours.checked_by(check):
        ours.full(theta_for(source, 2))
    assert len(calls) == 2
    assert ours.evaluations == 0


def test_not_for_more_tokens_than_fit_into_memory():
    sources = (SimpleNamespace(access="random", n=n) for n in (2 * 10**9, 2 * 10**9 + 1))
    assert [is_readable(source) for source in sources] == [True, False]
