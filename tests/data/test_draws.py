import numpy as np
import pytest
import scipy.stats

from swiftem.core import draws as module
from swiftem.core.draws import generator, given_draws, read_seed, seeded_draws

CHUNK = 4096


@pytest.fixture(autouse=True)
def _short_chunks(monkeypatch):
    """Have chunks so short that a test asks for several."""
    monkeypatch.setattr(module, "CHUNK", CHUNK)


def stream(n, b, order, n_iter, seed=0, stream=0):
    """Return the first iterations of one stream, shape (n_iter, b)."""
    draws = seeded_draws(read_seed(seed), n, b, ["iid"] * stream + [order])
    return np.array([draws.at(k)[stream] for k in range(n_iter)])


@pytest.mark.parametrize("order", ["iid", "shuffled"])
@pytest.mark.parametrize(("n", "b"), [(10, 1), (7, 3), (50, 120), (500, CHUNK + 5), (20, 500)])
def test_draws_of_k_do_not_depend_on_what_came_before(order, n, b):
    """Whatever the order in which iterations ask, across chunks and permutations."""
    n_iter = min(2 * CHUNK // b + 50, 3 * CHUNK)
    expected = stream(n, b, order, n_iter)
    assert expected.shape == (n_iter, b)
    assert expected.min() >= 0
    assert expected.max() < n
    ks = np.random.default_rng(0).integers(n_iter, size=30)
    again = seeded_draws(read_seed(0), n, b, [order])
    for k in ks.tolist():
        np.testing.assert_array_equal(again.at(k)[0], expected[k])


@pytest.mark.parametrize(("n", "b"), [(10, 1), (7, 3), (5, 12), (9, 9)])
def test_shuffled_draws_are_permutations_one_after_another(n, b):
    flat = stream(n, b, "shuffled", 2 * CHUNK // b + 50).ravel()
    whole = flat[: len(flat) // n * n].reshape(-1, n)
    assert (np.sort(whole, axis=1) == np.arange(n)).all()
    assert len({tuple(row) for row in whole.tolist()}) > 1


@pytest.mark.parametrize("b", [1, 4])
def test_iid_draws_are_uniform_and_independent(b):
    flat = stream(6, b, "iid", 3 * CHUNK // b).ravel()
    assert scipy.stats.chisquare(np.bincount(flat, minlength=6)).pvalue > 1e-3
    pairs = flat[:-1] * 6 + flat[1:]
    assert scipy.stats.chisquare(np.bincount(pairs[::2], minlength=36)).pvalue > 1e-3


def test_chunks_differ():
    """Each chunk has a generator of its own; two alike would repeat the draws."""
    flat = stream(1000, 1, "iid", 3 * CHUNK).reshape(3, CHUNK)
    assert (flat[0] != flat[1]).mean() > 0.9
    assert (flat[1] != flat[2]).mean() > 0.9


@pytest.mark.parametrize("orders", [("iid", "iid"), ("iid", "shuffled")])
def test_streams_are_independent(orders):
    draws = seeded_draws(read_seed(0), 6, 1, orders)
    i, j = np.array([draws.at(k) for k in range(2 * CHUNK)])[:, :, 0].T
    assert scipy.stats.chisquare(np.bincount(i * 6 + j, minlength=36)).pvalue > 1e-3


def test_a_stream_does_not_depend_on_the_others():
    """sem, iem and fiem with the same seed draw the same i."""
    draws = seeded_draws(read_seed(0), 50, 2, ["iid", "shuffled"])
    np.testing.assert_array_equal([draws.at(k)[0] for k in range(9)], stream(50, 2, "iid", 9))


@pytest.mark.parametrize("change", [{"seed": 1}, {"n": 1001}, {"stream": 1}], ids=str)
def test_seed_size_and_stream_matter(change):
    plain = stream(**{"n": 1000, "b": 1, "order": "iid", "n_iter": 100})
    changed = stream(**{"n": 1000, "b": 1, "order": "iid", "n_iter": 100} | change)
    assert (plain.ravel()[:100] != changed.ravel()[:100]).any()


def test_seeds():
    words = read_seed(5)
    assert (words.shape, words.dtype) == ((4,), np.uint32)
    np.testing.assert_array_equal(words, read_seed(np.uint8(5)))
    np.testing.assert_array_equal(words, read_seed(np.random.SeedSequence(5)))
    assert (read_seed(None) != read_seed(None)).any()
    rng = np.random.default_rng(5)
    assert (read_seed(rng) != read_seed(rng)).any()
    np.testing.assert_array_equal(read_seed(np.random.default_rng(5)), read_seed(np.random.default_rng(5)))


def test_generators_differ_by_key():
    words = read_seed(5)
    values = {generator(words, *key).random() for key in [(), (0,), (1,), (0, 0), (0, 1)]}
    assert len(values) == 5
    assert generator(words, 0, 1).random() == generator(read_seed(5), 0, 1).random()


def test_given_draws_start_where_they_are_told():
    given = given_draws([[3, 1], [0, 2]], n=4, batch_size=2, streams=1, n_iter=2, start=10)
    assert [part.tolist() for k in (10, 11) for part in given.at(k)] == [[3, 1], [0, 2]]


def test_given_draws_of_two_streams():
    given = given_draws(np.array([[3, 1], [0, 2]]), n=4, batch_size=1, streams=2, n_iter=2)
    assert [part.tolist() for part in given.at(1)] == [[1], [2]]


def test_no_draws_for_no_iterations():
    given_draws([], n=4, batch_size=2, streams=1, n_iter=0)
