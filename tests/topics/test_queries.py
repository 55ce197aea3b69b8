"""What is asked of topics, against computations of another kind."""

from itertools import combinations
from math import exp, log

import numpy as np
import pytest
import scipy.sparse as sp
from topic_fits import short_documents

import swiftem
from swiftem.topics.quality import split_counts


@pytest.fixture(scope="module")
def counts():
    return short_documents(150, 25, lengths=(1, 40)).toarray().astype(int)


@pytest.fixture(scope="module")
def model(counts):
    return swiftem.PLSA(3, random_state=0, max_iter=300).fit(counts)


def brute_coherence(X, words, measure):
    here = [set(np.flatnonzero(X[:, v])) for v in words]
    values = []
    for i, j in combinations(range(len(words)), 2):
        both = len(here[i] & here[j])
        if measure == "umass":
            values.append(log((both + 1) / max(len(here[i]), 1)))
        elif both in (0, len(X)):
            values.append(-1.0 if both == 0 else 1.0)
        else:
            p, p_i, p_j = both / len(X), len(here[i]) / len(X), len(here[j]) / len(X)
            values.append(log(p / (p_i * p_j)) / -log(p))
    return np.mean(values)


@pytest.mark.parametrize("measure", ["npmi", "umass"])
@pytest.mark.parametrize("n", [2, 7, 99])
def test_coherence(counts, model, measure, n):
    X = counts.copy()
    X[:, 3], X[:, 4] = 1, 0  # a word in every document, and one in none
    expected = [brute_coherence(X, np.argsort(-row, kind="stable")[:n], measure) for row in model.components_]
    np.testing.assert_allclose(model.coherence(X, measure=measure, n=n), expected, rtol=1e-10)
    assert model.coherence(X, n=1).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="measure must be 'npmi' or 'umass', got 'c_v'"):
        model.coherence(X, measure="c_v")


def test_words_that_all_documents_have_are_coherent(model, counts):
    """Their NPMI is 0/0; it is 1, as of words that are only together."""
    X = counts * 0
    best = np.argsort(-model.components_[0], kind="stable")[:3]
    X[:, best[:2]], X[::2, best[2]] = 1, 1
    expected = [1.0, 0.0, 0.0]  # what is in all documents says nothing of where the third is
    assert model.coherence(X, n=2)[0] == 1.0
    assert model.coherence(X, n=3)[0] == pytest.approx(np.mean(expected), abs=1e-12)


def test_halves_add_up_to_the_whole(counts):
    X = sp.csr_array(counts + 0.0)
    X.data[::3] += 0.25
    one, other = split_counts(X, 0)
    np.testing.assert_allclose((one + other).toarray(), X.toarray())
    assert min(one.data.min(), other.data.min()) > 0
    assert abs(one.sum() / X.sum() - 0.5) < 0.05
    assert (other.sum(axis=1) > 0).all()  # something to predict in every document
    assert (split_counts(X, 1)[0] != one).nnz


def independent_perplexity(model, seen, hidden, alpha):
    """Long plain EM of each document on one half, and the likelihood of the other."""
    total = 0.0
    for known, unknown in zip(seen, hidden, strict=True):
        a = np.full(len(model.components_), 1 / len(model.components_))
        for _ in range(400):
            joint = a[:, None] * model.components_
            r = joint / joint.sum(axis=0)
            a = r @ known + alpha
            a /= a.sum()
        total += unknown @ np.log(a @ model.components_)
    return exp(-total / hidden.sum())


def test_perplexity(counts, model):
    counts = counts[:40]
    seen, hidden = split_counts(sp.csr_array(counts.astype(float)), 5)
    expected = independent_perplexity(model, seen.toarray(), hidden.toarray(), 0.1)
    assert model.perplexity(counts, random_state=5) == pytest.approx(expected, rel=1e-3)
    assert model.perplexity(counts, random_state=5) == model.perplexity(counts, random_state=5)


def test_perplexity_of_fractions_is_a_mean_over_tokens(counts, model):
    """A count below one is halved: nothing is drawn, and both halves are known."""
    X = counts[:30] / 50.0
    assert 0 < X.max() < 1
    expected = independent_perplexity(model, X / 2, X / 2, 0.1)
    assert model.perplexity(X) == pytest.approx(expected, rel=1e-3)
    assert model.perplexity(X, random_state=1) == model.perplexity(X)
    # Of 1.5 tokens, the whole one goes to one half and a quarter to each.
    one, other = split_counts(sp.csr_array(np.full((200, 25), 1.5)), 0)
    assert set(one.toarray().ravel()) == set(other.toarray().ravel()) == {0.25, 1.25}


def test_perplexity_of_documents_of_one_token(model):
    X = np.eye(25)
    expected = exp(-np.log(model.components_.mean(axis=0)).mean())
    assert model.perplexity(X) == pytest.approx(expected, rel=1e-9)
    assert model.perplexity(X[:1]) > 1
    with pytest.raises(ValueError, match="X must have at least one token, got none"):
        model.perplexity(np.zeros((2, 25)))


def test_score_is_the_mean_log_likelihood_of_a_token(counts, model):
    topics = model.transform(counts)
    expected = (counts * np.log(topics @ model.components_)).sum() / counts.sum()
    assert model.score(counts) == pytest.approx(expected, rel=1e-9)
    weight = np.arange(len(counts)) % 3
    rows = (counts * np.log(topics @ model.components_)).sum(axis=1)
    expected = weight @ rows / (weight @ counts.sum(axis=1))
    assert model.score(counts, sample_weight=weight) == pytest.approx(expected, rel=1e-9)


def test_top_words(model):
    names = np.array([f"word{v}" for v in range(25)])
    lift = model.components_ / (model.topic_prevalence() @ model.components_)
    for weight in (0.0, 0.3, 0.5, 1.0):
        found = model.top_words(names, n=4, relevance=weight)
        values = weight * np.log(model.components_) + (1.0 - weight) * np.log(lift)
        for row, words in zip(values, found, strict=True):
            assert words == [f"word{v}" for v in np.argsort(-row, kind="stable")[:4]]
    assert model.top_words(n=4) == model.top_words(n=4, relevance=0.5) != model.top_words(n=4, relevance=1.0)
    assert model.top_words(n=1, relevance=1.0)[0] == [str(model.components_[0].argmax())]
    assert model.top_words(n=0) == [[], [], []]
    with pytest.raises(ValueError, match="names must be one for each of the 25 columns, got 2"):
        model.top_words(["a", "b"])
    for given in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="relevance must be"):
            model.top_words(relevance=given)


def test_words_that_are_shown_are_distinct_and_coherence_can_be_theirs(model, counts):
    def different(weight):
        words = [word for row in model.top_words(n=6, relevance=weight) for word in row]
        return len(set(words)) / len(words)

    assert different(0.3) >= different(0.5) >= different(1.0)
    assert different(0.3) > different(1.0)
    assert model.diversity(n=6) == different(0.5)
    assert [model.diversity(n=6, relevance=weight) for weight in (0.3, 1.0)] == [
        different(0.3),
        different(1.0),
    ]
    for options, match in (({"n": 0}, "n must be"), ({"relevance": 2.0}, "relevance must be")):
        with pytest.raises(ValueError, match=match):
            model.diversity(**options)
    words = [[int(word) for word in row] for row in model.top_words(n=6, relevance=0.3)]
    found = model.coherence(counts, n=6, relevance=0.3)
    np.testing.assert_allclose(found, [brute_coherence(counts, row, "npmi") for row in words])
    assert (model.coherence(counts, n=6) != found).any()
