import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.data import CountSource
from swiftem.models import PLSAModel
from swiftem.topics.tokens import PLSAStatistics


def bound(K=2, D=2, V=3, **options):
    return PLSAModel(K, **options).bind(CountSource(sp.csr_array(np.ones((D, V), dtype=int))))


def flat(doc_topic, topic_word):
    return np.concatenate([np.ravel(doc_topic), np.ravel(topic_word)])


DOCUMENTS = np.array([[0.1, 0.4], [0.3, 0.2]])
WORDS = np.array([[0.1, 0.2, 0.1], [0.3, 0.2, 0.1]])


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
