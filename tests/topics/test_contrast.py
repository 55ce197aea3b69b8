"""A background topic, topics that repel each other, and passes in float32."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from topic_fits import fit_topics

import swiftem
from swiftem.topics.compute.numpy import decorrelated

K, OWN, COMMON = 10, 20, 15


def corpus(n_documents=900, seed=0):
    """Return documents of two topics each; in every document, half of the words are common ones."""
    rng = np.random.default_rng(seed)
    words = np.zeros((K - 1, COMMON + OWN * (K - 1)))
    for k in range(K - 1):
        words[k, COMMON + OWN * k : COMMON + OWN * (k + 1)] = rng.dirichlet(np.ones(OWN))
    common = np.zeros(words.shape[1])
    common[:COMMON] = rng.dirichlet(np.full(COMMON, 5.0))
    rows = []
    for _ in range(n_documents):
        one, two = rng.choice(K - 1, 2, replace=False)
        rows.append(rng.multinomial(40, 0.5 * common + 0.35 * words[one] + 0.15 * words[two]))
    return sp.csr_array(np.array(rows, dtype=float))


fit = partial(fit_topics, n_components=K)


def diversity(model, n):
    top = np.argsort(-model.components_, axis=1)[:, :n]
    return len(np.unique(top)) / top.size


@pytest.fixture(scope="module")
def counts():
    return corpus()


@pytest.fixture(scope="module")
def default(counts):
    return fit(counts)


def test_by_default_common_words_are_in_the_background_and_topics_are_distinct(counts, default):
    plain = fit(counts, background=False, decorrelation=0)
    assert set(np.argsort(-default.components_[0])[:COMMON]) == set(range(COMMON))
    assert default.components_[1:, :COMMON].sum(axis=1).max() < 0.2
    assert diversity(default, 10) > max(0.9, diversity(plain, 10))
    new = corpus(300, seed=1)
    assert default.perplexity(new) < 1.05 * plain.perplexity(new)
    assert default.coherence(counts).mean() >= plain.coherence(counts).mean() - 1e-9


def test_the_strength_has_an_effect_and_none_is_none(counts):
    found = [fit(counts, method="em", max_iter=40, decorrelation=tau) for tau in ("auto", 0, 50.0, 1000.0)]
    np.testing.assert_array_equal(found[0].components_, found[1].components_)
    assert diversity(found[1], 10) < diversity(found[2], 10) <= diversity(found[3], 10)
    own = fit(counts, method="em", max_iter=40, background=True, decorrelation=0)
    assert np.abs(own.components_ - found[1].components_).max() > 1e-3


def test_decorrelated_counts_are_divided_by_the_shares_of_others():
    rng = np.random.default_rng(0)
    counts, beta = rng.random((4, 6)), np.full((1, 1), 0.1)
    topics = (counts + beta) / (counts + beta).sum(axis=1, keepdims=True)
    for background in (False, True):
        found = decorrelated(counts, topics, 3.0, background)
        for k in range(4):
            others = [topics[m] for m in range(int(background), 4) if m != k]
            divided = counts[k] / (1.0 + 3.0 * np.mean(others, axis=0))
            expected = counts[k] if background and k == 0 else divided
            np.testing.assert_allclose(found[k], expected, rtol=1e-12)
    assert decorrelated(counts, topics, 0.0, True) is counts


@pytest.mark.parametrize("options", [{"n_components": 7}, {"beta": np.full((K, 195), 0.05)}])
def test_few_topics_and_seed_words_have_no_background(counts, options):
    assert counts.shape[1] == 195
    one = fit(counts, max_iter=8, **options)
    two = fit(counts, max_iter=8, background=False, decorrelation=0, **options)
    np.testing.assert_array_equal(one.components_, two.components_)


@pytest.mark.parametrize("given", [{"background": True}, {"decorrelation": 2.0}])
@pytest.mark.parametrize("how", [{"method": "sem"}, {"method": "fiem"}])
def test_other_methods_than_em_have_neither(counts, given, how):
    (name,) = given
    (argument,) = how
    with pytest.raises(ValueError, match=rf"{name} must be 'auto' or (0|False) for {argument}="):
        fit(counts, **given, **how)
    fit(counts[:100], max_iter=1, **{name: type(given[name])(0)}, **how)


def test_a_model_remembers_them(counts, tmp_path):
    model = fit(counts, max_iter=2, background=True, decorrelation=3.5)
    model.save(tmp_path / "model")
    loaded = swiftem.PLSA.load(tmp_path / "model")
    assert (loaded.background, loaded.decorrelation) == (True, 3.5)
    assert loaded.background_ == model.background_ == 0


def test_a_model_says_which_topic_is_the_background(counts, default):
    assert default.background_ == 0
    assert fit(counts, max_iter=2, background=False).background_ is None
    assert default.merge_topics([[2, 3]]).background_ == 0
    assert swiftem.PLSA.from_counts(default.components_).background_ is None
    assert swiftem.PLSA(3, random_state=0).partial_fit(counts).background_ is None


def test_groups_without_the_background(counts, default):
    labels = np.arange(counts.shape[0]) % 3
    every, own = (default.topics_over(labels, counts, background=given) for given in (True, False))
    assert (every.shares[:, 0] > 0.3).all()
    assert (own.shares[:, 0] == 0.0).all()
    np.testing.assert_allclose(own.shares[:, 1:], every.shares[:, 1:] / (1.0 - every.shares[:, :1]))
    np.testing.assert_array_equal(own.tokens, every.tokens)


def test_given_topics_keep_their_places_and_the_first_is_a_background_if_that_is_said(counts, default):
    given = fit(counts, init=default.components_, max_iter=8)
    assert given.background_ is None
    plain = fit(counts, init=default.components_, max_iter=8, background=False, decorrelation=0)
    np.testing.assert_array_equal(given.components_, plain.components_)
    again = fit(counts, init=default.components_, max_iter=8, background=True, decorrelation=30.0)
    assert again.background_ == 0
    assert again.topic_similarity(default).argmax(axis=1).tolist() == list(range(K))


def test_a_path_does_not_split_the_background(counts):
    found = swiftem.select_topics(counts, [K - 3, K - 1, K], random_state=0)
    assert found.best.n_components == K
    assert found.best.background_ == 0
    assert set(np.argsort(-found.best.components_[0])[:COMMON]) == set(range(COMMON))
    assert found.best.components_[1:, :COMMON].sum(axis=1).max() < 0.2


def test_float32_predicts_as_float64_does():
    many, new = corpus(6000, seed=3), corpus(300, seed=1)  # more than is fitted without compiled code
    single, double = (fit(many, tol=tol, max_iter=20) for tol in (1e-6, 9e-7))
    assert np.abs(single.components_ - double.components_).max() > 0.0
    assert single.perplexity(new) == pytest.approx(double.perplexity(new), rel=1e-4)
    assert single.score(new) == pytest.approx(double.score(new), rel=1e-5)
    np.testing.assert_allclose(single.transform(many), double.transform(many), rtol=0, atol=0.02)
    np.testing.assert_allclose(single.doc_topic_.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_extreme_counts_need_float64(scale):
    X = corpus(6000, seed=3) * scale
    usual, precise = (fit(X, tol=tol, max_iter=2, method="em") for tol in (1e-4, 1e-8))
    np.testing.assert_array_equal(usual.components_, precise.components_)
