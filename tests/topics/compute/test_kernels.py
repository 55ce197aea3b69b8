"""The compiled loops over documents do what the plain ones do, and never more slowly for small numbers."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import assert_close
from topic_fits import assert_same_with_any_threads

import swiftem
from swiftem import methods, models
from swiftem.kernels.vector import padded
from swiftem.topics.compute.corpus import Documents, SmallDocuments
from swiftem.topics.compute.passes_kernels import ROOM
from swiftem.topics.documents import m_step


def corpus(n_documents=30, n_words=12, n_topics=3, seed=0, density=0.4):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(2.0, (n_documents, n_words)) * (rng.random((n_documents, n_words)) < density)
    topics = rng.dirichlet(np.full(n_words, 0.5), size=n_topics)
    documents = rng.dirichlet(np.ones(n_topics), size=n_documents)
    return sp.csr_array(counts.astype(float)), documents, topics, rng.random(n_topics), np.ones(n_documents)


def empty_documents():
    X, documents, topics, alpha, weight = corpus()
    X = X.toarray()
    X[[0, 7, 8, 29]] = 0.0
    return sp.csr_array(X), documents, topics, alpha, weight


def zero_probabilities():
    X, documents, topics, _, weight = corpus()
    topics[:, 4] = 0.0  # a word that no topic has
    topics[1, :6] = 0.0
    documents[3] = [0.0, 1.0, 0.0]
    return X, documents, topics, np.zeros(3), weight


def fractional():
    X, documents, topics, alpha, weight = corpus()
    X.data *= np.random.default_rng(1).random(len(X.data))
    return X, documents, topics, alpha, weight


def weights():
    X, documents, topics, alpha, _ = corpus()
    return X, documents, topics, alpha, np.random.default_rng(1).random(30) * 3


def long_document():
    X, documents, topics, alpha, weight = corpus(3, 700, 5, density=1.0)
    X = X.toarray()
    X[1] = np.random.default_rng(1).multinomial(100_000, np.full(700, 1 / 700))
    return sp.csr_array(X), documents, topics, alpha, weight


def small_numbers():
    X, documents, topics, _, weight = corpus()
    topics[0, :5], documents[:, 0] = 1e-99, 1e-59
    return X, documents, topics, np.full(3, 1e-300), weight


CASES = {
    "plain": corpus,
    "empty documents": empty_documents,
    "one word": lambda: corpus(10, 1, 3, density=1.0),
    "one topic": lambda: corpus(10, 6, 1),
    "one document": lambda: corpus(1, 20, 4),
    "many topics": lambda: corpus(8, 9, 67),
    "zero probabilities": zero_probabilities,
    "fractional counts": fractional,
    "weights": weights,
    "a long document": long_document,
    "small numbers": small_numbers,
}


@pytest.fixture(params=CASES, ids=list(CASES))
def case(request):
    return CASES[request.param]()


def passes(X, documents, topics, alpha, weight, betas=None, dtype=np.float64):
    """Return what the plain and the compiled pass give, with ``betas`` those that leave one out."""
    rng, left_out = np.random.default_rng(2), None
    totals = 5.0 + 20.0 * rng.random(topics.shape[0])
    shapes = {"one": (1, 1), "of words": (1, topics.shape[1]), "each": topics.shape}
    if betas is not None:
        left_out = totals, rng.random(shapes[betas]) * 0.3
    results = []
    for given in (SmallDocuments(X, weight), Documents(X, weight, dtype)):
        found = documents.copy()
        counts, value = given.em_pass(found, topics, alpha, left_out)
        results.append((found, counts.T, value))
    return results


@pytest.mark.parametrize("betas", [None, "one", "of words", "each"])
def test_a_pass_is_that_of_the_reference(case, betas):
    X, *_, weight = case
    (expected, sums_expected, value), (found, sums, got) = passes(*case, betas)
    assert_close(found, expected)
    assert_close(sums, sums_expected)
    assert got == pytest.approx(value, rel=1e-12)
    if betas is not None:  # words that no topic has are explained, too
        assert sums.sum() == pytest.approx(weight @ np.asarray(X.sum(axis=1)).ravel(), rel=1e-9)


SINGLE, DOUBLE = np.float32, np.float64
SIZES = [
    *((n, DOUBLE) for n in (3, 9, 24, 32, 40, 64, 65, 129)),
    *((n, SINGLE) for n in (3, 16, 20, 40, 64, 130, 260)),
]


@pytest.mark.parametrize(("n_topics", "dtype"), SIZES)
def test_blocks_of_entries_and_lines_of_topics(n_topics, dtype):
    """Documents of any length in entries, which are processed in groups; the last group may be smaller."""
    lengths = [*range(36), ROOM - 1, ROOM, ROOM + 1, 2 * ROOM + 7, 1]
    begin = np.r_[0, np.cumsum(lengths)]
    rng = np.random.default_rng(0)
    count, word = rng.integers(1, 4, size=begin[-1]).astype(float), rng.integers(0, 50, size=begin[-1])
    X = sp.csr_array((count, word, begin), shape=(len(lengths), 50))
    start, topics = rng.dirichlet(np.ones(n_topics), size=len(lengths)), rng.dirichlet(np.ones(50), n_topics)
    given = X, start, topics, rng.random(n_topics), np.linspace(0.5, 2.0, len(lengths))
    for betas in (None, "one"):
        for exact, got in zip(*passes(*given, betas, dtype), strict=True):
            scale = np.abs(exact).max()
            close = 1e-12 if dtype is DOUBLE else 3e-6
            np.testing.assert_allclose(got / scale, exact / scale, rtol=0, atol=close)


def test_logarithms_in_float32():
    """Within two units of the last place, or of the last place of 1; impossible words as in float64."""
    from swiftem.kernels.compile import kernel
    from swiftem.kernels.vector import START, load, log, spread, step, store

    def logs(table, smallest):
        k = START
        while k < np.uint64(table.shape[1]):
            store(table, 0, k, log(load(table, 0, k), spread(table, smallest)))
            k += step(table)

    p = np.exp(-np.linspace(0.0, 69.0, 1600)).astype(np.float32)
    table = padded(1, 1600, np.float32)
    table[0] = p
    table[0, -1] = 1e-30
    kernel(logs)(table, 1e-30)
    exact = np.log(p.astype(float))
    np.testing.assert_allclose(table[0, :-1], exact[:-1], rtol=2.5e-7, atol=2.5e-7)
    assert table[0, -1] == np.float32(np.log(1e-150))


usual_numbers = pytest.mark.parametrize("name", [name for name in CASES if name != "small numbers"])


@usual_numbers
@pytest.mark.parametrize("betas", [None, "one", "each"])
def test_passes_in_float32_are_close_to_the_reference(name, betas):
    """Not to the bit: a test against float64 tables in both."""
    plain, found = passes(*CASES[name](), betas, SINGLE)
    for exact, single in zip(plain, found, strict=True):
        scale = max(1.0, np.abs(exact).max())
        np.testing.assert_allclose(single / scale, exact / scale, rtol=0, atol=3e-6)
    np.testing.assert_allclose(found[0].sum(axis=1), 1.0, rtol=1e-14)


@usual_numbers
def test_folding_in_in_float32_is_close_to_the_reference(name):
    X, _, topics, alpha, weight = CASES[name]()
    one, value = Documents(X, weight).fold_in(topics, alpha, max_iter=200, tol=1e-4)
    two, single = Documents(X, weight, np.float32).fold_in(topics, alpha, max_iter=200, tol=1e-4)
    np.testing.assert_allclose(single, value, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(two, one, rtol=0, atol=5e-3)  # either stops within the tolerance
    none, nothing = Documents(X, weight, np.float32).fold_in(topics, alpha, tol=1e-4, likelihood=False)
    assert nothing.shape == (0,)
    np.testing.assert_allclose(none, two, rtol=0, atol=5e-3)


def test_a_small_tolerance_is_met_in_float64(case):
    X, _, topics, alpha, weight = case
    one, _ = Documents(X, weight).fold_in(topics, alpha, max_iter=300, tol=1e-9)
    two, _ = Documents(X, weight, np.float32).fold_in(topics, alpha, max_iter=300, tol=1e-9)
    np.testing.assert_array_equal(one, two)


def test_probabilities_too_small_for_float32_are_zero_and_not_subnormal():
    X, documents, topics, _, weight = small_numbers()
    table = Documents(X)._table(topics.T, np.float32)
    assert (table[:5, 0] == 0.0).all()
    assert (table[5:, 0] > 0.0).all()
    found = documents.copy()
    counts, value = Documents(X, weight, np.float32).em_pass(found, topics, np.full(3, 1e-3))
    assert np.isfinite(counts).all()
    assert np.isfinite(value)
    assert not ((counts > 0) & (counts < np.finfo(np.float32).tiny)).any()


def test_leaving_one_out_is_cvb0_where_the_own_part_is_known():
    """Counts that are sums of responsibilities which the parameters give back: subtract them by hand."""
    rng = np.random.default_rng(0)
    X, K = rng.integers(0, 3, (6, 7)).astype(float), 2
    alpha, beta = 0.3, 0.2
    r = rng.dirichlet(np.ones(K), size=X.shape)  # (D, V, K)
    for _ in range(4000):  # to where r is its own image without leaving out: the own part is then r itself
        of_documents = np.einsum("dv,dvk->dk", X, r) + alpha
        of_words = np.einsum("dv,dvk->vk", X, r) + beta
        r = of_documents[:, None] * of_words / of_words.sum(axis=0)
        r /= r.sum(axis=2, keepdims=True)
    totals = of_words.sum(axis=0)
    without = (of_documents[:, None] - r) * (of_words - r) / totals
    expected = np.einsum("dv,dvk->vk", X, without / without.sum(axis=2, keepdims=True))
    documents = Documents(sp.csr_array(X))
    shares = of_documents / of_documents.sum(axis=1, keepdims=True)
    counts, _ = documents.em_pass(
        shares, (of_words / totals).T.copy(), np.full(K, alpha), (totals, np.full((1, 1), beta))
    )
    np.testing.assert_allclose(counts.T, expected, rtol=1e-9)


@pytest.mark.parametrize(("max_iter", "tol"), [(1, 0.0), (2, 1e-2), (7, 0.0), (60, 1e-5), (100, 1e-3)])
def test_folding_in_is_that_of_the_reference(case, max_iter, tol):
    X, _, topics, alpha, weight = case
    expected, found = (
        kind(X, weight).fold_in(topics, alpha, max_iter=max_iter, tol=tol)
        for kind in (SmallDocuments, Documents)
    )
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize(("max_iter", "tol"), [(1, 0.0), (5, 1e-2), (20, 1e-3)])
def test_sums_of_a_batch_are_those_of_the_reference(case, max_iter, tol):
    X, documents, topics, alpha, weight = case
    word_topic = np.ascontiguousarray(topics.T)
    expected = documents.copy()
    by_word, evaluations = SmallDocuments(X, weight).sums(expected, word_topic, alpha, max_iter, tol)
    found = documents.copy()
    sums, got = Documents(X, weight).sums(found, word_topic, alpha, max_iter, tol)
    assert_close(found, expected)
    assert_close(sums, by_word)
    assert got == evaluations


def test_nothing_is_subnormal(case):
    X, documents, topics, alpha, weight = case
    left = documents.copy()
    sums, _ = Documents(X, weight).em_pass(documents, topics, alpha)
    totals, beta = np.full(len(alpha), 10.0), np.zeros((1, 1))
    left_sums, _ = Documents(X, weight).em_pass(left, topics, alpha, (totals, beta))
    for values in (documents, sums, m_step(sums, np.zeros((1, 1))), left, left_sums):
        assert not ((values > 0) & (values < np.finfo(np.float64).tiny)).any()
        assert np.isfinite(values).all()


@pytest.mark.parametrize("kind", [Documents, SmallDocuments])
def test_gathered_documents_are_the_documents(kind):
    X, *_ = empty_documents()
    numbers = np.array([4, 4, 0, 29])
    batch = kind(X, np.arange(30.0)).take(numbers).y
    words = batch.words
    dense = np.zeros((4, 12))
    dense[:, words] = batch.matrix().toarray()
    assert type(batch) is type(kind(X).some(numbers)) is kind
    np.testing.assert_array_equal(dense, X.toarray()[numbers])
    np.testing.assert_array_equal(batch.weight, numbers)
    assert len(np.unique(words)) == len(words)


@pytest.mark.parametrize("make", [corpus, fractional], ids=["integers", "fractions"])
def test_passes_are_iterations_of_em(make):
    """α' and β' act on means over tokens: the counts that a user thinks in, over their number."""
    X, documents, topics, *_ = make()
    alpha, beta, n = 0.3, 0.2, X.sum()
    model = models.PLSAModel(3, alpha=alpha / n, beta=beta / n)
    theta0 = model.theta(doc_topic=documents, topic_word=topics)
    result = swiftem.run(model, X, methods.EM(), theta0=theta0, n_iter=4, seed=0)
    whole, found = Documents(X), documents.copy()
    for _ in range(4):
        counts, _ = whole.em_pass(found, topics, np.full(3, alpha))
        topics = m_step(counts, np.full((1, 1), beta))
    np.testing.assert_allclose(found, result.theta.doc_topic, rtol=0, atol=1e-9)
    np.testing.assert_allclose(topics, result.theta.topic_word, rtol=0, atol=1e-9)


@pytest.fixture(scope="module")
def large():
    return corpus(4000, 300, 7, density=0.3)


@pytest.mark.parametrize("dtype", [DOUBLE, SINGLE])
def test_threads_change_no_bit(large, dtype):
    X, documents, topics, alpha, weight = large

    def results():
        whole, here, start = Documents(X, weight, dtype), documents.copy(), documents.copy()
        sums = whole.sums(start, np.ascontiguousarray(topics.T), alpha, 5, 1e-2)
        return (*whole.em_pass(here, topics, alpha), here, *sums, start, *whole.fold_in(topics, alpha))

    assert_same_with_any_threads(results)
    assert len(Documents(X).pieces()) == 8


def test_an_interrupted_pass_leaves_no_thread_at_work(large):
    X, documents, topics, alpha, weight = large

    def stop():
        raise KeyboardInterrupt

    whole = Documents(X, weight)
    with pytest.raises(KeyboardInterrupt):
        whole.em_pass(documents, topics, alpha, between=stop)
    kept = documents.copy()
    whole.fold_in(topics, alpha)
    np.testing.assert_array_equal(documents, kept)
    np.testing.assert_allclose(documents.sum(axis=1), 1.0)
