"""Where topics start, and what leaving one out is good for."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from topic_fits import fit_topics

import swiftem
from swiftem.topics.compute.corpus import Documents
from swiftem.topics.fit import best_start, clustered_topics, random_topics

ALPHA, BETA = np.full(5, 0.1), np.full((1, 1), 0.05)


def corpus(n_documents=800, n_words=150, n_topics=5, length=12, seed=0):
    """Short documents of one topic each, almost."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), size=n_topics)
    labels = rng.integers(0, n_topics, n_documents)
    X = np.array(
        [
            rng.multinomial(n + 2, topics[k])
            for n, k in zip(rng.poisson(length, n_documents), labels, strict=True)
        ]
    )
    return sp.csr_array(X.astype(float)), topics, labels


fit = partial(fit_topics, n_components=5)


def matched(found, topics):
    """Return how near each true topic is to the nearest that was found, by total variation."""
    return np.abs(found[:, None] - topics[None]).sum(axis=2).min(axis=0) / 2


def test_clusters_are_near_the_topics_and_random_ones_are_not():
    X, topics, _ = corpus()
    clustered = clustered_topics(Documents(X), 5, np.random.RandomState(0), 5_000)
    np.testing.assert_allclose(clustered.sum(axis=1), 1.0)
    assert (clustered > 0).all()
    # 0.3 of a start is not of its cluster, and a cluster may have two topics.
    assert np.median(matched(clustered, topics)) < 0.3
    assert np.median(matched(random_topics(5, 150, BETA, np.random.RandomState(0)), topics)) > 0.6


def test_documents_of_weight_zero_and_empty_ones_are_not_clustered():
    X, *_ = corpus(300)
    padded = sp.csr_array(sp.vstack([X, sp.csr_array((50, 150)), X[:40]]))
    weight = np.r_[np.ones(350), np.zeros(40)]
    one = clustered_topics(Documents(X), 5, np.random.RandomState(0), 5_000)
    two = clustered_topics(Documents(padded, weight), 5, np.random.RandomState(0), 5_000)
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)


def test_equal_documents_make_different_topics():
    X = sp.csr_array(np.tile([3.0, 2.0, 1.0, 1.0], (600, 1)))
    topics = clustered_topics(Documents(X), 3, np.random.RandomState(0), 5_000)
    assert np.isfinite(topics).all()
    assert min(np.abs(topics[i] - topics[j]).max() for i, j in ((0, 1), (0, 2), (1, 2))) > 1e-4


def test_the_best_of_several_starts_goes_on():
    X, topics, _ = corpus()
    documents = Documents(X)
    good = 0.9 * topics + 0.1 / 150
    poor = random_topics(5, 150, BETA, np.random.RandomState(0))
    for starts in ([good, poor], [poor, good], [poor, good, poor]):
        assert best_start(starts, documents, ALPHA, BETA) is good
    large = Documents(sp.csr_array(sp.vstack([X] * 5)))
    assert best_start([poor, good], large, ALPHA, BETA) is good


@pytest.mark.parametrize("init", ["auto", "random", "k-means"])
def test_em_starts_from_random_topics_or_clusters(init):
    X, *_ = corpus()
    start = random_topics(5, 150, BETA, np.random.RandomState(0))
    if init == "k-means":
        start = clustered_topics(Documents(X), 5, np.random.RandomState(0), 5_000)
    one, two = (fit(X, method="em", init=given, max_iter=3) for given in (init, start))
    np.testing.assert_allclose(one.components_, two.components_, rtol=1e-12)


def test_given_topics_are_started_from():
    X, topics, _ = corpus()
    found = fit(X, method="em", init=7.0 * topics, max_iter=1, tol=0.0)
    assert matched(found.components_, topics).max() < 0.1
    order = np.abs(found.components_[:, None] - topics[None]).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(order, np.arange(5))


@pytest.mark.parametrize(
    ("init", "match"),
    [
        (np.ones((4, 150)), r"init must be a number or an array of shape \(5, 150\)"),
        (-np.ones((5, 150)), "init must be finite and not negative"),
        (np.zeros((5, 150)), "a positive entry in each row"),
        ("kmeans", "init must be 'auto', '"),
    ],
)
def test_bad_starts(init, match):
    with pytest.raises(ValueError, match=match):
        fit(corpus()[0], init=init)


def test_clusters_need_documents():
    X = corpus(4)[0]
    with pytest.raises(ValueError, match="init must be 'random' if there are fewer documents"):
        fit(X, init="k-means")
    assert fit(X).components_.shape == (5, 150)


def test_leaving_one_out_predicts_better_with_many_topics_and_short_documents():
    X, *_ = corpus(1200)
    train, new = X[:499], X[900:]  # so few are fitted by em alone
    options = {"init": "k-means", "max_iter": 150, "tol": 0.0}
    plain, out = (
        fit(train, n_components=30, method=name, **options).perplexity(new) for name in ("em", "auto")
    )
    assert out < 0.95 * plain


def test_leaving_one_out_comes_to_rest_at_its_own_fixed_point():
    X, *_ = corpus(499)
    model = fit(X, init="k-means", max_iter=3000, tol=0.0)
    assert model.stationarity_ < 1e-6
    again = fit(X, init=model.components_, max_iter=1000, tol=0.0)
    assert matched(again.components_, model.components_).max() < 5e-3  # its first pass leaves nothing out


def test_passes_of_starts_are_neither_in_the_history_nor_in_n_iter():
    X, *_ = corpus()
    model = fit(X, n_init=4, max_iter=12, tol=0.0)
    assert model.history_.passes[0] < 10.0
    assert 12 <= model.n_iter_ <= 18
    assert int(np.ceil(model.history_.passes[-1] - 1e-9)) == model.n_iter_


def test_numpy_numbers_as_parameters_are_kept_in_a_file(tmp_path):
    X, *_ = corpus(100)
    numbers = {"random_state": np.int64(3), "n_init": np.int64(2), "background": np.True_}
    model = fit(X, n_components=np.int64(5), tol=np.float64(1e-2), **numbers)
    model.save(tmp_path / "model")
    loaded = swiftem.PLSA.load(tmp_path / "model")
    assert (loaded.random_state, loaded.n_init, loaded.background) == (3, 2, True)
    np.testing.assert_array_equal(loaded.components_, model.components_)


def kinds_of_documents(*counts, seed=0):
    """Return documents of kinds that have no word in common, 10 words each, so many of each kind."""
    rng = np.random.default_rng(seed)
    X = np.zeros((sum(counts), 10 * len(counts)))
    kinds = np.repeat(np.arange(len(counts)), counts)
    for row, kind in zip(X, kinds, strict=True):
        row[10 * kind : 10 * kind + 10] = rng.multinomial(30, np.full(10, 0.1))
    return X, kinds


def test_documents_are_clustered_by_their_weights():
    """Two clusters for three kinds of documents: the many of hardly any weight have none of their own."""
    X, kinds = kinds_of_documents(40, 40, 400)
    weight = np.where(kinds == 2, 1e-6, 1.0)
    for seed in range(8):
        topics = clustered_topics(Documents(sp.csr_array(X), weight), 2, np.random.RandomState(seed), 5_000)
        share = topics.reshape(2, 3, 10).sum(axis=2)  # of each kind's words
        np.testing.assert_allclose(np.sort(share[:, 0]), [0.14, 0.84], atol=0.05)
        np.testing.assert_allclose(np.sort(share[:, 1]), [0.14, 0.84], atol=0.05)


def test_the_words_of_a_cluster_count_by_the_weights_of_its_documents():
    X, _ = kinds_of_documents(100, 100)
    marked = np.column_stack([X, np.arange(200) % 2 == 0, np.arange(200) % 2 == 1]).astype(float)
    weight = np.where(np.arange(200) % 2 == 0, 1.0, 1e-6)
    topics = clustered_topics(Documents(sp.csr_array(marked), weight), 2, np.random.RandomState(0), 5_000)
    expected = 0.95 / 31 + 0.05 / 22  # one token of each document is the mark; the rest is chance
    np.testing.assert_allclose(topics[:, 20], expected, rtol=0.5)
    assert (topics[:, 21] < 0.3 * topics[:, 20]).all()
