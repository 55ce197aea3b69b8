import numpy as np
import pytest

from swiftem.data import TokenSource

DOCUMENTS, WORDS = [2, 0, 0, 1], [1, 3, 3, 0]


@pytest.mark.parametrize("rows", [1, 3, 99])
def test_blocks_hold_every_token_in_order(rows):
    blocks = list(TokenSource(DOCUMENTS, WORDS).blocks(rows))
    assert max(len(block.y) for block in blocks) <= rows
    assert np.concatenate([block.y for block in blocks]).tolist() == [[2, 1], [0, 3], [0, 3], [1, 0]]
    assert np.concatenate([block.index for block in blocks]).tolist() == [0, 1, 2, 3]


def test_sizes():
    source = TokenSource(DOCUMENTS, WORDS)
    assert (source.n, source.n_documents, source.n_words, source.total_weight) == (4, 3, 4, 4.0)
    larger = TokenSource(DOCUMENTS, WORDS, n_documents=7, n_words=9)
    assert (larger.n_documents, larger.n_words, larger.access) == (7, 9, "random")


def test_tokens_of_weight_zero_are_not_numbered():
    source = TokenSource(DOCUMENTS, WORDS, sample_weight=[0.0, 2.0, 0.0, 0.5])
    assert (source.n, source.total_weight) == (2, 2.5)
    batch = source.take(np.array([1, 0, 1]))
    assert batch.y.tolist() == [[1, 0], [0, 3], [1, 0]]
    assert batch.weight.tolist() == [0.5, 2.0, 0.5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_documents": 2}, "n_documents must exceed the largest number, 2, got 2"),
        ({"n_words": 3}, "n_words must exceed the largest number, 3, got 3"),
        ({"n_words": 0}, "n_words must be at least 1"),
        ({"n_documents": 3.0}, "n_documents must be an integer"),
        ({"sample_weight": [1.0]}, r"sample_weight must have shape \(4,\), one weight per token"),
    ],
)
def test_bad_sizes(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        TokenSource(DOCUMENTS, WORDS, **options)


def test_tokens_are_copied():
    documents = np.array(DOCUMENTS)
    source = TokenSource(documents, WORDS)
    documents[0] = 1
    assert source.take(np.array([0])).y.tolist() == [[2, 1]]


def test_fingerprint():
    sources = [
        TokenSource(DOCUMENTS, WORDS),
        TokenSource(WORDS, DOCUMENTS),
        TokenSource(DOCUMENTS, WORDS, n_words=9),
        TokenSource(DOCUMENTS, WORDS, sample_weight=[1, 2, 3, 4]),
    ]
    assert len({source.fingerprint() for source in sources}) == len(sources)
    assert TokenSource(np.int32(DOCUMENTS), WORDS).fingerprint() == sources[0].fingerprint()
