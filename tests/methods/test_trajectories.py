"""All methods on both models against the dense implementation, every iteration."""

import helpers
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import NAMES, STOCHASTIC, assert_follows_dense, mixture, topics

from swiftem import schedules
from swiftem.data import TokenSource

VARYING = schedules.power(0.5, 0.4)
VARIANCE_REDUCED = ("sem-vr", "fiem")


def weights(n, seed=0):
    return np.random.default_rng(seed).exponential(size=n) + 0.05


@pytest.mark.parametrize("kernels", ["auto", "reference"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "make", [lambda: mixture(150, 1, 2), lambda: topics(100, 5, 8, 3)], ids=["mixture", "topics"]
)
def test_two_thousand_iterations(make, name, kernels):
    gamma = {"sem": schedules.inverse(3, 10)}.get(name, schedules.constant(0.02))
    assert_follows_dense(make(), name, n_iter=2000, gamma=gamma, kernels=kernels)


CASES = {
    "mixture, a step that varies": (lambda: mixture(50), 1),
    "mixture, d = 3": (lambda: mixture(60, d=3, M=3), 1),
    "mixture, one component": (lambda: mixture(20, d=2, M=1), 2),
    "mixture, one sample": (lambda: mixture(1, M=1), 3),
    "mixture, batches": (lambda: mixture(30, d=2), 7),
    "mixture, batches larger than the data": (lambda: mixture(5), 12),
    "mixture, known weights": (lambda: mixture(40, known_weights=(0.2, 0.8)), 2),
    "mixture, sample weights": (lambda: mixture(30, M=3, sample_weight=weights(30)), 4),
    "mixture, known weights and sample weights": (
        lambda: mixture(20, d=2, M=3, known_weights=(0.2, 0.5, 0.3), sample_weight=weights(20)),
        1,
    ),
    "topics, a step that varies": (lambda: topics(50), 1),
    "topics, one topic": (lambda: topics(20, K=1), 2),
    "topics, one token": (lambda: topics(1, D=1, V=1, K=1), 3),
    "topics, batches": (lambda: topics(40, D=3, V=7, K=3), 7),
    "topics, batches larger than the data": (lambda: topics(6), 10),
    "topics, documents and words that do not occur": (
        lambda: topics(counts=np.array([[0, 0, 0], [3, 0, 1], [0, 0, 0], [2, 0, 5], [0, 0, 0]])),
        2,
    ),
}


@pytest.mark.parametrize("name", NAMES)
@helpers.parametrize_cases(CASES)
def test_odd_shapes(case, name):
    make, b = case
    assert_follows_dense(make(), name, n_iter=60, b=b, gamma=VARYING)


@pytest.mark.parametrize("make", [mixture, topics])
@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("epoch_length", [1, 7, 1000])
@pytest.mark.parametrize("name", ["sem-vr", "spider"])
def test_epochs_that_do_not_divide(make, b, epoch_length, name):
    assert_follows_dense(make(20), name, n_iter=50, b=b, gamma=VARYING, epoch_length=epoch_length)


REJECTING = {
    "mixture, sem-vr": (lambda: mixture(30, M=3, delta=1e-4, epsilon=1e-4, spread=0.5), "sem-vr", 0.8),
    "mixture, fiem": (lambda: mixture(30, M=3, delta=1e-4, epsilon=1e-4, spread=0.5), "fiem", 0.3),
    "topics, sem-vr": (lambda: topics(60, D=5, V=8, K=4), "sem-vr", 0.3),
    "topics, fiem": (lambda: topics(60, D=5, V=8, K=4), "fiem", 0.3),
}


@helpers.parametrize_cases(REJECTING)
def test_rejected_steps(case):
    """Steps much larger than this are chaotic: they blow up even the dense run's own rounding."""
    make, name, gamma = case
    truth = assert_follows_dense(make(), name, n_iter=400, gamma=schedules.constant(gamma))
    assert 5 < truth.rejected < 390


@pytest.mark.parametrize("name", VARIANCE_REDUCED)
@pytest.mark.parametrize("b", [1, 4])
def test_negative_statistics_of_plsa(name, b):
    problem = topics(60, D=5, V=8, K=3)
    truth = assert_follows_dense(problem, name, n_iter=400, b=b, gamma=schedules.constant(0.2))
    negative = (truth.s < 0).any(axis=1).sum()
    assert negative > 50
    assert truth.rejected < negative / 2


def unsorted(matrix):
    """Return the matrix with the entries of each row in reverse order."""
    rows = [slice(*pair) for pair in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
    parts = [np.concatenate([part[row][::-1] for row in rows]) for part in (matrix.data, matrix.indices)]
    return sp.csr_array((*parts, matrix.indptr), shape=matrix.shape)


def duplicated(matrix):
    """Return the matrix with one token of each entry stored on its own, at the end of its row."""
    data, indices, indptr = [], [], [0]
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        data += [*(matrix.data[start:stop] - 1), *np.ones(stop - start, dtype=matrix.dtype)]
        indices += [*matrix.indices[start:stop]] * 2
        indptr.append(len(data))
    return sp.csr_array((data, indices, indptr), shape=matrix.shape)


def as_tokens(matrix):
    documents, words = helpers.tokens_of(matrix.toarray())
    return TokenSource(documents, words, n_documents=matrix.shape[0], n_words=matrix.shape[1])


KINDS = {
    "csr": lambda matrix: matrix,
    "csr_matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "float32": lambda matrix: matrix.astype(np.float32),
    "uint8": lambda matrix: matrix.astype(np.uint8),
    "unsorted": unsorted,
    "duplicated": duplicated,
    "tokens": as_tokens,
    "pair of arrays": lambda matrix: helpers.tokens_of(matrix.toarray()),
}


@helpers.parametrize_cases(KINDS)
def test_token_numbering_of_every_input(case):
    problem = topics(50, D=4, V=6)
    assert problem.data.toarray()[-1, -1] > 0  # a pair of arrays then means the same D and V
    assert problem.data.max() > 1
    given = case(problem.data)
    assert_follows_dense(problem._replace(data=given), "fiem", n_iter=100, b=2, gamma=VARYING)


@pytest.mark.parametrize("name", NAMES)
def test_fractional_counts_are_weighted_samples(name):
    """Each entry is one sample with its count as weight, times the weight of its document."""
    rng = np.random.default_rng(3)
    present = (rng.random((5, 7)) < 0.6).astype(np.int64)
    counts = sp.csr_array(present * rng.exponential(size=present.shape))
    by_document = weights(5)
    problem = topics(counts=present)._replace(data=counts, sample_weight=by_document)
    documents, _ = helpers.tokens_of(present)
    weight = counts.data * by_document[documents]
    assert_follows_dense(
        problem, name, n_iter=60, b=3, gamma=VARYING, dense_options={"sample_weight": weight}
    )


@pytest.mark.parametrize("name", STOCHASTIC)
def test_weighted_documents(name):
    problem = topics(40)
    by_document = weights(4)
    documents, _ = helpers.tokens_of(problem.data.toarray())
    assert_follows_dense(
        problem._replace(sample_weight=by_document), name, n_iter=60, b=2, gamma=VARYING,
        dense_options={"sample_weight": by_document[documents]},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["em", "fiem"])
def test_more_samples_than_a_block(name):
    """A full pass goes by blocks of a few thousand samples; statistics and memory must not notice."""
    assert_follows_dense(mixture(9_001, d=2), name, n_iter=5, b=3, gamma=VARYING)


def test_many_tokens_of_one_entry():
    """Tokens of one entry in different blocks."""
    counts = np.array([[2, 9_000, 0], [0, 3, 1]])
    problem = topics(counts=counts)
    result = problem.run(helpers.make_method("em"), n_iter=3)
    entries = np.nonzero(counts)
    weighted = problem._replace(data=TokenSource(*entries, sample_weight=counts[entries]))
    expected = weighted.run(helpers.make_method("em"), n_iter=3)
    helpers.assert_close(result.s, expected.s)
