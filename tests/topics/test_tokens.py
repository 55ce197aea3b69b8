import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.data import CountSource
from swiftem.models import PLSAModel, PLSATheta
from swiftem.topics.tokens import PLSAStatistics


def bound(K=2, D=2, V=3, **options):
    return PLSAModel(K, **options).bind(CountSource(sp.csr_array(np.ones((D, V), dtype=int))))


def flat(doc_topic, topic_word):
    return np.concatenate([np.ravel(doc_topic), np.ravel(topic_word)])


DOCUMENTS = np.array([[0.1, 0.4], [0.3, 0.2]])
WORDS = np.array([[0.1, 0.2, 0.1], [0.3, 0.2, 0.1]])


def test_m_step():
    theta = bound(alpha=0.1, beta=0.2).m_step(flat(DOCUMENTS, WORDS))
    np.testing.assert_allclose(theta.doc_topic, [[0.2 / 0.7, 0.5 / 0.7], [0.4 / 0.7, 0.3 / 0.7]], rtol=1e-14)
    np.testing.assert_allclose(
        theta.topic_word, [[0.3, 0.4, 0.3], [0.5 / 1.2, 0.4 / 1.2, 0.3 / 1.2]], rtol=1e-14
    )
    np.testing.assert_allclose(theta.topic_scale, 1.0, rtol=1e-14)


def test_m_step_with_negative_statistics():
    """Reported topics are normalised over max(s, 0); the E-step's denominator keeps the sum of s."""
    words = np.array([[0.5, -0.2, 0.1], [0.3, 0.2, 0.1]])
    documents = np.array([[-0.1, 0.4], [0.3, 0.2]])
    model = bound(alpha=0.1, beta=0.2)
    theta = model.m_step(flat(documents, words))
    np.testing.assert_allclose(theta.doc_topic[0], [0.1 / 0.6, 0.5 / 0.6], rtol=1e-14)
    np.testing.assert_allclose(theta.topic_word[0], [0.7 / 1.2, 0.2 / 1.2, 0.3 / 1.2], rtol=1e-14)
    np.testing.assert_allclose(theta.topic_word.sum(axis=1), 1.0, rtol=1e-14)
    # Working entries (p_kv + β') / (Σ_v s_kv + β'V).
    working = theta.topic_word * theta.topic_scale[:, None]
    np.testing.assert_allclose(working[0], np.array([0.7, 0.2, 0.3]) / (0.4 + 0.6), rtol=1e-14)
    np.testing.assert_allclose(working[1], np.array([0.5, 0.4, 0.3]) / (0.6 + 0.6), rtol=1e-14)
    # And the E-step uses them: token (0, 1).
    rows, _ = model.posterior(
        CountSource(sp.csr_array(np.ones((2, 3), dtype=int))).take(np.array([1])), theta
    )
    joint = np.array([0.1 * 0.2 / 1.0, 0.5 * 0.4 / 1.2])
    np.testing.assert_allclose(rows[0], joint / joint.sum(), rtol=1e-14)


def test_m_step_minimises_the_surrogate():
    """penalty(θ) − Σ s log θ is smallest at θ̄(s)."""
    model = bound(alpha=0.1, beta=0.2)
    best, rng = model.m_step(flat(DOCUMENTS, WORDS)), np.random.default_rng(0)

    def surrogate(theta):
        value = model.penalty(theta)
        return value - (DOCUMENTS * np.log(theta.doc_topic)).sum() - (WORDS * np.log(theta.topic_word)).sum()

    for _ in range(50):
        parts = [part * np.exp(0.1 * rng.normal(size=part.shape)) for part in best[:2]]
        other = PLSATheta(*(part / part.sum(axis=1, keepdims=True) for part in parts), np.ones(2))
        assert surrogate(other) > surrogate(best)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_a_document_without_tokens(alpha):
    theta = bound(alpha=alpha).m_step(flat(DOCUMENTS * [[1], [0]], WORDS))
    np.testing.assert_allclose(theta.doc_topic[1], [0.5, 0.5], rtol=1e-15)
    assert (theta.doc_topic[0] != 0.5).all()


def test_m_step_makes_new_arrays():
    s = flat(DOCUMENTS, WORDS)
    assert not any(np.shares_memory(part, s) for part in bound(alpha=0.0, beta=0.0).m_step(s))


@pytest.mark.parametrize(
    ("beta", "words", "inside"),
    [
        (0.1, [[-0.29, 0, 0], [1, 0, 0]], True),
        (0.1, [[-0.31, 0, 0], [1, 0, 0]], False),
        (0.1, [[1, 0, 0], [0.5, -0.5, -0.4]], False),
        (0.1, [[5, -4.5, -0.6], [1, 0, 0]], True),  # single entries may be negative
        (0.0, [[0, 0, 0], [1, 0, 0]], False),
    ],
)
def test_domain(beta, words, inside):
    documents = np.full((2, 2), -9.0)  # those of documents may be anything
    assert bound(beta=beta).in_domain(flat(documents, words)) is inside


def test_penalty():
    theta = PLSATheta(np.array([[0.2, 0.8]]), np.array([[0.5, 0.5], [0.1, 0.9]]), np.ones(2))
    value = bound(D=1, V=2, alpha=0.1, beta=0.3).penalty(theta)
    assert value == pytest.approx(-0.1 * np.log(0.16) - 0.3 * np.log(0.25 * 0.09))
    assert bound(D=1, V=2, alpha=0.0, beta=0.0).penalty(theta) == 0.0


def test_unpack_gives_views():
    s = np.arange(10.0)
    for parts in (PLSAModel(2).unpack(s, n_words=3), bound().unpack(s)):
        assert isinstance(parts, PLSAStatistics)
        np.testing.assert_array_equal(parts.doc_topic, [[0, 1], [2, 3]])
        np.testing.assert_array_equal(parts.topic_word, [[4, 5, 6], [7, 8, 9]])
        assert np.shares_memory(parts.doc_topic, s)
        assert np.shares_memory(parts.topic_word, s)


@pytest.mark.parametrize(
    "s", [np.ones(9), np.ones(6), np.ones((2, 5))], ids=["odd", "no documents", "two-dimensional"]
)
def test_unpack_refuses_other_sizes(s):
    with pytest.raises(ValueError, match="s must have shape"):
        PLSAModel(2).unpack(s, n_words=3)
    with pytest.raises(ValueError, match=r"s must have shape \(10,\)"):
        bound().unpack(s)


def test_initial_theta():
    model = bound(K=3, D=4, V=5)
    theta = model.initial_theta(np.random.default_rng(0))
    np.testing.assert_allclose(theta.doc_topic, np.full((4, 3), 1 / 3))
    assert theta.topic_word.shape == (3, 5)
    np.testing.assert_allclose(theta.topic_word.sum(axis=1), 1.0)
    assert (theta.topic_word > 0).all()
    assert len({tuple(row) for row in theta.topic_word.tolist()}) == 3  # equal topics would stay equal
    model.check_theta(theta)


def test_theta():
    doc_topic = np.array([[0.5, 0.5]])
    theta = PLSAModel(2).theta(doc_topic=doc_topic, topic_word=[[1, 0], [0, 1]])
    np.testing.assert_array_equal(theta.topic_scale, [1, 1])
    assert theta.topic_word.dtype == np.float64
    assert not np.shares_memory(theta.doc_topic, doc_topic)
