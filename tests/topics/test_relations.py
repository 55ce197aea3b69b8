"""Topics for scripts: similarity, merging, documents and labels, and models of other packages."""

import numpy as np
import pytest
import scipy.sparse as sp

import swiftem
from swiftem.topics.quality import representative

X = np.array([[4, 3, 0, 0, 1], [3, 5, 0, 0, 0], [0, 0, 2, 5, 1], [0, 0, 6, 2, 0], [2, 2, 2, 2, 1]])
WORDS = ["ape", "bee", "cod", "dog", "eel"]
COUNTS = np.array([[6.0, 2, 0, 0, 1], [0, 0, 4, 4, 0], [2, 6, 0, 0, 3]])


@pytest.fixture(scope="module")
def model():
    return swiftem.PLSA(3, random_state=0, beta=0.01).fit(X)


def entropy(p):
    return -sum(x * np.log2(x) for x in p if x > 0)


def test_similarity_by_its_definition():
    model = swiftem.PLSA.from_counts(COUNTS)
    for measure, of in (
        ("jensen-shannon", lambda p, q: 1 - entropy((p + q) / 2) + (entropy(p) + entropy(q)) / 2),
        ("hellinger", lambda p, q: 1 - 0.5 * ((np.sqrt(p) - np.sqrt(q)) ** 2).sum()),
        ("cosine", lambda p, q: p @ q / np.linalg.norm(p) / np.linalg.norm(q)),
    ):
        expected = [[of(p, q) for q in model.components_] for p in model.components_]
        found = model.topic_similarity(measure=measure)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(np.diagonal(found), 1.0)
        assert found[0, 1] == pytest.approx(0.0)  # no word in common


def test_similarity_to_another_model(model):
    other = swiftem.PLSA.from_counts(COUNTS[:2])
    assert model.topic_similarity(other).shape == (3, 2)
    np.testing.assert_allclose(model.topic_similarity(other), other.topic_similarity(model).T)
    with pytest.raises(ValueError, match="other must be a model of the same 5 words, got one of 2"):
        model.topic_similarity(swiftem.PLSA.from_counts(np.ones((2, 2))))
    with pytest.raises(TypeError, match="other must be a fitted PLSA, got 3"):
        model.topic_similarity(3)
    with pytest.raises(ValueError, match="measure must be 'jensen-shannon', 'hellinger' or 'cosine'"):
        model.topic_similarity(measure="l2")


def test_merged_topics_predict_what_their_members_predict(model):
    merged = model.merge_topics([[2, 0]])
    assert merged.components_.shape == (2, 5)
    np.testing.assert_allclose(merged.components_.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        merged.topic_counts_, [model.topic_counts_[[0, 2]].sum(), model.topic_counts_[1]]
    )
    np.testing.assert_allclose(
        merged.topic_prevalence() @ merged.components_, model.topic_prevalence() @ model.components_
    )
    np.testing.assert_allclose(merged.doc_topic_[:, 0], model.doc_topic_[:, [0, 2]].sum(axis=1))
    np.testing.assert_allclose(merged.alpha, [0.2, 0.1])
    assert len(model.components_) == 3  # the model itself is unchanged
    assert not hasattr(merged, "log_likelihood_")
    np.testing.assert_allclose(merged.transform(X).sum(axis=1), 1.0)
    assert merged.partial_fit(X).components_.shape == (2, 5)


def test_topics_without_tokens_are_merged_with_equal_weights():
    model = swiftem.PLSA.from_counts(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]), beta=0.1)
    np.testing.assert_allclose(model.merge_topics([[0, 1]]).components_[0], 1 / 3)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
def test_a_strength_per_topic_and_word_is_merged():
    beta = np.arange(15.0).reshape(3, 5) + 1
    model = swiftem.PLSA(3, beta=beta, init=np.ones((3, 5)) + np.eye(3, 5), random_state=0, max_iter=5).fit(X)
    merged = model.merge_topics([[1, 2]])
    np.testing.assert_allclose(merged.beta, [beta[0], beta[1] + beta[2]])
    assert merged.init == "auto"


@pytest.mark.parametrize(
    ("groups", "error", "words"),
    [
        ([[0, 3]], ValueError, "a topic in groups must be at most 2, got 3"),
        ([[0, 1], [1, 2]], ValueError, "groups must name each topic at most once, got 1 twice"),
        ([0, 1], TypeError, "groups must be a list of lists of topics, got 0"),
        ("01", TypeError, "groups must be a list of lists of topics, got '01'"),
        ([[0.5, 1]], TypeError, "a topic in groups must be an integer, got 0.5"),
    ],
)
def test_groups_that_are_none(model, groups, error, words):
    with pytest.raises(error, match=words):
        model.merge_topics(groups)


def test_representative_documents(model):
    found = model.representative_documents(sp.csr_array(X), n=2)
    shares = model.transform(X)
    assert found.shape == (3, 2)
    assert all(shares[row[0], k] >= 0.9 * shares[:, k].max() for k, row in enumerate(found))
    assert model.representative_documents(n=9).shape == (3, 5)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        model.representative_documents(n=0)


def test_short_documents_count_less():
    shares, lengths = np.array([[1.0], [0.9], [0.2]]), np.array([1.0, 100.0, 100.0])
    assert representative(shares, lengths, 1).tolist() == [[1]]
    assert representative(shares, None, 1).tolist() == [[0]]


def test_topics_over_labels(model):
    labels = np.array(["b", "a", "b", "a", "b"])
    over = model.topics_over(labels, X)
    shares, tokens = model.transform(X), X.sum(axis=1)
    assert over.labels.tolist() == ["a", "b"]
    assert over.documents.tolist() == [2, 3]
    assert over.tokens.tolist() == [tokens[labels == "a"].sum(), tokens[labels == "b"].sum()]
    for row, label in zip(over.shares, "ab", strict=True):
        np.testing.assert_allclose(
            row, np.average(shares[labels == label], axis=0, weights=tokens[labels == label])
        )
    of_fit = model.topics_over(labels)
    np.testing.assert_allclose(of_fit.shares[0], model.doc_topic_[labels == "a"].mean(axis=0))
    with pytest.raises(ValueError, match=r"labels must be one for each of the 5 documents, got shape \(2,\)"):
        model.topics_over(["a", "b"])
    with pytest.raises(TypeError, match="labels must be comparable with each other"):
        model.topics_over(np.array(["a", 1, None, 2, 3], dtype=object))


def test_a_loaded_model_has_no_documents(model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="X must be counts, as the model does not have the documents"):
        swiftem.PLSA.load(tmp_path / "model").representative_documents()


def test_counts_are_a_model(tmp_path):
    model = swiftem.PLSA.from_counts(COUNTS, names=WORDS, beta=0.5)
    np.testing.assert_allclose(model.components_, (COUNTS + 0.5) / (COUNTS + 0.5).sum(axis=1, keepdims=True))
    assert model.top_words(n=1) == [["ape"], ["cod"], ["bee"]]
    np.testing.assert_allclose(model.topic_prevalence(), COUNTS.sum(axis=1) / COUNTS.sum())
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(swiftem.PLSA.load(tmp_path / "model").components_, model.components_)
    fitted = swiftem.PLSA(2, random_state=0).fit(X)
    same = swiftem.PLSA.from_counts(fitted._word_counts, beta=fitted.beta)
    np.testing.assert_allclose(same.transform(X), fitted.transform(X), atol=1e-3)


@pytest.mark.parametrize(
    ("counts", "options", "words"),
    [
        (np.ones(3), {}, r"counts must have shape \(any, any\), got \(3,\)"),
        (-np.ones((1, 2)), {}, "counts must have a row per topic and no entry below 0"),
        (
            [[0, 0], [1, 1]],
            {},
            "counts must have a positive entry in each row if beta is 0, got none in row 0",
        ),
        ([[1, np.nan]], {}, "counts must"),
        ([[1, 2]], {"names": ["a"]}, "names must be one for each of the 2 columns, got 1"),
        ([[1, 2]], {"alpha": -1}, "alpha must be finite and not negative"),
    ],
)
def test_counts_that_are_none(counts, options, words):
    with pytest.raises(ValueError, match=words):
        swiftem.PLSA.from_counts(counts, **options)


def test_from_and_to_sklearn():
    from sklearn.decomposition import LatentDirichletAllocation

    lda = LatentDirichletAllocation(2, random_state=0, doc_topic_prior=0.3, topic_word_prior=0.2).fit(X)
    model = swiftem.PLSA.from_sklearn(lda, WORDS)
    np.testing.assert_allclose(
        model.components_, lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    )
    np.testing.assert_allclose(model.topic_counts_.sum(), X.sum())
    assert (model.alpha, model.beta, list(model.feature_names_in_)) == (0.3, 0.2, WORDS)
    back = model.to_sklearn()
    np.testing.assert_allclose(back.components_, lda.components_)
    del back.feature_names_in_  # X has none
    np.testing.assert_allclose(back.transform(X), lda.transform(X))
    np.testing.assert_allclose(back.perplexity(X), lda.perplexity(X), rtol=1e-6)
    assert back.partial_fit(X).components_.shape == (2, 5)


def test_a_model_without_priors_becomes_one_of_sklearn():
    back = swiftem.PLSA.from_counts(COUNTS, alpha=0.0).to_sklearn()
    assert (back.components_ > 0).all()
    np.testing.assert_allclose(back.transform(X).sum(axis=1), 1.0)


def test_queries_do_not_depend_on_the_output_that_users_chose():
    pytest.importorskip("pandas")
    model = swiftem.PLSA(2, random_state=0).fit(X)
    plain = model.to_pyldavis(X), model.representative_documents(X, n=2), model.topics_over(list("ababa"), X)
    model.set_output(transform="pandas")
    np.testing.assert_array_equal(model.to_pyldavis(X)["doc_topic_dists"], plain[0]["doc_topic_dists"])
    np.testing.assert_array_equal(model.representative_documents(X, n=2), plain[1])
    assert str(model.topics_over(list("ababa"), X)) == str(plain[2])
