"""α that is learned from documents, against a plain fixed point; and a sparse β."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import digamma, gammaln
from sklearn.exceptions import ConvergenceWarning
from topic_fits import fit_topics

import swiftem
from swiftem.topics import fit as module
from swiftem.topics.fit import next_alpha

K, V = 4, 40


fit = partial(fit_topics, n_components=K, alpha="learn")


def drawn(alpha, n_documents=800, length=60, seed=0):
    """Return documents of topics with ten words each, whose shares are Dirichlet(α)."""
    rng = np.random.default_rng(seed)
    topics = np.kron(np.eye(K), rng.dirichlet(np.full(10, 2.0)))
    shares = rng.dirichlet(alpha, n_documents)
    return sp.csr_array(rng.multinomial(length, shares @ topics).astype(float)), topics


def counts_of_topics(seed=0, n=50):
    """Return expected counts (n, 3), which are fractions, and weights (n,)."""
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.5, 8.0, size=(n, 3))
    counts[0] = 0.0  # a document without tokens
    return counts, rng.integers(1, 4, n).astype(float)


def plain_step(alpha, counts, weight):
    """Return the fixed-point step, document by document and topic by topic."""
    above, below = np.zeros(len(alpha)), 0.0
    for row, w in zip(counts, weight, strict=True):
        below += w * (digamma(row.sum() + alpha.sum()) - digamma(alpha.sum()))
        for k in range(len(alpha)):
            p = 1.0 - np.exp(-row[k])
            if p > 0.0:
                above[k] += w * p * (digamma(row[k] / p + alpha[k]) - digamma(alpha[k]))
    return alpha * above / below


def step(alpha, counts, weight):
    lengths = counts.sum(axis=1)
    shares = (counts + alpha) / (lengths + alpha.sum())[:, None]
    return next_alpha(alpha, shares, lengths, weight)


def log_likelihood(alpha, counts, weight):
    lengths, total = counts.sum(axis=1), alpha.sum()
    of_topics = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)
    return float(weight @ (gammaln(total) - gammaln(lengths + total) + of_topics))


def test_a_step_is_the_plain_one():
    counts, weight = counts_of_topics()
    for alpha in (np.array([0.1, 0.1, 0.1]), np.array([0.01, 2.0, 7.0])):
        np.testing.assert_allclose(step(alpha, counts, weight), plain_step(alpha, counts, weight), rtol=1e-12)


def test_steps_climb_to_the_maximum():
    counts, weight = counts_of_topics()
    counts = np.where(counts > 2.0, 40.0 + counts, 0.0)  # they are positive, or they are not
    alpha, values = np.full(3, 0.1), []
    for _ in range(400):
        values.append(log_likelihood(alpha, counts, weight))
        alpha = step(alpha, counts, weight)
    assert (np.diff(values) > -1e-9).all()
    best = minimize(lambda log: -log_likelihood(np.exp(log), counts, weight), np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(alpha, np.exp(best.x), rtol=1e-3)


def test_alpha_stays_in_its_range_and_nothing_is_learned_from_nothing():
    shares, alpha = np.array([[1.0, 0.0]] * 5), np.full(2, 0.1)
    for _ in range(20):
        alpha = next_alpha(alpha, shares, np.full(5, 9.0), np.ones(5))
    assert alpha[1] == module.RANGE[0]
    assert 0.1 < alpha[0] < module.RANGE[1]
    nothing = next_alpha(np.full(2, 0.1), np.full((5, 2), 0.5), np.zeros(5), np.ones(5))
    np.testing.assert_array_equal(nothing, 0.1)


def test_many_documents_are_represented_by_some():
    counts, weight = counts_of_topics(n=9999)
    alpha = np.full(3, 0.1)
    expected = plain_step(alpha, counts[::2], weight[::2])
    np.testing.assert_allclose(step(alpha, counts, weight), expected, rtol=1e-12)


@pytest.mark.parametrize("passes", [1, 6])
def test_a_fit_is_that_of_plain_numpy(passes):
    X, _ = drawn(np.array([0.5, 0.2, 0.1, 0.1]), n_documents=30)
    init = np.random.default_rng(1).dirichlet(np.ones(V), K)
    weight = np.random.default_rng(2).integers(1, 3, 30).astype(float)
    model = swiftem.PLSA(K, alpha="learn", method="em", init=init, max_iter=passes, tol=0.0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, sample_weight=weight)
    counts, topics, alpha = X.toarray(), init, np.full(K, 0.1)
    shares = np.full((30, K), 1 / K)
    for _ in range(passes):
        r = shares[:, :, None] * topics  # documents, topics, words
        r *= (counts / r.sum(axis=1))[:, None]
        of_documents = r.sum(axis=2)
        shares = (of_documents + alpha) / (counts.sum(axis=1) + alpha.sum())[:, None]
        alpha = plain_step(alpha, of_documents, weight)
        of_words = np.tensordot(weight, r, 1) + 0.05
        topics = of_words / of_words.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.alpha_, alpha, rtol=1e-9)
    np.testing.assert_allclose(model.components_, topics, rtol=1e-9)
    np.testing.assert_allclose(model.doc_topic_, shares, rtol=1e-9)


def test_a_topic_of_all_documents_gets_a_large_alpha_and_predictions_are_better():
    true = np.array([3.0, 0.1, 0.1, 0.05])
    X, topics = drawn(true)
    new, _ = drawn(true, n_documents=300, seed=1)
    model, given = (fit(X, init=topics + 1e-9, alpha=alpha) for alpha in ("learn", 0.1))
    assert np.argsort(-model.alpha_)[[0, 3]].tolist() == [0, 3]
    assert 8.0 < model.alpha_[0] / model.alpha_[1:].mean() < 60.0  # 36 in truth
    np.testing.assert_array_equal(given.alpha_, 0.1)
    assert model.perplexity(new) < given.perplexity(new)


def test_transform_uses_what_was_learned_and_a_fit_begins_again():
    X, topics = drawn(np.array([3.0, 0.1, 0.1, 0.05]), n_documents=200)
    model = fit(X, init=topics + 1e-9)
    same = swiftem.PLSA.from_counts(model.components_, alpha=model.alpha_)
    np.testing.assert_allclose(model.transform(X), same.transform(X), rtol=1e-12)
    found = model.alpha_
    np.testing.assert_array_equal(model.fit(X).alpha_, found)


def test_files_merged_topics_and_streams_keep_it(tmp_path):
    X, _ = drawn(np.full(K, 0.2), n_documents=60)
    model = fit(X, max_iter=5)
    model.save(tmp_path / "model")
    loaded = swiftem.PLSA.load(tmp_path / "model")
    assert loaded.alpha == "learn"
    np.testing.assert_array_equal(loaded.alpha_, model.alpha_)
    merged = model.merge_topics([[0, 2]])
    np.testing.assert_allclose(merged.alpha_, [model.alpha_[[0, 2]].sum(), *model.alpha_[[1, 3]]])
    before = model.alpha_
    np.testing.assert_array_equal(model.partial_fit(X).alpha_, before)
    with pytest.raises(ValueError, match="alpha must be numbers for partial_fit of a new model, got 'learn'"):
        swiftem.PLSA(K, alpha="learn").partial_fit(X)


@pytest.mark.parametrize("how", [{"method": "sem"}, {"method": "fiem"}])
def test_only_em_learns(how):
    X, _ = drawn(np.full(K, 0.2), n_documents=20)
    (argument,) = how
    with pytest.raises(ValueError, match=f"alpha must be numbers for {argument}=.*, got 'learn'"):
        fit(X, **how)
    with pytest.raises(ValueError, match="alpha must be a number of at least 0, an array or 'learn'"):
        fit(X, alpha="guess")


def test_a_smaller_beta_makes_sparser_topics():
    X, _ = drawn(np.full(K, 0.2), n_documents=100)
    entropy = [
        -(model.components_ * np.log(model.components_)).sum(axis=1).mean()
        for model in (fit(X, alpha=0.1, beta=beta, init="random") for beta in (1.0, 0.05, 0.001))
    ]
    assert entropy[0] > entropy[1] > entropy[2]
